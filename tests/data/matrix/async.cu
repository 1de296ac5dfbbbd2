// cp.async pipelines and mbarriers.
// nvcc -ptx -arch=compute_90 -std=c++17 -o async.ptx async.cu
#include <cstdint>

__device__ uint32_t place(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }

template <int BYTES> __device__ void copy(void *to, const void *from, int given = BYTES)
{
    if (BYTES == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"(place(to)), "l"(from), "r"(given) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;"
                     :: "r"(place(to)), "l"(from), "n"(BYTES), "r"(given) : "memory");
}
__device__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> __device__ void wait() { asm volatile("cp.async.wait_group %0;" :: "n"(N) : "memory"); }

// out[i] = in[i] + in[n - 1 - i], in tiles of 4 x blockDim.x floats, two stages; the last tile is cut
extern "C" __global__ void pipeline(const float *in, float *out, int n)
{
    __shared__ __align__(16) float tile[2][512];
    int tiles = (n + 511) / 512, thread = threadIdx.x * 4;
    auto fetch = [&](int t) {
        int first = t * 512 + thread, left = (n - first) * 4;
        copy<16>(&tile[t % 2][thread], in + (left > 0 ? first : 0), left < 0 ? 0 : left > 16 ? 16 : left);
        commit();
    };
    fetch(0);
    for (int t = 0; t < tiles; t++) {
        if (t + 1 < tiles) { fetch(t + 1); wait<1>(); } else wait<0>();
        __syncthreads();
        for (int k = threadIdx.x; k < 512; k += blockDim.x)
            if (t * 512 + k < n) out[t * 512 + k] = tile[t % 2][k] + in[n - 1 - t * 512 - k];
        __syncthreads();
    }
}

// 4 and 8 bytes, ignored sources
extern "C" __global__ void small(const int2 *in, int *out)
{
    __shared__ int2 wide[64];
    __shared__ int narrow[64];
    int i = threadIdx.x;
    narrow[i] = -1;
    copy<8>(&wide[i], in + i);
    asm volatile("{ .reg .pred p; setp.ne.s32 p, %2, 0; cp.async.ca.shared.global [%0], [%1], 4, p; }"
                 :: "r"(place(&narrow[i])), "l"(&in[i].x), "r"(i % 3) : "memory");
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
    out[i] = wide[63 - i].y * 1000 + narrow[i];
}

__device__ void init(uint64_t *bar, int count) { asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"(place(bar)), "r"(count) : "memory"); }
__device__ void arrive(uint64_t *bar) { asm volatile("{ .reg .b64 s; mbarrier.arrive.shared.b64 s, [%0]; }" :: "r"(place(bar)) : "memory"); }
__device__ void wait(uint64_t *bar, int parity)
{
    asm volatile("{\n.reg .pred p;\nagain:\nmbarrier.try_wait.parity.shared.b64 p, [%0], %1;\n@p bra done;\nbra again;\ndone:\n}"
                 :: "r"(place(bar)), "r"(parity) : "memory");
}

// Warp 0 produces, the others consume: full and empty barriers of two stages
extern "C" __global__ void producer(const int *in, int *out, int rounds)
{
    __shared__ uint64_t full[2], empty[2];
    __shared__ int data[2][32];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, consumers = blockDim.x - 32;
    if (threadIdx.x == 0)
        for (int s = 0; s < 2; s++) { init(&full[s], 32); init(&empty[s], consumers); }
    __syncthreads();
    int sum = 0;
    for (int r = 0; r < rounds; r++) {
        int s = r % 2, parity = r / 2 % 2;
        if (warp == 0) {
            wait(&empty[s], parity ^ 1);
            asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(place(&data[s][lane])), "l"(in + r * 32 + lane) : "memory");
            asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" :: "r"(place(&full[s])) : "memory");
        } else {
            wait(&full[s], parity);
            sum = sum * 3 + data[s][(lane + warp) % 32];
            arrive(&empty[s]);
        }
    }
    if (warp) out[threadIdx.x - 32] = sum;
}

// States, counts, drops and transaction bytes of one barrier
extern "C" __global__ void counting(uint64_t *out)
{
    __shared__ uint64_t bar;
    uint32_t b = place(&bar), test, pending;
    uint64_t state;
    int n = 0;
    auto note = [&](uint64_t x) { if (threadIdx.x == 0) out[n] = x; n++; };
    if (threadIdx.x == 0) init(&bar, 34);
    __syncthreads();
    asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(state) : "r"(b) : "memory");
    asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(pending) : "l"(state));
    note(pending);
    auto waits = [&](uint64_t s) {
        asm volatile("{ .reg .pred p; mbarrier.test_wait.shared.b64 p, [%1], %2; selp.b32 %0, 1, 0, p; }"
                     : "=r"(test) : "r"(b), "l"(s) : "memory");
        return test;
    };
    __syncthreads();
    note(waits(state));
    if (threadIdx.x == 0) asm volatile("{ .reg .b64 s; mbarrier.arrive.expect_tx.shared.b64 s, [%0], 64; }" :: "r"(b) : "memory");
    if (threadIdx.x == 1) asm volatile("{ .reg .b64 s; mbarrier.arrive_drop.shared.b64 s, [%0]; }" :: "r"(b) : "memory");
    __syncthreads();
    note(waits(state));
    if (threadIdx.x == 0) asm volatile("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], 64;" :: "r"(b) : "memory");
    __syncthreads();
    note(waits(state));
    asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(state) : "r"(b) : "memory");
    __syncthreads();
    note(waits(state));
    if (threadIdx.x == 5) asm volatile("mbarrier.arrive.shared.b64 %0, [%1], 1;" : "=l"(state) : "r"(b) : "memory");
    __syncthreads();
    if (threadIdx.x == 5) note(waits(state)); else n++;
    if (threadIdx.x == 5) out[5] = waits(state);
    asm volatile("fence.mbarrier_init.release.cluster; fence.proxy.async; griddepcontrol.wait; setmaxnreg.inc.sync.aligned.u32 64;");
    if (threadIdx.x == 0) asm volatile("mbarrier.inval.shared.b64 [%0];" :: "r"(b) : "memory");
}
