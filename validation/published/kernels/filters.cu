// Filters and element-wise kernels of a course's benchmarks, in our words: convolutions of rows and images with the mask in
// global or constant memory, with and without tiles in shared memory; sums of matrices along rows and down columns; grey images
// of bytes. Results are kept between 0 and 1 in double precision, as there: its minimum and maximum have a constant of
// type double on one side. Compiled by nvcc 13.0 -arch=compute_75 -ptx.
#define LONGEST_MASK 121
__constant__ float constant_mask[LONGEST_MASK];

__device__ __forceinline__ float kept_in_unit(float x) { return fmin(fmax((double)x, 0.0), 1.0); }

extern "C" __global__ void row_global(const float *image, const float *mask, float *result, int taps, int length) {
    int here = blockIdx.x * blockDim.x + threadIdx.x;
    if (here >= length) return;
    float sum = 0;
    int first = here - taps / 2;
    for (int tap = 0; tap < taps; ++tap)
        if (first + tap >= 0 && first + tap < length) sum += image[first + tap] * mask[tap];
    result[here] = kept_in_unit(sum);
}

extern "C" __global__ void row_constant(const float *image, float *result, int taps, int length) {
    int here = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    int first = here - taps / 2;
    for (int tap = 0; tap < taps; ++tap)
        if (first + tap >= 0 && first + tap < length) sum += image[first + tap] * constant_mask[tap];
    result[here] = kept_in_unit(sum);
}

// The block's part of the row with a margin of half a mask on both sides, which its last and first threads fetch.
extern "C" __global__ void row_tile(const float *image, float *result, int taps, int length) {
    extern __shared__ float tile[];
    int here = blockIdx.x * blockDim.x + threadIdx.x;
    int margin = taps / 2;
    int before = (blockIdx.x - 1) * blockDim.x + threadIdx.x;
    if (threadIdx.x >= blockDim.x - margin)
        tile[threadIdx.x - (blockDim.x - margin)] = before < 0 ? 0 : image[before];
    tile[margin + threadIdx.x] = image[here];
    int behind = (blockIdx.x + 1) * blockDim.x + threadIdx.x;
    if (threadIdx.x < margin) tile[margin + blockDim.x + threadIdx.x] = behind >= length ? 0 : image[behind];
    __syncthreads();
    float sum = 0;
    for (int tap = 0; tap < taps; ++tap) sum += tile[threadIdx.x + tap] * constant_mask[tap];
    result[here] = kept_in_unit(sum);
}

// The block's part of the row without margins: those come through the caches.
extern "C" __global__ void row_tile_cached(const float *image, float *result, int taps, int length) {
    extern __shared__ float tile[];
    int here = blockIdx.x * blockDim.x + threadIdx.x;
    tile[threadIdx.x] = image[here];
    __syncthreads();
    int start = blockIdx.x * blockDim.x;
    int end = (blockIdx.x + 1) * blockDim.x;
    int first = here - taps / 2;
    float sum = 0;
    for (int tap = 0; tap < taps; ++tap) {
        int at = first + tap;
        if (at >= 0 && at < length) {
            if (at >= start && at < end)
                sum += tile[threadIdx.x + tap - taps / 2] * constant_mask[tap];
            else
                sum += image[at] * constant_mask[tap];
        }
    }
    result[here] = kept_in_unit(sum);
}

#define IMAGE_FILTER(MASK)                                                                                           \
    int y = blockIdx.y * blockDim.y + threadIdx.y;                                                                   \
    int x = blockIdx.x * blockDim.x + threadIdx.x;                                                                   \
    if (y >= height || x >= width) return;                                                                           \
    int top = y - rows / 2;                                                                                          \
    int left = x - columns / 2;                                                                                      \
    for (int channel = 0; channel < channels; ++channel) {                                                           \
        float sum = 0;                                                                                               \
        for (int row = 0; row < rows; ++row)                                                                         \
            for (int column = 0; column < columns; ++column)                                                         \
                if (top + row >= 0 && top + row < height && left + column >= 0 && left + column < width)             \
                    sum += image[((top + row) * width + left + column) * channels + channel] * MASK[row * columns + column]; \
        result[(y * width + x) * channels + channel] = kept_in_unit(sum);                                            \
    }

extern "C" __global__ void image_global(const float *image, const float *mask, float *result, int rows, int columns, int height,
                                        int width, int channels) {
    IMAGE_FILTER(mask)
}

extern "C" __global__ void image_constant(const float *image, float *result, int rows, int columns, int height, int width,
                                          int channels) {
    IMAGE_FILTER(constant_mask)
}

// A block loads as many points as it has threads, and only those whose neighbours are all there have a result.
extern "C" __global__ void image_tile(const float *image, float *result, int rows, int columns, int height, int width,
                                      int channels) {
    extern __shared__ float tile[];
    int results_down = blockDim.y - rows + 1;
    int results_across = blockDim.x - columns + 1;
    int ty = threadIdx.y, tx = threadIdx.x;
    int y = blockIdx.y * results_down + ty;
    int x = blockIdx.x * results_across + tx;
    int from_y = y - rows / 2;
    int from_x = x - columns / 2;
    for (int channel = 0; channel < channels; ++channel) {
        if (from_y >= 0 && from_y < height && from_x >= 0 && from_x < width)
            tile[ty * blockDim.x + tx] = image[(from_y * width + from_x) * channels + channel];
        else
            tile[ty * blockDim.x + tx] = 0;
        __syncthreads();
        float sum = 0;
        if (ty < results_down && tx < results_across && y < height && x < width) {
            for (int row = 0; row < rows; ++row)
                for (int column = 0; column < columns; ++column)
                    sum += tile[(ty + row) * blockDim.x + tx + column] * constant_mask[row * columns + column];
            result[(y * width + x) * channels + channel] = kept_in_unit(sum);
        }
        __syncthreads();
    }
}

// Neighbouring threads stand in neighbouring rows, and so in different lines of memory.
extern "C" __global__ void add_down(const float *a, const float *b, float *c, int columns, int rows) {
    int y = blockIdx.x * blockDim.x + threadIdx.x;
    int x = blockIdx.y * blockDim.y + threadIdx.y;
    int at = y * columns + x;
    if (y < rows && x < columns) c[at] = a[at] + b[at];
}

extern "C" __global__ void add_along(const float *a, const float *b, float *c, int columns, int rows) {
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int at = y * columns + x;
    if (y < rows && x < columns) c[at] = a[at] + b[at];
}

extern "C" __global__ void grey(const unsigned char *colours, unsigned char *greys, int width, int height) {
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (y < 0 || y >= height || x < 0 || x >= width) return;
    int at = y * width + x;
    unsigned char red = colours[3 * at], green = colours[3 * at + 1], blue = colours[3 * at + 2];
    greys[at] = (unsigned char)(0.21f * red + 0.71f * green + 0.07f * blue);
}
