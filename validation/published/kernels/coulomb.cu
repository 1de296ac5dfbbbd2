// The potential of point charges on a grid of 256^3 points, in our words: a thread has DEEP points above one another, whose sums it
// keeps in an array; the loop over them is unrolled UNROLLED times (0: as the compiler likes), which leaves the array indexed at
// run time where it is not unrolled whole. A charge is read as one float4, or as four floats out of four arrays (APART). The sums
// are added to what the grid has (ADDED), or written. As in the kernel whose space was measured (PROVENANCE.md says whose).
// Made with:  nvcc -ptx -arch=compute_75 -use_fast_math coulomb.cu
template <int DEEP, int UNROLLED, bool APART, bool ADDED>
__device__ __forceinline__ void summed(const float4 *charges, const float *xs, const float *ys, const float *zs, const float *ws,
                                       int count, float spacing, int side, float *field) {
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int lowest = (blockIdx.z * blockDim.z + threadIdx.z) * DEEP;
    if (column >= side || row >= side || lowest >= side) return;
    int plane = side * side, first = plane * lowest + side * row + column;
    float x = spacing * column, y = spacing * row, z = spacing * lowest;
    float sums[DEEP];
    for (int j = 0; j < DEEP; ++j) sums[j] = 0.0f;
    for (int i = 0; i < count; ++i) {
        float dx = x - (APART ? xs[i] : charges[i].x);
        float dy = y - (APART ? ys[i] : charges[i].y);
        float dz = z - (APART ? zs[i] : charges[i].z);
        float charge = APART ? ws[i] : charges[i].w;
        auto point = [&](int j) {
            sums[j] += charge * rsqrt(dx * dx + dy * dy + dz * dz);
            dz += spacing;
        };
        if constexpr (UNROLLED) {
#pragma unroll UNROLLED
            for (int j = 0; j < DEEP; ++j) point(j);
        } else {
            for (int j = 0; j < DEEP; ++j) point(j);
        }
    }
    for (int j = 0; j < DEEP; ++j)
        if (lowest + j < side) {
            if (ADDED)
                field[first + plane * j] += sums[j];
            else
                field[first + plane * j] = sums[j];
        }
}

#define NAMED(NAME, DEEP, UNROLLED, APART, ADDED)                                                                              \
    extern "C" __global__ void NAME(const float4 *charges, const float *xs, const float *ys, const float *zs, const float *ws, \
                                    int count, float spacing, int side, float *field) {                                        \
        summed<DEEP, UNROLLED, APART, ADDED>(charges, xs, ys, zs, ws, count, spacing, side, field);                            \
    }
#define FORM(DEEP, UNROLLED, APART) NAMED(deep##DEEP##_unrolled##UNROLLED##_apart##APART, DEEP, UNROLLED, APART, true)
#define WRITTEN(DEEP, UNROLLED, APART) \
    NAMED(deep##DEEP##_unrolled##UNROLLED##_apart##APART##_written, DEEP, UNROLLED, APART, false)

FORM(1, 0, 0)
FORM(2, 0, 1)
FORM(4, 0, 0)
FORM(4, 0, 1)
FORM(4, 1, 0)
FORM(2, 1, 1)
FORM(4, 1, 1)
FORM(4, 2, 1)
FORM(8, 2, 0)
FORM(8, 2, 1)
FORM(16, 2, 0)
FORM(16, 4, 1)
FORM(16, 8, 0)
FORM(32, 4, 0)
FORM(32, 4, 1)

WRITTEN(1, 0, 0)
WRITTEN(2, 0, 0)
WRITTEN(4, 0, 0)
WRITTEN(8, 0, 0)
WRITTEN(16, 0, 1)
WRITTEN(32, 0, 1)
WRITTEN(2, 1, 1)
WRITTEN(8, 4, 1)
