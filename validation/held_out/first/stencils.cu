// Stencils: temperatures of a chip, electromagnetic waves, an image filter, a 3D convolution.

extern "C" __global__ void hotspot(const float* temperature, const float* power, float* next, int rows, int columns, float capacity,
                        float rx, float ry, float rz, float ambient, int steps) {
    __shared__ float now[16][16];
    __shared__ float then[16][16];
    int tx = threadIdx.x, ty = threadIdx.y;
    int column = blockIdx.x * (16 - 2 * steps) + tx - steps, row = blockIdx.y * (16 - 2 * steps) + ty - steps;
    bool inside = row >= 0 && row < rows && column >= 0 && column < columns;
    float heat = 0.0f;
    if (inside) {
        now[ty][tx] = temperature[row * columns + column];
        heat = power[row * columns + column];
    }
    __syncthreads();
    int north = row == 0 ? ty : ty - 1, south = row == rows - 1 ? ty : ty + 1;
    int west = column == 0 ? tx : tx - 1, east = column == columns - 1 ? tx : tx + 1;
    bool computed = false;
    for (int step = 0; step < steps; step++) {
        computed = inside && tx > step && tx < 15 - step && ty > step && ty < 15 - step;
        if (computed) {
            float here = now[ty][tx];
            then[ty][tx] = here + capacity * (heat + (now[south][tx] + now[north][tx] - 2.0f * here) * ry +
                                              (now[ty][east] + now[ty][west] - 2.0f * here) * rx + (ambient - here) * rz);
        }
        __syncthreads();
        if (step == steps - 1) break;
        if (computed) now[ty][tx] = then[ty][tx];
        __syncthreads();
    }
    if (computed) next[row * columns + column] = then[ty][tx];
}

extern "C" __global__ void fdtd_fields(float* ex, float* ey, const float* hz, const float* source, int t, int nx, int ny) {
    int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= nx || j >= ny) return;
    if (i == 0) ey[j] = source[t];
    else ey[i * ny + j] -= 0.5f * (hz[i * ny + j] - hz[(i - 1) * ny + j]);
    if (j > 0) ex[i * (ny + 1) + j] -= 0.5f * (hz[i * ny + j] - hz[i * ny + j - 1]);
}

__constant__ float weights[5 * 5];

extern "C" __global__ void filter5(const unsigned char* image, unsigned char* out, int width, int height, int pitch) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    float sum = 0.0f;
#pragma unroll
    for (int dy = -2; dy <= 2; dy++)
        for (int dx = -2; dx <= 2; dx++) {
            int sx = min(max(x + dx, 0), width - 1), sy = min(max(y + dy, 0), height - 1);
            sum += weights[(dy + 2) * 5 + dx + 2] * image[sy * pitch + sx];
        }
    out[y * pitch + x] = (unsigned char)fminf(fmaxf(sum, 0.0f), 255.0f);
}

extern "C" __global__ void conv3d(const double* a, double* b, int ni, int nj, int nk) {
    int k = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
    if (j < 1 || j >= nj - 1 || k < 1 || k >= nk - 1) return;
    for (int i = 1; i < ni - 1; i++) {
        const double* p = a + ((long long)i * nj + j) * nk + k;
        size_t plane = (size_t)nj * nk;
        b[((long long)i * nj + j) * nk + k] = 0.2 * p[-(long long)plane - nk - 1] + 0.5 * p[plane - nk - 1] -
            0.8 * p[-(long long)plane + nk + 1] - 0.3 * p[plane + nk + 1] + 0.6 * p[-nk] - 0.9 * p[nk] + 0.4 * p[-1] + 0.7 * p[1];
    }
}
