// Small kernels for the tests of functional execution; mixed.ptx is made from this with
//   nvcc -ptx -arch=sm_75 -std=c++17 mixed.cu
extern "C" {

__constant__ int table[16];
__device__ unsigned int total = 5;

// shared and global atomics
__global__ void histogram(const unsigned char *data, unsigned int *bins, int n) {
    __shared__ unsigned int part[64];
    for (int i = threadIdx.x; i < 64; i += blockDim.x) part[i] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&part[data[i] & 63], 1u);
    __syncthreads();
    for (int i = threadIdx.x; i < 64; i += blockDim.x) atomicAdd(&bins[i], part[i]);
    if (threadIdx.x == 0) atomicAdd(&total, 1u);
}

// shuffles and votes
__global__ void warp_sums(const int *in, int *out, unsigned int *votes, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int v = i < n ? in[i] : 0;
    unsigned int odd = __ballot_sync(0xffffffffu, v & 1);
    for (int d = 16; d; d >>= 1) v += __shfl_down_sync(0xffffffffu, v, d);
    if ((threadIdx.x & 31) == 0) { out[i / 32] = v; votes[i / 32] = odd; }
}

// a lock taken by every thread of a warp: lanes wait for lanes
__global__ void locked(int *lock, int *counter, int *order) {
    bool done = false;
    while (!done) {
        if (atomicCAS(lock, 0, 1) == 0) {
            int ticket = *(volatile int *)counter;
            order[ticket] = threadIdx.x;
            *(volatile int *)counter = ticket + 1;
            __threadfence();
            atomicExch(lock, 0);
            done = true;
        }
    }
}

// warps of one block wait for each other through shared memory
__global__ void relay(int *out) {
    __shared__ volatile int turn;
    int warp = threadIdx.x / 32;
    if (threadIdx.x == 0) turn = 0;
    __syncthreads();
    int last = blockDim.x / 32 - 1;
    while (turn != last - warp) { }
    if ((threadIdx.x & 31) == 0) { out[last - warp] = warp; __threadfence_block(); turn = turn + 1; }
}

// block 0 waits for block 1, which never runs beside it
__global__ void wait_for_block(volatile int *flag) {
    if (blockIdx.x == 0) { while (*flag == 0) { } } else *flag = 1;
}

// local arrays with dynamic indices, generic pointers
__global__ void local_sort(const int *in, int *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int v[8];
    for (int k = 0; k < 8; ++k) v[k] = in[i * 8 + k];
    for (int a = 1; a < 8; ++a) {
        int key = v[a], b = a - 1;
        while (b >= 0 && v[b] > key) { v[b + 1] = v[b]; --b; }
        v[b + 1] = key;
    }
    for (int k = 0; k < 8; ++k) out[i * 8 + k] = v[k];
}

__global__ void generic(int *global, int use_shared) {
    extern __shared__ int dynamic[];
    dynamic[threadIdx.x] = threadIdx.x * 10;
    __syncthreads();
    volatile int *p = use_shared ? dynamic : global;
    int v = p[blockDim.x - 1 - threadIdx.x];
    __syncthreads();
    global[threadIdx.x] = v + table[threadIdx.x & 15];
}

struct Shape { double scale; int shift; char kind; };

__global__ void by_value(Shape shape, double *out) {
    out[threadIdx.x] = shape.scale * threadIdx.x + shape.shift + shape.kind;
}

__global__ void vectors(const float4 *in, float4 *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { float4 v = in[i]; out[n - 1 - i] = make_float4(v.w, v.z, v.y, v.x); }
}

__global__ void integers(const long long *a, const int *b, long long *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    long long x = a[i]; int y = b[i];
    long long r = x / (y ? y : 1) + x % 1000003 + __mul64hi(x, 0x123456789abcdefLL);
    r ^= (long long)__popc(y) << 32 | __clz(y) << 8 | __ffs(y);
    r += __brev((unsigned)y) + __byte_perm(y, (int)x, 0x5410) + (short)y * 3 + (unsigned char)x;
    r += y >> (i & 31); r += (unsigned)y << (i & 31); r = r * 31 + max(y, (int)x) - min((unsigned)y, 77u);
    out[i] = r;
}

__global__ void floats(const float *a, const double *b, float *out, double *out2, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = a[i]; double y = b[i];
    float r = x / (1.0f + x * x) + sqrtf(x) + 1.0f / (x + 2.0f) + rsqrtf(x + 1.0f);
    r += __int2float_rn((int)(x * 1000.0f)) + floorf(x * 10.0f) + rintf(x * 7.0f) + fminf(x, 0.5f) - fmaxf(x, 0.25f);
    r += (float)y + __fadd_rz(x, 1e-8f) + __fmul_ru(x, x) + fabsf(-x);
    out[i] = r;
    double s = y / (1.0 + y) + sqrt(y) + (double)x + (double)(long long)(y * 1e6) + ceil(y) + trunc(y * 3.0);
    out2[i] = fma(s, y, 1.0);
}

}
