// Stencils: speckle reduction, seven points in depth, a template match, a median of nine.

extern "C" __global__ void srad_coefficients(const float* image, float* coefficient, float* dn, float* ds, float* dw, float* de,
                                  int rows, int columns, float q0) {
    int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= rows || column >= columns) return;
    int at = row * columns + column;
    float here = image[at];
    float n = image[max(row - 1, 0) * columns + column] - here, s = image[min(row + 1, rows - 1) * columns + column] - here;
    float w = image[row * columns + max(column - 1, 0)] - here, e = image[row * columns + min(column + 1, columns - 1)] - here;
    float g2 = (n * n + s * s + w * w + e * e) / (here * here), l = (n + s + w + e) / here;
    float number = 0.5f * g2 - (1.0f / 16.0f) * (l * l), denominator = 1.0f + 0.25f * l, q = number / (denominator * denominator);
    float c = 1.0f / (1.0f + (q - q0) / (q0 * (1.0f + q0)));
    coefficient[at] = c < 0.0f ? 0.0f : c > 1.0f ? 1.0f : c;
    dn[at] = n; ds[at] = s; dw[at] = w; de[at] = e;
}

extern "C" __global__ void seven_points(const float* a, float* b, int nx, int ny, int nz, float c0, float c1) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x == 0 || y == 0 || x >= nx - 1 || y >= ny - 1) return;
    int at = y * nx + x, plane = nx * ny;
    float below = a[at], here = a[at + plane];
    for (int z = 1; z < nz - 1; z++) {
        float above = a[at + (z + 1) * plane];
        int i = at + z * plane;
        b[i] = c1 * (above + below + a[i + 1] + a[i - 1] + a[i + nx] + a[i - nx]) - c0 * here;
        below = here;
        here = above;
    }
}

extern "C" __global__ void correlate(const float* frame, const float* pattern, float* score, int width, int height, int size) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x > width - size || y > height - size) return;
    float sum = 0.0f, squares = 0.0f, product = 0.0f;
    for (int v = 0; v < size; v++)
        for (int u = 0; u < size; u++) {
            float pixel = frame[(y + v) * width + x + u];
            sum += pixel;
            squares += pixel * pixel;
            product += pixel * pattern[v * size + u];
        }
    float count = size * size, deviation = sqrtf(squares - sum * sum / count);
    score[y * width + x] = product / (deviation + 1e-6f);
}

__device__ void ordered(float& a, float& b) { float t = fminf(a, b); b = fmaxf(a, b); a = t; }

extern "C" __global__ void median9(const float* in, float* out, int width, int height) {
    __shared__ float tile[18][18];
    int tx = threadIdx.x, ty = threadIdx.y;
    for (int k = ty * 16 + tx; k < 18 * 18; k += 256) {
        int x = (int)blockIdx.x * 16 + k % 18 - 1, y = (int)blockIdx.y * 16 + k / 18 - 1;
        tile[k / 18][k % 18] = in[min(max(y, 0), height - 1) * width + min(max(x, 0), width - 1)];
    }
    __syncthreads();
    float v[9];
#pragma unroll
    for (int k = 0; k < 9; k++) v[k] = tile[ty + k / 3][tx + k % 3];
#pragma unroll
    for (int i = 0; i < 5; i++)
#pragma unroll
        for (int j = 0; j < 8 - i; j++) ordered(v[j], v[j + 1]);
    int x = blockIdx.x * 16 + tx, y = blockIdx.y * 16 + ty;
    if (x < width && y < height) out[y * width + x] = v[4];
}
