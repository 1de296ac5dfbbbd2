// A course's first kernels: copies, sums, transposes, filters, histograms and products, an element a thread. Written to the
// description of a study of three boards (PROVENANCE.md). Compiled by nvcc 13.0 -arch=compute_75 -ptx.

__device__ __forceinline__ int thread_x() { return blockIdx.x * blockDim.x + threadIdx.x; }
__device__ __forceinline__ int thread_y() { return blockIdx.y * blockDim.y + threadIdx.y; }

extern "C" __global__ void add(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int n) {
    int i = thread_x();
    if (i < n) c[i] = a[i] + b[i];
}

// Even elements get a sum of 128 numbers more, which are converted one by one.
extern "C" __global__ void add_more_to_even(
    const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int n) {
    int i = thread_x();
    if (i >= n) return;
    if (i % 2 == 0) {
        float more = 0;
#pragma unroll 16
        for (int term = 0; term < 128; ++term) more += 0.0001f * term;
        c[i] = a[i] + b[i] + more;
    } else {
        c[i] = a[i] + b[i];
    }
}

extern "C" __global__ void copy_eighths(const float* __restrict__ from, float* __restrict__ to, int n) {
    int i = 8 * thread_x();
    if (i < n) to[i] = from[i];
}

extern "C" __global__ void gather(const float* __restrict__ from, const int* __restrict__ places, float* __restrict__ to, int n) {
    int i = thread_x();
    if (i < n) to[i] = from[places[i]];
}

extern "C" __global__ void transpose(const float* __restrict__ from, float* __restrict__ to, int rows, int columns) {
    int row = thread_y(), column = thread_x();
    if (row < rows && column < columns) to[column * rows + row] = from[row * columns + column];
}

extern "C" __global__ void transpose_tiled(const float* __restrict__ from, float* __restrict__ to, int rows, int columns) {
    __shared__ float tile[32][33];
    int x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * 32 + y, column = blockIdx.x * 32 + x;
    if (row < rows && column < columns) tile[y][x] = from[row * columns + column];
    __syncthreads();
    row = blockIdx.x * 32 + y;
    column = blockIdx.y * 32 + x;
    if (row < columns && column < rows) to[row * rows + column] = tile[x][y];
}

// The sums of each block's two elements a thread
template <typename TERM> __device__ __forceinline__ void sum_of_block(float* sums, int n, TERM term) {
    extern __shared__ float shared[];
    int thread = threadIdx.x, first = blockIdx.x * blockDim.x * 2 + thread;
    float sum = 0;
    if (first < n) sum += term(first);
    if (first + blockDim.x < n) sum += term(first + blockDim.x);
    shared[thread] = sum;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (thread < half) shared[thread] += shared[thread + half];
        __syncthreads();
    }
    if (thread == 0) sums[blockIdx.x] = shared[0];
}

extern "C" __global__ void sum(const float* __restrict__ from, float* __restrict__ sums, int n) {
    sum_of_block(sums, n, [=](int i) { return from[i]; });
}

extern "C" __global__ void dot(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ sums, int n) {
    sum_of_block(sums, n, [=](int i) { return a[i] * b[i]; });
}

extern "C" __global__ void histogram(const unsigned* __restrict__ data, int n, unsigned* __restrict__ counts) {
    extern __shared__ unsigned own[];
    for (int bin = threadIdx.x; bin < 256; bin += blockDim.x) own[bin] = 0;
    __syncthreads();
    for (int i = thread_x(); i < n; i += blockDim.x * gridDim.x) atomicAdd(&own[data[i] & 255], 1);
    __syncthreads();
    for (int bin = threadIdx.x; bin < 256; bin += blockDim.x) atomicAdd(&counts[bin], own[bin]);
}

template <int TAPS>
__device__ __forceinline__ float window(const float* image, const float* mask, int x, int y, int width) {
    float sum = 0;
    for (int row = 0; row < TAPS; ++row)
        for (int column = 0; column < TAPS; ++column)
            sum += image[(y + row) * width + (x + column)] * mask[row * TAPS + column];
    return sum;
}

template <int TAPS>
__device__ __forceinline__ void filtered(const float* image, const float* mask, float* out, int height, int width) {
    int x = thread_x(), y = thread_y();
    if (x >= width - (TAPS - 1) || y >= height - (TAPS - 1)) return;
    out[y * width + x] = window<TAPS>(image, mask, x, y, width);
}

extern "C" __global__ void filter_3x3(
    const float* __restrict__ image, const float* __restrict__ mask, float* __restrict__ out, int height, int width) {
    filtered<3>(image, mask, out, height, width);
}

extern "C" __global__ void filter_7x7(
    const float* __restrict__ image, const float* __restrict__ mask, float* __restrict__ out, int height, int width) {
    filtered<7>(image, mask, out, height, width);
}

extern "C" __global__ void product(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int n) {
    int row = thread_y(), column = thread_x();
    if (row >= n || column >= n) return;
    float sum = 0;
    for (int k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + column];
    c[row * n + column] = sum;
}

extern "C" __global__ void product_tiled(
    const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int n) {
    __shared__ float tile_a[32][32], tile_b[32][32];
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 32 + y, column = blockIdx.x * 32 + x;
    float sum = 0;
    for (int start = 0; start < n; start += 32) {
        tile_a[y][x] = row < n && start + x < n ? a[row * n + (start + x)] : 0.0f;
        tile_b[y][x] = start + y < n && column < n ? b[(start + y) * n + column] : 0.0f;
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 32; ++k) sum += tile_a[y][k] * tile_b[k][x];
        __syncthreads();
    }
    if (row < n && column < n) c[row * n + column] = sum;
}
