// Memory: constants, initialised globals, pointers in initialisers, local arrays, vectors, shared memory, textures, atomics.
struct Node {
    int key;
    const char *name;
    float weights[3];
};
__constant__ float coefficients[5] = {1.0f, -2.5f, 3.25f, 0.0f, 1e-3f};
__constant__ double matrix[2][3] = {{1, 2, 3}, {4, 5, 6}};
__device__ int counter = -7;
__device__ unsigned long long big[4] = {0xFFFFFFFFFFFFFFFFull, 1, 2};
__device__ const char text[] = "hello, \"PTX\"";
__device__ Node nodes[2] = {{1, text, {1.0f, 2.0f, 3.0f}}, {2, text + 3, {}}};
__device__ float4 quad = {1.0f, 2.0f, 3.0f, 4.0f};
extern __shared__ float dynamic[];

__global__ void constants(float *out, int i) {
    out[i] = coefficients[i] + (float)matrix[i & 1][i % 3] + nodes[i & 1].weights[2] + quad.z;
    if (nodes[i & 1].name[0] == 'h') counter++;
    out[i + 1] = big[i & 3];
}

__global__ void local_array(int *out, const int *in, int n) {
    int stack[32];
    for (int i = 0; i < 32; i++) stack[i] = in[i * n];
    int at = 0;
    for (int i = 0; i < n; i++) at = stack[(at + in[i]) & 31];
    out[threadIdx.x] = at;
}

__global__ void vectors(float4 *out, const float4 *in, const double2 *pairs, char2 *bytes, short4 *shorts) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 v = in[i];
    double2 d = pairs[i];
    v.x += (float)d.x;
    v.w -= (float)d.y;
    out[i] = v;
    bytes[i].x = bytes[i].y;
    short4 s = shorts[i];
    s.z += s.w;
    shorts[i] = s;
}

__global__ void __launch_bounds__(256, 2) shared_memory(float *out, const float *in) {
    __shared__ float tile[16][17];
    __shared__ double partial;
    int x = threadIdx.x & 15, y = threadIdx.x >> 4;
    tile[y][x] = in[threadIdx.x];
    dynamic[threadIdx.x] = tile[x][y];
    if (threadIdx.x == 0) partial = 0;
    __syncthreads();
    atomicAdd(&partial, (double)tile[x][y]);
    __syncthreads();
    out[threadIdx.x] = dynamic[255 - threadIdx.x] + (float)partial;
}

__global__ void atomics(int *i, unsigned *u, unsigned long long *l, float *f, double *d) {
    int t = threadIdx.x;
    atomicAdd(i, t);
    int old = atomicCAS(i + 1, t, t + 1);
    atomicMax(u, (unsigned)old);
    atomicExch(u + 1, 3u);
    atomicInc(u + 2, 100u);
    atomicAnd(u + 3, 0xFu);
    atomicAdd(l, 1ull);
    l[1] = atomicCAS(l + 2, 1ull, 2ull);
    atomicAdd(f, 1.0f);
    atomicAdd(d, 1.0);
    __threadfence_system();
}

__global__ void textures(float4 *out, cudaTextureObject_t image, cudaSurfaceObject_t surface, int w) {
    int x = threadIdx.x, y = blockIdx.x;
    float4 v = tex2D<float4>(image, x / (float)w, y / (float)w);
    float single = tex1D<float>(image, (float)x);
    float one = tex1Dfetch<float>(image, x);
    v.x += single + one + tex3D<float>(image, x, y, 1.0f);
    surf2Dwrite(v, surface, x * 16, y);
    v.y += surf2Dread<float>(surface, x * 4, y);
    out[y * w + x] = v;
}

__global__ void read_only(float *__restrict__ out, const float *__restrict__ in) {
    out[threadIdx.x] = __ldg(in + threadIdx.x) + __ldcs(in + 64);
    __stcg(out + 99, 1.0f);
}
