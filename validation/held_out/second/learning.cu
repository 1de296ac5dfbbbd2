// Learning: a layer's forward and weight steps, normalisation, attention, a 16-bit convolution.
#include <cuda_fp16.h>

extern "C" __global__ void forward_layer(const float* input, float* partial, const float* weights, int inputs, int hidden) {
    __shared__ float node[16];
    __shared__ float product[16][16];
    int by = blockIdx.y, tx = threadIdx.x, ty = threadIdx.y;
    int at = (hidden + 1) * 16 * by + (hidden + 1) * ty + tx + 1 + hidden + 1;
    if (tx == 0) node[ty] = input[16 * by + ty + 1];
    __syncthreads();
    product[ty][tx] = weights[at] * node[ty];
    __syncthreads();
    for (int i = 1; i <= 4; i++) {
        int power = 1 << i;
        if (ty % power == 0) product[ty][tx] += product[ty + power / 2][tx];
        __syncthreads();
    }
    if (tx == 0) partial[by * hidden + ty] = product[tx][ty];
}

extern "C" __global__ void adjust_weights(const float* delta, int hidden, const float* ly, int inputs, float* w, float* oldw) {
    int by = blockIdx.y, tx = threadIdx.x, ty = threadIdx.y;
    int at = (hidden + 1) * 16 * by + (hidden + 1) * ty + tx + 1 + hidden + 1;
    float step = 0.3f * delta[tx + 1] * ly[16 * by + ty + 1] + 0.3f * oldw[at];
    w[at] += step;
    oldw[at] = step;
}

extern "C" __global__ void layer_norm(const float* x, const float* gain, const float* bias, float* y, int columns, float epsilon) {
    __shared__ float sums[2][32];
    int row = blockIdx.x;
    float sum = 0.0f, squares = 0.0f;
    for (int j = threadIdx.x; j < columns; j += blockDim.x) {
        float v = x[row * columns + j];
        sum += v;
        squares += v * v;
    }
    for (int o = 16; o > 0; o >>= 1) {
        sum += __shfl_xor_sync(~0u, sum, o);
        squares += __shfl_xor_sync(~0u, squares, o);
    }
    if (threadIdx.x % 32 == 0) { sums[0][threadIdx.x / 32] = sum; sums[1][threadIdx.x / 32] = squares; }
    __syncthreads();
    sum = squares = 0.0f;
    for (int k = 0; k < blockDim.x / 32; k++) { sum += sums[0][k]; squares += sums[1][k]; }
    float mean = sum / columns, inverse = rsqrtf(squares / columns - mean * mean + epsilon);
    for (int j = threadIdx.x; j < columns; j += blockDim.x) y[row * columns + j] = (x[row * columns + j] - mean) * inverse * gain[j] + bias[j];
}

extern "C" __global__ void attention_row(const float* q, const float* k, const float* v, float* out, int length, float scale) {
    __shared__ float query[64];
    int row = blockIdx.x, lane = threadIdx.x;
    query[lane] = q[row * 64 + lane] * scale;
    __syncthreads();
    float most = -1e30f, total = 0.0f, sum = 0.0f;
    for (int j = 0; j <= row && j < length; j++) {
        float score = 0.0f;
#pragma unroll 8
        for (int d = 0; d < 64; d++) score += query[d] * k[j * 64 + d];
        float peak = fmaxf(most, score), old = __expf(most - peak), fresh = __expf(score - peak);
        total = total * old + fresh;
        sum = sum * old + fresh * v[j * 64 + lane];
        most = peak;
    }
    out[row * 64 + lane] = sum / total;
}

extern "C" __global__ void half_filter(const half* in, const half* taps, half* out, int n, int width) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n - width) return;
    float sum = 0.0f;
    for (int k = 0; k < width; k++) sum += __half2float(in[i + k]) * __half2float(taps[k]);
    out[i] = __float2half(sum > 0.0f ? sum : 0.1f * sum);
}
