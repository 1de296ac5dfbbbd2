// One tile of D = A B + C with the warp matrix functions, for every type and several shapes and layouts.
// nvcc -ptx -arch=compute_80 -std=c++17 -o wmma.ptx wmma.cu
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <mma.h>
using namespace nvcuda;

template <int M, int N, int K, class T, class Acc, class LA, class LB, wmma::layout_t LC, class Memory = T>
__device__ void tile(const Memory *a, const Memory *b, const Acc *c, Acc *d, int lda, int ldb, int ldc)
{
    wmma::fragment<wmma::matrix_a, M, N, K, T, LA> fa;
    wmma::fragment<wmma::matrix_b, M, N, K, T, LB> fb;
    wmma::fragment<wmma::accumulator, M, N, K, Acc> fc;
    wmma::load_matrix_sync(fa, a, lda);
    wmma::load_matrix_sync(fb, b, ldb);
    wmma::load_matrix_sync(fc, c, ldc, LC);
    wmma::mma_sync(fc, fa, fb, fc);
    wmma::store_matrix_sync(d, fc, ldc, LC);
}

using Row = wmma::row_major;
using Col = wmma::col_major;
#define KERNEL(name, M, N, K, T, ACC, LA, LB, LC, MEM)                                                          \
    extern "C" __global__ void name(const MEM *a, const MEM *b, const ACC *c, ACC *d, int lda, int ldb, int ldc) \
    { tile<M, N, K, T, ACC, LA, LB, wmma::LC, MEM>(a, b, c, d, lda, ldb, ldc); }

KERNEL(half_rr, 16, 16, 16, half, float, Row, Row, mem_row_major, half)
KERNEL(half_cr, 16, 16, 16, half, float, Col, Row, mem_col_major, half)
KERNEL(half_rc, 32, 8, 16, half, float, Row, Col, mem_row_major, half)
KERNEL(half_cc, 8, 32, 16, half, float, Col, Col, mem_row_major, half)
KERNEL(half_half, 16, 16, 16, half, half, Row, Col, mem_row_major, half)
KERNEL(bf16_rc, 16, 16, 16, __nv_bfloat16, float, Row, Col, mem_row_major, __nv_bfloat16)
KERNEL(tf32_rc, 16, 16, 8, wmma::precision::tf32, float, Row, Col, mem_row_major, float)
KERNEL(double_cr, 8, 8, 4, double, double, Col, Row, mem_col_major, double)
KERNEL(s8_rc, 16, 16, 16, signed char, int, Row, Col, mem_row_major, signed char)
KERNEL(u8_cr, 32, 8, 16, unsigned char, int, Col, Row, mem_col_major, unsigned char)

// Through shared memory, with an element-wise step on the fragment in between.
extern "C" __global__ void shared_half(const half *a, const half *b, const float *c, float *d, int, int, int)
{
    __shared__ half sa[16 * 24], sb[16 * 24];
    __shared__ float sd[16 * 20];
    for (int i = threadIdx.x; i < 256; i += 32) {
        sa[i / 16 * 24 + i % 16] = a[i];
        sb[i / 16 * 24 + i % 16] = b[i];
    }
    __syncwarp();
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, Row> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, Col> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
    wmma::fill_fragment(fc, 1.0f);
    wmma::load_matrix_sync(fa, sa, 24);
    wmma::load_matrix_sync(fb, sb, 24);
    wmma::mma_sync(fc, fa, fb, fc);
    for (int i = 0; i < fc.num_elements; i++) fc.x[i] *= 2.0f;
    wmma::store_matrix_sync(sd, fc, 20, wmma::mem_row_major);
    __syncwarp();
    for (int i = threadIdx.x; i < 256; i += 32) d[i] = sd[i / 16 * 20 + i % 16] + c[i];
}
