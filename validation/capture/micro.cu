// Micro-benchmarks: each makes one property of the GPU decide its time. Lengths are arguments, so that the difference of
// two lengths is free of launch overhead. micro.ptx is made from this with:  nvcc -ptx -arch=sm_75 micro.cu -o micro.ptx

// --- dependent chains: latency with one warp, throughput with many warps and several chains a thread -----------------
// 16 steps a round. STEP changes x; machine code keeps one instruction a step (two in `logic` and `cvt`).
#define CHAINS(NAME, T, STEP)                                                                     \
    extern "C" __global__ void NAME##_1(T *out, T a, T b, int rounds)                             \
    {                                                                                             \
        T x = a + (T)(int)threadIdx.x;                                                            \
        _Pragma("unroll 1") for (int i = 0; i < rounds; i++) {                                    \
            _Pragma("unroll") for (int k = 0; k < 16; k++) { STEP(x) }                            \
        }                                                                                         \
        out[blockIdx.x * blockDim.x + threadIdx.x] = x;                                           \
    }                                                                                             \
    extern "C" __global__ void NAME##_8(T *out, T a, T b, int rounds)                             \
    {                                                                                             \
        T x[8];                                                                                   \
        _Pragma("unroll") for (int j = 0; j < 8; j++) x[j] = a + (T)(int)(threadIdx.x + j);       \
        _Pragma("unroll 1") for (int i = 0; i < rounds; i++) {                                    \
            _Pragma("unroll") for (int k = 0; k < 2; k++) {                                       \
                _Pragma("unroll") for (int j = 0; j < 8; j++) { STEP(x[j]) }                      \
            }                                                                                     \
        }                                                                                         \
        T sum = x[0];                                                                             \
        _Pragma("unroll") for (int j = 1; j < 8; j++) sum = sum + x[j];                           \
        out[blockIdx.x * blockDim.x + threadIdx.x] = sum;                                         \
    }

#define FFMA(x) x = x * a + b;
#define ADD(x) x = x + b;
#define MUL(x) x = x * a;
#define LOGIC(x) x = (x ^ a) + b;
#define EX2(x) asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(x));
#define RSQRT(x) asm volatile("rsqrt.approx.ftz.f32 %0, %0;" : "+f"(x));
#define POPC(x) asm volatile("popc.b32 %0, %0;" : "+r"(x));
#define SHUFFLE(x) asm volatile("shfl.sync.bfly.b32 %0, %0, 1, 31, -1;" : "+r"(x));
#define CVT(x)                                                            \
    {                                                                     \
        int whole;                                                        \
        asm volatile("cvt.rni.s32.f32 %0, %1;" : "=r"(whole) : "f"(x));   \
        asm volatile("cvt.rn.f32.s32 %0, %1;" : "=f"(x) : "r"(whole));    \
    }

CHAINS(ffma, float, FFMA)
CHAINS(fadd, float, ADD)
CHAINS(fmul, float, MUL)
CHAINS(dfma, double, FFMA)
CHAINS(dadd, double, ADD)
CHAINS(imad, unsigned, FFMA)
CHAINS(logic, unsigned, LOGIC)
CHAINS(ex2, float, EX2)
CHAINS(rsqrt, float, RSQRT)
CHAINS(popc, unsigned, POPC)
CHAINS(shuffle, unsigned, SHUFFLE)
CHAINS(cvt, float, CVT)

// Two f16 values a register.
#define HFMA2(x) asm volatile("fma.rn.f16x2 %0, %0, %1, %2;" : "+r"(x) : "r"(a), "r"(b));
CHAINS(hfma2, unsigned, HFMA2)

// --- memory latency ----------------------------------------------------------------------------------------------------

// next[i] is the index of the next element: `ring:STRIDE`.
extern "C" __global__ void chase(const unsigned *next, unsigned *out, int steps)
{
    unsigned i = 0;
#pragma unroll 8
    for (int k = 0; k < steps; k++)
        i = next[i];
    *out = i;
}

extern "C" __global__ void chase_shared(unsigned *out, int steps)
{
    __shared__ unsigned next[1024];
    for (int i = threadIdx.x; i < 1024; i += blockDim.x)
        next[i] = (i + 1) & 1023;
    __syncthreads();
    unsigned i = 0;
#pragma unroll 8
    for (int k = 0; k < steps; k++)
        i = next[i];
    out[threadIdx.x] = i;
}

// --- memory bandwidth --------------------------------------------------------------------------------------------------

// Eight loads of 16 B in flight a thread, wherever they are cached; MODE is the cache operator.
#define LOAD(MODE, v, p)                                                                                          \
    asm volatile("ld.global." MODE ".v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(p))

#define SUM_OF_EIGHT(MODE, sum, p, step)                                 \
    {                                                                    \
        float4 v[8];                                                     \
        _Pragma("unroll") for (int k = 0; k < 8; k++) LOAD(MODE, v[k], (p) + k * (step)); \
        _Pragma("unroll") for (int k = 0; k < 8; k++) sum += v[k].x + v[k].w;             \
    }

// Every block reads the same 16 KiB `passes` times, through its L1.
extern "C" __global__ void read_l1(const float4 *data, float *out, int passes)
{
    float sum = 0.0f;
    const float4 *own = data + (threadIdx.x & 127);
#pragma unroll 1
    for (int pass = 0; pass < passes; pass++)
        SUM_OF_EIGHT("ca", sum, own, 128)
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// Each lane reads words of its own line, all in 4 KiB: 32 look-ups in the L1 an access.
extern "C" __global__ void scatter_l1(const float *data, float *out, int rounds)
{
    float sum = 0.0f;
    const float *own = data + (threadIdx.x & 31) * 32;
#pragma unroll 1
    for (int i = 0; i < rounds; i++) {
        float v[8];
#pragma unroll
        for (int k = 0; k < 8; k++)
            asm volatile("ld.global.ca.f32 %0, [%1];" : "=f"(v[k]) : "l"(own + k));
#pragma unroll
        for (int k = 0; k < 8; k++)
            sum += v[k];
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// Every block of 1024 reads all `words` `passes` times, past the L1 and more than it holds, each from another place on;
// `words` is a power of two, at least 32768.
extern "C" __global__ void read_l2(const float4 *data, float *out, int words, int passes)
{
    float sum = 0.0f;
    int chunks = words / 32768;
    const float4 *own = data + threadIdx.x;
#pragma unroll 1
    for (int i = 0; i < passes * chunks; i++) {
        int chunk = (i + 5 * blockIdx.x) & (chunks - 1);
        SUM_OF_EIGHT("cg", sum, own + chunk * 8192, 1024)
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// One access a thread and round, `count` words in all: a power of two.
extern "C" __global__ void stream_read(const float4 *in, float *out, int count)
{
    float sum = 0.0f;
    int thread = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
#pragma unroll 4
    for (int i = thread; i < count / 4; i += threads) {
        float4 v = in[i];
        sum += v.x + v.y + v.z + v.w;
    }
    out[thread] = sum;
}

extern "C" __global__ void stream_copy(const float *in, float *out, int count)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
        out[i] = in[i];
}

extern "C" __global__ void stream_write(float *out, float value, int count)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
        out[i] = value;
}

// Thread t reads word t x stride of `mask` + 1 words, a power of two.
extern "C" __global__ void strided_read(const float *in, float *out, int stride, int mask)
{
    int thread = blockIdx.x * blockDim.x + threadIdx.x;
    out[thread] = in[(thread * stride) & mask];
}

// --- shared memory, atomics, barriers, nothing ---------------------------------------------------------------------------

// Lane l reads word l x stride: as many conflicts as lanes have a bank in common.
extern "C" __global__ void banks(float *out, int stride, int rounds)
{
    __shared__ float data[2048];
    for (int i = threadIdx.x; i < 2048; i += blockDim.x)
        data[i] = (float)i;
    __syncthreads();
    float sum = 0.0f;
    int first = (threadIdx.x & 31) * stride;
#pragma unroll 1
    for (int i = 0; i < rounds; i++) {
#pragma unroll
        for (int k = 0; k < 16; k++)
            sum += data[(first + k * 32 + i) & 2047];
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// Thread t adds 1 to counter (t x stride) & mask, `rounds` times.
extern "C" __global__ void atomics(unsigned *counters, int stride, int mask, int rounds)
{
    int own = (int)((blockIdx.x * blockDim.x + threadIdx.x) * stride) & mask;
#pragma unroll 1
    for (int i = 0; i < rounds; i++)
        atomicAdd(counters + own, 1u);
}

extern "C" __global__ void barriers(int *out, int rounds)
{
    int x = threadIdx.x;
#pragma unroll 1
    for (int i = 0; i < rounds; i++) {
        __syncthreads();
        x ^= i;
        __syncthreads();
        x += i;
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = x;
}

extern "C" __global__ void nothing(void)
{
}
