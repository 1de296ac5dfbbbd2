// C = A B of floats, row-major: a result a thread, tiles of 32 x 32, and 8 x 8 results a thread from tiles of 128 x 128 x 8, all
// accesses guarded. Written to the description of a ladder on an RTX 5090 (PROVENANCE.md). nvcc 13.0 -arch=compute_80 -ptx.

#define PRODUCT const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c, int m, int n, int k

extern "C" __global__ void product(PRODUCT) {
    int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= m || column >= n) return;
    float sum = 0;
    const float* left = a + (size_t)row * k;
    for (int i = 0; i < k; ++i) sum += left[i] * b[(size_t)i * n + column];
    c[(size_t)row * n + column] = sum;
}

extern "C" __global__ void __launch_bounds__(1024) product_tiled(PRODUCT) {
    __shared__ float as[32][32], bs[32][32];
    int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * 32 + ty, column = blockIdx.x * 32 + tx;
    float sum = 0;
    int tiles = (k + 31) / 32;
    for (int t = 0; t < tiles; ++t) {
        int ac = t * 32 + tx, br = t * 32 + ty;
        as[ty][tx] = row < m && ac < k ? a[(size_t)row * k + ac] : 0;
        bs[ty][tx] = br < k && column < n ? b[(size_t)br * n + column] : 0;
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 32; ++i) sum += as[ty][i] * bs[i][tx];
        __syncthreads();
    }
    if (row < m && column < n) c[(size_t)row * n + column] = sum;
}

// Four neighbours of a row of `width`, zeros outside
__device__ __forceinline__ void four_of(const float* from, int height, int width, int row, int column, float (&to)[4]) {
    if (row < height && column + 3 < width && width % 4 == 0) {
        float4 four = *reinterpret_cast<const float4*>(from + (size_t)row * width + column);
        to[0] = four.x, to[1] = four.y, to[2] = four.z, to[3] = four.w;
    } else {
#pragma unroll
        for (int i = 0; i < 4; ++i) to[i] = row < height && column + i < width ? from[(size_t)row * width + column + i] : 0;
    }
}
__device__ __forceinline__ void four_to(float* to, int height, int width, int row, int column, const float* from) {
    if (row >= height) return;
    if (column + 3 < width && width % 4 == 0) {
        *reinterpret_cast<float4*>(to + (size_t)row * width + column) = make_float4(from[0], from[1], from[2], from[3]);
    } else {
#pragma unroll
        for (int i = 0; i < 4; ++i)
            if (column + i < width) to[(size_t)row * width + column + i] = from[i];
    }
}
__device__ __forceinline__ void four_shared(const float* from, float* to) {
    float4 four = *reinterpret_cast<const float4*>(from);
    to[0] = four.x, to[1] = four.y, to[2] = four.z, to[3] = four.w;
}
// A thread's rows (and columns) are four from 4 t and four from 64 + 4 t.
__device__ __forceinline__ int place(int t, int i) { return i / 4 * 64 + t * 4 + i % 4; }

__device__ __forceinline__ void add_products(const float (&left)[8], const float (&right)[8], float (&sum)[8][8]) {
#pragma unroll
    for (int i = 0; i < 8; ++i)
#pragma unroll
        for (int j = 0; j < 8; ++j) sum[i][j] = fmaf(left[i], right[j], sum[i][j]);
}
__device__ __forceinline__ void write_results(float* c, int m, int n, int row, int column, int ty, int tx, float (&sum)[8][8]) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        four_to(c, m, n, row + place(ty, i), column + place(tx, 0), &sum[i][0]);
        four_to(c, m, n, row + place(ty, i), column + place(tx, 4), &sum[i][4]);
    }
}

extern "C" __global__ void __launch_bounds__(256) product_registers(PRODUCT) {
    __shared__ __align__(16) float as[8][128], bs[8][128];
    int thread = threadIdx.x, ty = thread / 16, tx = thread % 16, row = blockIdx.y * 128, column = blockIdx.x * 128;
    int ar = thread / 2, ak = thread % 2 * 4, bk = thread / 32, bc = thread % 32 * 4;
    float sum[8][8] = {};
    int tiles = (k + 7) / 8;
    for (int t = 0; t < tiles; ++t) {
        float av[4], bv[4];
        four_of(a, m, k, row + ar, t * 8 + ak, av);
        four_of(b, k, n, t * 8 + bk, column + bc, bv);
#pragma unroll
        for (int i = 0; i < 4; ++i) as[ak + i][ar] = av[i];
        *reinterpret_cast<float4*>(&bs[bk][bc]) = make_float4(bv[0], bv[1], bv[2], bv[3]);
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            float left[8], right[8];
            four_shared(&as[i][ty * 4], left);
            four_shared(&as[i][64 + ty * 4], left + 4);
            four_shared(&bs[i][tx * 4], right);
            four_shared(&bs[i][64 + tx * 4], right + 4);
            add_products(left, right, sum);
        }
        __syncthreads();
    }
    write_results(c, m, n, row, column, ty, tx, sum);
}

__device__ __forceinline__ void copy_16(float* to, const float* from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(from) : "memory");
}
__device__ __forceinline__ void copy_four(float* to, const float* from, int height, int width, int row, int column) {
    if (row < height && column + 3 < width && width % 4 == 0) {
        copy_16(to, from + (size_t)row * width + column);
    } else {
        float four[4];
        four_of(from, height, width, row, column, four);
#pragma unroll
        for (int i = 0; i < 4; ++i) to[i] = four[i];
    }
}

extern "C" __global__ void __launch_bounds__(256) product_copied(PRODUCT) {
    __shared__ __align__(16) float as[2][128][12], bs[2][8][128];
    int thread = threadIdx.x, ty = thread / 16, tx = thread % 16, row = blockIdx.y * 128, column = blockIdx.x * 128;
    int ar = thread / 2, ak = thread % 2 * 4, bk = thread / 32, bc = thread % 32 * 4;
    int tiles = (k + 7) / 8;
    auto fetch = [&](int t, int stage) {
        copy_four(&as[stage][ar][ak], a, m, k, row + ar, t * 8 + ak);
        copy_four(&bs[stage][bk][bc], b, k, n, t * 8 + bk, column + bc);
        asm volatile("cp.async.commit_group;\n" ::: "memory");
    };
    float sum[8][8] = {};
    fetch(0, 0);
    for (int t = 0; t < tiles; ++t) {
        int stage = t & 1;
        if (t + 1 < tiles) {
            fetch(t + 1, stage ^ 1);
            asm volatile("cp.async.wait_group 1;\n" ::: "memory");
        } else {
            asm volatile("cp.async.wait_group 0;\n" ::: "memory");
        }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            float left[8], right[8];
#pragma unroll
            for (int r = 0; r < 8; ++r) left[r] = as[stage][place(ty, r)][i];
            four_shared(&bs[stage][i][tx * 4], right);
            four_shared(&bs[stage][i][64 + tx * 4], right + 4);
            add_products(left, right, sum);
        }
        __syncthreads();
    }
    write_results(c, m, n, row, column, ty, tx, sum);
}
