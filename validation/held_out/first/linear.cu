// Linear algebra: double-precision products, matrix-vector products, elimination.

extern "C" __global__ void dgemm_tiled(const double* a, const double* b, double* c, int n, double alpha, double beta) {
    __shared__ double ta[16][17], tb[16][17];
    int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * 16 + ty, column = blockIdx.x * 16 + tx;
    double sum = 0.0;
    for (int k0 = 0; k0 < n; k0 += 16) {
        ta[ty][tx] = row < n && k0 + tx < n ? a[row * n + k0 + tx] : 0.0;
        tb[ty][tx] = column < n && k0 + ty < n ? b[(k0 + ty) * n + column] : 0.0;
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 16; k++) sum += ta[ty][k] * tb[k][tx];
        __syncthreads();
    }
    if (row < n && column < n) c[row * n + column] = alpha * sum + beta * c[row * n + column];
}

extern "C" __global__ void atax_row(const float* a, const float* x, float* y, int rows, int columns) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < rows) {
        y[i] = 0.0f;
        for (int j = 0; j < columns; j++) y[i] += a[i * columns + j] * x[j];
    }
}

extern "C" __global__ void bicg_column(const float* a, const float* r, float* s, int rows, int columns) {
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    if (j >= columns) return;
    float sum = 0.0f;
    for (int i = 0; i < rows; i++) sum += a[i * columns + j] * r[i];
    s[j] = sum;
}

extern "C" __global__ void eliminate(float* a, float* b, const float* m, int size, int t) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= size - 1 - t || j >= size - t) return;
    a[size * (i + 1 + t) + j + t] -= m[size * (i + 1 + t) + t] * a[size * t + j + t];
    if (j == 0) b[i + 1 + t] -= m[size * (i + 1 + t) + t] * b[t];
}

extern "C" __global__ void syrk_block(float* c, const float* a, float alpha, float beta, int n, int m) {
    int j = blockIdx.x * blockDim.x + threadIdx.x, i = (blockIdx.y * blockDim.y + threadIdx.y) * 4;
    if (i + 3 >= n || j >= n) return;
    float sums[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    for (int k = 0; k < m; k++) {
        float right = a[j * m + k];
#pragma unroll
        for (int q = 0; q < 4; q++) sums[q] += a[(i + q) * m + k] * right;
    }
#pragma unroll
    for (int q = 0; q < 4; q++) c[(i + q) * n + j] = beta * c[(i + q) * n + j] + alpha * sums[q];
}
