// Integers: a hash, 64-bit modulo indexing, division by constants and variables.

__constant__ unsigned rounds[64];

__device__ unsigned turned(unsigned x, int n) { return (x >> n) | (x << (32 - n)); }

extern "C" __global__ void sha256_block(const unsigned* text, unsigned* out, int blocks) {
    int id = blockIdx.x * blockDim.x + threadIdx.x;
    if (id >= blocks) return;
    unsigned w[64], s[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    for (int i = 0; i < 16; i++) w[i] = text[i * blocks + id];
#pragma unroll 1
    for (int i = 16; i < 64; i++) {
        unsigned a = w[i - 15], b = w[i - 2];
        w[i] = (turned(a, 7) ^ turned(a, 18) ^ (a >> 3)) + w[i - 7] + (turned(b, 17) ^ turned(b, 19) ^ (b >> 10)) + w[i - 16];
    }
#pragma unroll 4
    for (int i = 0; i < 64; i++) {
        unsigned t1 = s[7] + (turned(s[4], 6) ^ turned(s[4], 11) ^ turned(s[4], 25)) + ((s[4] & s[5]) ^ (~s[4] & s[6])) + rounds[i] + w[i];
        unsigned t2 = (turned(s[0], 2) ^ turned(s[0], 13) ^ turned(s[0], 22)) + ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
        s[7] = s[6]; s[6] = s[5]; s[5] = s[4]; s[4] = s[3] + t1; s[3] = s[2]; s[2] = s[1]; s[1] = s[0]; s[0] = t1 + t2;
    }
#pragma unroll
    for (int i = 0; i < 8; i++) out[i * blocks + id] = s[i];
}

extern "C" __global__ void wrapped_copy(const float* in, float* out, long long n, long long period, long long stride) {
    long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) out[i] = in[i * stride % period];
}

extern "C" __global__ void tensor_permute(const float* in, float* out, int n, int d1, int d2, int d3) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int c = i % d3, b = i / d3 % d2, a = i / d3 / d2 % d1, rest = i / (d1 * d2 * d3);
    out[((rest * d3 + c) * d2 + b) * d1 + a] = in[i];
}

extern "C" __global__ void im2col(const float* image, float* columns, int n, int channels, int height, int width) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int x = i % width, y = i / width % height, channel = i / width / height;
    float* to = columns + (channel * 9 * height + y) * width + x;
#pragma unroll
    for (int k = 0; k < 9; k++) {
        int sy = y + k / 3 - 1, sx = x + k % 3 - 1;
        *to = sy >= 0 && sx >= 0 && sy < height && sx < width ? image[(channel * height + sy) * width + sx] : 0.0f;
        to += height * width;
    }
}
