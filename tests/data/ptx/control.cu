// Control flow: a switch that becomes brx.idx, nested loops with early exits, an infinite loop, inline assembly.
__global__ void switch_table(int *out, const int *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int v = in[i];
    switch (v) {
        case 0: v = v * 7 + i; break;
        case 1: v = in[v + i] ^ 3; break;
        case 2: v = v << (i & 3); break;
        case 3: v = __popc(i); break;
        case 4: v = i / 3; out[0] = v; break;
        case 5: v = i % 5; break;
        case 6: v = -i; __threadfence(); break;
        case 7: v = __clz(i); break;
        case 8: v = in[i + 8] * 8; out[8] = v + 64; break;
        case 9: v = in[i + 9] * 9; out[9] = v + 81; break;
        case 10: v = in[i + 10] * 10; out[10] = v + 100; break;
        case 11: v = in[i + 11] * 11; out[11] = v + 121; break;
        case 12: v = in[i + 12] * 12; out[12] = v + 144; break;
        case 13: v = in[i + 13] * 13; out[13] = v + 169; break;
        case 14: v = in[i + 14] * 14; out[14] = v + 196; break;
        case 15: v = in[i + 15] * 15; out[15] = v + 225; break;
        default: v = 0;
    }
    out[i] = v;
}

__global__ void nested(float *a, int n, int m) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        float sum = 0;
        for (int j = 0; j < m; j++) {
            float x = a[i * m + j];
            if (x < 0) continue;
            if (x > 100.0f) break;
            if (x == 50.0f) return;
            sum += x;
        }
        a[i] = sum;
    }
}

__global__ void forever(volatile int *flag) {
    while (true) {
        if (*flag == 3) *flag = 4;
    }
}

__global__ void inline_assembly(unsigned *out, unsigned long long *wide, unsigned a, unsigned b) {
    unsigned low, high, carry;
    asm("{ .reg .pred p; .reg .u32 t;\n"
        "  setp.lt.u32 p, %1, %2; // smaller\n"
        "  @p bra L_less; mov.u32 t, 7; bra L_end;\n"
        "L_less: mov.u32 t, 9;\n"
        "L_end: add.u32 %0, t, 1; }" : "=r"(low) : "r"(a), "r"(b));
    asm("{ .reg .pred p; .reg .u32 t;\n"
        "  setp.gt.u32 p, %1, %2;\n"
        "  @!p bra L_less; mov.u32 t, 5;\n"
        "L_less: mov.u32 t, 0x1F; add.u32 %0, t, 017; }" : "=r"(high) : "r"(a), "r"(b));
    asm volatile("add.cc.u32 %0, %1, %2; addc.u32 %0, %0, 0;" : "=r"(carry) : "r"(a), "r"(b));
    unsigned long long w;
    asm("mov.b64 %0, {%1, %2};" : "=l"(w) : "r"(low), "r"(high));
    unsigned lane, clock;
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
    asm volatile("mov.u32 %0, %%clock;" : "=r"(clock));
    *wide = w;
    *out = low + high + carry + lane + clock;
}
