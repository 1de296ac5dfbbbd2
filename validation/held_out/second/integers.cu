// Integers: MD5 steps, a block cipher by tables, a calendar, powers modulo.

__constant__ unsigned sines[64];

extern "C" __global__ void md5_search(unsigned start, const unsigned* target, unsigned* found, int n) {
    int id = blockIdx.x * blockDim.x + threadIdx.x;
    if (id >= n) return;
    unsigned a = 0x67452301, b = 0xefcdab89, c = 0x98badcfe, d = 0x10325476, word = start + id;
#pragma unroll 4
    for (int i = 0; i < 64; i++) {
        unsigned f, g;
        if (i < 16) { f = (b & c) | (~b & d); g = i; }
        else if (i < 32) { f = (d & b) | (~d & c); g = 5 * i + 1; }
        else if (i < 48) { f = b ^ c ^ d; g = 3 * i + 5; }
        else { f = c ^ (b | ~d); g = 7 * i; }
        g &= 15;
        unsigned text = g == 0 ? word : g == 1 ? 0x80u : g == 14 ? 32u : 0u;
        unsigned sum = a + f + sines[i] + text, turn = 7 + 5 * (i & 3);
        a = d; d = c; c = b;
        b += (sum << turn) | (sum >> (32 - turn));
    }
    if (a + 0x67452301 == target[0] && b + 0xefcdab89 == target[1]) *found = word;
}

extern "C" __global__ void cipher_rounds(const uint4* in, uint4* out, const unsigned* table, const uint4* keys, int rounds, int n) {
    __shared__ unsigned t[256];
    t[threadIdx.x & 255] = table[threadIdx.x & 255];
    __syncthreads();
    int id = blockIdx.x * blockDim.x + threadIdx.x;
    if (id >= n) return;
    uint4 s = in[id], k = keys[0];
    s.x ^= k.x; s.y ^= k.y; s.z ^= k.z; s.w ^= k.w;
    for (int r = 1; r < rounds; r++) {
        k = keys[r];
        uint4 o;
#define MIX(a, b, c, d, key) (t[a & 255] ^ __funnelshift_l(t[(b >> 8) & 255], t[(b >> 8) & 255], 8) ^ \
    __funnelshift_l(t[(c >> 16) & 255], t[(c >> 16) & 255], 16) ^ __funnelshift_l(t[d >> 24], t[d >> 24], 24) ^ key)
        o.x = MIX(s.x, s.y, s.z, s.w, k.x);
        o.y = MIX(s.y, s.z, s.w, s.x, k.y);
        o.z = MIX(s.z, s.w, s.x, s.y, k.z);
        o.w = MIX(s.w, s.x, s.y, s.z, k.w);
        s = o;
    }
    out[id] = s;
}

extern "C" __global__ void calendar(const long long* seconds, int4* dates, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    long long days = seconds[i] / 86400;
    int rest = seconds[i] % 86400, z = (int)days + 719468, era = z / 146097;
    int day = z - era * 146097, year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
    int of_year = day - (365 * year + year / 4 - year / 100), month = (5 * of_year + 2) / 153;
    dates[i] = make_int4(year + era * 400, month < 10 ? month + 3 : month - 9, of_year - (153 * month + 2) / 5 + 1, rest);
}

extern "C" __global__ void powers_modulo(const unsigned* bases, unsigned* results, unsigned exponent, unsigned modulus, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned long long result = 1, base = bases[i] % modulus;
    for (unsigned e = exponent; e; e >>= 1) {
        if (e & 1) result = result * base % modulus;
        base = base * base % modulus;
    }
    results[i] = (unsigned)result;
}
