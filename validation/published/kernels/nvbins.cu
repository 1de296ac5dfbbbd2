// Kernels of our own that do what the histograms and products of the source in PROVENANCE.md do: the same accesses, guards and
// atomic operations, in the same order. nvcc -arch=compute_75 -ptx

typedef unsigned int u32;

// Counts of the values in `data`, by atomics on global memory; the counts are cleared first, by whoever gets there.
extern "C" __global__ void count_global(const u32 *data, u32 *counts, u32 n, u32 bins) {
    u32 first = blockIdx.x * blockDim.x + threadIdx.x;
    u32 step = blockDim.x * gridDim.x;
    for (u32 bin = first; bin < bins; bin += step)
        counts[bin] = 0;
    __syncthreads();
    for (u32 i = first; i < n; i += step)
        atomicAdd(&counts[data[i]], 1);
}

// Counts of a block in shared memory, added to those of all blocks at its end.
extern "C" __global__ void count_shared(const u32 *data, u32 *counts, u32 n, u32 bins) {
    extern __shared__ u32 own[];
    u32 first = blockIdx.x * blockDim.x + threadIdx.x;
    for (u32 bin = threadIdx.x; bin < bins; bin += blockDim.x)
        own[bin] = 0;
    __syncthreads();
    for (u32 i = first; i < n; i += blockDim.x * gridDim.x)
        atomicAdd(&own[data[i]], 1);
    __syncthreads();
    for (u32 bin = threadIdx.x; bin < bins; bin += blockDim.x)
        atomicAdd(&counts[bin], own[bin]);
}

// c = a b, an element a thread. rows x inner and inner x columns.
extern "C" __global__ void product(u32 *a, u32 *b, u32 *c, int rows, int inner, int b_rows, int columns) {
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows || column >= columns)
        return;
    u32 sum = 0;
    for (int k = 0; k < inner; ++k)
        sum += a[row * inner + k] * b[k * columns + column];
    c[row * columns + column] = sum;
}

// The same with square tiles in shared memory, as wide as a block is.
extern "C" __global__ void product_tiles(u32 *a, u32 *b, u32 *c, int rows, int inner, int b_rows, int columns) {
    extern __shared__ u32 tiles[];
    int width = blockDim.x;
    u32 *tile_a = tiles;
    u32 *tile_b = tiles + width * width;
    int x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * width + y;
    int column = blockIdx.x * width + x;
    u32 sum = 0;
    for (int tile = 0; tile < (inner + width - 1) / width; ++tile) {
        tile_a[y * width + x] = row < rows && tile * width + x < inner ? a[row * inner + tile * width + x] : 0;
        tile_b[y * width + x] = tile * width + y < b_rows && column < columns ? b[(tile * width + y) * columns + column] : 0;
        __syncthreads();
        for (int k = 0; k < width; ++k)
            sum += tile_a[y * width + k] * tile_b[k * width + x];
        __syncthreads();
    }
    if (row < rows && column < columns)
        c[row * columns + column] = sum;
}

// out = matrix vector, a row a thread.
extern "C" __global__ void matvec(u32 *out, u32 *matrix, u32 *vector, int rows, int columns) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows)
        return;
    u32 sum = 0;
    for (int k = 0; k < columns; ++k)
        sum += matrix[row * columns + k] * vector[k];
    out[row] = sum;
}

// The same, with the vector in shared memory, as many elements at a time as a block has threads.
extern "C" __global__ void matvec_tiles(u32 *out, u32 *matrix, u32 *vector, int rows, int columns) {
    extern __shared__ u32 tile[];
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    u32 sum = 0;
    int phases = (columns + blockDim.x - 1) / blockDim.x;
    for (int phase = 0; phase < phases; ++phase) {
        int element = phase * blockDim.x + threadIdx.x;
        tile[threadIdx.x] = element < columns ? vector[element] : 0;
        __syncthreads();
        if (row < rows)
            for (int k = 0; k < blockDim.x && phase * blockDim.x + k < columns; ++k)
                sum += matrix[row * columns + phase * blockDim.x + k] * tile[k];
        __syncthreads();
    }
    out[row] = sum;
}
