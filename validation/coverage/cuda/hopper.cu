// Compute capability 9.0: clusters, distributed shared memory, bulk copies, transaction barriers, stmatrix, elect.
#include <cooperative_groups.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
namespace cg = cooperative_groups;
#define THREAD (blockIdx.x * blockDim.x + threadIdx.x)

extern "C" __global__ void __cluster_dims__(4, 1, 1) cluster_sums(const int *in, int *out) {
    __shared__ int part[32];
    cg::cluster_group cluster = cg::this_cluster();
    part[threadIdx.x] = in[THREAD];
    cluster.sync();
    int sum = 0;
    for (unsigned rank = 0; rank < cluster.num_blocks(); rank++) sum += cluster.map_shared_rank(part, rank)[threadIdx.x];
    cluster.sync();
    if (cluster.block_rank() == 0 && threadIdx.x < 4) atomicAdd(cluster.map_shared_rank(part, threadIdx.x), 1000);
    cluster.sync();
    out[THREAD] = sum + part[threadIdx.x];
}

extern "C" __global__ void bulk_copy(const int *in, int *out, int n) {
    __shared__ __align__(128) int tile[256];
    __shared__ __align__(8) unsigned long long barrier;
    unsigned bar = (unsigned)__cvta_generic_to_shared(&barrier), to = (unsigned)__cvta_generic_to_shared(tile);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bar));
        asm volatile("fence.mbarrier_init.release.cluster;");
    }
    __syncthreads();
    for (int phase = 0; phase < 2; phase++) {
        if (threadIdx.x == 0) {
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 1024;" ::"r"(bar) : "memory");
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 1024, [%2];"
                         ::"r"(to), "l"(in + 256 * phase), "r"(bar) : "memory");
        }
        asm volatile("{\n\t.reg .pred p;\n\tWAIT:\n\tmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n\t@!p bra WAIT;\n\t}"
                     ::"r"(bar), "r"(phase) : "memory");
        for (int i = threadIdx.x; i < 256; i += blockDim.x) tile[i] += phase + 1;
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        if (threadIdx.x == 0) {
            asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 1024;" ::"l"(out + 256 * phase), "r"(to) : "memory");
            asm volatile("cp.async.bulk.commit_group;");
            asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
        }
        __syncthreads();
    }
}

extern "C" __global__ void elected(unsigned *out) {
    unsigned leader, chosen;
    asm volatile("{\n\t.reg .pred p;\n\telect.sync %0|p, 0xffffffff;\n\tselp.u32 %1, 1, 0, p;\n\t}" : "=r"(leader), "=r"(chosen));
    unsigned count = __popc(__ballot_sync(0xffffffffu, chosen));
    out[threadIdx.x] = count * 100 + (leader < 32);
}

// An 8x8 matrix of halves goes from registers to shared memory by stmatrix and back, transposed, by ldmatrix.
extern "C" __global__ void stored_matrix(const unsigned *in, unsigned *out) {
    __shared__ __align__(16) unsigned tile[32];
    unsigned p = (unsigned)__cvta_generic_to_shared(tile + 4 * (threadIdx.x & 7)), r;
    asm volatile("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};" ::"r"(p), "r"(in[threadIdx.x]) : "memory");
    __syncwarp();
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];" : "=r"(r) : "r"(p));
    out[threadIdx.x] = r;
}

extern "C" __global__ void bf16_atomics(const float *in, __nv_bfloat16 *out, __nv_bfloat162 *pairs, __half *halves) {
    atomicAdd(out, __float2bfloat16(in[THREAD]));
    atomicAdd(pairs, __floats2bfloat162_rn(in[THREAD], -in[THREAD]));
    atomicAdd(halves, __float2half(in[THREAD]));
}

extern "C" __global__ void grid_dependency(const int *in, int *out) {
    asm volatile("griddepcontrol.wait;" ::: "memory");
    out[THREAD] = in[THREAD] + 1;
    asm volatile("griddepcontrol.launch_dependents;");
}
