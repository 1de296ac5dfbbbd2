// Building blocks: digits for a radix sort, a reduction with groups, an aggregated filter, quantiles by atomics.
#include <cooperative_groups.h>

extern "C" __global__ void radix_counts(const unsigned* keys, unsigned* counts, int n, int shift, int per_block) {
    __shared__ unsigned bins[16 * 8];
    for (int i = threadIdx.x; i < 128; i += blockDim.x) bins[i] = 0;
    __syncthreads();
    int warp = threadIdx.x / 32 % 8, first = blockIdx.x * per_block, last = min(first + per_block, n);
    for (int i = first + threadIdx.x; i < last; i += blockDim.x) atomicAdd(&bins[warp * 16 + (keys[i] >> shift & 15)], 1u);
    __syncthreads();
    if (threadIdx.x < 16) {
        unsigned sum = 0;
        for (int w = 0; w < 8; w++) sum += bins[w * 16 + threadIdx.x];
        counts[threadIdx.x * gridDim.x + blockIdx.x] = sum;
    }
}

template <int tile> __device__ float reduced(cooperative_groups::thread_block_tile<tile> group, float value) {
    for (int o = group.size() / 2; o > 0; o /= 2) value += group.shfl_down(value, o);
    return value;
}

extern "C" __global__ void grouped_sum(const float* in, float* out, int n) {
    namespace cg = cooperative_groups;
    __shared__ float part[32];
    cg::thread_block block = cg::this_thread_block();
    auto tile = cg::tiled_partition<32>(block);
    float sum = 0.0f;
    for (int i = blockIdx.x * block.size() + block.thread_rank(); i < n; i += block.size() * gridDim.x) sum += in[i];
    sum = reduced<32>(tile, sum);
    if (tile.thread_rank() == 0) part[tile.meta_group_rank()] = sum;
    block.sync();
    if (tile.meta_group_rank() == 0) {
        sum = tile.thread_rank() < tile.meta_group_size() ? part[tile.thread_rank()] : 0.0f;
        sum = reduced<32>(tile, sum);
        if (tile.thread_rank() == 0) atomicAdd(out, sum);
    }
}

extern "C" __global__ void kept_only(const float* in, float* out, int* count, float limit, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31;
    bool keep = i < n && in[i] > limit;
    unsigned votes = __ballot_sync(~0u, keep);
    int base = 0;
    if (lane == 0 && votes) base = atomicAdd(count, __popc(votes));
    base = __shfl_sync(~0u, base, 0);
    if (keep) out[base + __popc(votes & ((1u << lane) - 1))] = in[i];
}

template <int unrolled> __device__ float chain(const float* x, int n, float a) {
    float sum = 0.0f;
    int i = threadIdx.x;
    for (; i + (unrolled - 1) * blockDim.x < n; i += unrolled * blockDim.x) {
#pragma unroll
        for (int k = 0; k < unrolled; k++) sum = a * sum + x[i + k * blockDim.x];
    }
    for (; i < n; i += blockDim.x) sum = a * sum + x[i];
    return sum;
}

extern "C" __global__ void chains(const float* x, const float* y, float* out, int n, float a) {
    out[blockIdx.x * blockDim.x + threadIdx.x] = chain<4>(x + blockIdx.x * n, n, a) * chain<2>(y + blockIdx.x * n, n, a);
}
