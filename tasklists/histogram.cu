// A histogram of bytes: each block counts in shared memory with atomics, and adds its counts to the whole at the end.
#define BINS 256

extern "C" __global__ void histogram(const unsigned int *data, unsigned int *bins, int n)
{
    __shared__ unsigned int count[BINS];
    for (int i = threadIdx.x; i < BINS; i += blockDim.x)
        count[i] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        unsigned int four = data[i];
        for (int byte = 0; byte < 4; byte++)
            atomicAdd(&count[four >> 8 * byte & 255], 1u);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < BINS; i += blockDim.x)
        atomicAdd(&bins[i], count[i]);
}
