// Building blocks: sorting in shared memory, prefix sums with shuffles, a reduction over vectors.

extern "C" __global__ void bitonic_shared(unsigned* keys, unsigned* values, unsigned length, int ascending) {
    __shared__ unsigned k[1024], v[1024];
    int base = blockIdx.x * 1024 + threadIdx.x;
    k[threadIdx.x] = keys[base];
    v[threadIdx.x] = values[base];
    k[threadIdx.x + 512] = keys[base + 512];
    v[threadIdx.x + 512] = values[base + 512];
    for (unsigned size = 2; size <= length; size <<= 1) {
        unsigned direction = ascending ^ ((threadIdx.x & (size / 2)) != 0);
        for (unsigned stride = size / 2; stride > 0; stride >>= 1) {
            __syncthreads();
            unsigned at = 2 * threadIdx.x - (threadIdx.x & (stride - 1));
            if ((k[at] > k[at + stride]) == direction) {
                unsigned t = k[at]; k[at] = k[at + stride]; k[at + stride] = t;
                t = v[at]; v[at] = v[at + stride]; v[at + stride] = t;
            }
        }
    }
    __syncthreads();
    keys[base] = k[threadIdx.x];
    values[base] = v[threadIdx.x];
    keys[base + 512] = k[threadIdx.x + 512];
    values[base + 512] = v[threadIdx.x + 512];
}

extern "C" __global__ void scan_block(const int* in, int* out, int* totals, int n) {
    __shared__ int warps[32];
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    int value = i < n ? in[i] : 0, sum = value;
#pragma unroll
    for (int d = 1; d < 32; d <<= 1) {
        int other = __shfl_up_sync(~0u, sum, d);
        if (lane >= d) sum += other;
    }
    if (lane == 31) warps[warp] = sum;
    __syncthreads();
    if (warp == 0) {
        int w = warps[lane];
#pragma unroll
        for (int d = 1; d < 32; d <<= 1) {
            int other = __shfl_up_sync(~0u, w, d);
            if (lane >= d) w += other;
        }
        warps[lane] = w;
    }
    __syncthreads();
    if (warp > 0) sum += warps[warp - 1];
    if (i < n) out[i] = sum - value;
    if (threadIdx.x == blockDim.x - 1) totals[blockIdx.x] = sum;
}

extern "C" __global__ void norm_squared(const float4* x, float* out, int n) {
    float sum = 0.0f;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        float4 v = x[i];
        sum += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
    }
    for (int o = 16; o > 0; o >>= 1) sum += __shfl_down_sync(~0u, sum, o);
    if ((threadIdx.x & 31) == 0) atomicAdd(out, sum);
}
