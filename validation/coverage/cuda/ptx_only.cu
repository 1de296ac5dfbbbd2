// Instructions that CUDA C++ rarely or never becomes, in inline PTX: red, testp, slct, saturation, 24 bits, movmatrix.
#define THREAD (blockIdx.x * blockDim.x + threadIdx.x)

extern "C" __global__ void reductions(const int *in, unsigned *out, long long *wide, float *f, double *d) {
    __shared__ unsigned sums[2];
    int v = in[THREAD];
    if (threadIdx.x < 2) sums[threadIdx.x] = 0;
    __syncthreads();
    unsigned at = (unsigned)__cvta_generic_to_shared(sums);
    asm volatile("red.shared.add.u32 [%0], %1;" ::"r"(at), "r"(v) : "memory");
    asm volatile("red.shared.max.u32 [%0], %1;" ::"r"(at + 4), "r"(v) : "memory");
    asm volatile("red.global.add.u32 [%0], %1;" ::"l"(out), "r"(v) : "memory");
    asm volatile("red.relaxed.gpu.global.min.s32 [%0], %1;" ::"l"(out + 1), "r"(v) : "memory");
    asm volatile("red.global.or.b32 [%0], %1;" ::"l"(out + 2), "r"(v) : "memory");
    asm volatile("red.global.xor.b32 [%0], %1;" ::"l"(out + 3), "r"(v) : "memory");
    asm volatile("red.global.and.b32 [%0], %1;" ::"l"(out + 4), "r"(v | 0x7ffff0) : "memory");
    asm volatile("red.global.inc.u32 [%0], %1;" ::"l"(out + 5), "r"(50) : "memory");
    asm volatile("red.add.u64 [%0], %1;" ::"l"(wide), "l"((long long)v * v) : "memory");
    asm volatile("red.global.max.s64 [%0], %1;" ::"l"(wide + 1), "l"((long long)v) : "memory");
    asm volatile("red.global.add.f32 [%0], %1;" ::"l"(f), "f"((float)v) : "memory");
    asm volatile("red.global.add.f64 [%0], %1;" ::"l"(d), "d"((double)v) : "memory");
    __syncthreads();
    if (threadIdx.x < 2) out[6 + 2 * blockIdx.x + threadIdx.x] = sums[threadIdx.x];
}

extern "C" __global__ void rare_integers(const int *a, const int *b, int *out, int n) {
    int x = a[THREAD], y = b[THREAD], r, *o = out + THREAD;
    asm("add.sat.s32 %0, %1, %2;" : "=r"(r) : "r"(x), "r"(y)); o[0 * n] = r;
    asm("sub.sat.s32 %0, %1, %2;" : "=r"(r) : "r"(x), "r"(y)); o[1 * n] = r;
    asm("mad.hi.sat.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(x)); o[2 * n] = r;
    asm("mul24.hi.s32 %0, %1, %2;" : "=r"(r) : "r"(x), "r"(y)); o[3 * n] = r;
    asm("mad24.lo.u32 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(5)); o[4 * n] = r;
    asm("cnot.b32 %0, %1;" : "=r"(r) : "r"(x & 3)); o[5 * n] = r;
    asm("slct.s32.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(x ^ y)); o[6 * n] = r;
    asm("dp2a.lo.s32.u32 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(7)); o[7 * n] = r;
    asm("dp2a.hi.s32.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(7)); o[8 * n] = r;
    asm("bfind.shiftamt.u32 %0, %1;" : "=r"(r) : "r"(x)); o[9 * n] = r;
    asm("shf.l.clamp.b32 %0, %1, %2, 40;" : "=r"(r) : "r"(x), "r"(y)); o[10 * n] = r;
    asm("prmt.b32.f4e %0, %1, %2, 3;" : "=r"(r) : "r"(x), "r"(y)); o[11 * n] = r;
    asm("prmt.b32.rc16 %0, %1, %2, 1;" : "=r"(r) : "r"(x), "r"(y)); o[12 * n] = r;
    asm("{\n\t.reg .pred p, q, z;\n\tsetp.lt.s32 p|q, %1, %2;\n\tsetp.gt.and.s32 z, %1, 0, p;\n\tselp.b32 %0, 3, 4, z;\n\t@q add.s32 %0, %0, 10;\n\t}"
        : "=&r"(r) : "r"(x), "r"(y)); o[13 * n] = r;
    asm("set.lt.u32.s32 %0, %1, %2;" : "=r"(r) : "r"(x), "r"(y)); o[14 * n] = r;
    asm("{\n\t.reg .b16 lo, hi;\n\tmov.b32 {lo, hi}, %1;\n\tmov.b32 %0, {hi, lo};\n\t}" : "=r"(r) : "r"(x)); o[15 * n] = r;
}

extern "C" __global__ void rare_floats(const float *a, const float *b, float *out, int *kinds, int n) {
    float x = a[THREAD], y = b[THREAD], r, *o = out + THREAD;
    int k, *q = kinds + THREAD;
    asm("add.ftz.f32 %0, %1, %2;" : "=f"(r) : "f"(x), "f"(y)); o[0 * n] = r;
    asm("mul.sat.f32 %0, %1, %2;" : "=f"(r) : "f"(x), "f"(y)); o[1 * n] = r;
    asm("fma.rn.ftz.sat.f32 %0, %1, %2, %1;" : "=f"(r) : "f"(x), "f"(y)); o[2 * n] = r;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(x), "f"(y)); o[3 * n] = r;
    asm("max.xorsign.abs.f32 %0, %1, %2;" : "=f"(r) : "f"(x), "f"(y)); o[4 * n] = r;
    asm("slct.f32.s32 %0, %1, %2, %3;" : "=f"(r) : "f"(x), "f"(y), "r"(THREAD & 1 ? -1 : 1)); o[5 * n] = r;
    asm("cvt.rni.ftz.f32.f32 %0, %1;" : "=f"(r) : "f"(x)); o[6 * n] = r;
    asm("neg.ftz.f32 %0, %1;" : "=f"(r) : "f"(x)); o[7 * n] = r;
#define TEST(kind, at) \
    asm("{\n\t.reg .pred p;\n\ttestp." #kind ".f32 p, %1;\n\tselp.s32 %0, 1, 0, p;\n\t}" : "=r"(k) : "f"(x)); \
    q[at * n] = k;
    TEST(finite, 0) TEST(infinite, 1) TEST(number, 2) TEST(notanumber, 3) TEST(normal, 4) TEST(subnormal, 5)
    asm("{\n\t.reg .pred p;\n\tsetp.ltu.f32 p, %1, %2;\n\tselp.s32 %0, 1, 0, p;\n\t}" : "=r"(k) : "f"(x), "f"(y)); q[6 * n] = k;
    asm("{\n\t.reg .pred p;\n\tsetp.num.f32 p, %1, %2;\n\tselp.s32 %0, 1, 0, p;\n\t}" : "=r"(k) : "f"(x), "f"(y)); q[7 * n] = k;
    asm("cvt.rzi.sat.s8.f32 %0, %1;" : "=r"(k) : "f"(x * 100)); q[8 * n] = k;
}

// The transpose of an 8x8 matrix of halves, in registers.
extern "C" __global__ void moved_matrix(const unsigned *in, unsigned *out) {
    unsigned r;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(r) : "r"(in[threadIdx.x]));
    out[threadIdx.x] = r;
}

extern "C" __global__ void uniform_votes(const int *in, int *out) {
    int v = in[THREAD], r;
    asm volatile("{\n\t.reg .pred p, q;\n\tsetp.gt.s32 p, %1, 50;\n\tvote.sync.uni.pred q, p, 0xffffffff;\n\tselp.s32 %0, 1, 0, q;\n\t}" : "=r"(r) : "r"(v));
    out[THREAD] = r;
}

// Memory of the stack, taken at run time, and addresses in the window of local memory.
extern "C" __global__ void stack_memory(const int *in, int *out) {
    unsigned long long p;
    asm volatile("{\n\t.reg .u64 q;\n\talloca.u64 q, 64, 8;\n\tcvta.local.u64 %0, q;\n\t}" : "=l"(p));
    int *own = (int *)p;
    for (int i = 0; i < 8; i++) own[(i * 3 + threadIdx.x) & 7] = in[THREAD] + i;
    out[THREAD] = own[5];
}

extern "C" __global__ void surface_lines(cudaSurfaceObject_t from, cudaSurfaceObject_t to) {
    int t = THREAD, v;
    asm volatile("suld.b.1d.b32.trap {%0}, [%1, {%2}];" : "=r"(v) : "l"(from), "r"(4 * t));
    asm volatile("sust.b.1d.b32.trap [%0, {%1}], {%2};" ::"l"(to), "r"(4 * t), "r"(v * 2) : "memory");
}
