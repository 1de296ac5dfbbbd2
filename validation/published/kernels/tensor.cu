// Products of half-precision matrices on tensor cores, C = A B. Rows of A lie one after the other; of B rows or columns.
//
// Written to the descriptions of two ladders of such kernels (PROVENANCE.md): single-precision sums on Ada, half-precision
// sums on the A100. All sides are multiples of the tiles.
#include <cuda_fp16.h>
#include <mma.h>

__device__ __forceinline__ unsigned shared_address(const void* p) { return __cvta_generic_to_shared(p); }

template <int COUNT> __device__ __forceinline__ void load_fragments(unsigned* to, const void* row) {
    if (COUNT == 4)
        asm volatile("ldmatrix.sync.aligned.x4.m8n8.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(shared_address(row)));
    else
        asm volatile("ldmatrix.sync.aligned.x2.m8n8.shared.b16 {%0,%1}, [%2];"
                     : "=r"(to[0]), "=r"(to[1]) : "r"(shared_address(row)));
}

__device__ __forceinline__ void multiply(const unsigned* a, const unsigned* b, float* sum) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ __forceinline__ void multiply(const unsigned* a, const unsigned* b, unsigned* sum) {
    asm("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%0,%1};"
        : "+r"(sum[0]), "+r"(sum[1])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ __forceinline__ void copy_async(void* to, const void* from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from));
}

__device__ __forceinline__ void copy_async_128(void* to, const void* from) {
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from));
}

__device__ __forceinline__ void close_group() { asm volatile("cp.async.commit_group;"); }

template <int LEFT> __device__ __forceinline__ void wait_groups() {
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT));
}

// --- the ladder on Ada: 256 threads, 16 x 16; eight warps, two down and four across ----------------------------------

// Elements one by one to shared memory and to the fragments; tiles of 32 T x 32 T. B by rows.
template <int T> __device__ __forceinline__ void by_elements(const half* a, const half* b, float* c, int n, int k) {
    __shared__ half rows[T * 32][16];
    __shared__ half columns[16][T * 32];
    int x = threadIdx.x, y = threadIdx.y, thread = y * 16 + x;
    int warp = thread / 32, lane = thread % 32, quad = lane / 4, in_quad = lane % 4;
    int top = T * 32 * blockIdx.y, left = T * 32 * blockIdx.x;
    int right = 8 * (warp % 4), down = 16 * (warp / 4);
    half from_a[8], from_b[4];
    float sums[T][T][4] = {};
    for (int start = 0; start < k; start += 16) {
        for (int i = 0; i < T; i++) {
            rows[32 * i + y][x] = a[(top + 32 * i + y) * k + start + x];
            rows[32 * i + 16 + y][x] = a[(top + 32 * i + 16 + y) * k + start + x];
        }
        for (int j = 0; j < T; j++) {
            columns[y][32 * j + x] = b[(start + y) * n + left + 32 * j + x];
            columns[y][32 * j + 16 + x] = b[(start + y) * n + left + 32 * j + 16 + x];
        }
        __syncthreads();
        for (int i = 0; i < T; i++) {
            int row = 32 * i + down + quad, at = 2 * in_quad;
            for (int part = 0; part < 4; part++) {
                from_a[2 * part] = rows[row + 8 * (part % 2)][at + 8 * (part / 2)];
                from_a[2 * part + 1] = rows[row + 8 * (part % 2)][at + 8 * (part / 2) + 1];
            }
            for (int j = 0; j < T; j++) {
                int column = 32 * j + right + quad;
                for (int part = 0; part < 2; part++) {
                    from_b[2 * part] = columns[at + 8 * part][column];
                    from_b[2 * part + 1] = columns[at + 8 * part + 1][column];
                }
                multiply(reinterpret_cast<const unsigned*>(from_a), reinterpret_cast<const unsigned*>(from_b), sums[i][j]);
            }
        }
        __syncthreads();
    }
    for (int i = 0; i < T; i++)
        for (int j = 0; j < T; j++) {
            int row = top + 32 * i + down + quad, column = left + 32 * j + right + 2 * in_quad;
            c[row * n + column] = sums[i][j][0];
            c[row * n + column + 1] = sums[i][j][1];
            c[(row + 8) * n + column] = sums[i][j][2];
            c[(row + 8) * n + column + 1] = sums[i][j][3];
        }
}

extern "C" __global__ void __launch_bounds__(256) elements_1(const half* a, const half* b, float* c, int n, int k) {
    by_elements<1>(a, b, c, n, k);
}

extern "C" __global__ void __launch_bounds__(256) elements_2(const half* a, const half* b, float* c, int n, int k) {
    by_elements<2>(a, b, c, n, k);
}

// Where lane `lane` of a warp finds its 16 bytes of a fragment in a tile whose lines hold two rows of 32 halves, permuted.
struct Permuted {
    int store_row, store_column, a_row, a_column, b_row, b_column;
    __device__ __forceinline__ Permuted(int warp, int lane)
        : store_row(warp * 4 + lane / 8), store_column((lane % 8) ^ (lane / 8)), a_row((lane % 16) / 2),
          a_column((lane / 16 + 4 * (lane % 2)) ^ (a_row % 4)), b_row((lane % 8) / 2),
          b_column((lane / 8 + 4 * (lane % 2)) ^ (b_row % 4)) {}
};

template <int T>
__device__ __forceinline__ void store_sums(const float sums[T][T][4], float* c, int n, int row, int column) {
    for (int i = 0; i < T; i++)
        for (int j = 0; j < T; j++) {
            float* to = c + (row + 16 * i) * n + column + 8 * j;
            *reinterpret_cast<float2*>(to) = make_float2(sums[i][j][0], sums[i][j][1]);
            *reinterpret_cast<float2*>(to + 8 * n) = make_float2(sums[i][j][2], sums[i][j][3]);
        }
}

// Tiles of 64 x 64, 32 deep, copied through registers; KEPT: fragments of A are loaded once. B by columns.
template <bool KEPT> __device__ __forceinline__ void permuted(const half* a, const half* b, float* c, int n, int k) {
    __shared__ uint4 tile_a[32][8], tile_b[32][8];
    int thread = threadIdx.y * 16 + threadIdx.x, warp = thread / 32, lane = thread % 32;
    int top = 64 * blockIdx.y, left = 64 * blockIdx.x, down = 16 * (warp / 4), right = 8 * (warp % 4);
    const Permuted at(warp, lane);
    const uint4* from_a = reinterpret_cast<const uint4*>(a + top * k);
    const uint4* from_b = reinterpret_cast<const uint4*>(b + left * k);
    unsigned f[8], g[2];
    float sums[2][2][4] = {};
    for (int start = 0; start < k / 8; start += 4) {
        tile_a[at.store_row][at.store_column] = from_a[(warp * 8 + lane / 4) * k / 8 + start + lane % 4];
        tile_b[at.store_row][at.store_column] = from_b[(warp * 8 + lane / 4) * k / 8 + start + lane % 4];
        __syncthreads();
        for (int i = 0; i < 2; i++) {
            const uint4* line_a = tile_a[down + 8 * i + at.a_row];
            if (KEPT) {
                load_fragments<4>(f, line_a + at.a_column);
                load_fragments<4>(f + 4, line_a + (at.a_column ^ 2));
            }
            for (int j = 0; j < 2; j++) {
                const uint4* line_b = tile_b[right + 4 * j + at.b_row];
                for (int half_k = 0; half_k < 2; half_k++) {
                    if (!KEPT) load_fragments<4>(f, line_a + (at.a_column ^ (2 * half_k)));
                    load_fragments<2>(g, line_b + (at.b_column ^ (2 * half_k)));
                    multiply(KEPT ? f + 4 * half_k : f, g, sums[i][j]);
                }
            }
        }
        __syncthreads();
    }
    store_sums<2>(sums, c, n, top + 2 * down + lane / 4, left + 2 * right + 2 * (lane % 4));
}

extern "C" __global__ void __launch_bounds__(256) permuted_again(const half* a, const half* b, float* c, int n, int k) {
    permuted<false>(a, b, c, n, k);
}

extern "C" __global__ void __launch_bounds__(256) permuted_kept(const half* a, const half* b, float* c, int n, int k) {
    permuted<true>(a, b, c, n, k);
}

// Three stages of copies; tiles of 32 T x 32 T, 32 deep, T = 2 or 4. All fragments are loaded before the products.
template <int T> __device__ __forceinline__ void staged(const half* a, const half* b, float* c, int n, int k) {
    constexpr int STAGES = 3, LINES = 16 * T;
    __shared__ uint4 tile_a[STAGES * LINES][8], tile_b[STAGES * LINES][8];
    int thread = threadIdx.y * 16 + threadIdx.x, warp = thread / 32, lane = thread % 32;
    int top = 32 * T * blockIdx.y, left = 32 * T * blockIdx.x, down = 8 * T * (warp / 4), right = 4 * T * (warp % 4);
    const Permuted at(warp, lane);
    int own = (warp * 8 + lane / 4) * k / 8 + lane % 4;
    const uint4* from_a = reinterpret_cast<const uint4*>(a + top * k) + own;
    const uint4* from_b = reinterpret_cast<const uint4*>(b + left * k) + own;
    unsigned f[T][8], g[T][4];
    float sums[T][T][4] = {};
    auto copy = [&](int stage, int start) {
        for (int part = 0; part < T / 2; part++)
            copy_async_128(tile_a[stage * LINES + 32 * part + at.store_row] + at.store_column, from_a + part * 64 * k / 8 + start);
        for (int part = 0; part < T / 2; part++)
            copy_async_128(tile_b[stage * LINES + 32 * part + at.store_row] + at.store_column, from_b + part * 64 * k / 8 + start);
        close_group();
    };
    for (int stage = 0; stage < STAGES - 1; stage++) copy(stage, 4 * stage);
    for (int step = 0; step < k / 32; step++) {
        const uint4(*lines_a)[8] = tile_a + LINES * (step % STAGES);
        const uint4(*lines_b)[8] = tile_b + LINES * (step % STAGES);
        wait_groups<STAGES - 2>();
        __syncthreads();
        for (int i = 0; i < T; i++) {
            load_fragments<4>(f[i], lines_a[8 * i + down + at.a_row] + at.a_column);
            load_fragments<4>(f[i] + 4, lines_a[8 * i + down + at.a_row] + (at.a_column ^ 2));
        }
        for (int j = 0; j < T; j++) {
            load_fragments<2>(g[j], lines_b[4 * j + right + at.b_row] + at.b_column);
            load_fragments<2>(g[j] + 2, lines_b[4 * j + right + at.b_row] + (at.b_column ^ 2));
        }
        int start = (STAGES - 1 + step) * 4;
        copy((step + STAGES - 1) % STAGES, start > k / 8 - 4 ? k / 8 - 4 : start);
        for (int i = 0; i < T; i++)
            for (int j = 0; j < T; j++) {
                multiply(f[i], g[j], sums[i][j]);
                multiply(f[i] + 4, g[j] + 2, sums[i][j]);
            }
    }
    store_sums<T>(sums, c, n, top + 2 * down + lane / 4, left + 2 * right + 2 * (lane % 4));
}

extern "C" __global__ void __launch_bounds__(256) staged_2(const half* a, const half* b, float* c, int n, int k) {
    staged<2>(a, b, c, n, k);
}

extern "C" __global__ void __launch_bounds__(256) staged_4(const half* a, const half* b, float* c, int n, int k) {
    staged<4>(a, b, c, n, k);
}

// --- the ladder on the A100: warps of 64 x 64, B by columns ----------------------------------------------------------

using namespace nvcuda;

// 128 threads as 32 x 2 x 2, tiles of 128 x 128, 32 deep. BY: halves that a thread copies at once; PAD: after each row;
// rows: that all threads copy at once.
template <int BY, int PAD>
__device__ __forceinline__ void wmma_tiles(const half* a, const half* b, half* c, int n, int k, int rows) {
    extern __shared__ half memory[];
    constexpr int WIDTH = 32 + PAD, PER_ROW = 32 / BY;
    struct alignas(2 * BY) Part { half of[BY]; };
    half *tile_a = memory, *tile_b = memory + 128 * WIDTH;
    a += blockIdx.x * 128 * k;
    b += blockIdx.y * 128 * k;
    int thread = threadIdx.x + 32 * threadIdx.y + 64 * threadIdx.z, row = thread / PER_ROW, part = thread % PER_ROW;
    const half *warp_a = tile_a + threadIdx.y * 64 * WIDTH, *warp_b = tile_b + threadIdx.z * 64 * WIDTH;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> f[4];
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> g[4];
    wmma::fragment<wmma::accumulator, 16, 16, 16, half> sums[4][4];
    for (int i = 0; i < 16; i++) wmma::fill_fragment(sums[i / 4][i % 4], __float2half(0.0f));
    for (int start = 0; start < k; start += 32) {
        for (int i = 0; i < 128; i += rows)
            reinterpret_cast<Part*>(tile_a)[(i + row) * (WIDTH / BY) + part] = reinterpret_cast<const Part*>(a)[(i + row) * (k / BY) + part];
        for (int i = 0; i < 128; i += rows)
            reinterpret_cast<Part*>(tile_b)[(i + row) * (WIDTH / BY) + part] = reinterpret_cast<const Part*>(b)[(i + row) * (k / BY) + part];
        __syncthreads();
        for (int deep = 0; deep < 32; deep += 16) {
            for (int i = 0; i < 4; i++) wmma::load_matrix_sync(f[i], warp_a + 16 * i * WIDTH + deep, WIDTH);
            for (int j = 0; j < 4; j++) wmma::load_matrix_sync(g[j], warp_b + 16 * j * WIDTH + deep, WIDTH);
            for (int i = 0; i < 4; i++)
                for (int j = 0; j < 4; j++) wmma::mma_sync(sums[i][j], f[i], g[j], sums[i][j]);
        }
        __syncthreads();
        a += 32;
        b += 32;
    }
    c += (blockIdx.x * 128 + threadIdx.y * 64) * n + blockIdx.y * 128 + threadIdx.z * 64;
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) wmma::store_matrix_sync(c + 16 * i * n + 16 * j, sums[i][j], n, wmma::mem_row_major);
}

extern "C" __global__ void wmma_plain(const half* a, const half* b, half* c, int n, int k) {
    wmma_tiles<1, 0>(a, b, c, n, k, blockDim.x * blockDim.y * blockDim.z / 32);  // not known to the compiler
}

extern "C" __global__ void wmma_padded(const half* a, const half* b, half* c, int n, int k) {
    wmma_tiles<8, 8>(a, b, c, n, k, 32);
}

// A tile of rows of DEEP halves in shared memory: 16-byte parts in lines of eight, permuted, or rows with one part more.
template <int DEEP, bool PERMUTE> struct Tile {
    static constexpr int PARTS = DEEP / 8;
    static __device__ __forceinline__ int place(int row, int part) {
        if (!PERMUTE) return row * (PARTS + 1) + part;
        int index = row * PARTS + part, line = index / 8;
        return line * 8 + ((index % 8) ^ (line % PARTS));
    }
};

// Sums of a warp by way of shared memory to C, so that whole rows are written.
template <int TALL, int THREADS>
__device__ __forceinline__ void write_back(half* memory, const unsigned sums[4][8][2], half* c, int n, int down, int right) {
    constexpr int WIDTH = 128 + 8, ROWS = THREADS / 16;
    int lane = threadIdx.x % 32;
    half* own = memory + down * WIDTH + right;
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 8; j++)
            for (int part = 0; part < 2; part++)
                *reinterpret_cast<unsigned*>(own + (16 * i + 8 * part + lane / 4) * WIDTH + 8 * j + 2 * (lane % 4)) = sums[i][j][part];
    __syncthreads();
    int row = threadIdx.x / 16, part = threadIdx.x % 16;
    for (int i = row; i < TALL; i += ROWS)
        reinterpret_cast<float4*>(c)[i * (n / 8) + part] = reinterpret_cast<const float4*>(memory)[i * (WIDTH / 8) + part];
}

template <int DEEP, bool PERMUTE>
__device__ __forceinline__ void load_step(const half* warp_a, const half* warp_b, int deep, unsigned f[4][4], unsigned g[8][2]) {
    using T = Tile<DEEP, PERMUTE>;
    int lane = threadIdx.x % 32;
    for (int i = 0; i < 4; i++)
        load_fragments<4>(f[i], reinterpret_cast<const float4*>(warp_a) + T::place(16 * i + lane % 16, deep / 8 + lane / 16));
    for (int j = 0; j < 8; j++)
        load_fragments<2>(g[j], reinterpret_cast<const float4*>(warp_b) + T::place(8 * j + lane % 8, deep / 8 + lane / 8));
}

__device__ __forceinline__ void multiply_step(const unsigned f[4][4], const unsigned g[8][2], unsigned sums[4][8][2]) {
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 8; j++) multiply(f[i], g[j], sums[i][j]);
}

// 128 threads, tiles of 128 x 128, 64 deep, copied through registers.
template <bool PERMUTE> __device__ __forceinline__ void mma_tiles(const half* a, const half* b, half* c, int n, int k) {
    extern __shared__ half memory[];
    constexpr int ROW = 64 + (PERMUTE ? 0 : 8);
    using T = Tile<64, PERMUTE>;
    half *tile_a = memory, *tile_b = memory + 128 * ROW;
    a += blockIdx.x * 128 * k;
    b += blockIdx.y * 128 * k;
    int warp = threadIdx.x / 32, down = 64 * (warp % 2), right = 64 * (warp / 2);
    int row = threadIdx.x / 8, part = threadIdx.x % 8;
    unsigned f[4][4], g[8][2], sums[4][8][2] = {};
    for (int start = 0; start < k; start += 64) {
        for (int i = 0; i < 128; i += 16)
            reinterpret_cast<float4*>(tile_a)[T::place(i + row, part)] = reinterpret_cast<const float4*>(a + start)[(i + row) * (k / 8) + part];
        for (int i = 0; i < 128; i += 16)
            reinterpret_cast<float4*>(tile_b)[T::place(i + row, part)] = reinterpret_cast<const float4*>(b + start)[(i + row) * (k / 8) + part];
        __syncthreads();
        for (int deep = 0; deep < 64; deep += 16) {
            load_step<64, PERMUTE>(tile_a + down * ROW, tile_b + right * ROW, deep, f, g);
            multiply_step(f, g, sums);
        }
        __syncthreads();
    }
    c += blockIdx.x * 128 * n + blockIdx.y * 128;
    write_back<128, 128>(memory, sums, c, n, down, right);
}

extern "C" __global__ void mma_padded(const half* a, const half* b, half* c, int n, int k) { mma_tiles<false>(a, b, c, n, k); }
extern "C" __global__ void mma_permuted(const half* a, const half* b, half* c, int n, int k) { mma_tiles<true>(a, b, c, n, k); }

// 256 threads, tiles of 256 x 128, 32 deep, copies in STAGES; AHEAD: fragments of the next step are loaded before a step's
// products. The block is that of row `bi` and column `bj` of tiles.
template <int STAGES, bool AHEAD>
__device__ __forceinline__ void mma_stages(const half* a, const half* b, half* c, int n, int k, int bi, int bj) {
    extern __shared__ half memory[];
    using T = Tile<32, true>;
    half *tiles_a = memory, *tiles_b = memory + STAGES * 256 * 32;
    a += bi * 256 * k;
    b += bj * 128 * k;
    int warp = threadIdx.x / 32, down = 64 * (warp % 4), right = 64 * (warp / 4);
    int row = threadIdx.x / 4, part = threadIdx.x % 4;
    unsigned f[2][4][4], g[2][8][2], sums[4][8][2] = {};
    auto copy = [&](int stage, int step) {
        for (int i = 0; i < 256; i += 64)
            copy_async(reinterpret_cast<float4*>(tiles_a + stage * 256 * 32) + T::place(i + row, part),
                       reinterpret_cast<const float4*>(a + step * 32) + (i + row) * (k / 8) + part);
        for (int i = 0; i < 128; i += 64)
            copy_async(reinterpret_cast<float4*>(tiles_b + stage * 128 * 32) + T::place(i + row, part),
                       reinterpret_cast<const float4*>(b + step * 32) + (i + row) * (k / 8) + part);
    };
    auto load = [&](int stage, int deep, int into) {
        load_step<32, true>(tiles_a + stage * 256 * 32 + down * 32, tiles_b + stage * 128 * 32 + right * 32, deep, f[into], g[into]);
    };
    auto multiply_stage = [&](int stage) {  // if loads run ahead, only the first half: the second is loaded here
        if (AHEAD) {
            load(stage, 16, 1);
            multiply_step(f[0], g[0], sums);
        } else
            for (int deep = 0; deep < 32; deep += 16) {
                load(stage, deep, 0);
                multiply_step(f[0], g[0], sums);
            }
    };
    for (int stage = 0; stage < STAGES - 1; stage++) {
        copy(stage, stage);
        close_group();
    }
    wait_groups<STAGES - 2>();
    __syncthreads();
    if (AHEAD) load(0, 0, 0);
    int steps = k / 32, step = 0;
    for (; step < steps - (STAGES - 1); step++) {
        multiply_stage(step % STAGES);
        copy((step + STAGES - 1) % STAGES, step + STAGES - 1);
        close_group();
        wait_groups<STAGES - 2>();
        __syncthreads();
        if (AHEAD) {
            load((step + 1) % STAGES, 0, 0);
            multiply_step(f[1], g[1], sums);
        }
    }
#pragma unroll
    for (int left = STAGES - 1; left > 0; left--, step++) {
        multiply_stage(step % STAGES);
        if (left > 1) {
            if (left == 4) wait_groups<2>();
            if (left == 3) wait_groups<1>();
            if (left == 2) wait_groups<0>();
            __syncthreads();
            if (AHEAD) load((step + 1) % STAGES, 0, 0);
        }
        if (AHEAD) multiply_step(f[1], g[1], sums);
    }
    __syncthreads();
    c += bi * 256 * n + bj * 128;
    write_back<256, 256>(memory, sums, c, n, down, right);
}

extern "C" __global__ void mma_stages_3(const half* a, const half* b, half* c, int n, int k) {
    mma_stages<3, false>(a, b, c, n, k, blockIdx.x, blockIdx.y);
}

extern "C" __global__ void mma_ahead_3(const half* a, const half* b, half* c, int n, int k) {
    mma_stages<3, true>(a, b, c, n, k, blockIdx.x, blockIdx.y);
}

extern "C" __global__ void mma_ahead_4(const half* a, const half* b, half* c, int n, int k) {
    mma_stages<4, true>(a, b, c, n, k, blockIdx.x, blockIdx.y);
}

// Blocks in strips of eight columns of tiles, down one and up the next.
extern "C" __global__ void mma_strips(const half* a, const half* b, half* c, int n, int k) {
    int bi = blockIdx.z % 2 ? gridDim.y - 1 - blockIdx.y : blockIdx.y, bj = blockIdx.z * 8 + blockIdx.x;
    if (bj < n / 128) mma_stages<4, true>(a, b, c, n, k, bi, bj);
}
