// A 1D blur through shared memory: dynamic shared memory, a constant filter, one thread a point.
//
// ppt-gpu predict examples/blur.cu --gpu a100 --kernel blur --grid 4096 --block 256 --dynamic-shared 1088
//     --arg 'f32[1048576]=random' --arg 'f32[1048576]' --arg i32=1048576
#ifndef RADIUS
#define RADIUS 8
#endif

template <typename T>
__global__ void fill(T *out, T value, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = value;
}
template __global__ void fill<float>(float *, float, int);
template __global__ void fill<double>(double *, double, int);

__global__ void blur(const float *__restrict__ in, float *__restrict__ out, int n) {
    extern __shared__ float row[];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int k = threadIdx.x; k < blockDim.x + 2 * RADIUS; k += blockDim.x) {
        int from = min(max((int)(blockIdx.x * blockDim.x) + k - RADIUS, 0), n - 1);
        row[k] = in[from];
    }
    __syncthreads();
    float sum = 0.0f;
    for (int k = 0; k <= 2 * RADIUS; k++) sum += row[threadIdx.x + k];
    if (i < n) out[i] = sum / (2 * RADIUS + 1);
}
