// A Jacobi step of Laplace's equation in two dimensions and the copy back, one element, or one vector of elements, a thread;
// float, half, four floats and two halves. Compiled by nvcc 13.0 -arch=compute_80 -ptx.
#include <cuda_fp16.h>

#define PLACE_ELEMENT                                    \
    int x = threadIdx.x + blockIdx.x * blockDim.x;       \
    int y = threadIdx.y + blockIdx.y * blockDim.y;       \
    if (!(x < inner_x + 1 && y < inner_y + 1 && x > 0 && y > 0)) return; \
    int pitch = inner_x + 2;

extern "C" __global__ void step_f32(int inner_x, int inner_y, float *fresh, float *old) {
    PLACE_ELEMENT
    fresh[y * pitch + x] =
        0.25f * (old[y * pitch + x + 1] + old[y * pitch + x - 1] + old[(y - 1) * pitch + x] + old[(y + 1) * pitch + x]);
}

extern "C" __global__ void back_f32(int inner_x, int inner_y, float *fresh, float *old) {
    PLACE_ELEMENT
    old[y * pitch + x] = fresh[y * pitch + x];
}

extern "C" __global__ void step_f16(int inner_x, int inner_y, __half *fresh, __half *old) {
    PLACE_ELEMENT
    __half sum = __hadd(__hadd(old[y * pitch + x + 1], old[y * pitch + x - 1]),
                        __hadd(old[(y - 1) * pitch + x], old[(y + 1) * pitch + x]));
    fresh[y * pitch + x] = __hmul(sum, __float2half(0.25f));
}

extern "C" __global__ void back_f16(int inner_x, int inner_y, __half *fresh, __half *old) {
    PLACE_ELEMENT
    old[y * pitch + x] = fresh[y * pitch + x];
}

#define PLACE_VECTOR(ELEMENTS)                     \
    int x = threadIdx.x + blockIdx.x * blockDim.x; \
    int y = threadIdx.y + blockIdx.y * blockDim.y; \
    if (!(x < (inner_x + 2) / ELEMENTS && y < inner_y + 1 && x > 0 && y > 0)) return;
#define AT(ROW, COLUMN, ELEMENTS) ((ROW) * (inner_x + 2) / ELEMENTS + (COLUMN))

extern "C" __global__ void step_f32x4(int inner_x, int inner_y, float4 *fresh, float4 *old) {
    PLACE_VECTOR(4)
    float4 here = old[AT(y, x, 4)], left = old[AT(y, x - 1, 4)], right = old[AT(y, x + 1, 4)];
    float4 above = old[AT(y - 1, x, 4)], below = old[AT(y + 1, x, 4)], sum;
    sum.x = 0.25f * (left.w + here.y + above.x + below.x);
    sum.y = 0.25f * (here.x + here.z + above.y + below.y);
    sum.z = 0.25f * (here.y + here.w + above.z + below.z);
    sum.w = 0.25f * (here.z + right.x + above.w + below.w);
    fresh[AT(y, x, 4)] = sum;
}

extern "C" __global__ void back_f32x4(int inner_x, int inner_y, float4 *fresh, float4 *old) {
    PLACE_VECTOR(4)
    old[AT(y, x, 4)] = fresh[AT(y, x, 4)];
}

extern "C" __global__ void step_f16x2(int inner_x, int inner_y, __half2 *fresh, __half2 *old) {
    PLACE_VECTOR(2)
    __half2 here = old[AT(y, x, 2)], before = old[AT(y, x - 1, 2)], behind = old[AT(y, x + 1, 2)];
    __half2 above = old[AT(y - 1, x, 2)], below = old[AT(y + 1, x, 2)];
    __half2 left = __halves2half2(before.y, here.x), right = __halves2half2(here.y, behind.x);
    __half2 sum = __hadd2(__hadd2(left, right), __hadd2(above, below));
    fresh[AT(y, x, 2)] = __hmul2(__float2half2_rn(0.25f), sum);
}

extern "C" __global__ void back_f16x2(int inner_x, int inner_y, __half2 *fresh, __half2 *old) {
    PLACE_VECTOR(2)
    old[AT(y, x, 2)] = fresh[AT(y, x, 2)];
}
