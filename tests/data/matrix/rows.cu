// ldmatrix, stmatrix, movmatrix and mma on tiles in shared memory.
// nvcc -ptx -arch=compute_90 -std=c++17 -o rows.ptx rows.cu
#include <cstdint>
#include <cuda_fp16.h>

__device__ uint32_t place(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }

// d[16][8] = a[16][16] b[16][8] (b row by row: needs .trans)
extern "C" __global__ void product(const half *a, const half *b, float *d)
{
    __shared__ __align__(16) half sa[16][24], sb[16][8];
    for (int i = threadIdx.x; i < 256; i += 32) sa[i / 16][i % 16] = a[i];
    for (int i = threadIdx.x; i < 128; i += 32) sb[i / 8][i % 8] = b[i];
    __syncwarp();
    uint32_t fa[4], fb[2];
    float c[4] = {0, 0, 0, 0};
    int lane = threadIdx.x;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(fa[0]), "=r"(fa[1]), "=r"(fa[2]), "=r"(fa[3])
                 : "r"(place(&sa[lane % 16][lane / 16 * 8])));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(fb[0]), "=r"(fb[1]) : "r"(place(&sb[lane % 16][0])));
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[0]), "r"(fb[1]));
    int row = lane / 4, column = lane % 4 * 2;
    d[row * 8 + column] = c[0];
    d[row * 8 + column + 1] = c[1];
    d[(row + 8) * 8 + column] = c[2];
    d[(row + 8) * 8 + column + 1] = c[3];
}

// Four 8 x 8 matrices: out = in with each of them transposed by (store .trans, movmatrix, nothing, load .trans)
extern "C" __global__ void transposes(const uint16_t *in, uint16_t *out)
{
    __shared__ __align__(16) uint16_t s[4][8][8], t[4][8][8];
    int lane = threadIdx.x;
    for (int i = lane; i < 256; i += 32) (&s[0][0][0])[i] = in[i];
    __syncwarp();
    uint32_t r[4];
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(r[0]), "=r"(r[1]) : "r"(place(&s[lane / 8 % 2][lane % 8][0])));
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(r[2]) : "r"(place(&s[2][lane % 8][0])));
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];"
                 : "=r"(r[3]) : "r"(place(&s[3][lane % 8][0])));
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %0;" : "+r"(r[1]));
    asm volatile("stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%0], {%1};"
                 :: "r"(place(&t[0][lane % 8][0])), "r"(r[0]) : "memory");
    asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};"
                 :: "r"(place(&t[1 + lane / 8 % 2][lane % 8][0])), "r"(r[1]), "r"(r[2]) : "memory");
    asm volatile("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};"
                 :: "r"(place(&t[3][lane % 8][0])), "r"(r[3]) : "memory");
    __syncwarp();
    for (int i = lane; i < 256; i += 32) out[i] = (&t[0][0][0])[i];
}
