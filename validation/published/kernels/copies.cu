// Copies of arrays, for validation/published: our own kernels, which do the same work with the same instructions as those that were
// measured (PROVENANCE.md says whose). Compiled by `nvcc -arch=compute_75 -ptx`.
#include <stdint.h>

// Neither pointer is restrict: a store may be to what is loaded next, so no load goes before it.
template <typename From, typename To> __device__ void copy(const From *x, To *y, size_t n)
{
    unsigned threads = blockDim.x * gridDim.x;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += threads)
        y[i] = (To)x[i];
}

extern "C" {
#define COPY(name, From, To) \
    __global__ void name(const From *x, To *y, size_t n) { copy(x, y, n); }
COPY(copy_u8, uint8_t, uint8_t)
COPY(copy_u16, uint16_t, uint16_t)
COPY(copy_u32, uint32_t, uint32_t)
COPY(copy_u64, uint64_t, uint64_t)
COPY(copy_s8_s16, int8_t, int16_t)
COPY(copy_s8_s32, int8_t, int32_t)
COPY(copy_s8_f64, int8_t, double)
COPY(copy_s16_s32, int16_t, int32_t)
COPY(copy_s16_f64, int16_t, double)
COPY(copy_s32_f32, int32_t, float)
COPY(copy_s32_f64, int32_t, double)
COPY(copy_f64_s64, double, int64_t)
}
