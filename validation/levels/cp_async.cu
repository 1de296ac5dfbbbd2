// A product of half-precision matrices whose tiles come by cp.async, four stages deep.
// Compiled with: nvcc -arch=sm_80 -ptx -o cp_async.ptx cp_async.cu
#include <cstdint>

#define TILE 64   // of C, along both sides
#define DEPTH 32  // of A and B in a stage
#define PITCH 40  // halves of a row in shared memory: no two of eight rows begin in the same banks
#define STAGES 4

__device__ unsigned at(const uint16_t *tile, int row, int k) { return *(const unsigned *)(tile + row * PITCH + k); }

__device__ void copy(uint16_t *to, const uint16_t *from)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((uint32_t)__cvta_generic_to_shared(to)), "l"(from) : "memory");
}

// c = a b: a [m, k] by rows, b [k, n] by columns, c [m, n] by rows. Four warps, each of 32 x 32 of the tile
extern "C" __global__ void __launch_bounds__(128) product(const uint16_t *a, const uint16_t *b, float *c, int n, int k)
{
    __shared__ __align__(16) uint16_t tiles[STAGES][2][TILE * PITCH];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int row = warp / 2 * 32 + lane / 4, column = warp % 2 * 32 + lane / 4, pair = lane % 4 * 2;
    const uint16_t *mine[2] = {a + (size_t)blockIdx.y * TILE * k, b + (size_t)blockIdx.x * TILE * k};
    float sum[2][4][4] = {};

    auto fetch = [&](int round) {
        if (round * DEPTH < k)
            for (int which = 0; which < 2; which++)
                for (int piece = threadIdx.x; piece < TILE * DEPTH / 8; piece += 128)
                    copy(&tiles[round % STAGES][which][piece / 4 * PITCH + piece % 4 * 8],
                         mine[which] + (size_t)(piece / 4) * k + round * DEPTH + piece % 4 * 8);
        asm volatile("cp.async.commit_group;" ::: "memory");
    };
    for (int round = 0; round < STAGES - 1; round++)
        fetch(round);
    for (int round = 0; round < k / DEPTH; round++) {
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
        __syncthreads();
        fetch(round + STAGES - 1);
        const uint16_t *left = tiles[round % STAGES][0], *right = tiles[round % STAGES][1];
#pragma unroll
        for (int step = 0; step < DEPTH; step += 16) {
            unsigned x[2][4], y[4][2];
            for (int i = 0; i < 2; i++)
                for (int part = 0; part < 4; part++)
                    x[i][part] = at(left, row + 16 * i + part % 2 * 8, step + pair + part / 2 * 8);
            for (int j = 0; j < 4; j++)
                for (int part = 0; part < 2; part++)
                    y[j][part] = at(right, column + 8 * j, step + pair + part * 8);
            for (int i = 0; i < 2; i++)
                for (int j = 0; j < 4; j++)
                    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
                                 "{%8, %9}, {%0, %1, %2, %3};"
                                 : "+f"(sum[i][j][0]), "+f"(sum[i][j][1]), "+f"(sum[i][j][2]), "+f"(sum[i][j][3])
                                 : "r"(x[i][0]), "r"(x[i][1]), "r"(x[i][2]), "r"(x[i][3]), "r"(y[j][0]), "r"(y[j][1]));
        }
    }
    float *to = c + (size_t)(blockIdx.y * TILE + row) * n + blockIdx.x * TILE + warp % 2 * 32 + pair;
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 4; j++)
            for (int half = 0; half < 2; half++)
                *(float2 *)(to + (size_t)(16 * i + 8 * half) * n + 8 * j) =
                    make_float2(sum[i][j][2 * half], sum[i][j][2 * half + 1]);
}
