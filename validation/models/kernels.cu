// Kernels for the study of the analytical models: memory divergence, branch divergence and arithmetic in all mixtures.
// Compiled with: nvcc -arch=sm_75 -ptx -o kernels.ptx kernels.cu

// Loads `stride` elements apart between lanes, and `flops` dependent multiply-adds for each.
extern "C" __global__ void mixed(const float *in, float *out, int mask, int stride, int loads, int flops)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float value = 1.0f;
    for (int load = 0; load < loads; load++) {
        float x = in[(i * stride + load * 4099 * 32) & mask];
        for (int step = 0; step < flops; step++)
            x = x * value + 0.5f;
        value += x;
    }
    out[i] = value;
}

// Loads from random places of a table of `mask` + 1 elements.
extern "C" __global__ void gather(const float *in, float *out, int mask, int loads, int flops)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, place = i;
    float value = 1.0f;
    for (int load = 0; load < loads; load++) {
        place = place * 1664525u + 1013904223u;
        float x = in[(place >> 8) & mask];
        for (int step = 0; step < flops; step++)
            x = x * value + 0.5f;
        value += x;
    }
    out[i] = value;
}

// The lanes of a warp take `ways` different paths, one after another.
extern "C" __global__ void branches(const float *in, float *out, int ways, int steps)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, way = threadIdx.x % ways;
    float value = in[i];
    for (int path = 0; path < ways; path++)
        if (way == path)
            for (int step = 0; step < steps; step++)
                value = value * 1.5f + path;
    out[i] = value;
}

// Loops as often as a hash says: of the thread where `shift` is 0, of the warp where it is 5. Each trip loads.
extern "C" __global__ void trips(const float *in, float *out, int mask, int shift, int most)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned hash = (unsigned)(i >> shift) * 2654435761u;
    int count = (hash >> 16) % most;
    float value = 0.0f;
    for (int trip = 0; trip < count; trip++)
        value = value * 0.5f + in[(i + trip * 8192) & mask];
    out[i] = value;
}

// Rows to columns, as in the kernel of that name in Rodinia's kmeans: a thread reads along its row, hits in the L1 often.
extern "C" __global__ void invert_mapping(const float *in, float *out, int points, int features)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int feature = 0; feature < features; feature++)
        out[feature * points + i] = in[i * features + feature];
}

// Columns to rows: coalesced loads, stores as far apart as a row is long.
extern "C" __global__ void scatter_rows(const float *in, float *out, int points, int features)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int feature = 0; feature < features; feature++)
        out[i * features + feature] = in[feature * points + i];
}

// Special functions with little memory.
extern "C" __global__ void special(const float *in, float *out, int steps)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float value = in[i];
    for (int step = 0; step < steps; step++)
        value = __sinf(value) + rsqrtf(value * value + 1.0f);
    out[i] = value;
}

// Shared memory, read `stride` words apart.
extern "C" __global__ void banks(const float *in, float *out, int stride, int steps)
{
    __shared__ float kept[1024];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int place = threadIdx.x; place < 1024; place += blockDim.x)
        kept[place] = in[(i + place) & 0xffff];
    __syncthreads();
    float value = 0.0f;
    for (int step = 0; step < steps; step++)
        value += kept[(threadIdx.x * stride + step) & 1023];
    out[i] = value;
}

// Each load waits for the one before it.
extern "C" __global__ void chase(const int *next, int *out, int mask, int steps)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, place = (i * 33) & mask;
    for (int step = 0; step < steps; step++)
        place = next[place] & mask;
    out[i] = place;
}

// Phases of loads and arithmetic between barriers.
extern "C" __global__ void phases(const float *in, float *out, int mask, int rounds, int flops)
{
    __shared__ float kept[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float value = 0.0f;
    for (int round = 0; round < rounds; round++) {
        kept[threadIdx.x] = in[(i + round * 65536) & mask];
        __syncthreads();
        float x = kept[(threadIdx.x + 32) & 255];
        for (int step = 0; step < flops; step++)
            x = x * 0.5f + value;
        value += x;
        __syncthreads();
    }
    out[i] = value;
}
