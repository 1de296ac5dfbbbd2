// Sums of 2^30 integers by blocks of 512: a tree in shared memory, its last warp without barriers, atomics, twelve numbers a
// thread, shuffles. Measured on an H100 (PROVENANCE.md). nvcc 13.0 -arch=compute_80 -ptx.

#define SUM const int *from, int *to, size_t count

template <bool LAST_ALONE> __device__ __forceinline__ void tree(int* shared, int thread) {
    if constexpr (LAST_ALONE) {
#pragma unroll
        for (int active = 256; active > 32; active /= 2) {
            if (thread < active) shared[thread] += shared[thread + active];
            __syncthreads();
        }
    } else {
        for (int active = 256; active; active >>= 1) {
            if (thread < active) shared[thread] += shared[thread + active];
            __syncthreads();
        }
    }
}
__device__ __forceinline__ void last_warp(int* sums, int thread) {
    volatile int* shared = sums;
#pragma unroll
    for (int active = 32; active; active /= 2) {
        if (thread < active) shared[thread] += shared[thread + active];
        __syncwarp();
    }
}
__device__ __forceinline__ void tree_and_last_warp(int* shared, int thread, int sum) {
    shared[thread] = sum;
    __syncthreads();
    tree<true>(shared, thread);
    last_warp(shared, thread);
}
__device__ __forceinline__ int strided(SUM) {
    int sum = 0;
    for (int i = blockIdx.x * 512 + threadIdx.x; i < count; i += 512 * gridDim.x) sum += from[i];
    return sum;
}
__device__ __forceinline__ int twelve(SUM) {
    int sum = 0, place = blockIdx.x * 512 + threadIdx.x;
    if (place < count)
#pragma unroll
        for (int i = 0; i < 12; ++i)
            if (place * 12 + i < count) sum += from[place * 12 + i];
    return sum;
}

extern "C" __global__ void sum_tree(SUM) {
    __shared__ int shared[512];
    int thread = threadIdx.x;
    shared[thread] = strided(from, to, count);
    __syncthreads();
    tree<false>(shared, thread);
    if (thread == 0) to[blockIdx.x] = shared[0];
}
extern "C" __global__ void sum_last_warp(SUM) {
    __shared__ int shared[512];
    int thread = threadIdx.x;
    tree_and_last_warp(shared, thread, strided(from, to, count));
    if (thread == 0) to[blockIdx.x] = ((volatile int*)shared)[0];
}
extern "C" __global__ void sum_atomic(SUM) {
    __shared__ int shared[512];
    int thread = threadIdx.x, place = blockIdx.x * 512 + thread, sum = 0;
    if (place < count) sum += from[place];
    tree_and_last_warp(shared, thread, sum);
    if (thread == 0) atomicAdd(to, ((volatile int*)shared)[0]);
}
extern "C" __global__ void sum_twelve(SUM) {
    __shared__ int shared[512];
    int thread = threadIdx.x;
    tree_and_last_warp(shared, thread, twelve(from, to, count));
    if (thread == 0) atomicAdd(to, ((volatile int*)shared)[0]);
}
extern "C" __global__ void sum_twelve_shuffles(SUM) {
    __shared__ int shared[512];
    int thread = threadIdx.x;
    if (blockIdx.x * 512 + thread == 0) *to = 0;
    shared[thread] = twelve(from, to, count);
    __syncthreads();
    tree<true>(shared, thread);
    int sum = 0;
    if (thread < 32) {
        sum = shared[thread] + shared[thread + 32];
#pragma unroll
        for (int apart = 16; apart > 0; apart /= 2) sum += __shfl_down_sync(~0u, sum, apart);
    }
    if (thread == 0) atomicAdd(to, sum);
}
