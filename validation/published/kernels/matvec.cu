// y = A x by a thread, a warp or two warps a row, and softmax of rows by blocks of 1024: two worklogs on a GTX 1050
// (PROVENANCE.md). nvcc 13.0 -arch=compute_75 -ptx.
#include <cmath>

__device__ __forceinline__ float sum_of_warp(float value) {
#pragma unroll
    for (int apart = 16; apart > 0; apart /= 2) value += __shfl_down_sync(~0u, value, apart);
    return value;
}
__device__ __forceinline__ float top_of_warp(float value) {
#pragma unroll
    for (int apart = 16; apart > 0; apart /= 2) value = fmaxf(value, __shfl_down_sync(~0u, value, apart));
    return value;
}

// The sum (or maximum) of a block in shared[0]
#define OF_BLOCK(of_warp, value, least)                                                   \
    value = of_warp(value);                                                               \
    if (threads > 32) {                                                                   \
        if (thread % 32 == 0) shared[thread / 32] = value;                                \
        __syncthreads();                                                                  \
        if (thread < 32) {                                                                \
            value = of_warp(thread < (threads + 31) / 32 ? shared[thread] : least);       \
            if (thread == 0) shared[0] = value;                                           \
        }                                                                                 \
    } else if (thread == 0) shared[0] = value;                                            \
    __syncthreads()

#define MATVEC float *__restrict__ matrix, float *__restrict__ vector, float *__restrict__ result, int rows, int columns

extern "C" __global__ void row_a_thread(MATVEC) {
    int row = blockDim.x * blockIdx.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0;
    for (int c = 0; c < columns; ++c) sum += matrix[row * columns + c] * vector[c];
    result[row] = sum;
}
extern "C" __global__ void row_a_warp(MATVEC) {
    int row = blockIdx.x, thread = threadIdx.x;
    if (row >= rows) return;
    float sum = 0;
    for (int c = thread; c < columns; c += blockDim.x) sum += matrix[row * columns + c] * vector[c];
    sum = sum_of_warp(sum);
    if (thread == 0) result[row] = sum;
}
extern "C" __global__ void row_a_block(MATVEC) {
    extern __shared__ float shared[];
    int row = blockIdx.x, thread = threadIdx.x, threads = blockDim.x;
    if (row >= rows) return;
    float sum = 0;
    for (int c = thread; c < columns; c += blockDim.x) sum += matrix[row * columns + c] * vector[c];
    OF_BLOCK(sum_of_warp, sum, 0.0f);
    if (thread == 0) result[row] = shared[0];
}
extern "C" __global__ void row_a_block_wide(MATVEC) {
    extern __shared__ float shared[];
    int row = blockIdx.x, thread = threadIdx.x, threads = blockDim.x;
    if (row >= rows) return;
    float4 *left = reinterpret_cast<float4*>(&matrix[row * columns]), *right = reinterpret_cast<float4*>(vector);
    float sum = 0;
#pragma unroll 4
    for (int c = thread; c < columns / 4; c += blockDim.x) {
        float4 a = left[c], b = right[c];
        sum += a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
    }
    OF_BLOCK(sum_of_warp, sum, 0.0f);
    if (thread == 0) result[row] = shared[0];
}

extern "C" __global__ void softmax_wide(float* __restrict__ x, float* __restrict__ out, int rows, int columns) {
    extern __shared__ float shared[];
    int row = blockIdx.x, thread = threadIdx.x, threads = blockDim.x;
    if (row >= rows) return;
    float4 *from = reinterpret_cast<float4*>(x + row * columns), *to = reinterpret_cast<float4*>(out + row * columns);
    float top = -INFINITY, norm = 0, most = -INFINITY;
#pragma unroll
    for (int c = thread; c < columns / 4; c += blockDim.x) {
        float4 four = from[c];
        most = fmaxf(fmaxf(fmaxf(fmaxf(most, four.x), four.y), four.z), four.w);
        if (most > top) {
            norm *= __expf(top - most);
            top = most;
        }
        norm += __expf(four.x - most);
        norm += __expf(four.y - most);
        norm += __expf(four.z - most);
        norm += __expf(four.w - most);
    }
    __syncthreads();
    float value = top;
    OF_BLOCK(top_of_warp, value, -INFINITY);
    float all = shared[0];
    __syncthreads();
    value = norm * expf(top - all);
    OF_BLOCK(sum_of_warp, value, 0.0f);
    norm = shared[0];
    __syncthreads();
#pragma unroll
    for (int c = thread; c < columns / 4; c += blockDim.x) {
        float4 four = from[c];
        four.x = __expf(four.x - all) / norm;
        four.y = __expf(four.y - all) / norm;
        four.z = __expf(four.z - all) / norm;
        four.w = __expf(four.w - all) / norm;
        to[c] = four;
    }
}
