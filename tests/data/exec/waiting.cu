// Threads that wait for each other; waiting.ptx is made from this with
//   nvcc -ptx -arch=sm_80 -std=c++17 waiting.cu
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__device__ int mutex_word;
__device__ unsigned int tickets, serving;

// every thread of every block takes a lock in a loop without anything else in it
extern "C" __global__ void spin_lock(int *sum) {
    for (int lane = 0; lane < 32; lane++)
        if ((threadIdx.x & 31) == lane) {
            while (atomicCAS(&mutex_word, 0, 1) != 0) {}
            __threadfence();
            *(volatile int *)sum += threadIdx.x + 1;
            __threadfence();
            atomicExch(&mutex_word, 0);
        }
}
// lanes of one warp that hold a ticket wait for those before them
extern "C" __global__ void ticket_lock(int *order) {
    unsigned int mine = atomicAdd(&tickets, 1);
    while (*(volatile unsigned int *)&serving != mine) __nanosleep(20);
    order[mine] = blockIdx.x * blockDim.x + threadIdx.x;
    __threadfence();
    *(volatile unsigned int *)&serving = mine + 1;
}
// the upper half of a warp waits for a flag that the lower half raises
extern "C" __global__ void halves(volatile int *flag, int *out) {
    if (threadIdx.x >= 16) { while (*flag == 0) {} out[threadIdx.x] = *flag; }
    else { out[threadIdx.x] = 7; if (threadIdx.x == 3) { __threadfence(); *flag = 5; } }
}
// warps that hand over values through shared memory, both ways, many times
extern "C" __global__ void ping_pong(int *out, int rounds) {
    __shared__ volatile int turn; __shared__ int value;
    if (threadIdx.x == 0) { turn = 0; value = 0; }
    __syncthreads();
    int me = threadIdx.x / 32;
    for (int r = 0; r < rounds; r++) {
        if (threadIdx.x % 32 == 0) { while (turn != 2 * r + me) {} value += me + 1; __threadfence_block(); turn = 2 * r + me + 1; }
        __syncwarp();
    }
    __syncthreads();
    if (threadIdx.x == 0) *out = value;
}
// a chain through the grid: each block waits for the one before it (or behind it)
extern "C" __global__ void chain(volatile int *done, int *out, int backwards) {
    int b = blockIdx.x, from = backwards ? b + 1 : b - 1;
    if (threadIdx.x == 0 && from >= 0 && from < gridDim.x) while (done[from] == 0) {}
    __syncthreads();
    out[b * blockDim.x + threadIdx.x] = from >= 0 && from < gridDim.x ? out[from * blockDim.x + threadIdx.x] + 1 : 100;
    __threadfence(); __syncthreads();
    if (threadIdx.x == 0) done[b] = 1;
}
// all blocks meet three times
extern "C" __global__ void grid_wide(int *a, int *b, int n) {
    cg::grid_group grid = cg::this_grid();
    int i = grid.thread_rank();
    for (int step = 0; step < 3; step++) {
        if (i < n) b[i] = a[(i + 1) % n] + a[i];
        grid.sync();
        if (i < n) a[i] = b[i];
        grid.sync();
    }
}
// a barrier of its own in the other arm of each branch
extern "C" __global__ void both_arms(int *out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    if (t % 2) { s[t] = t; asm volatile("barrier.sync 0;"); out[t] = s[t ^ 1]; }
    else { s[t] = 10 * t; asm volatile("barrier.sync 0;"); out[t] = s[t ^ 1]; }
}
// a warp barrier of its own in each arm
extern "C" __global__ void warp_arms(int *out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    if (t % 4 == 1) { s[t] = t; __syncwarp(); out[t] = s[t ^ 1]; }
    else if (t % 4 == 0) { s[t] = 100 + t; __syncwarp(); out[t] = s[t ^ 1]; }
    else { s[t] = 1000 * t; __syncwarp(); out[t] = s[t ^ 1]; }
}
// named barriers: two warps make, two warps take, and nobody else waits
extern "C" __global__ void named(int *out) {
    __shared__ int box[64];
    int t = threadIdx.x, w = t / 32;
    for (int r = 0; r < 4; r++) {
        if (w < 2) {
            asm volatile("bar.sync 1, 128;");
            box[t] = 100 * r + t;
            asm volatile("bar.arrive 2, 128;");
        } else if (w < 4) {
            asm volatile("bar.arrive 1, 128;");
            asm volatile("bar.sync 2, 128;");
            out[r * 64 + t - 64] = box[t - 64];
        }
    }
}
// reductions at barriers
extern "C" __global__ void counted(int *out) {
    int t = threadIdx.x;
    int n = __syncthreads_count(t % 3 == 0), all = __syncthreads_and(t < 96), any = __syncthreads_or(t == 77);
    out[t] = n * 100 + all * 10 + any;
}
