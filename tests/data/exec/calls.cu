// Calls for the tests of functional execution; calls.ptx is made from this with
//   nvcc -ptx -arch=sm_80 -std=c++17 calls.cu
#include <cstdio>
#include <cassert>
#include <alloca.h>
struct V { float x, y, z; double w; };
__device__ __noinline__ V scale(V v, float s) { V r; r.x=v.x*s; r.y=v.y*s; r.z=v.z*s; r.w=v.w*s; return r; }
__device__ __noinline__ int fib(int n) { return n < 2 ? n : fib(n-1) + fib(n-2); }
__device__ __noinline__ int odd(int n);
__device__ __noinline__ int even(int n) { return n == 0 ? 1 : odd(n-1); }
__device__ __noinline__ int odd(int n) { return n == 0 ? 0 : even(n-1); }
typedef float (*op)(float, float);
__device__ __noinline__ float add(float a, float b) { return a + b; }
__device__ __noinline__ float mul(float a, float b) { return a * b; }
__device__ __noinline__ float sub(float a, float b) { return a - b; }
__device__ op table[3] = {add, mul, sub};
struct B { __device__ virtual int f(int) = 0; };
struct C1 : B { int k; __device__ C1(int k) : k(k) {} __device__ int f(int a) override { return a + k; } };
struct C2 : B { int k; __device__ C2(int k) : k(k) {} __device__ int f(int a) override { return a * k; } };
__device__ __noinline__ int sum(int *p, int n) { int s = 0; for (int i = 0; i < n; i++) s += p[i]; return s; }
extern "C" __global__ void structs(float *o) { V v = {1.0f*threadIdx.x, 2, 3, 4}; V r = scale(v, o[threadIdx.x]); o[threadIdx.x] = r.x + r.y + r.z + (float)r.w; }
extern "C" __global__ void recursive(int *o) { o[threadIdx.x] = fib(threadIdx.x % 10) + even(threadIdx.x); }
extern "C" __global__ void pointers(float *o) { int t = threadIdx.x; o[t] = table[t % 3](o[t], 3.0f); }
extern "C" __global__ void virt(int *o) { int t = threadIdx.x; C1 a(5); C2 b(7); B *p = (t & 1) ? (B*)&a : (B*)&b; o[t] = p->f(t); }
extern "C" __global__ void depot(int *o) { int t = threadIdx.x; int a[32]; for (int i = 0; i < 32; i++) a[(i * 7 + t) % 32] = i * t; o[t] = sum(a, 1 + t % 32); }
extern "C" __global__ void prints(int *o) { int t = threadIdx.x; if (t % 8 == 0) printf("t %d %s %f %5.2e %c %lld %u%%\n", t, "abc", 1.5 * t, 2.0*t, 'a' + t/8, (long long)t << 40, 7u); }
extern "C" __global__ void asserts(int *o) { assert(o[threadIdx.x] < 10); }
extern "C" __global__ void heap(int *o) { int t = threadIdx.x; int *p = (int*)malloc(4*(t+1)); for (int i = 0; i <= t; i++) p[i] = i; o[t] = sum(p, t + 1); free(p); }
extern "C" __global__ void allocas(int *o) { int t = threadIdx.x; int n = t % 8 + 1; int *p = (int*)alloca(4*n); for (int i = 0; i < n; i++) p[i] = i + t; o[t] = sum(p, n); }
// lanes return at different places, leave the kernel inside of a function, and meet barriers there
__device__ __noinline__ int early(int n, int *o) {
    if (n % 7 == 3) { o[n] = -1; asm volatile("exit;"); }
    if (n % 3 == 0) return n * 2;
    __syncthreads();
    for (int i = 0; i < n % 5; i++) if (o[n] == i) return i + 100;
    return n;
}
extern "C" __global__ void returns(int *o) { int t = threadIdx.x; o[t] = early(t, o) + early(t + 64, o); }
__device__ __noinline__ int ackermann(int m, int n) {
    if (m == 0) return n + 1;
    if (n == 0) return ackermann(m - 1, 1);
    return ackermann(m - 1, ackermann(m, n - 1));
}
extern "C" __global__ void deep(int *o) { int t = threadIdx.x; o[t] = ackermann(t % 3, t % 4); }
__device__ __noinline__ int endless(int n) { return endless(n + 1) * n + 1; }
extern "C" __global__ void bottomless(int *o) { o[threadIdx.x] = endless(threadIdx.x); }
// function pointers that lie in registers, different in each lane, and recursion through them
typedef int (*walk)(int, int);
__device__ int left(int n, int depth); __device__ int right(int n, int depth);
__device__ walk walks[2] = {left, right};
__device__ __noinline__ int left(int n, int depth) { return depth ? walks[n & 1](n / 2, depth - 1) * 3 + 1 : n; }
__device__ __noinline__ int right(int n, int depth) { return depth ? walks[n & 1](n / 2, depth - 1) * 5 + n : -n; }
extern "C" __global__ void walking(int *o) { int t = threadIdx.x; o[t] = walks[t % 2](t, t % 6); }
