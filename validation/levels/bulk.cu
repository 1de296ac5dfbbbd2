// A product of half-precision matrices whose tiles a warp of its own copies in bulk, through a ring of four stages.
// Compiled with: nvcc -arch=sm_90 -ptx -o bulk.ptx bulk.cu
#include <cstdint>
#include <cuda.h>

#define TILE 64   // of C, along both sides
#define DEPTH 32  // of A and B in a stage
#define STAGES 4
#define BYTES (2 * TILE * DEPTH * 2)  // of a stage

__device__ uint32_t place(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }

// Boxes are swizzled by 64 bytes: piece p of 16 bytes of row r stands at p ^ r / 2 % 4
__device__ unsigned at(const uint16_t *tile, int row, int k)
{
    return *(const unsigned *)(tile + row * DEPTH + ((k / 8) ^ (row / 2 % 4)) * 8 + k % 8);
}

__device__ void wait(uint64_t *bar, int parity)
{
    asm volatile("{\n.reg .pred p;\nagain:\nmbarrier.try_wait.parity.shared.b64 p, [%0], %1;\n@p bra done;\nbra again;\ndone:\n}" ::"r"(
                     place(bar)),
                 "r"(parity)
                 : "memory");
}

__device__ void copy(uint16_t *to, const CUtensorMap *map, int k, int row, uint64_t *bar)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
                     place(to)),
                 "l"(map), "r"(k), "r"(row), "r"(place(bar))
                 : "memory");
}

// c = a b: a [m, k] by rows, b [k, n] by columns, c [m, n] by rows. Four warps, each of 32 x 32 of the tile; a fifth copies
extern "C" __global__ void __launch_bounds__(160)
    product(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, float *c, int n, int k)
{
    __shared__ __align__(1024) uint16_t tiles[STAGES][2][TILE * DEPTH];
    __shared__ uint64_t full[STAGES], empty[STAGES];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, rounds = k / DEPTH;
    if (threadIdx.x == 0)
        for (int stage = 0; stage < STAGES; stage++) {
            asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(place(&full[stage])) : "memory");
            asm volatile("mbarrier.init.shared.b64 [%0], 4;" ::"r"(place(&empty[stage])) : "memory");
        }
    __syncthreads();
    if (warp == 4) {
        if (lane == 0)
            for (int round = 0; round < rounds; round++) {
                const int stage = round % STAGES;
                wait(&empty[stage], round / STAGES % 2 ^ 1);
                asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(place(&full[stage])), "n"(BYTES) : "memory");
                copy(tiles[stage][0], &a, round * DEPTH, blockIdx.y * TILE, &full[stage]);
                copy(tiles[stage][1], &b, round * DEPTH, blockIdx.x * TILE, &full[stage]);
            }
        return;
    }
    const int row = warp / 2 * 32 + lane / 4, column = warp % 2 * 32 + lane / 4, pair = lane % 4 * 2;
    float sum[2][4][4] = {};
    for (int round = 0; round < rounds; round++) {
        const int stage = round % STAGES;
        wait(&full[stage], round / STAGES % 2);
        const uint16_t *left = tiles[stage][0], *right = tiles[stage][1];
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
        __syncwarp();
        if (lane == 0)
            asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(place(&empty[stage])) : "memory");
    }
    float *to = c + (size_t)(blockIdx.y * TILE + row) * n + blockIdx.x * TILE + warp % 2 * 32 + pair;
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 4; j++)
            for (int half = 0; half < 2; half++)
                *(float2 *)(to + (size_t)(16 * i + 8 * half) * n + 8 * j) =
                    make_float2(sum[i][j][2 * half], sum[i][j][2 * half + 1]);
}
