// State spaces: vectors, shared memory of every kind, constants, module variables, structs by value, local arrays,
// generic addresses, textures and surfaces, cache hints.
#define THREAD (blockIdx.x * blockDim.x + threadIdx.x)

extern "C" __global__ void vectors(const float4 *a, const uchar4 *b, const short2 *c, const double2 *d, float4 *out, uchar4 *bytes) {
    int t = THREAD;
    float4 x = a[t];
    uchar4 y = b[t];
    short2 z = c[t];
    double2 w = d[t];
    out[t] = make_float4(x.w + z.x, x.z - z.y, (float)w.x, (float)w.y);
    bytes[t] = make_uchar4(y.w, y.x + 1, y.z, y.y);
}

struct Pair {
    float first;
    int second;
};

extern "C" __global__ void dynamic_shared(const Pair *in, double *out, int n) {
    extern __shared__ unsigned char raw[];
    __shared__ float scale[4];
    double *wide = (double *)raw;
    Pair *pairs = (Pair *)(raw + blockDim.x * sizeof(double));
    int t = threadIdx.x;
    if (t < 4) scale[t] = t + 0.5f;
    pairs[t] = in[THREAD];
    wide[t] = 2.0 * t;
    __syncthreads();
    Pair other = pairs[(t + 1) % blockDim.x];
    out[THREAD] = wide[blockDim.x - 1 - t] + other.first * scale[t & 3] + other.second;
}

extern "C" __global__ void transpose(const float *in, float *out, int n) {
    __shared__ float tile[32][33];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8) tile[threadIdx.y + k][threadIdx.x] = in[(y + k) * n + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8) out[(y + k) * n + x] = tile[threadIdx.x][threadIdx.y + k];
}

__constant__ float taps[9] = {1, -2, 3, -4, 5, -4, 3, -2, 1};
__constant__ int sizes[4];

extern "C" __global__ void constants(const float *in, float *out, int n) {
    int t = THREAD;
    float sum = 0;
    for (int k = 0; k < 9; k++) {
        int from = t + k - 4;
        if (from >= 0 && from < n) sum += taps[k] * in[from];
    }
    out[t] = sum + sizes[t & 3];
}

__device__ int counters[4] = {10, 20, 30, 40};
__device__ const short table[8] = {3, 1, 4, 1, 5, 9, 2, 6};
__device__ const short *middle = table + 4;
struct Node {
    int value;
    const Node *next;
};
__device__ const Node last = {7, nullptr};
__device__ const Node first = {5, &last};

extern "C" __global__ void module_variables(int *out) {
    int t = threadIdx.x;
    out[t] = counters[t & 3] + table[t & 7] + middle[t & 3];
    int sum = 0;
    for (const Node *node = &first; node; node = node->next) sum += node->value;
    out[t] += sum;
    __syncthreads();
    if (t < 4) counters[t] += t;
}

struct Settings {
    float scale;
    int offset;
    double bias;
    short table[5];
    unsigned char flag;
    const float *data;
};

extern "C" __global__ void struct_by_value(Settings s, char tag, float *out) {
    int t = THREAD;
    out[t] = s.scale * s.data[t] + s.offset + (float)s.bias + s.table[t % 5] + (s.flag ? tag : 0);
}

extern "C" __global__ void local_arrays(const int *in, int *out) {
    int t = THREAD, heap[24];
    for (int i = 0; i < 24; i++) heap[i] = in[t * 24 + i];
    for (int i = 1; i < 24; i++) {
        int v = heap[i], j = i;
        while (j > 0 && heap[j - 1] > v) heap[j] = heap[j - 1], j--;
        heap[j] = v;
    }
    for (int i = 0; i < 24; i++) out[t * 24 + i] = heap[i];
    char text[16];
    for (int i = 0; i < 16; i++) text[(i * 5 + t) & 15] = (char)(i + t);
    out[t * 24] += *(const int *)(text + 4 * (t & 3));
}

extern "C" __global__ void generic_addresses(const int *in, int *out) {
    __shared__ int shared[64];
    int own[2] = {(int)threadIdx.x, -5};
    shared[threadIdx.x] = in[threadIdx.x] * 3;
    __syncthreads();
    const int *from = threadIdx.x % 3 == 0 ? in + threadIdx.x : threadIdx.x % 3 == 1 ? shared + 63 - threadIdx.x : own + (in[0] & 1);
    int kind = __isGlobal(from) + 2 * __isShared(from) + 4 * __isLocal(from);
    out[threadIdx.x] = *from * 8 + kind;
}

extern "C" __global__ void hints(const float *a, const int4 *b, float *out, int4 *wide) {
    int t = THREAD;
    float x = __ldg(a + t) + __ldcg(a + t) + __ldca(a + t) + __ldcs(a + t) + __ldlu(a + t) + __ldcv(a + t);
    __stcg(out + t, x);
    __stcs(wide + t, __ldg(b + t));
    asm volatile("prefetch.global.L2 [%0];" ::"l"(a + t));
    __threadfence_system();
    __stwt(out + t, out[t] + 1);
}

// The object of a texture or surface is what the program passes as its handle.
extern "C" __global__ void texture_lines(cudaTextureObject_t line, float *out) {
    out[THREAD] = tex1Dfetch<float>(line, (THREAD * 5) % 64);
}

// Normalised coordinates that wrap, bytes read as 0..1, from a plane; clamped integers from a volume.
extern "C" __global__ void texture_planes(cudaTextureObject_t plane, cudaTextureObject_t volume, float *out, int *whole) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    float4 texel = tex2D<float4>(plane, (x + 0.5f) / 20.0f, (y + 0.5f) / 12.0f);
    out[y * 32 + x] = texel.x + 2 * texel.y + 4 * texel.z + 8 * texel.w;
    whole[y * 32 + x] = tex3D<int>(volume, x + 0.5f, y + 0.5f, y % 5 + 0.5f);
}
