// Atomic operations of every type, in global and shared memory, with and without a result, in several scopes.
#include <cuda_fp16.h>
#define THREAD (blockIdx.x * blockDim.x + threadIdx.x)

extern "C" __global__ void atomics_32(const unsigned *in, unsigned *out, int *signed_out) {
    unsigned v = in[THREAD];
    atomicAdd(out + 0, v);
    atomicSub(out + 1, v);
    atomicMin(out + 2, v);
    atomicMax(out + 3, v);
    atomicAnd(out + 4, v | 0xff00ff00u);
    atomicOr(out + 5, v);
    atomicXor(out + 6, v);
    atomicInc(out + 7, 99u);
    atomicDec(out + 8, 1000u);
    atomicMin(signed_out + 0, (int)v);
    atomicMax(signed_out + 1, (int)v);
}

extern "C" __global__ void atomics_64(const unsigned long long *in, unsigned long long *out, long long *signed_out) {
    unsigned long long v = in[THREAD];
    atomicAdd(out + 0, v);
    atomicMin(out + 1, v);
    atomicMax(out + 2, v);
    atomicAnd(out + 3, v | 0xffffffff00000000ull);
    atomicOr(out + 4, v);
    atomicXor(out + 5, v);
    atomicMin(signed_out + 0, (long long)v);
    atomicMax(signed_out + 1, (long long)v);
}

// The values are small integers, so that every order gives the same sum.
extern "C" __global__ void atomics_float(const float *in, float *f, double *d, __half2 *h) {
    float v = in[THREAD];
    atomicAdd(f, v);
    atomicAdd(d, (double)v);
    atomicAdd(h + (THREAD & 15), __floats2half2_rn(v, -v));
}

// Each thread gets a number of its own: which one depends on the order, the set does not.
extern "C" __global__ void tickets(unsigned *counter, unsigned *taken, unsigned *last) {
    unsigned ticket = atomicAdd(counter, 1u);
    taken[ticket] = 1u;
    unsigned long long old = atomicExch((unsigned long long *)last, (unsigned long long)ticket);
    if (old == ~0ull) atomicAdd(last + 2, 1u);
}

extern "C" __global__ void cas_float_max(const float *in, float *out) {
    int *bits = (int *)out;
    int seen = *bits;
    float v = in[THREAD];
    while (v > __int_as_float(seen)) {
        int old = atomicCAS(bits, seen, __float_as_int(v));
        if (old == seen) break;
        seen = old;
    }
}

extern "C" __global__ void cas_64(unsigned long long *out) {
    unsigned long long seen, next;
    do {
        seen = *(volatile unsigned long long *)out;
        next = seen * 3 + 1;
    } while (atomicCAS(out, seen, next) != seen);
}

extern "C" __global__ void cas_16(unsigned short *out) {
    unsigned short seen, next;
    do {
        seen = *(volatile unsigned short *)out;
        next = seen + 3;
    } while (atomicCAS(out, seen, next) != seen);
}

extern "C" __global__ void histogram(const unsigned char *in, unsigned *out, int n) {
    __shared__ unsigned bins[256];
    bins[threadIdx.x] = 0;
    __syncthreads();
    for (int i = THREAD; i < n; i += gridDim.x * blockDim.x) atomicAdd(bins + in[i], 1u);
    __syncthreads();
    if (bins[threadIdx.x]) atomicAdd(out + threadIdx.x, bins[threadIdx.x]);
}

extern "C" __global__ void scopes(const int *in, int *out) {
    __shared__ int sum;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    atomicAdd_block(&sum, in[THREAD]);
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd_system(out, sum);
    atomicMax_block(out + 1 + blockIdx.x, in[THREAD]);
}

// The last block to finish adds up what all left.
extern "C" __global__ void last_block(const float *in, float *partial, unsigned *done, float *total) {
    __shared__ float part[128];
    __shared__ bool last;
    part[threadIdx.x] = in[THREAD];
    __syncthreads();
    for (int step = 64; step; step >>= 1) {
        if (threadIdx.x < step) part[threadIdx.x] += part[threadIdx.x + step];
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = part[0];
        __threadfence();
        last = atomicInc(done, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x == 0) {
        float sum = 0;
        for (int i = 0; i < gridDim.x; i++) sum += ((volatile float *)partial)[i];
        *total = sum;
    }
}
