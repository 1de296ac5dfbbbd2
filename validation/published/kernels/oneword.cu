// Every thread adds its number to one word, again and again. Measured from Kepler to Volta (PROVENANCE.md).
// nvcc 13.0 -arch=compute_75 -ptx.

#define ADDED unsigned times, unsigned count, float *numbers

extern "C" __global__ void add_floats(ADDED, float* sum) {
    unsigned thread = threadIdx.x + blockDim.x * blockIdx.x;
    if (thread >= count) return;
    for (int time = 0; time < times; ++time) atomicAdd(sum, numbers[thread]);
}
extern "C" __global__ void add_doubles(ADDED, double* sum) {
    unsigned thread = threadIdx.x + blockDim.x * blockIdx.x;
    if (thread >= count) return;
    for (int time = 0; time < times; ++time) atomicAdd(sum, (double)numbers[thread]);
}
