// Half precision and bfloat16: arithmetic, packed arithmetic, comparisons, every conversion. sm_80.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#define THREAD (blockIdx.x * blockDim.x + threadIdx.x)

extern "C" __global__ void half_arithmetic(const __half *a, const __half *b, __half *out, int n) {
    __half x = a[THREAD], y = b[THREAD], *o = out + THREAD;
    o[0 * n] = __hadd(x, y), o[1 * n] = __hsub(x, y), o[2 * n] = __hmul(x, y), o[3 * n] = __hfma(x, y, x);
    o[4 * n] = __hadd_sat(x, y), o[5 * n] = __hfma_relu(x, y, x), o[6 * n] = __hneg(x), o[7 * n] = __habs(x);
    o[8 * n] = __hmin(x, y), o[9 * n] = __hmax(x, y), o[10 * n] = __hlt(x, y) ? x : y;
    o[11 * n] = (__half)(float)__heq(x, y);
}

extern "C" __global__ void half2_arithmetic(const __half2 *a, const __half2 *b, __half2 *out, int n) {
    __half2 x = a[THREAD], y = b[THREAD], *o = out + THREAD;
    o[0 * n] = __hadd2(x, y), o[1 * n] = __hmul2(x, y), o[2 * n] = __hfma2(x, y, x), o[3 * n] = __hsub2(y, x);
    o[4 * n] = __hmin2(x, y), o[5 * n] = __hmax2(x, y), o[6 * n] = __hgt2(x, y), o[7 * n] = __hneg2(x);
    o[8 * n] = __lowhigh2highlow(x), o[9 * n] = __halves2half2(__high2half(x), __low2half(y));
}

extern "C" __global__ void bf16_arithmetic(const __nv_bfloat16 *a, const __nv_bfloat16 *b, __nv_bfloat16 *out, int n) {
    __nv_bfloat16 x = a[THREAD], y = b[THREAD], *o = out + THREAD;
    o[0 * n] = __hadd(x, y), o[1 * n] = __hmul(x, y), o[2 * n] = __hfma(x, y, x), o[3 * n] = __hmax(x, y);
    o[4 * n] = __hmin(x, y), o[5 * n] = __hneg(x), o[6 * n] = __habs(x);
    __nv_bfloat162 p = __halves2bfloat162(x, y), q = __hfma2(p, p, p);
    o[7 * n] = __low2bfloat16(q), o[8 * n] = __high2bfloat16(q);
}

extern "C" __global__ void conversions(const float *a, const double *d, const int *i, unsigned short *out, float *back, int n) {
    float x = a[THREAD];
    unsigned short *o = out + THREAD;
    o[0 * n] = __half_as_ushort(__float2half_rn(x)), o[1 * n] = __half_as_ushort(__float2half_rz(x));
    o[2 * n] = __half_as_ushort(__float2half_ru(x)), o[3 * n] = __half_as_ushort(__float2half_rd(x));
    o[4 * n] = __half_as_ushort(__double2half(d[THREAD])), o[5 * n] = __half_as_ushort(__int2half_rn(i[THREAD]));
    o[6 * n] = __half_as_ushort(__short2half_rn((short)i[THREAD])), o[7 * n] = __bfloat16_as_ushort(__float2bfloat16_rn(x));
    o[8 * n] = __bfloat16_as_ushort(__float2bfloat16_rz(x)), o[9 * n] = __half2short_rz(__float2half_rn(x));
    o[10 * n] = __half_as_ushort(hfloor(__float2half_rn(x))), o[11 * n] = __half_as_ushort(hrint(__float2half_rn(x)));
    __half2 pair = __floats2half2_rn(x, -x);
    o[12 * n] = __half_as_ushort(__high2half(pair));
    back[THREAD] = __half2float(__float2half_rn(x)) + __bfloat162float(__float2bfloat16_rn(x));
}

extern "C" __global__ void half_functions(const __half *a, float *out, int n) {
    __half x = a[THREAD];
    float *o = out + THREAD;
    o[0 * n] = __half2float(hsqrt(__habs(x))), o[1 * n] = __half2float(hexp2(x)), o[2 * n] = __half2float(hrcp(x));
    o[3 * n] = __half2float(htanh_approx(x)), o[4 * n] = __half2float(hsin(x)), o[5 * n] = __half2float(__hdiv(x, __float2half(3.0f)));
}

extern "C" __global__ void half_dot(const __half2 *a, const __half2 *b, float *out, int n) {
    float sum = 0;
    for (int i = threadIdx.x; i < n; i += 32) {
        float2 p = __half22float2(__hmul2(a[i], b[i]));
        sum += p.x + p.y;
    }
    for (int step = 16; step; step >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, step);
    if (threadIdx.x == 0) out[0] = sum;
}
