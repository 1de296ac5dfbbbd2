// Learning: matrix units, small integers, half precision, softmax.
#include <cuda_fp16.h>
#include <mma.h>

extern "C" __global__ void wmma_gemm(const half* a, const half* b, float* c, int m, int n, int k) {
    using namespace nvcuda;
    int row = (blockIdx.y * blockDim.y + threadIdx.y) * 16, column = (blockIdx.x * blockDim.x + threadIdx.x) / 32 * 16;
    if (row >= m || column >= n) return;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> right;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    for (int i = 0; i < k; i += 16) {
        wmma::load_matrix_sync(left, a + row * k + i, k);
        wmma::load_matrix_sync(right, b + i * n + column, n);
        wmma::mma_sync(sum, left, right, sum);
    }
    for (int i = 0; i < sum.num_elements; i++) sum.x[i] = fmaxf(sum.x[i], 0.0f);
    wmma::store_matrix_sync(c + row * n + column, sum, n, wmma::mem_row_major);
}

extern "C" __global__ void dot4(const int* a, const int* b, int* c, int n, int k4) {
    __shared__ int ta[16][16], tb[16][16];
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x, sum = 0;
    for (int t = 0; t < k4; t += 16) {
        ta[threadIdx.y][threadIdx.x] = a[row * k4 + t + threadIdx.x];
        tb[threadIdx.y][threadIdx.x] = b[column * k4 + t + threadIdx.y];
        __syncthreads();
        for (int k = 0; k < 16; k++) sum = __dp4a(ta[threadIdx.y][k], tb[k][threadIdx.x], sum);
        __syncthreads();
    }
    c[row * n + column] = sum;
}

extern "C" __global__ void half_layer(const half2* x, const half2* w, half2* y, int n, float scale) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    half2 s = __float2half2_rn(scale), zero = __float2half2_rn(0.0f);
    for (; i < n; i += blockDim.x * gridDim.x) {
        half2 v = __hfma2(x[i], w[i], s);
        v = __hmul2(v, __hadd2(v, s));
        y[i] = __hmax2(v, zero);
    }
}

extern "C" __global__ void softmax_rows(const float* x, float* y, int columns) {
    __shared__ float part[32];
    const float* row = x + (size_t)blockIdx.x * columns;
    float most = -3.0e38f;
    for (int j = threadIdx.x; j < columns; j += blockDim.x) most = fmaxf(most, row[j]);
    for (int o = 16; o > 0; o /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, o));
    if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = most;
    __syncthreads();
    most = part[threadIdx.x & 31];
    for (int o = 16; o > 0; o /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, o));
    __syncthreads();
    float sum = 0.0f;
    for (int j = threadIdx.x; j < columns; j += blockDim.x) sum += expf(row[j] - most);
    for (int o = 16; o > 0; o /= 2) sum += __shfl_xor_sync(~0u, sum, o);
    if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = sum;
    __syncthreads();
    sum = part[threadIdx.x & 31];
    for (int o = 16; o > 0; o /= 2) sum += __shfl_xor_sync(~0u, sum, o);
    for (int j = threadIdx.x; j < columns; j += blockDim.x) y[(size_t)blockIdx.x * columns + j] = expf(row[j] - most) / sum;
}
