// Bulk copies, bulk reductions and boxes of tensors.
// nvcc -ptx -arch=compute_90a -std=c++17 -o bulk.ptx bulk.cu
#include <cstdint>
#include <cuda.h>

__device__ uint32_t place(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }
__device__ void init(uint64_t *bar, int count) { asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"(place(bar)), "r"(count) : "memory"); }
__device__ void expect(uint64_t *bar, int bytes) { asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" :: "r"(place(bar)), "r"(bytes) : "memory"); }
__device__ void wait(uint64_t *bar, int parity)
{
    asm volatile("{\n.reg .pred p;\nagain:\nmbarrier.try_wait.parity.shared.b64 p, [%0], %1;\n@p bra done;\nbra again;\ndone:\n}"
                 :: "r"(place(bar)), "r"(parity) : "memory");
}

// Rounds of: load 512 words in bulk, add the round, store them in bulk, and add them up in `sum`
extern "C" __global__ void rounds(const int *in, int *out, int *sum, int count)
{
    __shared__ __align__(128) int tile[512];
    __shared__ uint64_t bar;
    if (threadIdx.x == 0) init(&bar, 1);
    __syncthreads();
    for (int r = 0; r < count; r++) {
        if (threadIdx.x == 0) {
            expect(&bar, sizeof tile);
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                         :: "r"(place(tile)), "l"(in + 512 * r), "r"((int)sizeof tile), "r"(place(&bar)) : "memory");
        }
        wait(&bar, r & 1);
        for (int i = threadIdx.x; i < 512; i += blockDim.x) tile[i] += r;
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        if (threadIdx.x == 0) {
            asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
                         :: "l"(out + 512 * r), "r"(place(tile)), "r"((int)sizeof tile) : "memory");
            asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.s32 [%0], [%1], %2;"
                         :: "l"(sum), "r"(place(tile)), "r"((int)sizeof tile) : "memory");
            asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;" ::: "memory");
        }
        __syncthreads();
    }
}

// A box of 32 x 8 elements of two bytes at (x, y) to the place (u, v); shared memory goes to `seen` as it is
template <int MAPS> __device__ void box(const CUtensorMap &from, const CUtensorMap &to, uint16_t *seen, int x, int y, int u, int v)
{
    __shared__ __align__(1024) uint16_t tile[256];
    __shared__ uint64_t bar;
    if (threadIdx.x == 0) {
        init(&bar, 1);
        expect(&bar, sizeof tile);
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                     :: "r"(place(tile)), "l"(&from), "r"(x), "r"(y), "r"(place(&bar)) : "memory");
    }
    __syncthreads();
    wait(&bar, 0);
    for (int i = threadIdx.x; i < 256; i += blockDim.x) seen[i] = tile[i];
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];"
                     :: "l"(&to), "r"(u), "r"(v), "r"(place(tile)) : "memory");
        asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");
    }
}
extern "C" __global__ void boxes(const __grid_constant__ CUtensorMap from, const __grid_constant__ CUtensorMap to,
                                 uint16_t *seen, int x, int y, int u, int v)
{
    box<2>(from, to, seen, x, y, u, v);
}

// A box of a tensor of three axes whose elements are taken two apart along the innermost
extern "C" __global__ void cube(const __grid_constant__ CUtensorMap from, float *seen, int x, int y, int z)
{
    __shared__ __align__(128) float tile[8 * 3 * 2];
    __shared__ uint64_t bar;
    if (threadIdx.x == 0) {
        init(&bar, 1);
        expect(&bar, sizeof tile);
        asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];"
                     :: "r"(place(tile)), "l"(&from), "r"(x), "r"(y), "r"(z), "r"(place(&bar)) : "memory");
    }
    __syncthreads();
    wait(&bar, 0);
    if (threadIdx.x < 48) seen[threadIdx.x] = tile[threadIdx.x];
}
