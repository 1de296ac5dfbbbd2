// Calls: device functions that stay calls, recursion, an indirect call through a table, printf, structs by value.
#include <cstdio>

struct Particle {
    float position[3];
    double mass;
    char tag;
};

__device__ __noinline__ float scale(float x, float factor) { return x * factor + 1.0f; }
__device__ __noinline__ double weigh(Particle p) { return p.mass * p.position[0]; }
__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
__device__ __noinline__ Particle move(Particle p, float by) {
    p.position[1] += by;
    return p;
}

typedef float (*unary)(float, float);
__device__ __noinline__ float shift(float x, float by) { return x + by; }
__device__ unary table[2] = {scale, shift};

__global__ void call_direct(float *out, Particle p, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = scale(out[i], 3.0f) + (float)weigh(move(p, out[i]));
}

__global__ void call_recursive(int *out) { out[threadIdx.x] = fibonacci(threadIdx.x & 7); }

__global__ void call_indirect(float *out, const int *which) {
    int i = threadIdx.x;
    out[i] = table[which[i] & 1](out[i], 2.0f);
}

__global__ void call_printf(int n) {
    if (threadIdx.x == 0) printf("%d %f\n", n, (double)n);
}
