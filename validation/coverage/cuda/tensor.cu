// Tensor cores and asynchronous copies as of compute capability 8.0.
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/barrier>
#include <mma.h>
namespace wmma = nvcuda::wmma;
namespace cg = cooperative_groups;
#define ALL 0xffffffffu

extern "C" __global__ void wmma_half(const __half *a, const __half *b, const float *c, float *d) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> acc;
    wmma::load_matrix_sync(acc, c, 16, wmma::mem_row_major);
    wmma::load_matrix_sync(fa, a, 16);
    wmma::load_matrix_sync(fb, b, 16);
    wmma::mma_sync(acc, fa, fb, acc);
    for (int i = 0; i < acc.num_elements; i++) acc.x[i] *= 2.0f;
    wmma::store_matrix_sync(d, acc, 16, wmma::mem_row_major);
}

extern "C" __global__ void wmma_bytes(const signed char *a, const signed char *b, int *d) {
    wmma::fragment<wmma::matrix_a, 32, 8, 16, signed char, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 32, 8, 16, signed char, wmma::row_major> fb;
    wmma::fragment<wmma::accumulator, 32, 8, 16, int> acc;
    wmma::fill_fragment(acc, 5);
    wmma::load_matrix_sync(fa, a, 16);
    wmma::load_matrix_sync(fb, b, 8);
    wmma::mma_sync(acc, fa, fb, acc);
    wmma::store_matrix_sync(d, acc, 8, wmma::mem_row_major);
}

// d[16][8] = a[16][16] b[16][8], through shared memory and ldmatrix; b is stored by rows, so it is loaded transposed.
extern "C" __global__ void mma_half(const __half *a, const __half *b, float *d) {
    __shared__ __align__(16) __half sa[16 * 16], sb[16 * 8];
    int lane = threadIdx.x;
    for (int i = lane; i < 256; i += 32) sa[i] = a[i];
    for (int i = lane; i < 128; i += 32) sb[i] = b[i];
    __syncwarp();
    unsigned ra[4], rb[2];
    unsigned pa = (unsigned)__cvta_generic_to_shared(sa + (lane & 15) * 16 + (lane >> 4) * 8);
    unsigned pb = (unsigned)__cvta_generic_to_shared(sb + (lane & 15) * 8);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(ra[0]), "=r"(ra[1]), "=r"(ra[2]), "=r"(ra[3]) : "r"(pa));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];" : "=r"(rb[0]), "=r"(rb[1]) : "r"(pb));
    float acc[4] = {0, 0, 0, 0};
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(acc[0]), "+f"(acc[1]), "+f"(acc[2]), "+f"(acc[3])
                 : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]), "r"(rb[1]));
    int row = lane >> 2, column = 2 * (lane & 3);
    d[row * 8 + column] = acc[0], d[row * 8 + column + 1] = acc[1];
    d[(row + 8) * 8 + column] = acc[2], d[(row + 8) * 8 + column + 1] = acc[3];
}

// Every other type: tf32 m16n8k8, bf16 m16n8k8, s8 m16n8k32, f64 m8n8k4. Fragments are passed as they are.
extern "C" __global__ void mma_types(const unsigned *a, const unsigned *b, const double *da, const double *db, float *tf, float *bf, int *s8, double *dd) {
    int t = threadIdx.x;
    float f[4] = {1, 2, 3, 4}, g[4] = {0, 0, 0, 0};
    int s[4] = {0, 0, 0, 1};
    double d[2] = {0.5, 0.25};
    const unsigned *x = a + 4 * t, *y = b + 2 * t;
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(f[0]), "+f"(f[1]), "+f"(f[2]), "+f"(f[3]) : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
                 : "+f"(g[0]), "+f"(g[1]), "+f"(g[2]), "+f"(g[3]) : "r"(x[0]), "r"(x[1]), "r"(y[0]));
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+r"(s[0]), "+r"(s[1]), "+r"(s[2]), "+r"(s[3]) : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
                 : "+d"(d[0]), "+d"(d[1]) : "d"(da[t]), "d"(db[t]));
    for (int i = 0; i < 4; i++) tf[4 * t + i] = f[i], bf[4 * t + i] = g[i], s8[4 * t + i] = s[i];
    dd[2 * t] = d[0], dd[2 * t + 1] = d[1];
}

extern "C" __global__ void async_copies(const float *in, float *out, int tiles) {
    __shared__ __align__(16) float tile[2][128];
    int t = threadIdx.x;
    if (t < 32) __pipeline_memcpy_async(&tile[0][4 * t], in + 4 * t, 16);
    __pipeline_commit();
    for (int i = 0; i < tiles; i++) {
        if (i + 1 < tiles && t < 32) __pipeline_memcpy_async(&tile[(i + 1) & 1][4 * t], in + 128 * (i + 1) + 4 * t, 16);
        __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
        out[128 * i + t] = tile[i & 1][127 - t] * 2;
        __syncthreads();
    }
}

// cp.async that fills with zeros beyond the end: `size` bytes of 16 are read.
extern "C" __global__ void async_zero_fill(const int *in, int *out, int n) {
    __shared__ __align__(16) int tile[128];
    int t = threadIdx.x, left = 4 * (n - 4 * t), size = left > 16 ? 16 : left > 0 ? left : 0;
    unsigned to = (unsigned)__cvta_generic_to_shared(tile + 4 * t);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(size ? in + 4 * t : in), "r"(size) : "memory");
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
    for (int i = 0; i < 4; i++) out[i * 32 + t] = tile[i * 32 + t];
}

extern "C" __global__ void warp_reductions(const int *in, unsigned *out) {
    int v = in[threadIdx.x], n = blockDim.x;
    unsigned *o = out + threadIdx.x;
    o[0 * n] = __reduce_add_sync(ALL, v), o[1 * n] = __reduce_min_sync(ALL, v), o[2 * n] = __reduce_max_sync(ALL, (unsigned)v);
    o[3 * n] = __reduce_and_sync(ALL, (unsigned)v | 3), o[4 * n] = __reduce_or_sync(ALL, (unsigned)v), o[5 * n] = __reduce_xor_sync(ALL, (unsigned)v);
}

// A barrier object in shared memory: arrive and wait apart, twice around.
extern "C" __global__ void barrier_objects(const int *in, int *out) {
    __shared__ cuda::barrier<cuda::thread_scope_block> meet;
    __shared__ int item[64];
    int t = threadIdx.x;
    if (t == 0) init(&meet, blockDim.x);
    __syncthreads();
    int v = in[t];
    for (int round = 0; round < 2; round++) {
        item[t] = v;
        auto token = meet.arrive();
        int own = v * 3;
        meet.wait(std::move(token));
        v = own + item[(t + 1) % blockDim.x];
        meet.arrive_and_wait();
    }
    out[t] = v;
}
