// The sum of n numbers: a grid-stride loop a thread, a tree in shared memory a block, one partial sum a block.
// Launched twice: first over the data, then by one block over the partial sums.
#define THREADS 256

extern "C" __global__ void reduction(const float *in, float *out, int n)
{
    __shared__ float partial[THREADS];
    int t = threadIdx.x;
    float sum = 0.0f;
    for (int i = blockIdx.x * THREADS + t; i < n; i += gridDim.x * THREADS)
        sum += in[i];
    partial[t] = sum;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (t < half)
            partial[t] += partial[t + half];
        __syncthreads();
    }
    if (t == 0)
        out[blockIdx.x] = partial[0];
}
