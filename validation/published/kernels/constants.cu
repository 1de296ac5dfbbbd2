// Potentials of charged atoms at points, a thread a point, from a table of atoms in constant memory, in our words: all blocks
// read the same part of it or each its own, and the lanes of a warp the same atom or different ones; the same from global memory,
// in tiles. Without a cutoff, so that all atoms take the same work. Compiled by nvcc 13.0 -arch=compute_75 -ptx.
#define ATOMS 4000
#define THREADS 128
__constant__ float4 atoms[ATOMS];

struct Point { float x, y, z; };

__device__ __forceinline__ Point point_of(int number) {
    return {(number & 1023) * 0.01f, (number >> 10 & 255) * 0.01f, (number >> 18) * 0.01f};
}

__device__ __forceinline__ float potential(float4 atom, Point at) {
    float x = at.x - atom.x, y = at.y - atom.y, z = at.z - atom.z;
    return atom.w * rsqrtf(x * x + y * y + z * z + 1.0f);
}

// The first atom of a block: 0, or one of ATOMS - count + 1 that its number is scattered to.
__device__ __forceinline__ int first_atom(int count, int apart) {
    return apart ? (int)(blockIdx.x * 2654435761u % (unsigned)(ATOMS - count + 1)) : 0;
}

extern "C" __global__ void window_constant(int count, int apart, const float4 *table, float *result) {
    int number = blockIdx.x * THREADS + threadIdx.x, first = first_atom(count, apart);
    Point at = point_of(number);
    float sum = 0;
    for (int i = 0; i < count; i++) sum += potential(atoms[first + i], at);
    result[number] = sum;
}

extern "C" __global__ void window_shared(int count, int apart, const float4 *table, float *result) {
    __shared__ float4 tile[THREADS];
    int number = blockIdx.x * THREADS + threadIdx.x, first = first_atom(count, apart);
    Point at = point_of(number);
    float sum = 0;
    for (int begin = 0; begin < count; begin += THREADS) {
        int mine = begin + threadIdx.x;
        tile[threadIdx.x] = mine < count ? table[first + mine] : make_float4(1e9f, 1e9f, 1e9f, 0);
        __syncthreads();
        int here = min(THREADS, count - begin);
        for (int i = 0; i < here; i++) sum += potential(tile[i], at);
        __syncthreads();
    }
    result[number] = sum;
}

// `mask`: which bits of the lane's number choose its atom.
extern "C" __global__ void lanes_constant(int count, int mask, const float4 *table, float *result) {
    int number = blockIdx.x * THREADS + threadIdx.x, lane = threadIdx.x & 31;
    Point at = point_of(number);
    float sum = 0;
    for (int i = 0; i < count; i++) sum += potential(atoms[(i + (lane & mask)) % ATOMS], at);
    result[number] = sum;
}
