// sm_90: bulk copies, mbarriers, warp-group matrix multiply, clusters, elections.
#include <cstdint>

__global__ void __cluster_dims__(2, 1, 1) bulk_copy(float *out, const float *in, const void *map) {
    __shared__ alignas(128) float tile[256];
    __shared__ uint64_t ready;
    unsigned s = (unsigned)__cvta_generic_to_shared(tile), b = (unsigned)__cvta_generic_to_shared(&ready);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(b), "r"(1));
        asm volatile("fence.proxy.async.shared::cta;");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(b), "r"(1024));
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(s),
                     "l"(in), "r"(1024), "r"(b));
        asm volatile(
            "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(s),
            "l"(map), "r"(0), "r"(8), "r"(b));
    }
    asm volatile("{ .reg .pred p;\nWAIT:\n mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n @p bra DONE;\n bra WAIT;\nDONE:\n}" ::"r"(b),
                 "r"(0));
    unsigned elected, rank, remote;
    asm volatile("{ .reg .pred p; .reg .b32 l; elect.sync l|p, 0xFFFFFFFF; selp.u32 %0, 1, 0, p; }" : "=r"(elected));
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(s), "r"(rank ^ 1));
    asm volatile("barrier.cluster.arrive.release.aligned;\n barrier.cluster.wait.acquire.aligned;");
    out[threadIdx.x] = tile[threadIdx.x] + elected + remote;
}

__global__ void warp_group(float *out, uint64_t a, uint64_t b) {
    float d[4] = {out[0], out[1], out[2], out[3]};
    asm volatile("wgmma.fence.sync.aligned;");
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %6, 0;\n"
                 " wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, p, 1, 1, 0, 0; }"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(a), "l"(b), "r"(1));
    asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;");
    asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
    for (int i = 0; i < 4; i++) out[i] = d[i];
    asm volatile("griddepcontrol.wait;");
}
