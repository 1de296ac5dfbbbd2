// A product of single-precision matrices by tiles with every choice of its layout a parameter: C = alpha A B^T + beta C.
// A is k x m and B k x n, C n x m, all by rows; sides are multiples of the tiles.
//
// Written to what the parameters of CLTune's xgemm mean (PROVENANCE.md). A block makes MWG x NWG elements of C with
// MDIMC x NDIMC threads, KWG steps of k at a time. A and B are read as vectors of VWM and VWN floats; with SA, SB the block
// brings its KWG rows of them to shared memory, MDIMA, NDIMB threads side by side in a row, else each thread reads what
// it needs from global memory. A thread's vectors lie next to one another or, with STRM, STRN, as far apart as there are
// threads. Two steps of k are written out. There are no vectors of eight floats in CUDA: they are structures of eight,
// read one by one.
template <int W> struct Vector;
template <> struct Vector<1> {
    using type = float;
};
template <> struct Vector<2> {
    using type = float2;
};
template <> struct Vector<4> {
    using type = float4;
};
template <> struct Vector<8> {
    struct type {
        float s0, s1, s2, s3, s4, s5, s6, s7;
    };
};

template <class V> __device__ __forceinline__ float& part(V& vector, int i) { return reinterpret_cast<float*>(&vector)[i]; }

template <class V, int TILE, int KWG, int WIDTH, int SIDE, int THREADS, bool STRIDED>
__device__ __forceinline__ void to_shared(const V* __restrict__ from, V* to, int row, int first, int thread) {
    constexpr int ROWS = KWG / (THREADS / SIDE), IN_ROW = TILE / SIDE / WIDTH;
    int x = thread % SIDE, y = thread / SIDE;
#pragma unroll
    for (int i = 0; i < IN_ROW; i++)
#pragma unroll
        for (int j = 0; j < ROWS; j++) {
            int column = STRIDED ? x + i * SIDE : i + x * IN_ROW, k = j + y * ROWS;
            to[k * (TILE / WIDTH) + column] = from[k * row + first + column];
        }
}

template <int MWG, int NWG, int KWG, int MDIMC, int NDIMC, int MDIMA, int NDIMB, int VWM, int VWN, bool STRM, bool STRN,
          bool SA, bool SB>
__device__ __forceinline__ void product(int m, int n, int k, float alpha, float beta,
                                        const typename Vector<VWM>::type* __restrict__ a,
                                        const typename Vector<VWN>::type* __restrict__ b,
                                        typename Vector<VWM>::type* c) {
    using Vm = typename Vector<VWM>::type;
    using Vn = typename Vector<VWN>::type;
    constexpr int MWI = MWG / MDIMC, NWI = NWG / NDIMC, IN_M = MWI / VWM, IN_N = NWI / VWN, THREADS = MDIMC * NDIMC;
    constexpr int KWI = 2;
    __shared__ Vm tile_a[SA ? KWG * MWG / VWM : 1];
    __shared__ Vn tile_b[SB ? KWG * NWG / VWN : 1];
    int x = threadIdx.x, y = threadIdx.y;
    volatile int thread = x + MDIMC * y;  // as in the source: computed with anew for each tile
    Vm sums[NWI][IN_M];
#pragma unroll
    for (int i = 0; i < NWI; i++)
#pragma unroll
        for (int j = 0; j < IN_M; j++)
#pragma unroll
            for (int e = 0; e < VWM; e++) part(sums[i][j], e) = 0;
    int first_m = blockIdx.x * (MWG / VWM), first_n = blockIdx.y * (NWG / VWN), row_a = m / VWM, row_b = n / VWN;
    for (int start = 0; start < k; start += KWG) {
        if (SA) to_shared<Vm, MWG, KWG, VWM, MDIMA, THREADS, STRM>(a, tile_a, row_a, start * row_a + first_m, thread);
        if (SB) to_shared<Vn, NWG, KWG, VWN, NDIMB, THREADS, STRN>(b, tile_b, row_b, start * row_b + first_n, thread);
        if (SA || SB) __syncthreads();
        for (int step = 0; step < KWG; step += KWI) {
#pragma unroll
            for (int s = step; s < step + KWI; s++) {
                Vm of_a[IN_M];
                Vn of_b[IN_N];
#pragma unroll
                for (int j = 0; j < IN_M; j++) {
                    int column = STRM ? x + j * MDIMC : j + x * IN_M;
                    of_a[j] = SA ? tile_a[s * (MWG / VWM) + column] : a[(start + s) * row_a + first_m + column];
                }
#pragma unroll
                for (int i = 0; i < IN_N; i++) {
                    int column = STRN ? y + i * NDIMC : i + y * IN_N;
                    of_b[i] = SB ? tile_b[s * (NWG / VWN) + column] : b[(start + s) * row_b + first_n + column];
                }
#pragma unroll
                for (int i = 0; i < NWI; i++)
#pragma unroll
                    for (int j = 0; j < IN_M; j++)
#pragma unroll
                        for (int e = 0; e < VWM; e++)
                            part(sums[i][j], e) += part(of_a[j], e) * part(of_b[i / VWN], i % VWN);
            }
        }
        if (SA || SB) __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < NWI; i++)
#pragma unroll
        for (int j = 0; j < IN_M; j++) {
            int row = STRN ? i % VWN + y * VWN + i / VWN * VWN * NDIMC : i + y * NWI;
            int at = (blockIdx.y * NWG + row) * row_a + first_m + (STRM ? x + j * MDIMC : j + x * IN_M);
            Vm result, before = c[at];
#pragma unroll
            for (int e = 0; e < VWM; e++) part(result, e) = alpha * part(sums[i][j], e) + beta * part(before, e);
            c[at] = result;
        }
}

#define PRODUCT(M, N, K, MC, NC, MA, NB, VM, VN, STM, STN, A, B)                                                           \
    extern "C" __global__ void xgemm_##M##_##N##_##K##_##MC##_##NC##_##MA##_##NB##_##VM##_##VN##_##STM##STN##A##B(         \
        int m, int n, int k, float alpha, float beta, const Vector<VM>::type* __restrict__ a,                              \
        const Vector<VN>::type* __restrict__ b, Vector<VM>::type* c) {                                                     \
        product<M, N, K, MC, NC, MA, NB, VM, VN, STM, STN, A, B>(m, n, k, alpha, beta, a, b, c);                           \
    }

PRODUCT(128, 64, 16, 16, 8, 16, 16, 4, 2, 0, 0, 1, 0)
PRODUCT(64, 128, 32, 8, 8, 32, 16, 2, 2, 0, 0, 0, 1)
PRODUCT(32, 128, 16, 16, 8, 8, 8, 1, 2, 0, 1, 0, 0)
PRODUCT(64, 32, 32, 8, 8, 8, 16, 4, 1, 0, 0, 0, 0)
PRODUCT(128, 32, 16, 32, 8, 32, 16, 1, 1, 1, 0, 0, 0)
PRODUCT(32, 32, 32, 32, 16, 32, 16, 1, 1, 1, 0, 1, 1)
PRODUCT(64, 64, 32, 32, 8, 16, 32, 1, 1, 0, 1, 1, 0)
PRODUCT(128, 64, 16, 16, 8, 8, 8, 8, 1, 1, 0, 1, 1)
PRODUCT(128, 128, 16, 32, 8, 32, 16, 2, 4, 1, 1, 1, 0)
PRODUCT(128, 128, 32, 16, 8, 16, 32, 4, 2, 1, 0, 1, 1)
PRODUCT(32, 128, 32, 16, 16, 8, 8, 2, 8, 1, 1, 1, 1)
PRODUCT(32, 64, 32, 32, 16, 16, 32, 1, 1, 0, 1, 1, 1)
PRODUCT(128, 128, 32, 8, 16, 8, 16, 2, 2, 0, 1, 0, 1)
PRODUCT(16, 64, 32, 16, 8, 16, 8, 1, 1, 1, 0, 1, 1)
PRODUCT(64, 128, 32, 16, 8, 32, 32, 1, 1, 1, 1, 0, 0)
PRODUCT(64, 32, 32, 8, 32, 16, 16, 2, 1, 1, 1, 0, 1)
PRODUCT(128, 32, 32, 16, 8, 8, 8, 8, 4, 0, 0, 1, 0)
PRODUCT(64, 64, 32, 32, 8, 8, 16, 1, 4, 0, 0, 0, 0)
PRODUCT(128, 128, 32, 8, 32, 8, 16, 8, 2, 1, 0, 1, 0)
PRODUCT(128, 128, 16, 32, 8, 16, 16, 2, 1, 0, 0, 0, 0)
PRODUCT(64, 128, 32, 8, 16, 8, 16, 1, 8, 0, 1, 0, 0)
PRODUCT(128, 32, 16, 16, 8, 8, 16, 2, 2, 0, 1, 1, 0)
PRODUCT(128, 64, 32, 16, 8, 32, 8, 1, 1, 0, 0, 0, 0)
PRODUCT(32, 128, 16, 16, 8, 16, 8, 2, 8, 1, 0, 0, 1)
PRODUCT(64, 64, 32, 16, 8, 8, 8, 1, 2, 0, 1, 0, 0)
PRODUCT(128, 128, 32, 8, 16, 32, 32, 2, 2, 1, 0, 0, 1)
PRODUCT(128, 128, 32, 32, 8, 16, 32, 2, 4, 1, 0, 1, 0)
PRODUCT(128, 128, 16, 8, 16, 8, 32, 4, 2, 0, 0, 0, 0)
PRODUCT(64, 16, 16, 16, 8, 8, 8, 2, 2, 0, 0, 1, 1)
PRODUCT(128, 64, 16, 16, 16, 16, 16, 8, 2, 1, 0, 0, 1)
PRODUCT(128, 16, 16, 16, 8, 32, 8, 1, 2, 0, 1, 1, 0)
PRODUCT(64, 64, 32, 8, 16, 8, 16, 4, 4, 1, 0, 0, 0)
PRODUCT(64, 128, 32, 8, 16, 8, 8, 2, 4, 1, 1, 0, 1)
PRODUCT(128, 32, 32, 16, 32, 32, 32, 1, 1, 0, 0, 0, 0)
PRODUCT(64, 64, 16, 16, 8, 8, 32, 1, 2, 1, 0, 0, 1)
PRODUCT(128, 64, 32, 32, 16, 32, 32, 4, 1, 1, 0, 0, 1)
PRODUCT(64, 128, 32, 8, 32, 16, 16, 2, 1, 0, 1, 0, 1)
PRODUCT(128, 32, 16, 8, 8, 16, 32, 2, 1, 1, 1, 0, 0)
PRODUCT(64, 64, 32, 16, 16, 8, 32, 2, 1, 1, 1, 1, 1)
PRODUCT(64, 32, 32, 8, 8, 8, 8, 1, 4, 0, 1, 0, 0)
PRODUCT(32, 128, 16, 16, 8, 16, 16, 1, 2, 0, 1, 1, 1)
PRODUCT(32, 128, 32, 16, 8, 8, 32, 2, 2, 1, 1, 1, 1)
PRODUCT(128, 32, 32, 8, 16, 16, 16, 1, 1, 1, 0, 1, 0)
PRODUCT(128, 32, 32, 8, 8, 8, 32, 4, 1, 1, 1, 1, 0)
PRODUCT(64, 32, 16, 8, 8, 32, 16, 2, 2, 1, 0, 0, 1)
PRODUCT(64, 64, 32, 32, 16, 16, 16, 2, 4, 0, 1, 0, 1)
PRODUCT(32, 32, 16, 8, 8, 16, 8, 2, 2, 0, 1, 0, 1)
PRODUCT(32, 128, 16, 8, 16, 8, 16, 4, 1, 0, 1, 1, 1)
PRODUCT(32, 128, 32, 8, 16, 32, 16, 1, 4, 1, 0, 1, 1)
PRODUCT(128, 128, 32, 16, 8, 32, 32, 4, 2, 1, 0, 1, 1)
