// Integer and floating-point arithmetic: every rounding, width and intrinsic; transcendental functions.
#define THREAD (blockIdx.x * blockDim.x + threadIdx.x)

extern "C" __global__ void roundings(const float *a, const float *b, float *out, int n) {
    float x = a[THREAD], y = b[THREAD];
    float *o = out + THREAD;
    o[0 * n] = __fadd_rn(x, y), o[1 * n] = __fadd_rz(x, y), o[2 * n] = __fadd_ru(x, y), o[3 * n] = __fadd_rd(x, y);
    o[4 * n] = __fmul_rn(x, y), o[5 * n] = __fmul_rz(x, y), o[6 * n] = __fmul_ru(x, y), o[7 * n] = __fmul_rd(x, y);
    o[8 * n] = __fmaf_rn(x, y, x), o[9 * n] = __fmaf_rz(x, y, x), o[10 * n] = __fmaf_ru(x, y, x);
    o[11 * n] = __fmaf_rd(x, y, x), o[12 * n] = __fdiv_rn(x, y), o[13 * n] = __fdiv_rz(x, y);
    o[14 * n] = __fdiv_ru(x, y), o[15 * n] = __fdiv_rd(x, y), o[16 * n] = __fsqrt_rn(y), o[17 * n] = __fsqrt_rz(y);
    o[18 * n] = __fsqrt_ru(y), o[19 * n] = __fsqrt_rd(y), o[20 * n] = __frcp_rn(y), o[21 * n] = __saturatef(x);
}

extern "C" __global__ void roundings_double(const double *a, const double *b, double *out, int n) {
    double x = a[THREAD], y = b[THREAD];
    double *o = out + THREAD;
    o[0 * n] = __dadd_rn(x, y), o[1 * n] = __dadd_rz(x, y), o[2 * n] = __dadd_ru(x, y), o[3 * n] = __dadd_rd(x, y);
    o[4 * n] = __dmul_rn(x, y), o[5 * n] = __dmul_rz(x, y), o[6 * n] = __fma_rn(x, y, x), o[7 * n] = __fma_rz(x, y, x);
    o[8 * n] = __ddiv_rn(x, y), o[9 * n] = __ddiv_ru(x, y), o[10 * n] = __dsqrt_rn(y), o[11 * n] = __dsqrt_rd(y);
    o[12 * n] = __drcp_rn(y), o[13 * n] = fmin(x, y), o[14 * n] = fmax(x, y), o[15 * n] = copysign(x, -y);
}

extern "C" __global__ void to_integral(const float *a, float *f, int *i, unsigned *u, long long *l, int n) {
    float x = a[THREAD];
    int t = THREAD;
    f[t] = floorf(x), f[t + n] = ceilf(x), f[t + 2 * n] = truncf(x), f[t + 3 * n] = rintf(x), f[t + 4 * n] = roundf(x);
    i[t] = (int)x, i[t + n] = __float2int_rn(x), i[t + 2 * n] = __float2int_ru(x), i[t + 3 * n] = __float2int_rd(x);
    u[t] = __float2uint_rz(x), u[t + n] = __float_as_uint(x);
    l[t] = __float2ll_rn(x * 1e6f), l[t + n] = (long long)(signed char)(int)x;
}

extern "C" __global__ void from_integer(const int *a, const long long *b, float *f, double *d, int n) {
    int x = a[THREAD], t = THREAD;
    long long y = b[THREAD];
    f[t] = (float)x, f[t + n] = __int2float_rz(x), f[t + 2 * n] = __uint2float_ru((unsigned)x);
    f[t + 3 * n] = __ll2float_rn(y), f[t + 4 * n] = __double2float_rd((double)y / 3), f[t + 5 * n] = (float)(short)x;
    d[t] = (double)x, d[t + n] = (double)y, d[t + 2 * n] = __ull2double_rz((unsigned long long)y);
    d[t + 3 * n] = __hiloint2double(x, 12345), d[t + 4 * n] = (double)(unsigned char)x;
}

extern "C" __global__ void integers(const int *a, const int *b, int *out, int n) {
    int x = a[THREAD], y = b[THREAD];
    int *o = out + THREAD;
    o[0 * n] = x + y, o[1 * n] = x - y, o[2 * n] = x * y, o[3 * n] = x / (y | 1), o[4 * n] = x % (y | 1);
    o[5 * n] = (unsigned)x / ((unsigned)y | 1), o[6 * n] = (unsigned)x % ((unsigned)y | 1), o[7 * n] = __mulhi(x, y);
    o[8 * n] = __umulhi(x, y), o[9 * n] = __mul24(x, y), o[10 * n] = __umul24(x, y), o[11 * n] = __sad(x, y, 7u);
    o[12 * n] = min(x, y), o[13 * n] = max((unsigned)x, (unsigned)y), o[14 * n] = abs(x), o[15 * n] = __hadd(x, y);
    o[16 * n] = x & y, o[17 * n] = x | y, o[18 * n] = x ^ y, o[19 * n] = ~x, o[20 * n] = x << (y & 31);
    o[21 * n] = x >> (y & 31), o[22 * n] = (unsigned)x >> (y & 31), o[23 * n] = x == y ? 1 : x < y ? 2 : 3;
}

extern "C" __global__ void bits(const unsigned *a, const unsigned *b, unsigned *out, int n) {
    unsigned x = a[THREAD], y = b[THREAD], r;
    unsigned *o = out + THREAD;
    o[0 * n] = __popc(x), o[1 * n] = __clz(x), o[2 * n] = __brev(x), o[3 * n] = __ffs(x), o[4 * n] = __byte_perm(x, y, 0x6173);
    o[5 * n] = __funnelshift_l(x, y, 13), o[6 * n] = __funnelshift_r(x, y, 45), o[7 * n] = __funnelshift_lc(x, y, 45);
    o[8 * n] = __dp4a((int)x, (int)y, -5), o[9 * n] = __dp4a(x, y, 9u), o[10 * n] = __popcll(((unsigned long long)x << 32) | y);
    o[11 * n] = __clzll(((unsigned long long)x << 20) | y);
    asm("bfe.u32 %0, %1, 5, 11;" : "=r"(r) : "r"(x)); o[12 * n] = r;
    asm("bfe.s32 %0, %1, 3, 9;" : "=r"(r) : "r"(x)); o[13 * n] = r;
    asm("bfi.b32 %0, %1, %2, 7, 13;" : "=r"(r) : "r"(x), "r"(y)); o[14 * n] = r;
    asm("bfind.u32 %0, %1;" : "=r"(r) : "r"(x)); o[15 * n] = r;
    asm("lop3.b32 %0, %1, %2, %3, 0x96;" : "=r"(r) : "r"(x), "r"(y), "r"(0x12345678)); o[16 * n] = r;
    asm("lop3.b32 %0, %1, %2, %3, 0xe8;" : "=r"(r) : "r"(x), "r"(y), "r"(0x12345678)); o[17 * n] = r;
    asm("bmsk.clamp.b32 %0, %1, %2;" : "=r"(r) : "r"(x & 15), "r"(y & 15)); o[18 * n] = r;
    asm("szext.clamp.u32 %0, %1, %2;" : "=r"(r) : "r"(x), "r"(y & 31)); o[19 * n] = r;
    asm("fns.b32 %0, %1, 3, 2;" : "=r"(r) : "r"(x)); o[20 * n] = r;
}

extern "C" __global__ void wide_integers(const long long *a, const long long *b, long long *out, int n) {
    long long x = a[THREAD], y = b[THREAD];
    long long *o = out + THREAD;
    o[0 * n] = x * y, o[1 * n] = __mul64hi(x, y), o[2 * n] = __umul64hi(x, y), o[3 * n] = x / (y | 1), o[4 * n] = x % (y | 1);
    o[5 * n] = (unsigned long long)x / ((unsigned long long)y | 1), o[6 * n] = x << (y & 63), o[7 * n] = x >> (y & 63);
    __int128 product = (__int128)x * y + x;
    o[8 * n] = (long long)product, o[9 * n] = (long long)(product >> 64);
    o[10 * n] = min(x, y), o[11 * n] = (long long)(int)x * (int)y, o[12 * n] = __brevll(x), o[13 * n] = llabs(x);
}

extern "C" __global__ void small_integers(const signed char *a, const unsigned short *b, short *out, unsigned char *bytes) {
    signed char x = a[THREAD];
    unsigned short y = b[THREAD];
    out[THREAD] = (short)(x * 3 + y / 7 - (x >> 2));
    bytes[THREAD] = (unsigned char)((x ^ y) + (y >> 5));
}

extern "C" __global__ void functions(const float *a, float *out, int n) {
    float x = a[THREAD], *o = out + THREAD;
    o[0 * n] = sinf(x), o[1 * n] = cosf(x), o[2 * n] = expf(x), o[3 * n] = logf(fabsf(x) + 0.5f), o[4 * n] = tanhf(x);
    o[5 * n] = powf(fabsf(x) + 0.1f, 1.7f), o[6 * n] = rsqrtf(fabsf(x) + 0.1f), o[7 * n] = cbrtf(x), o[8 * n] = erff(x);
    o[9 * n] = atan2f(x, 1.3f), o[10 * n] = log1pf(fabsf(x)), o[11 * n] = exp2f(x), o[12 * n] = hypotf(x, 2.0f);
    o[13 * n] = tanf(x), o[14 * n] = asinf(x * 0.1f), o[15 * n] = fmodf(x, 0.7f);
}

extern "C" __global__ void fast_functions(const float *a, float *out, int n) {
    float x = a[THREAD], *o = out + THREAD;
    o[0 * n] = __sinf(x), o[1 * n] = __cosf(x), o[2 * n] = __expf(x), o[3 * n] = __logf(fabsf(x) + 2.0f);
    o[4 * n] = __fdividef(x, 3.7f), o[5 * n] = __powf(fabsf(x) + 1.0f, 1.7f);
    asm("tanh.approx.f32 %0, %1;" : "=f"(o[6 * n]) : "f"(x));
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(o[7 * n]) : "f"(x));
    asm("sqrt.approx.f32 %0, %1;" : "=f"(o[8 * n]) : "f"(fabsf(x)));
}

extern "C" __global__ void double_functions(const double *a, double *out, int n) {
    double x = a[THREAD], *o = out + THREAD;
    o[0 * n] = sin(x), o[1 * n] = cos(x), o[2 * n] = exp(x), o[3 * n] = log(fabs(x) + 0.5), o[4 * n] = tanh(x);
    o[5 * n] = pow(fabs(x) + 0.1, 1.7), o[6 * n] = rsqrt(fabs(x) + 0.1), o[7 * n] = 1.0 / (x + 100.0), o[8 * n] = floor(x);
}

extern "C" __global__ void classes(const float *a, int *out, float *picked) {
    float x = a[THREAD];
    out[THREAD] = isnan(x) + 2 * isinf(x) + 4 * signbit(x) + 8 * isfinite(x) + 16 * (x != x) + 32 * (x < 1.0f) + 64 * !(x >= 1.0f);
    picked[THREAD] = fminf(x, 1.0f) + fmaxf(x, -1.0f);
}

// The carry chain of 96-bit numbers, in inline PTX.
extern "C" __global__ void carries(const unsigned *a, const unsigned *b, unsigned *out, int n) {
    unsigned r0, r1, r2;
    asm("add.cc.u32 %0, %3, %6;\n\taddc.cc.u32 %1, %4, %7;\n\taddc.u32 %2, %5, %8;"
        : "=r"(r0), "=r"(r1), "=r"(r2)
        : "r"(a[THREAD]), "r"(a[THREAD + n]), "r"(a[THREAD + 2 * n]), "r"(b[THREAD]), "r"(b[THREAD + n]), "r"(b[THREAD + 2 * n]));
    out[THREAD] = r0, out[THREAD + n] = r1, out[THREAD + 2 * n] = r2;
    asm("sub.cc.u32 %0, %3, %6;\n\tsubc.cc.u32 %1, %4, %7;\n\tsubc.u32 %2, %5, %8;"
        : "=r"(r0), "=r"(r1), "=r"(r2)
        : "r"(a[THREAD]), "r"(a[THREAD + n]), "r"(a[THREAD + 2 * n]), "r"(b[THREAD]), "r"(b[THREAD + n]), "r"(b[THREAD + 2 * n]));
    out[THREAD + 3 * n] = r0, out[THREAD + 4 * n] = r1, out[THREAD + 5 * n] = r2;
}

extern "C" __global__ void video(const unsigned *a, const unsigned *b, unsigned *out, int n) {
    unsigned x = a[THREAD], y = b[THREAD], r;
    out[THREAD] = __vadd4(x, y), out[THREAD + n] = __vsub2(x, y), out[THREAD + 2 * n] = __vmaxu4(x, y);
    out[THREAD + 3 * n] = __vabsdiffu4(x, y), out[THREAD + 4 * n] = __vcmpgtu2(x, y), out[THREAD + 5 * n] = __vavgu4(x, y);
    asm("vabsdiff4.u32.u32.u32.add %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(3)); out[THREAD + 6 * n] = r;
}
