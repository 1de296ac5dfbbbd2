// Sums and scans of 32-bit integers, for validation/published: our own kernels, which do the same work with the same instructions
// as those that were measured (PROVENANCE.md says whose). Compiled by `nvcc -arch=compute_75 -ptx`.
extern __shared__ unsigned tile[];

__device__ void load_one(const unsigned *x, unsigned n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    tile[threadIdx.x] = i < n ? x[i] : 0;
}

// The second element is added to what the first has left in shared memory, not in a register.
__device__ void load_two(const unsigned *x, unsigned n)
{
    unsigned i = blockIdx.x * (blockDim.x * 2) + threadIdx.x;
    tile[threadIdx.x] = i < n ? x[i] : 0;
    tile[threadIdx.x] += i + blockDim.x < n ? x[i + blockDim.x] : 0;
}

__device__ void finish(unsigned *y)
{
    if (threadIdx.x == 0)
        y[blockIdx.x] = tile[0];
}

// One warp, without barriers: every lane adds, whether its sum is needed or not.
__device__ void one_warp(volatile unsigned *part)
{
    unsigned t = threadIdx.x;
    if (blockDim.x >= 64)
        part[t] += part[t + 32];
    if (blockDim.x >= 32)
        part[t] += part[t + 16];
    if (blockDim.x >= 16)
        part[t] += part[t + 8];
    if (blockDim.x >= 8)
        part[t] += part[t + 4];
    if (blockDim.x >= 4)
        part[t] += part[t + 2];
    if (blockDim.x >= 2)
        part[t] += part[t + 1];
}

__device__ void fold_to_64()
{
    unsigned t = threadIdx.x;
    if (blockDim.x >= 512 && t < 256)
        tile[t] += tile[t + 256];
    __syncthreads();
    if (blockDim.x >= 256 && t < 128)
        tile[t] += tile[t + 128];
    __syncthreads();
    if (blockDim.x >= 128 && t < 64)
        tile[t] += tile[t + 64];
    __syncthreads();
}

extern "C" {

// Every (2 step)-th thread adds: warps diverge, and a remainder by a variable decides.
__global__ void sum_modulo(const unsigned *x, unsigned n, unsigned *y)
{
    unsigned t = threadIdx.x;
    load_one(x, n);
    __syncthreads();
    for (unsigned step = 1; step < blockDim.x; step <<= 1) {
        if (t % (2 * step) == 0)
            tile[t] += t + step < n ? tile[t + step] : 0;
        __syncthreads();
    }
    finish(y);
}

// The first threads add, at strides of 2 step words: no divergence, but conflicts of banks.
__global__ void sum_strided(const unsigned *x, unsigned n, unsigned *y)
{
    load_one(x, n);
    __syncthreads();
    for (unsigned step = 1; step < blockDim.x; step <<= 1) {
        int at = 2 * step * threadIdx.x;
        if (at < blockDim.x)
            tile[at] += at + step < n ? tile[at + step] : 0;
        __syncthreads();
    }
    finish(y);
}

// The first half of the threads adds the second half.
__global__ void sum_halves(const unsigned *x, unsigned n, unsigned *y)
{
    unsigned t = threadIdx.x;
    load_one(x, n);
    __syncthreads();
    for (unsigned step = blockDim.x / 2; step > 0; step >>= 1) {
        if (t < step)
            tile[t] += t + step < n ? tile[t + step] : 0;
        __syncthreads();
    }
    finish(y);
}

__global__ void sum_two(const unsigned *x, unsigned n, unsigned *y)
{
    unsigned t = threadIdx.x;
    load_two(x, n);
    __syncthreads();
    for (unsigned step = blockDim.x / 2; step > 0; step >>= 1) {
        if (t < step)
            tile[t] += tile[t + step];
        __syncthreads();
    }
    finish(y);
}

// As measured: no barrier before the first step, which is a race with more than 32 threads.
__global__ void sum_two_warp(const unsigned *x, unsigned n, unsigned *y)
{
    unsigned t = threadIdx.x;
    load_two(x, n);
    for (unsigned step = blockDim.x / 2; step > 32; step >>= 1) {
        if (t < step)
            tile[t] += tile[t + step];
        __syncthreads();
    }
    if (t < 32)
        one_warp(tile);
    finish(y);
}

__global__ void sum_unrolled(const unsigned *x, unsigned n, unsigned *y)
{
    load_two(x, n);
    __syncthreads();
    fold_to_64();
    if (threadIdx.x < 32)
        one_warp(tile);
    finish(y);
}

__global__ void sum_grid(const unsigned *x, unsigned n, unsigned *y)
{
    unsigned i = blockIdx.x * (blockDim.x * 2) + threadIdx.x;
    unsigned stride = gridDim.x * (blockDim.x * 2);
    tile[threadIdx.x] = 0;
    while (i < n) {
        tile[threadIdx.x] += x[i];
        tile[threadIdx.x] += i + blockDim.x < n ? x[i + blockDim.x] : 0;
        i += stride;
    }
    __syncthreads();
    fold_to_64();
    if (threadIdx.x < 32)
        one_warp(tile);
    finish(y);
}

// Kogge and Stone, with a second half of the tile so that nobody reads what another thread has written already.
__global__ void scan_kogge_stone(const unsigned *x, unsigned *y, int n, unsigned *sums)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned t = threadIdx.x;
    if (i < n)
        tile[t] = x[i];
    __syncthreads();
    for (unsigned step = 1; step < blockDim.x; step <<= 1) {
        if (t >= step)
            tile[blockDim.x + t] = tile[t] + tile[t - step];
        __syncthreads();
        if (t >= step)
            tile[t] = tile[blockDim.x + t];
        __syncthreads();
    }
    if (i < n)
        y[i] = tile[t];
    if (sums != nullptr && t == blockDim.x - 1)
        sums[blockIdx.x] = tile[blockDim.x - 1];
}

// Brent and Kung: up a tree and down again, two elements a thread, at strides that meet in the banks; each step writes to
// a second half of the tile and, behind a barrier, back, as in scan_kogge_stone.
__global__ void scan_brent_kung(const unsigned *x, unsigned *y, int n, unsigned *sums)
{
    int i = 2 * blockIdx.x * blockDim.x + threadIdx.x;
    int t = threadIdx.x;
    tile[t] = i < n ? x[i] : 0;
    tile[t + blockDim.x] = i + blockDim.x < n ? x[i + blockDim.x] : 0;
    __syncthreads();
    for (unsigned step = 1; step <= blockDim.x; step <<= 1) {
        unsigned at = (t + 1) * step * 2 - 1;
        if (at < 2 * blockDim.x)
            tile[2 * blockDim.x + at] = tile[at] + tile[at - step];
        __syncthreads();
        if (at < 2 * blockDim.x)
            tile[at] = tile[2 * blockDim.x + at];
        __syncthreads();
    }
    for (unsigned step = blockDim.x / 2; step > 0; step >>= 1) {
        unsigned at = (t + 1) * step * 2 - 1;
        if (at + step < 2 * blockDim.x)
            tile[2 * blockDim.x + at + step] = tile[at + step] + tile[at];
        __syncthreads();
        if (at + step < 2 * blockDim.x)
            tile[at + step] = tile[2 * blockDim.x + at + step];
        __syncthreads();
    }
    if (i < n)
        y[i] = tile[t];
    if (i + blockDim.x < n)
        y[i + blockDim.x] = tile[t + blockDim.x];
    if (sums != nullptr && t == blockDim.x - 1)
        sums[blockIdx.x] = tile[2 * blockDim.x - 1];
}

// A part of the tile for each thread, one after another (conflicts of banks), a tree over their last words, and those added.
__global__ void scan_parts(const unsigned *x, unsigned *y, int n, int words, unsigned *sums)
{
    int base = blockIdx.x * words;
    int t = threadIdx.x;
    for (int j = t; j < words; j += blockDim.x)
        tile[j] = base + j < n ? x[base + j] : 0;
    __syncthreads();
    int size = words / blockDim.x;
    int first = size * t;
    int behind = first + size;
    unsigned sum = 0;
    if (base + first < n) {
        for (int j = first; j < behind; ++j) {
            sum += tile[j];
            tile[j] = sum;
        }
    }
    __syncthreads();
    for (unsigned step = 1; step <= blockDim.x; step <<= 1) {
        __syncthreads();
        unsigned at = (t + 1) * step * 2 * size - 1;
        if (at < words)
            tile[at] += tile[at - step * size];
    }
    for (unsigned step = words / 4; step >= size; step >>= 1) {
        __syncthreads();
        unsigned at = (t + 1) * step * 2 - 1;
        if (at + step < words)
            tile[at + step] += tile[at];
    }
    __syncthreads();
    if (t != 0) {
        int before = tile[first - 1];
        for (int j = first; j < behind - 1; ++j)
            tile[j] += before;
    }
    __syncthreads();
    for (int j = t; j < words; j += blockDim.x)
        if (base + j < n)
            y[base + j] = tile[j];
    if (sums != nullptr && t == blockDim.x - 1)
        sums[blockIdx.x] = tile[words - 1];
}

__global__ void add_sums(unsigned *y, int n, const unsigned *sums, int words)
{
    int base = blockIdx.x * words;
    for (int j = threadIdx.x; j < words; j += blockDim.x)
        if (base + j < n)
            y[base + j] += sums[blockIdx.x];
}
}
