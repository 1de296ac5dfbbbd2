// Control flow: calls, recursion, function pointers, virtual functions, jump tables, named barriers, printf.
#include <cstdio>
#include <cassert>
#define THREAD (blockIdx.x * blockDim.x + threadIdx.x)

__device__ __noinline__ float poly(float x, float a, float b) { return (x * a + b) * x; }
__device__ __noinline__ double2 twice(double2 v) { return make_double2(2 * v.x, 2 * v.y); }

extern "C" __global__ void calls(const float *in, float *out) {
    float x = in[THREAD], y = poly(x, 2.0f, 1.0f);
    if (threadIdx.x & 1) y = poly(y, x, 0.5f);
    double2 d = twice(make_double2(y, x));
    out[THREAD] = (float)(d.x - d.y);
}

__device__ __noinline__ int ackermann(int m, int n) {
    if (m == 0) return n + 1;
    if (n == 0) return ackermann(m - 1, 1);
    return ackermann(m - 1, ackermann(m, n - 1));
}
__device__ __noinline__ unsigned fibonacci(unsigned n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

extern "C" __global__ void recursion(const int *in, int *out) {
    out[THREAD] = ackermann(2, in[THREAD] & 3) * 1000 + fibonacci(in[THREAD] & 7);
}

typedef int (*Operation)(int, int);
__device__ __noinline__ int plus(int a, int b) { return a + b; }
__device__ __noinline__ int minus(int a, int b) { return a - b; }
__device__ __noinline__ int times(int a, int b) { return a * b; }
__device__ Operation operations[3] = {plus, minus, times};

extern "C" __global__ void function_pointers(const int *in, int *out) { out[THREAD] = operations[in[THREAD] % 3](in[THREAD], 7); }

struct Shape {
    __device__ virtual int area() const = 0;
};
struct Square : Shape {
    int a;
    __device__ Square(int a) : a(a) {}
    __device__ int area() const override { return a * a; }
};
struct Box : Shape {
    int a, b;
    __device__ Box(int a, int b) : a(a), b(b) {}
    __device__ int area() const override { return a * b; }
};

extern "C" __global__ void virtual_functions(const int *in, int *out) {
    Square square(in[THREAD]);
    Box box(in[THREAD], 3);
    const Shape *shape = in[THREAD] & 1 ? (const Shape *)&square : (const Shape *)&box;
    out[THREAD] = shape->area();
}

extern "C" __global__ void jump_table(const int *in, int *out) {
    int v = in[THREAD], r;
    asm("{\n\t.reg .u32 i;\n\tand.b32 i, %1, 3;\n\tts: .branchtargets L0, L1, L2, L3;\n\tbrx.idx i, ts;\n\t"
        "L0: mov.u32 %0, 11;\n\tbra.uni DONE;\n\tL1: add.s32 %0, %1, 5;\n\tbra.uni DONE;\n\t"
        "L2: mul.lo.s32 %0, %1, 3;\n\tbra.uni DONE;\n\tL3: sub.s32 %0, 0, %1;\n\tDONE:\n\t}"
        : "=r"(r) : "r"(v));
    switch (v % 9) {
    case 0: r += 5; break;
    case 1: r *= 3;
    case 2: r -= 4; break;
    case 3: r ^= 77; break;
    case 4: r = r / 3 + 1; break;
    case 5: r <<= 1; break;
    case 6: r = -r;
    case 7: r += v; break;
    default: r = 1;
    }
    out[THREAD] = r;
}

extern "C" __global__ void irregular(const int *in, int *out, int n) {
    int v = in[THREAD], r = 0;
    for (int i = 0; i < n; i++) {
        if (v == i) goto found;
        if ((v ^ i) == 9) continue;
        if (i * i > v) { r -= 2; break; }
        r += i;
        if (r > 40) { out[THREAD] = -r; return; }
    }
    r *= 10;
found:
    out[THREAD] = r + 1;
}

extern "C" __global__ void block_votes(const int *in, int *out) {
    int v = in[THREAD];
    int count = __syncthreads_count(v & 1), every = __syncthreads_and(v < 900), some = __syncthreads_or(v > 90);
    out[THREAD] = count * 4 + (every != 0) * 2 + (some != 0);
}

// Two pairs of warps meet at barriers of their own; a producer warp arrives without waiting.
extern "C" __global__ void named_barriers(const int *in, int *out) {
    __shared__ int item[64];
    int warp = threadIdx.x / 32, lane = threadIdx.x & 31, pair = warp / 2;
    if (warp & 1) {
        asm volatile("bar.sync %0, 64;" ::"r"(pair + 1) : "memory");
        out[threadIdx.x] = item[pair * 32 + 31 - lane];
    } else {
        item[pair * 32 + lane] = in[threadIdx.x] + 1;
        asm volatile("bar.arrive %0, 64;" ::"r"(pair + 1) : "memory");
        out[threadIdx.x] = warp;
    }
    int odd;
    asm volatile("{\n\t.reg .pred p, q;\n\tsetp.ne.u32 p, %1, 0;\n\tbarrier.cta.red.or.pred q, 0, p;\n\tselp.u32 %0, 1, 0, q;\n\t}"
                 : "=r"(odd) : "r"((int)(threadIdx.x == 77)));
    out[threadIdx.x] += 100 * odd;
}

extern "C" __global__ void prints(const int *in, int *out) {
    if (in[THREAD] == 5) printf("thread %d has %d and %f\n", (int)THREAD, in[THREAD], 0.5);
    assert(in[THREAD] >= 0);
    if (in[THREAD] < 0) asm volatile("trap;");
    out[THREAD] = in[THREAD] + 1;
}

extern "C" __global__ void clocks(long long *out) {
    long long before = clock64();
    unsigned start = clock();
    __nanosleep(20);
    out[THREAD] = (clock64() >= before) + 2 * (clock() - start < 0x80000000u);
    unsigned long long timer;
    unsigned sm, grid;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(timer));
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    asm volatile("mov.u32 %0, %%nctaid.x;" : "=r"(grid));
    out[THREAD] += 4 * (grid == gridDim.x) + 8 * (sm < 10000);
}

extern "C" __global__ void three_dimensions(int *out) {
    int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    int thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    out[block * (blockDim.x * blockDim.y * blockDim.z) + thread] =
        blockIdx.x + 10 * blockIdx.y + 100 * blockIdx.z + 1000 * threadIdx.x + 10000 * threadIdx.y + 100000 * threadIdx.z;
}
