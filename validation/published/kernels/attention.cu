// The three steps of attention that is not fused: scores, the softmax of their rows, and the product with the values. Written
// to the description of a study on Ada (PROVENANCE.md). Compiled by nvcc 13.0 -arch=compute_80 -ptx.
#include <math_constants.h>

constexpr int TILE = 16, THREADS = TILE * TILE;

// c = scale * a b, or a b^T, tiles of 16 x 16 in shared memory; those of b^T are read down its columns.
template <bool TURNED>
__device__ __forceinline__ void tiled(const float* a, const float* b, float* c, int m, int n, int k, float scale) {
    __shared__ float tile_a[TILE][TILE], tile_b[TILE][TILE];
    const int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * TILE + y, column = blockIdx.x * TILE + x;
    float sum = 0;
    for (int depth = 0; depth < k; depth += TILE) {
        tile_a[y][x] = row < m && depth + x < k ? a[row * k + (depth + x)] : 0.0f;
        tile_b[y][x] = depth + y < k && column < n ? b[TURNED ? column * k + (depth + y) : (depth + y) * n + column] : 0.0f;
        __syncthreads();
        for (int i = 0; i < TILE && depth + i < k; ++i) sum += tile_a[y][i] * tile_b[i][x];
        __syncthreads();
    }
    if (row < m && column < n) c[row * n + column] = TURNED ? scale * sum : sum;
}

extern "C" __global__ void scores(
    const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int m, int n, int k, float scale) {
    tiled<true>(a, b, c, m, n, k, scale);
}

extern "C" __global__ void weighted(
    const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int m, int n, int k, float scale) {
    tiled<false>(a, b, c, m, n, k, scale);
}

struct Most {
    __device__ __forceinline__ float operator()(float x, float y) const { return fmaxf(x, y); }
};

struct Sum {
    __device__ __forceinline__ float operator()(float x, float y) const { return x + y; }
};

// What all threads have: halved in shared memory down to a warp, then by shuffles. It has a place of its own, so that no barrier
// has to keep the next use off; the measured kernel has neither.
template <typename BOTH> __device__ __forceinline__ float of_all(float mine, float* shared, BOTH both) {
    int thread = threadIdx.x;
    shared[thread] = mine;
    __syncthreads();
    for (int half = THREADS / 2; half >= 32; half >>= 1) {
        if (thread < half) shared[thread] = both(shared[thread], shared[thread + half]);
        __syncthreads();
    }
    if (thread < 32) {
        float all = shared[thread];
        for (int away = 16; away > 0; away >>= 1) all = both(all, __shfl_down_sync(0xffffffffu, all, away));
        if (thread == 0) shared[THREADS] = all;
    }
    __syncthreads();
    return shared[THREADS];
}

// A block a row, which it goes through three times.
extern "C" __global__ void softmax(const float* from, float* to, int n) {
    __shared__ float shared[THREADS + 1];
    from += blockIdx.x * n;
    to += blockIdx.x * n;
    float most = -CUDART_INF_F;
    for (int i = threadIdx.x; i < n; i += THREADS) {
        float value = from[i];
        if (value > most) most = value;
    }
    most = of_all(most, shared, Most());
    float sum = 0;
    for (int i = threadIdx.x; i < n; i += THREADS) {
        float power = expf(from[i] - most);
        to[i] = power;
        sum += power;
    }
    sum = of_all(sum, shared, Sum());
    for (int i = threadIdx.x; i < n; i += THREADS) to[i] = to[i] / sum;
}
