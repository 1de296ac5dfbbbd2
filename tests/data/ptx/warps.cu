// Warps: shuffles, votes, matches, reductions, barriers, matrix instructions, asynchronous copies.
#include <cooperative_groups.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <mma.h>
namespace cg = cooperative_groups;

__global__ void shuffles(int *o, float *f, double *d) {
    int v = o[threadIdx.x];
    float x = f[threadIdx.x];
    for (int k = 16; k; k >>= 1) x += __shfl_down_sync(0xFFFFFFFFu, x, k);
    v += __shfl_xor_sync(0xFFFFFFFFu, v, 1) + __shfl_sync(0xFFFFFFFFu, v, 0) + __shfl_up_sync(0xFFFFFFFFu, v, 2);
    d[threadIdx.x] = __shfl_sync(0xFFFFFFFFu, d[threadIdx.x], 3);
    if (__any_sync(0xFFFFFFFFu, v > 3) && __all_sync(0xFFFFFFFFu, v < 99)) v += __ballot_sync(0xFFFFFFFFu, v & 1);
    int all;
    v += __match_any_sync(0xFFFFFFFFu, v) + __match_all_sync(0xFFFFFFFFu, v, &all) + all;
    v += __reduce_add_sync(0xFFFFFFFFu, v) + __reduce_max_sync(0xFFFFFFFFu, (unsigned)v) + __activemask();
    __syncwarp();
    f[threadIdx.x] = x;
    o[threadIdx.x] = v + cg::this_thread_block().size();
}

__global__ void barriers(int *o) {
    __shared__ int s[64];
    s[threadIdx.x] = o[threadIdx.x];
    __syncthreads();
    int n = __syncthreads_count(s[0] > 3) + __syncthreads_or(s[1]) + __syncthreads_and(s[2]);
    asm volatile("barrier.sync 1, 64;");
    asm volatile("bar.arrive 2, 64;");
    __nanosleep(20);
    o[threadIdx.x] = n;
}

__global__ void wmma_half(float *c, const __half *a, const __half *b) {
    using namespace nvcuda::wmma;
    fragment<matrix_a, 16, 16, 16, __half, row_major> fa;
    fragment<matrix_b, 16, 16, 16, __half, col_major> fb;
    fragment<accumulator, 16, 16, 16, float> fc;
    __shared__ __half tile[256];
    for (int i = threadIdx.x; i < 256; i += 32) tile[i] = b[i];
    __syncwarp();
    fill_fragment(fc, 0.0f);
    load_matrix_sync(fa, a, 16);
    load_matrix_sync(fb, tile, 16);
    mma_sync(fc, fa, fb, fc);
    store_matrix_sync(c, fc, 16, mem_row_major);
}

__global__ void mma_inline(float *c, const unsigned *a, const unsigned *b) {
    __shared__ unsigned tile[128];
    tile[threadIdx.x] = a[threadIdx.x];
    unsigned a0, a1, a2, a3;
    unsigned at = (unsigned)__cvta_generic_to_shared(tile + threadIdx.x % 16 * 4);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(a0), "=r"(a1), "=r"(a2), "=r"(a3) : "r"(at));
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b[0]), "r"(b[1]));
}

__global__ void async_copy(float4 *out, const float4 *in) {
    __shared__ float4 tile[2][64];
    for (int k = 0; k < 2; k++) {
        __pipeline_memcpy_async(&tile[k][threadIdx.x], in + k * 64 + threadIdx.x, 16);
        __pipeline_commit();
    }
    __pipeline_wait_prior(1);
    __syncthreads();
    out[threadIdx.x] = tile[0][63 - threadIdx.x];
    __pipeline_wait_prior(0);
    __syncthreads();
    out[threadIdx.x + 64] = tile[1][63 - threadIdx.x];
}
