// What kernels of libraries do: wide integers, decoupled look-back, queues with locks, multistage and specialised pipelines.
#include <cuda.h>
#include <cuda_fp16.h>
#include <cstdint>

typedef unsigned long long u64;
typedef unsigned __int128 u128;

extern "C" __global__ void wide_integers(const u64 *x, u64 *quotient, u64 *rest) {
    int i = threadIdx.x;
    u128 a = ((u128)x[i] << 64) | x[i + 32], d = ((u128)(x[i + 64] >> (i & 63)) << (i & 31)) | 1;
    quotient[i] = (u64)(a / d), quotient[i + 32] = (u64)((a / d) >> 64);
    rest[i] = (u64)(a % d), rest[i + 32] = (u64)((a % d) >> 64);
}

// prefix sums in one pass: each block waits for what those before it have published
extern "C" __global__ void look_back(const unsigned *x, unsigned *sums, u64 *state, unsigned *ticket) {
    __shared__ unsigned block, before, s[64];
    int t = threadIdx.x;
    if (t == 0) block = atomicAdd(ticket, 1);
    __syncthreads();
    s[t] = x[block * 64 + t];
    __syncthreads();
    for (int step = 1; step < 64; step *= 2) {
        unsigned other = t >= step ? s[t - step] : 0;
        __syncthreads();
        s[t] += other;
        __syncthreads();
    }
    if (t == 0) {
        unsigned total = s[63], sum = 0;
        u64 own = ((u64)(block ? 1 : 2) << 32) | total;
        asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(state + block), "l"(own) : "memory");
        for (int k = (int)block - 1; k >= 0; k--) {
            u64 seen;
            do {
                asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(seen) : "l"(state + k) : "memory");
            } while (seen >> 32 == 0);
            sum += (unsigned)seen;
            if (seen >> 32 == 2) break;
        }
        own = (2ull << 32) | (sum + total);
        asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(state + block), "l"(own) : "memory");
        before = sum;
    }
    __syncthreads();
    sums[block * 64 + t] = s[t] + before;
}

// C = A B^T, f16, 64 x 64 x 32 tiles in three stages: cp.async, swizzled rows, ldmatrix, mma
extern "C" __global__ void __launch_bounds__(128) multistage(const half *A, const half *B, float *C, int n, int depth) {
    extern __shared__ __align__(128) half stages[];
    int t = threadIdx.x, warp = t / 32, lane = t % 32, row0 = blockIdx.y * 64, column0 = blockIdx.x * 64;
    float sum[2][4][4] = {};
    auto place = [&](int stage, int matrix, int row, int part) {
        return (uint32_t)__cvta_generic_to_shared(stages + (stage * 2 + matrix) * 2048 + row * 32 + (part ^ (row / 2 % 4)) * 8);
    };
    auto load = [&](int stage, int k) {
        for (int i = t; i < 256; i += 128) {
            int row = i / 4, part = i % 4;
            const half *a = A + (row0 + row) * depth + k + part * 8, *b = B + (column0 + row) * depth + k + part * 8;
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(place(stage, 0, row, part)), "l"(a));
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(place(stage, 1, row, part)), "l"(b));
        }
    };
    for (int s = 0; s < 2; s++) {
        load(s, s * 32);
        asm volatile("cp.async.commit_group;");
    }
    for (int k = 0; k < depth / 32; k++) {
        asm volatile("cp.async.wait_group 1;");
        __syncthreads();
        if (k + 2 < depth / 32) load((k + 2) % 3, (k + 2) * 32);
        asm volatile("cp.async.commit_group;");
        for (int half_ = 0; half_ < 2; half_++) {
            uint32_t a[2][4], b[2][4];
            for (int i = 0; i < 2; i++) {
                uint32_t from = place(k % 3, 0, warp / 2 * 32 + i * 16 + lane % 16, half_ * 2 + lane / 16);
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                             : "=r"(a[i][0]), "=r"(a[i][1]), "=r"(a[i][2]), "=r"(a[i][3]) : "r"(from));
                from = place(k % 3, 1, warp % 2 * 32 + i * 16 + lane / 16 * 8 + lane % 8, half_ * 2 + lane / 8 % 2);
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                             : "=r"(b[i][0]), "=r"(b[i][1]), "=r"(b[i][2]), "=r"(b[i][3]) : "r"(from));
            }
            for (int i = 0; i < 2; i++)
                for (int j = 0; j < 4; j++) {
                    float *c = sum[i][j];
                    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
                                 "{%8, %9}, {%0, %1, %2, %3};"
                                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                                 : "r"(a[i][0]), "r"(a[i][1]), "r"(a[i][2]), "r"(a[i][3]), "r"(b[j / 2][j % 2 * 2]),
                                   "r"(b[j / 2][j % 2 * 2 + 1]));
                }
        }
    }
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 4; j++)
            for (int e = 0; e < 4; e++) {
                int row = row0 + warp / 2 * 32 + i * 16 + lane / 4 + e / 2 * 8;
                C[row * n + column0 + warp % 2 * 32 + j * 8 + lane % 4 * 2 + e % 2] = sum[i][j][e];
            }
}

__device__ uint32_t shared(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }
__device__ void wait(u64 *barrier, int parity) {
    asm volatile("{ .reg .pred done;\nAGAIN: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@!done bra AGAIN; }"
                 ::"r"(shared(barrier)), "r"(parity) : "memory");
}
__device__ void fetch(void *to, const CUtensorMap *map, int x, int y, u64 *barrier) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];"
                 ::"r"(shared(to)), "l"(map), "r"(shared(barrier)), "r"(x), "r"(y) : "memory");
}
__device__ u64 described(const void *p) { return ((u64)shared(p) & 0x3FFFF) >> 4 | 1ull << 16 | 64ull << 32 | 1ull << 62; }

// C = A B^T, f16: a warpgroup copies tiles of 64 x 64 in two stages, the other one multiplies (64 x 32 of each B)
extern "C" __global__ void __launch_bounds__(256)
specialised(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, float *C, int n, int depth) {
    extern __shared__ __align__(1024) uint8_t tiles[];
    __shared__ u64 full[2], empty[2];
    if (threadIdx.x == 0) {
        for (int s = 0; s < 2; s++) {
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared(full + s)));
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 128;" ::"r"(shared(empty + s)));
        }
        asm volatile("fence.mbarrier_init.release.cluster;");
    }
    __syncthreads();
    if (threadIdx.x < 128) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
        for (int k = 0; threadIdx.x == 0 && k < depth / 64; k++) {
            int s = k % 2;
            wait(empty + s, k / 2 % 2 ^ 1);
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 12288;" ::"r"(shared(full + s)) : "memory");
            fetch(tiles + s * 12288, &a, k * 64, blockIdx.y * 64, full + s);
            fetch(tiles + s * 12288 + 8192, &b, k * 64, blockIdx.x * 32, full + s);
        }
        return;
    }
    asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
    float d[16] = {};
    for (int k = 0; k < depth / 64; k++) {
        int s = k % 2;
        wait(full + s, k / 2 % 2);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        for (int part = 0; part < 4; part++) {
            u64 x = described(tiles + s * 12288 + part * 32), y = described(tiles + s * 12288 + 8192 + part * 32);
            asm volatile("wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, "
                         "%11, %12, %13, %14, %15}, %16, %17, 1, 1, 1, 0, 0;"
                         : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
                           "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]),
                           "+f"(d[15]) : "l"(x), "l"(y));
        }
        asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared(empty + s)) : "memory");
    }
    int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
    for (int e = 0; e < 16; e++) {
        int row = blockIdx.y * 64 + warp * 16 + lane / 4 + e / 2 % 2 * 8;
        C[row * n + blockIdx.x * 32 + e / 4 * 8 + lane % 4 * 2 + e % 2] = d[e];
    }
}
