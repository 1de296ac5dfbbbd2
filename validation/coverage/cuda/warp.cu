// Lanes of a warp working together: shuffles, votes, matches, divergence, waiting on other lanes and warps.
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
#define ALL 0xffffffffu
#define THREAD (blockIdx.x * blockDim.x + threadIdx.x)

extern "C" __global__ void shuffles(const int *in, int *out) {
    int v = in[THREAD], n = gridDim.x * blockDim.x;
    out[THREAD] = __shfl_sync(ALL, v, (threadIdx.x * 7) & 31);
    out[THREAD + n] = __shfl_up_sync(ALL, v, 3);
    out[THREAD + 2 * n] = __shfl_down_sync(ALL, v, 5, 16);
    out[THREAD + 3 * n] = __shfl_xor_sync(ALL, v, 9);
}

extern "C" __global__ void shuffle_wide(const double *in, double *out) {
    double v = in[THREAD];
    for (int step = 16; step; step >>= 1) v += __shfl_xor_sync(ALL, v, step);
    out[THREAD] = v;
}

extern "C" __global__ void votes(const int *in, unsigned *out) {
    int v = in[THREAD];
    unsigned odd = __ballot_sync(ALL, v & 1);
    out[THREAD] = odd + (__any_sync(ALL, v > 90) ? 1u : 0u) + (__all_sync(ALL, v > 3) ? 2u : 0u);
}

extern "C" __global__ void matches(const int *in, unsigned *out) {
    int same, v = in[THREAD], n = gridDim.x * blockDim.x;
    out[THREAD] = __match_any_sync(ALL, v);
    out[THREAD + n] = __match_all_sync(ALL, v >> 30, &same) + same;
    out[THREAD + 2 * n] = __match_any_sync(ALL, (long long)v << 32);
}

extern "C" __global__ void warp_scan(const int *in, int *out) {
    int lane = threadIdx.x & 31, v = in[THREAD];
    for (int step = 1; step < 32; step <<= 1) {
        int other = __shfl_up_sync(ALL, v, step);
        if (lane >= step) v += other;
    }
    out[THREAD] = v;
}

extern "C" __global__ void divergence(const int *in, int *out) {
    int v = in[THREAD], steps = 0;
    while (v != 1) {
        if (v % 3 == 0) v /= 3;
        else if (v & 1) v = (v > 1000) ? v / 2 : 3 * v + 1;
        else v >>= 1;
        if (++steps > 200) break;
    }
    for (int i = 0; i < (v & 3) + (int)(threadIdx.x & 1); i++)
        for (int j = i; j < 3; j++) steps += i * j + 1;
    out[THREAD] = steps;
}

extern "C" __global__ void active_lanes(const int *in, unsigned *out) {
    unsigned mask = 0;
    if (in[THREAD] & 1) mask = __activemask();
    out[THREAD] = mask;
}

extern "C" __global__ void lane_masks(unsigned *out) {
    unsigned lt, le, gt, ge, eq, lane, warp, warps;
    asm("mov.u32 %0, %%lanemask_lt;" : "=r"(lt));
    asm("mov.u32 %0, %%lanemask_le;" : "=r"(le));
    asm("mov.u32 %0, %%lanemask_gt;" : "=r"(gt));
    asm("mov.u32 %0, %%lanemask_ge;" : "=r"(ge));
    asm("mov.u32 %0, %%lanemask_eq;" : "=r"(eq));
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    asm("mov.u32 %0, %%warpid;" : "=r"(warp));
    asm("mov.u32 %0, %%nwarpid;" : "=r"(warps));
    out[threadIdx.x] = lt + 3 * le + 5 * gt + 7 * ge + 11 * eq + 13 * lane + (warp < warps);
}

// Every thread of the block takes a lock in turn: lanes of one warp wait for each other.
extern "C" __global__ void spin_lock(int *lock, int *count) {
    bool done = false;
    while (!done) {
        if (atomicCAS(lock, 0, 1) == 0) {
            __threadfence();
            *(volatile int *)count += threadIdx.x;
            __threadfence();
            atomicExch(lock, 0);
            done = true;
        }
    }
}

// Warp 0 produces, the others consume, by a flag in shared memory.
extern "C" __global__ void producer_consumer(const int *in, int *out) {
    __shared__ volatile int ready;
    __shared__ volatile int item[32];
    if (threadIdx.x == 0) ready = 0;
    __syncthreads();
    if (threadIdx.x < 32) {
        item[threadIdx.x] = in[threadIdx.x] * 2;
        __threadfence_block();
        __syncwarp();
        if (threadIdx.x == 0) ready = 1;
    } else {
        while (ready == 0) {}
        __threadfence_block();
        out[threadIdx.x - 32] = item[threadIdx.x & 31] + threadIdx.x;
    }
}

extern "C" __global__ void groups(const int *in, int *out) {
    cg::thread_block block = cg::this_thread_block();
    auto tile = cg::tiled_partition<8>(block);
    int v = in[block.thread_rank()];
    for (int step = tile.size() / 2; step; step /= 2) v += tile.shfl_down(v, step);
    v = tile.shfl(v, 0) + tile.meta_group_rank();
    if (in[block.thread_rank()] % 3 == 0) {
        cg::coalesced_group some = cg::coalesced_threads();
        v += 1000 * some.size() + some.thread_rank();
    }
    block.sync();
    out[block.thread_rank()] = v;
}
