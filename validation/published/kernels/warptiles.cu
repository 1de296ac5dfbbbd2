// Products of matrices whose warps share nothing: each warp of a block copies its own tile of A and of B, 16 results square,
// through shared memory in stages, whatever its neighbours copy. Halves with sums in single or half precision, and bytes.
// B of halves lies by rows, of bytes by columns. A block has 4 x 2 warps; the grid's third side counts independent products.
// Written to the description of a study of such kernels on Ada (PROVENANCE.md). nvcc 13.0 -arch=compute_80 --use_fast_math -ptx.
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

constexpr int SIDE = 16, ACROSS = 4, DOWN = 2, WARPS = ACROSS * DOWN;

__device__ __forceinline__ unsigned shared_address(const void* p) { return __cvta_generic_to_shared(p); }

__device__ __forceinline__ void copy_async(void* to, const void* from) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from));
}

__device__ __forceinline__ void close_group() { asm volatile("cp.async.commit_group;"); }

template <int LEFT> __device__ __forceinline__ void wait_groups() {
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT));
}

__device__ __forceinline__ void fragments_1(unsigned* to, const void* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(to[0]) : "r"(shared_address(row)));
}

__device__ __forceinline__ void fragments_2(unsigned* to, const void* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];"
                 : "=r"(to[0]), "=r"(to[1]) : "r"(shared_address(row)));
}

__device__ __forceinline__ void fragments_4(unsigned* to, const void* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(shared_address(row)));
}

__device__ __forceinline__ void turned_1(unsigned* to, const void* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];" : "=r"(to[0]) : "r"(shared_address(row)));
}

__device__ __forceinline__ void turned_2(unsigned* to, const void* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
                 : "=r"(to[0]), "=r"(to[1]) : "r"(shared_address(row)));
}

__device__ __forceinline__ void multiply(float* sum, const unsigned* a, const unsigned* b) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ __forceinline__ void multiply(unsigned* sum, const unsigned* a, const unsigned* b) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%0,%1};"
                 : "+r"(sum[0]), "+r"(sum[1])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ __forceinline__ void multiply_8(float* sum, const unsigned* a, const unsigned* b) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3]) : "r"(a[0]), "r"(a[1]), "r"(b[0]));
}

__device__ __forceinline__ void multiply_bytes(int* sum, const unsigned* a, const unsigned* b) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
                 : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3]) : "r"(a[0]), "r"(a[1]), "r"(b[0]));
}

// The warp of this thread, its place in the warp, and the corner of the warp's results. The thread's number is signed, as measured:
// then the compiler keeps loops of one turn, which test each lane.
struct Place {
    int warp, lane, top, left;
    __device__ __forceinline__ Place()
        : warp(int(threadIdx.x) / 32), lane(int(threadIdx.x) % 32), top((blockIdx.y * DOWN + warp / ACROSS) * SIDE),
          left((blockIdx.x * ACROSS + warp % ACROSS) * SIDE) {}
};

// --- halves -----------------------------------------------------------------------------------------------------------

typedef half Tile[SIDE][SIDE];

// 16 bytes a lane: the tiles at `depth` along the sums
__device__ __forceinline__ void copy_tiles(
    Tile& to_a, Tile& to_b, const half* a, const half* b, int n, int k, const Place& at, int depth) {
    for (int i = 8 * at.lane; i < SIDE * SIDE; i += 8 * 32)
        copy_async(&to_a[i / SIDE][i % SIDE], &a[(at.top + i / SIDE) * k + (i % SIDE + depth)]);
    for (int i = 8 * at.lane; i < SIDE * SIDE; i += 8 * 32)
        copy_async(&to_b[i / SIDE][i % SIDE], &b[(i / SIDE + depth) * n + at.left + i % SIDE]);
    close_group();
}

// the first tiles, element by element
__device__ __forceinline__ void fill_tiles(Tile& to_a, Tile& to_b, const half* a, const half* b, int n, int k, const Place& at) {
    for (int i = at.lane; i < SIDE * SIDE; i += 32) to_a[i / SIDE][i % SIDE] = a[(at.top + i / SIDE) * k + i % SIDE];
    for (int i = at.lane; i < SIDE * SIDE; i += 32) to_b[i / SIDE][i % SIDE] = b[i / SIDE * n + (at.left + i % SIDE)];
    __syncthreads();
}

template <typename SUM> __device__ __forceinline__ void store_half_tile(SUM* c, int n, const SUM* sum, int lane, int column) {
    int row = lane / 4, first = column + lane % 4 * 2;
    c[row * n + first] = sum[0];
    c[row * n + first + 1] = sum[1];
    c[(row + 8) * n + first] = sum[2];
    c[(row + 8) * n + first + 1] = sum[3];
}

__device__ __forceinline__ void store_tile(float* c, int n, const float* left, const float* right, int lane) {
    store_half_tile(c, n, left, lane, 0);
    store_half_tile(c, n, right, lane, 8);
}

__device__ __forceinline__ void store_tile(float* c, int n, const unsigned* left, const unsigned* right, int lane) {
    float wide[8];
    for (int i = 0; i < 2; i++) {
        float2 l = __half22float2(reinterpret_cast<const half2*>(left)[i]);
        float2 r = __half22float2(reinterpret_cast<const half2*>(right)[i]);
        wide[2 * i] = l.x;
        wide[2 * i + 1] = l.y;
        wide[4 + 2 * i] = r.x;
        wide[4 + 2 * i + 1] = r.y;
    }
    store_tile(c, n, wide, wide + 4, lane);
}

__device__ __forceinline__ unsigned packed(half low, half high) {
    return __half_as_ushort(low) | static_cast<unsigned>(__half_as_ushort(high)) << 16;
}

// How fragments get from shared memory to the registers of the two products of 16 x 8 x 16 of a step.
struct ByMatrix {
    unsigned a[4], left[2], right[2];
    __device__ __forceinline__ void load(const Tile& tile_a, const Tile& tile_b, int lane) {
        fragments_4(a, &tile_a[lane % 16][lane / 16 * 8]);
        turned_2(left, &tile_b[lane % 16][0]);
        turned_2(right, &tile_b[lane % 16][8]);
    }
    template <typename SUM> __device__ __forceinline__ void add(SUM* to_left, SUM* to_right) {
        multiply(to_left, a, left);
        multiply(to_right, a, right);
    }
};

struct ByElement : ByMatrix {
    __device__ __forceinline__ void load(const Tile& tile_a, const Tile& tile_b, int lane) {
        int row = lane / 4, at = lane % 4 * 2;
        a[0] = packed(tile_a[row][at], tile_a[row][at + 1]);
        a[1] = packed(tile_a[row + 8][at], tile_a[row + 8][at + 1]);
        a[2] = packed(tile_a[row][at + 8], tile_a[row][at + 9]);
        a[3] = packed(tile_a[row + 8][at + 8], tile_a[row + 8][at + 9]);
        for (int part = 0; part < 2; part++) {
            left[part] = packed(tile_b[at + 8 * part][row], tile_b[at + 8 * part + 1][row]);
            right[part] = packed(tile_b[at + 8 * part][row + 8], tile_b[at + 8 * part + 1][row + 8]);
        }
    }
};

struct ByEights {
    unsigned a[2][2], left[2], right[2];
    __device__ __forceinline__ void load(const Tile& tile_a, const Tile& tile_b, int lane) {
        for (int part = 0; part < 2; part++) fragments_2(a[part], &tile_a[lane % 16][8 * part]);
        for (int part = 0; part < 2; part++) turned_1(left + part, &tile_b[8 * part + lane % 8][0]);
        for (int part = 0; part < 2; part++) turned_1(right + part, &tile_b[8 * part + lane % 8][8]);
    }
    __device__ __forceinline__ void add(float* to_left, float* to_right) {
        for (int part = 0; part < 2; part++) {
            multiply_8(to_left, a[part], left + part);
            multiply_8(to_right, a[part], right + part);
        }
    }
};

// Two stages: while the tiles of the next step come, those before are multiplied.
template <typename FRAGMENTS, typename SUM, int WORDS>
__device__ __forceinline__ void two_stages(const half* a, const half* b, float* c, int m, int n, int k) {
    __shared__ __align__(16) Tile tiles_a[2][WARPS], tiles_b[2][WARPS];
    Place at;
    if (at.top >= m || at.left >= n) return;
    a += blockIdx.z * m * k;
    b += blockIdx.z * k * n;
    c += blockIdx.z * m * n;
    SUM left[WORDS] = {}, right[WORDS] = {};
    FRAGMENTS f;
    int stage = 0;
    fill_tiles(tiles_a[0][at.warp], tiles_b[0][at.warp], a, b, n, k, at);
    f.load(tiles_a[0][at.warp], tiles_b[0][at.warp], at.lane);
    for (int depth = SIDE; depth < k; depth += SIDE) {
        int next = 1 - stage;
        copy_tiles(tiles_a[next][at.warp], tiles_b[next][at.warp], a, b, n, k, at, depth);
        f.add(left, right);
        wait_groups<0>();
        stage = next;
        f.load(tiles_a[stage][at.warp], tiles_b[stage][at.warp], at.lane);
    }
    f.add(left, right);
    store_tile(c + at.top * n + at.left, n, left, right, at.lane);
}

extern "C" __global__ void halves_matrix(
    const half* __restrict__ a, const half* __restrict__ b, float* __restrict__ c, int m, int n, int k) {
    two_stages<ByMatrix, float, 4>(a, b, c, m, n, k);
}

extern "C" __global__ void halves_eights(
    const half* __restrict__ a, const half* __restrict__ b, float* __restrict__ c, int m, int n, int k) {
    two_stages<ByEights, float, 4>(a, b, c, m, n, k);
}

extern "C" __global__ void halves_half_sums(
    const half* __restrict__ a, const half* __restrict__ b, float* __restrict__ c, int m, int n, int k) {
    two_stages<ByMatrix, unsigned, 2>(a, b, c, m, n, k);
}

extern "C" __global__ void halves_elements(
    const half* __restrict__ a, const half* __restrict__ b, float* __restrict__ c, int m, int n, int k) {
    two_stages<ByElement, float, 4>(a, b, c, m, n, k);
}

// Three stages: the tiles of two steps are on their way.
extern "C" __global__ void halves_three_stages(
    const half* __restrict__ a, const half* __restrict__ b, float* __restrict__ c, int m, int n, int k) {
    __shared__ __align__(16) Tile tiles_a[3][WARPS], tiles_b[3][WARPS];
    Place at;
    if (at.top >= m || at.left >= n) return;
    a += blockIdx.z * m * k;
    b += blockIdx.z * k * n;
    c += blockIdx.z * m * n;
    float left[4] = {}, right[4] = {};
    ByMatrix f;
    copy_tiles(tiles_a[0][at.warp], tiles_b[0][at.warp], a, b, n, k, at, 0);
    copy_tiles(tiles_a[1][at.warp], tiles_b[1][at.warp], a, b, n, k, at, SIDE);
    wait_groups<1>();
    f.load(tiles_a[0][at.warp], tiles_b[0][at.warp], at.lane);
    int stage = 0;
    for (int depth = 2 * SIDE; depth < k; depth += SIDE) {
        int next = (stage + 1) % 3, filled = (stage + 2) % 3;
        copy_tiles(tiles_a[filled][at.warp], tiles_b[filled][at.warp], a, b, n, k, at, depth);
        f.add(left, right);
        wait_groups<1>();
        stage = next;
        f.load(tiles_a[stage][at.warp], tiles_b[stage][at.warp], at.lane);
    }
    f.add(left, right);
    wait_groups<0>();
    stage = (stage + 1) % 3;
    f.load(tiles_a[stage][at.warp], tiles_b[stage][at.warp], at.lane);
    f.add(left, right);
    store_tile(c + at.top * n + at.left, n, left, right, at.lane);
}

// Fragments and products as the compiler makes them of nvcuda::wmma
extern "C" __global__ void halves_wmma(
    const half* __restrict__ a, const half* __restrict__ b, float* __restrict__ c, int m, int n, int k) {
    __shared__ __align__(16) Tile tiles_a[2][WARPS], tiles_b[2][WARPS];
    Place at;
    if (at.top >= m || at.left >= n) return;
    a += blockIdx.z * m * k;
    b += blockIdx.z * k * n;
    c += blockIdx.z * m * n;
    wmma::fragment<wmma::matrix_a, SIDE, SIDE, SIDE, half, wmma::row_major> f;
    wmma::fragment<wmma::matrix_b, SIDE, SIDE, SIDE, half, wmma::row_major> g;
    wmma::fragment<wmma::accumulator, SIDE, SIDE, SIDE, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    int stage = 0;
    fill_tiles(tiles_a[0][at.warp], tiles_b[0][at.warp], a, b, n, k, at);
    wmma::load_matrix_sync(f, &tiles_a[0][at.warp][0][0], SIDE);
    wmma::load_matrix_sync(g, &tiles_b[0][at.warp][0][0], SIDE);
    for (int depth = SIDE; depth < k; depth += SIDE) {
        int next = 1 - stage;
        copy_tiles(tiles_a[next][at.warp], tiles_b[next][at.warp], a, b, n, k, at, depth);
        wmma::mma_sync(sum, f, g, sum);
        wait_groups<0>();
        stage = next;
        wmma::load_matrix_sync(f, &tiles_a[stage][at.warp][0][0], SIDE);
        wmma::load_matrix_sync(g, &tiles_b[stage][at.warp][0][0], SIDE);
    }
    wmma::mma_sync(sum, f, g, sum);
    wmma::store_matrix_sync(c + at.top * n + at.left, sum, n, wmma::mem_row_major);
}

// --- bytes: B by columns -----------------------------------------------------------------------------------------------

template <int DEEP> using Bytes = signed char[SIDE][DEEP];

template <int DEEP>
__device__ __forceinline__ void copy_bytes(Bytes<DEEP>& to, const signed char* from, int first, int k, int lane, int depth) {
    for (int i = lane; i < SIDE * DEEP / 16; i += 32)
        copy_async(&to[i * 16 / DEEP][i * 16 % DEEP], &from[(first + i * 16 / DEEP) * k + i * 16 % DEEP + depth]);
}

template <int DEEP>
__device__ __forceinline__ void fill_bytes(Bytes<DEEP>& to, const signed char* from, int first, int k, int lane) {
    for (int i = lane; i < SIDE * DEEP; i += 32) to[i / DEEP][i % DEEP] = from[(first + i / DEEP) * k + i % DEEP];
}

// a lane a row
__device__ __forceinline__ void fill_rows(Bytes<16>& to, const signed char* from, int first, int k, int lane) {
    for (int row = lane; row < SIDE; row += 32)
        for (int i = 0; i < 16; i++) to[row][i] = from[(first + row) * k + i];
}

// Steps of DEEP: 16 or 32 bytes
template <int DEEP>
__device__ __forceinline__ void bytes_matrix(const signed char* a, const signed char* b, int* c, int m, int n, int k) {
    constexpr int PARTS = DEEP / 16;
    __shared__ __align__(16) Bytes<DEEP> tiles_a[2][WARPS], tiles_b[2][WARPS];
    Place at;
    if (at.top >= m || at.left >= n) return;
    a += blockIdx.z * m * k;
    b += blockIdx.z * n * k;
    c += blockIdx.z * m * n;
    int left[4] = {}, right[4] = {};
    unsigned f[PARTS][2], g[PARTS], h[PARTS];
    int stage = 0;
    if constexpr (DEEP == 16) {
        fill_rows(tiles_a[0][at.warp], a, at.top, k, at.lane);
        fill_rows(tiles_b[0][at.warp], b, at.left, k, at.lane);
    } else {
        fill_bytes<DEEP>(tiles_a[0][at.warp], a, at.top, k, at.lane);
        fill_bytes<DEEP>(tiles_b[0][at.warp], b, at.left, k, at.lane);
    }
    __syncthreads();
    auto load = [&]() {
        for (int part = 0; part < PARTS; part++) fragments_2(f[part], &tiles_a[stage][at.warp][at.lane % 16][16 * part]);
        for (int part = 0; part < PARTS; part++) fragments_1(g + part, &tiles_b[stage][at.warp][at.lane % 8][16 * part]);
        for (int part = 0; part < PARTS; part++) fragments_1(h + part, &tiles_b[stage][at.warp][8 + at.lane % 8][16 * part]);
    };
    auto add = [&]() {
        for (int part = 0; part < PARTS; part++) {
            multiply_bytes(left, f[part], g + part);
            multiply_bytes(right, f[part], h + part);
        }
    };
    load();
    for (int depth = DEEP; depth < k; depth += DEEP) {
        int next = 1 - stage;
        copy_bytes<DEEP>(tiles_a[next][at.warp], a, at.top, k, at.lane, depth);
        copy_bytes<DEEP>(tiles_b[next][at.warp], b, at.left, k, at.lane, depth);
        close_group();
        add();
        wait_groups<0>();
        __syncthreads();
        stage = next;
        load();
    }
    add();
    int* corner = c + at.top * n + at.left;
    store_half_tile(corner, n, left, at.lane, 0);
    store_half_tile(corner, n, right, at.lane, 8);
}

extern "C" __global__ void bytes_matrix_16(
    const signed char* __restrict__ a, const signed char* __restrict__ b, int* __restrict__ c, int m, int n, int k) {
    bytes_matrix<16>(a, b, c, m, n, k);
}

extern "C" __global__ void bytes_matrix_32(
    const signed char* __restrict__ a, const signed char* __restrict__ b, int* __restrict__ c, int m, int n, int k) {
    bytes_matrix<32>(a, b, c, m, n, k);
}

extern "C" __global__ void bytes_wmma(
    const signed char* __restrict__ a, const signed char* __restrict__ b, int* __restrict__ c, int m, int n, int k) {
    __shared__ __align__(16) Bytes<16> tiles_a[2][WARPS], tiles_b[2][WARPS];
    Place at;
    if (at.top >= m || at.left >= n) return;
    a += blockIdx.z * m * k;
    b += blockIdx.z * n * k;
    c += blockIdx.z * m * n;
    wmma::fragment<wmma::matrix_a, SIDE, SIDE, SIDE, signed char, wmma::row_major> f;
    wmma::fragment<wmma::matrix_b, SIDE, SIDE, SIDE, signed char, wmma::col_major> g;
    wmma::fragment<wmma::accumulator, SIDE, SIDE, SIDE, int> sum;
    wmma::fill_fragment(sum, 0);
    int stage = 0;
    fill_bytes<16>(tiles_a[0][at.warp], a, at.top, k, at.lane);
    fill_bytes<16>(tiles_b[0][at.warp], b, at.left, k, at.lane);
    __syncthreads();
    wmma::load_matrix_sync(f, &tiles_a[0][at.warp][0][0], SIDE);
    wmma::load_matrix_sync(g, &tiles_b[0][at.warp][0][0], SIDE);
    for (int depth = SIDE; depth < k; depth += SIDE) {
        int next = 1 - stage;
        copy_bytes<16>(tiles_a[next][at.warp], a, at.top, k, at.lane, depth);
        copy_bytes<16>(tiles_b[next][at.warp], b, at.left, k, at.lane, depth);
        close_group();
        wmma::mma_sync(sum, f, g, sum);
        wait_groups<0>();
        stage = next;
        wmma::load_matrix_sync(f, &tiles_a[stage][at.warp][0][0], SIDE);
        wmma::load_matrix_sync(g, &tiles_b[stage][at.warp][0][0], SIDE);
    }
    wmma::mma_sync(sum, f, g, sum);
    wmma::store_matrix_sync(c + at.top * n + at.left, sum, n, wmma::mem_row_major);
}

// No tensor cores: a thread a result, dot products of four bytes; blocks of 16 x 16 share their tiles.
extern "C" __global__ void bytes_dots(
    const signed char* __restrict__ a, const signed char* __restrict__ b, int* __restrict__ c, int m, int n, int k) {
    constexpr int PITCH = SIDE + 4;
    __shared__ __align__(16) signed char tile_a[SIDE][PITCH], tile_b[SIDE][PITCH];
    a += blockIdx.z * m * k;
    b += blockIdx.z * n * k;
    c += blockIdx.z * m * n;
    int x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * SIDE + y, column = blockIdx.x * SIDE + x, fetched = blockIdx.x * SIDE + y;
    int sum = 0;
    for (int depth = 0; depth < k; depth += SIDE) {
        tile_a[y][x] = row < m && depth + x < k ? a[row * k + depth + x] : 0;
        tile_b[y][x] = fetched < n && depth + x < k ? b[fetched * k + depth + x] : 0;
        __syncthreads();
        for (int i = 0; i < SIDE; i += 4) {
            int four_a = *reinterpret_cast<const int*>(&tile_a[y][i]), four_b = *reinterpret_cast<const int*>(&tile_b[x][i]);
            asm("dp4a.s32.s32 %0, %1, %2, %0;" : "+r"(sum) : "r"(four_a), "r"(four_b));
        }
        __syncthreads();
    }
    if (row < m && column < n) c[row * n + column] = sum;
}
