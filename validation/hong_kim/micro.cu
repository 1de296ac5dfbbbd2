// The micro-benchmarks Mb1 to Mb7 of Hong and Kim (ISCA 2009, Table 4), and programs A and B of their Figure 29, as
// CUDA C++. micro.ptx holds the same loops with the paper's instruction counts: measure that one, as in
//   cuModuleLoad(&module, "micro.ptx"); cuModuleGetFunction(&kernel, module, "mb3_uc");
// with 1000 iterations and `words` a power of two, several times the size of the last cache.
template <int LOADS, int FP, bool COALESCED>
__device__ void micro(const float *data, float *out, unsigned mask, unsigned iterations)
{
    const unsigned spread = COALESCED ? 0 : 5;
    const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned step = (gridDim.x * blockDim.x) << spread;
    unsigned word = thread << spread;
    float value = 1.0f;
    for (unsigned i = 0; i < iterations; ++i) {
        if (LOADS == 0) {
#pragma unroll
            for (int k = 0; k < FP; ++k)
                value = fmaf(value, 0.5f, 0.5f);
        }
#pragma unroll
        for (int load = 0; load < LOADS; ++load) {
            word += step;
            const float loaded = data[word & mask];
#pragma unroll
            for (int k = 0; k < (FP + LOADS - 1 - load) / (LOADS ? LOADS : 1); ++k)
                value = fmaf(value, 0.5f, loaded);
        }
    }
    out[thread] = value;
}

template <bool BARRIER, bool COALESCED>
__device__ void figure29(float *data, float *out, unsigned mask, unsigned iterations)
{
    const unsigned spread = COALESCED ? 0 : 5;
    const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned step = (gridDim.x * blockDim.x) << spread;
    unsigned word = thread << spread;
    for (unsigned i = 0; i < iterations; ++i) {
        word += step;
        const float product = data[word & mask] * 10.0f;
        if (BARRIER)
            __syncthreads();
        data[word & mask] = product;
    }
    out[thread] = 1.0f;
}

#define MICRO(name, loads, fp)                                                                       \
    extern "C" __global__ void name##_c(float *data, float *out, unsigned mask, unsigned iterations)  \
    {                                                                                                 \
        micro<loads, fp, true>(data, out, mask, iterations);                                          \
    }                                                                                                 \
    extern "C" __global__ void name##_uc(float *data, float *out, unsigned mask, unsigned iterations) \
    {                                                                                                 \
        micro<loads, fp, false>(data, out, mask, iterations);                                         \
    }
#define FIGURE29(name, barrier)                                                                      \
    extern "C" __global__ void name##_c(float *data, float *out, unsigned mask, unsigned iterations)  \
    {                                                                                                 \
        figure29<barrier, true>(data, out, mask, iterations);                                         \
    }                                                                                                 \
    extern "C" __global__ void name##_uc(float *data, float *out, unsigned mask, unsigned iterations) \
    {                                                                                                 \
        figure29<barrier, false>(data, out, mask, iterations);                                        \
    }

MICRO(mb1, 0, 20)
MICRO(mb2, 1, 8)
MICRO(mb3, 1, 20)
MICRO(mb4, 2, 12)
MICRO(mb5, 2, 20)
MICRO(mb6, 4, 20)
MICRO(mb7, 6, 20)
FIGURE29(sync_a, true)
FIGURE29(sync_b, false)
