// C = A B with tensor cores: f16 in, f32 out. A block of 4 warps makes a 64 x 64 tile of C; tiles of A and B come by
// cp.async in two stages, ldmatrix feeds mma.sync. nvcc -ptx -arch=compute_80 -o hgemm.ptx hgemm.cu
#include <cstdint>
#include <cuda_fp16.h>

constexpr int TILE = 64, DEPTH = 32, PAD = 8;  // pads keep the rows of ldmatrix in different banks

__device__ uint32_t place(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }
__device__ void fetch(void *to, const void *from)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(place(to)), "l"(from) : "memory");
}

extern "C" __global__ void hgemm(const half *a, const half *b, float *c, int n)
{
    __shared__ __align__(16) half sa[2][TILE][DEPTH + PAD], sb[2][DEPTH][TILE + PAD];
    int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    int row = blockIdx.y * TILE, column = blockIdx.x * TILE, mine = warp / 2 * 32, across = warp % 2 * 32;
    float sum[2][4][4] = {};

    auto stage = [&](int k, int s) {
        for (int i = thread; i < TILE * DEPTH / 8; i += 128)
            fetch(&sa[s][i / 4][i % 4 * 8], a + (row + i / 4) * n + k + i % 4 * 8);
        for (int i = thread; i < DEPTH * TILE / 8; i += 128)
            fetch(&sb[s][i / 8][i % 8 * 8], b + (k + i / 8) * n + column + i % 8 * 8);
        asm volatile("cp.async.commit_group;" ::: "memory");
    };

    stage(0, 0);
    for (int k = 0, s = 0; k < n; k += DEPTH, s ^= 1) {
        if (k + DEPTH < n) {
            stage(k + DEPTH, s ^ 1);
            asm volatile("cp.async.wait_group 1;" ::: "memory");
        } else
            asm volatile("cp.async.wait_group 0;" ::: "memory");
        __syncthreads();
#pragma unroll
        for (int part = 0; part < DEPTH; part += 16) {
            uint32_t fa[2][4], fb[2][4];
#pragma unroll
            for (int i = 0; i < 2; i++) {
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                             : "=r"(fa[i][0]), "=r"(fa[i][1]), "=r"(fa[i][2]), "=r"(fa[i][3])
                             : "r"(place(&sa[s][mine + i * 16 + lane % 16][part + lane / 16 * 8])));
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                             : "=r"(fb[i][0]), "=r"(fb[i][1]), "=r"(fb[i][2]), "=r"(fb[i][3])
                             : "r"(place(&sb[s][part + lane % 16][across + i * 16 + lane / 16 * 8])));
            }
#pragma unroll
            for (int i = 0; i < 2; i++)
#pragma unroll
                for (int j = 0; j < 4; j++)
                    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
                                 "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                                 : "+f"(sum[i][j][0]), "+f"(sum[i][j][1]), "+f"(sum[i][j][2]), "+f"(sum[i][j][3])
                                 : "r"(fa[i][0]), "r"(fa[i][1]), "r"(fa[i][2]), "r"(fa[i][3]),
                                   "r"(fb[j / 2][j % 2 * 2]), "r"(fb[j / 2][j % 2 * 2 + 1]));
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) {
            float *at = c + (row + mine + i * 16 + lane / 4) * n + column + across + j * 8 + lane % 4 * 2;
            *(float2 *)at = make_float2(sum[i][j][0], sum[i][j][1]);
            *(float2 *)(at + 8 * n) = make_float2(sum[i][j][2], sum[i][j][3]);
        }
}
