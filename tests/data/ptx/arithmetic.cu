// Arithmetic of every kind: integers, floats, halves, conversions, special functions, bit tricks, video instructions.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

__global__ void integers(int *o, unsigned *u, long long *l, unsigned long long *v, short *s, int a, int b) {
    o[0] = a / b; o[1] = a % b; u[0] = u[1] / u[2]; u[3] = u[1] % 7u;
    l[0] = l[1] / l[2]; l[3] = l[1] % l[2]; v[0] = v[1] / v[2]; v[4] = __umul64hi(v[1], v[2]);
    o[2] = __mulhi(a, b); l[4] = (long long)a * b; l[5] = (long long)a * b + l[6];
    o[3] = min(a, b); l[7] = max(l[8], l[9]); o[4] = abs(a); o[5] = a << b; l[10] = l[11] >> b;
    u[5] = __popc(a) + __clz(a) + __ffs(a) + __brev(a) + __clzll(l[1]) + __popcll(v[1]);
    u[6] = __byte_perm(a, b, 0x5140); u[7] = __funnelshift_l(a, b, 5); u[8] = __funnelshift_r(a, b, a);
    o[6] = __sad(a, b, 4); s[0] = s[1] * s[2] + s[3]; o[7] = a < b ? o[8] : o[9];
    o[10] = (a & b) ^ (~a | 7); l[12] = (l[13] & l[14]) ^ ~l[15];
    o[11] = __dp4a(a, b, o[12]); u[13] = __vabsdiffu4(a, b); u[14] = __vadd2(a, b);
    u[15] = (u[16] >> 5) & 0x3F; o[17] = __umulhi(a, b) + __mul24(a, b);
}

__global__ void floats(float *f, double *d, float x, double y) {
    f[0] = x / f[1]; f[2] = __fdividef(x, f[1]); f[3] = sqrtf(x); f[4] = rsqrtf(x); f[5] = __sinf(x) + __cosf(x);
    f[6] = __expf(x) + __logf(x) + exp2f(x) + log2f(x); f[7] = fminf(x, f[8]) + fmaxf(x, f[9]); f[10] = fabsf(-x);
    f[11] = __fsqrt_rz(x); f[12] = __frcp_rn(x); f[13] = copysignf(x, f[14]); f[15] = tanhf(x); f[16] = fmaf(x, x, f[17]);
    f[18] = sinf(x); f[19] = powf(x, f[20]); f[21] = __fadd_rz(x, 1.0f); f[22] = __saturatef(x); f[23] = isnan(x) ? 1.f : x;
    d[0] = y / d[1]; d[2] = sqrt(y); d[3] = 1.0 / y; d[4] = fma(y, y, d[5]); d[6] = fmin(y, d[7]); d[8] = exp(y);
    d[9] = y - 3.14159265358979; d[10] = fabs(y); d[11] = rsqrt(y);
}

__global__ void conversions(int *i, unsigned *u, long long *l, float *f, double *d, short *s, unsigned char *c) {
    f[0] = i[0]; f[1] = u[0]; f[2] = l[0]; f[3] = d[0]; d[1] = f[4]; d[2] = i[1]; i[2] = f[5]; u[1] = d[3];
    l[1] = d[4]; i[3] = (int)rintf(f[6]); i[4] = __float2int_ru(f[7]); s[0] = i[5]; c[0] = i[6]; i[7] = c[1]; l[2] = i[8];
    f[8] = truncf(f[9]); f[10] = floorf(f[11]); i[9] = __float_as_int(f[12]); d[5] = __longlong_as_double(l[3]);
    f[13] = s[1]; c[2] = (unsigned char)f[14]; s[2] = c[3];
}

__global__ void halves(__half *h, __half2 *h2, __nv_bfloat16 *b, __nv_bfloat162 *b2, float *f) {
    h[0] = __hadd(h[1], h[2]); h[3] = __hfma(h[4], h[5], h[6]); h[7] = __hmul(h[8], h[9]); h[10] = hsqrt(h[11]);
    h2[0] = __hfma2(h2[1], h2[2], h2[3]); h2[4] = __hmax2(h2[5], h2[6]); h[12] = __float2half(f[0]); f[1] = __half2float(h[13]);
    b[0] = __hadd(b[1], b[2]); b2[0] = __hfma2(b2[1], b2[2], b2[3]); b[3] = __float2bfloat16(f[2]); f[3] = __bfloat162float(b[4]);
    h[14] = __hlt(h[15], h[16]) ? h[17] : h[18]; h[19] = hexp2(h[20]); h[21] = __hneg(h[22]);
}
