// Rates of one SM and of the whole chip, for `validate micro`: bodies so long that the loop around them does not matter.
// kernels.ptx is made from this with:  nvcc -ptx -arch=sm_75 kernels.cu -o kernels.ptx

// --- arithmetic: eight chains a thread, 128 steps a round ------------------------------------------------------------
#define RATE(NAME, T, STEP)                                                                       \
    extern "C" __global__ void NAME(T *out, T a, T b, int rounds)                                 \
    {                                                                                             \
        T x[8];                                                                                   \
        _Pragma("unroll") for (int j = 0; j < 8; j++) x[j] = a + (T)(int)(threadIdx.x + j);       \
        _Pragma("unroll 1") for (int i = 0; i < rounds; i++) {                                    \
            _Pragma("unroll") for (int k = 0; k < 16; k++) {                                      \
                _Pragma("unroll") for (int j = 0; j < 8; j++) { STEP(x[j]) }                      \
            }                                                                                     \
        }                                                                                         \
        T sum = x[0];                                                                             \
        _Pragma("unroll") for (int j = 1; j < 8; j++) sum = sum + x[j];                           \
        out[blockIdx.x * blockDim.x + threadIdx.x] = sum;                                         \
    }

#define FMA(x) x = x * a + b;
#define HFMA2(x) asm volatile("fma.rn.f16x2 %0, %0, %1, %2;" : "+r"(x) : "r"(a), "r"(b));
#define EX2(x) asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(x));
#define POPC(x) asm volatile("popc.b32 %0, %0;" : "+r"(x));
#define SHUFFLE(x) asm volatile("shfl.sync.bfly.b32 %0, %0, 1, 31, -1;" : "+r"(x));

RATE(rate_ffma, float, FMA)
RATE(rate_dfma, double, FMA)
RATE(rate_imad, unsigned, FMA)
RATE(rate_hfma2, unsigned, HFMA2)
RATE(rate_ex2, float, EX2)
RATE(rate_popc, unsigned, POPC)
RATE(rate_shuffle, unsigned, SHUFFLE)

// --- shared memory -----------------------------------------------------------------------------------------------------

// Each thread reads 64 words of T, neighbours next to one another: without conflicts.
template <typename T, int WORDS>
__device__ __forceinline__ void read_shared(float *out, int rounds)
{
    __shared__ T data[2048 / WORDS];
    for (int i = threadIdx.x; i < 2048 / WORDS; i += blockDim.x)
        data[i] = T();
    __syncthreads();
    float sum = 0.0f;
    const volatile float *own = (const volatile float *)(data + (threadIdx.x & 31));
#pragma unroll 1
    for (int i = 0; i < rounds; i++) {
#pragma unroll
        for (int k = 0; k < 64; k++) {
            if (WORDS == 1) {
                sum += own[k % 64 * 32];
            } else {
                float4 v;
                unsigned place = (unsigned)__cvta_generic_to_shared((const void *)(own + k % 16 * 128));
                asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                             : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "r"(place));
                sum += v.x + v.w;
            }
        }
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

extern "C" __global__ void shared_32(float *out, int rounds)
{
    read_shared<float, 1>(out, rounds);
}

extern "C" __global__ void shared_128(float *out, int rounds)
{
    read_shared<float4, 4>(out, rounds);
}

// Each word is the address of the next one: nothing but loads in the chain. 16 steps a round.
extern "C" __global__ void shared_chase(unsigned *out, int rounds)
{
    __shared__ unsigned next[1024];
    unsigned place = (unsigned)__cvta_generic_to_shared(next);
    for (int i = threadIdx.x; i < 1024; i += blockDim.x)
        next[i] = place + ((i + 1) & 1023) * 4;
    __syncthreads();
#pragma unroll 1
    for (int i = 0; i < rounds; i++) {
#pragma unroll
        for (int k = 0; k < 16; k++)
            asm volatile("ld.shared.u32 %0, [%0];" : "+r"(place));
    }
    out[threadIdx.x] = place;
}

// --- barriers: 16 a round ------------------------------------------------------------------------------------------------
extern "C" __global__ void barriers(int *out, int rounds)
{
#pragma unroll 1
    for (int i = 0; i < rounds; i++) {
#pragma unroll
        for (int k = 0; k < 16; k++)
            asm volatile("bar.sync 0;" ::: "memory");
    }
    out[threadIdx.x] = rounds;
}

// --- DRAM: 16 B a thread, one element each -------------------------------------------------------------------------------
extern "C" __global__ void read(const float4 *in, float4 *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 v = in[i];
    if (v.x == 12345.0f)
        out[i] = v;
}

extern "C" __global__ void write(float4 *out, float value)
{
    out[blockIdx.x * blockDim.x + threadIdx.x] = make_float4(value, value, value, value);
}

extern "C" __global__ void copy(const float4 *in, float4 *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i];
}

extern "C" __global__ void triad(const float4 *b, const float4 *c, float4 *a, float scale)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 x = b[i], y = c[i];
    a[i] = make_float4(x.x + scale * y.x, x.y + scale * y.y, x.z + scale * y.z, x.w + scale * y.w);
}
