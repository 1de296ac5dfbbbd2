// Linear algebra: a perimeter of LU, matrix-vector products, transposes of vectors, a sparse product.

extern "C" __global__ void lu_perimeter(float* m, int size, int offset) {
    __shared__ float diagonal[16][16];
    __shared__ float row[16][16];
    __shared__ float column[16][16];
    int t = threadIdx.x & 15, base = offset * size + offset, far = (blockIdx.x + 1) * 16;
    if (threadIdx.x < 16) {
        for (int i = 0; i < 16; i++) diagonal[i][t] = m[base + i * size + t];
        for (int i = 0; i < 16; i++) row[i][t] = m[base + i * size + far + t];
    } else {
        for (int i = 0; i < 16; i++) column[i][t] = m[base + (far + i) * size + t];
    }
    __syncthreads();
    if (threadIdx.x < 16) {
        for (int i = 1; i < 16; i++)
            for (int j = 0; j < i; j++) row[i][t] -= diagonal[i][j] * row[j][t];
    } else {
        for (int i = 0; i < 16; i++) {
            for (int j = 0; j < i; j++) column[t][i] -= column[t][j] * diagonal[j][i];
            column[t][i] /= diagonal[i][i];
        }
    }
    __syncthreads();
    for (int i = 0; i < 16; i++) {
        if (threadIdx.x < 16) m[base + i * size + far + t] = row[i][t];
        else m[base + (far + i) * size + t] = column[i][t];
    }
}

extern "C" __global__ void gesummv(const double* a, const double* b, const double* x, double* y, double alpha, double beta, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double first = 0.0, second = 0.0;
    for (int j = 0; j < n; j++) {
        first += a[i * n + j] * x[j];
        second += b[i * n + j] * x[j];
    }
    y[i] = alpha * first + beta * second;
}

extern "C" __global__ void transpose_vectors(const float4* in, float4* out, int rows4, int columns4) {
    int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
    if (c >= columns4 || r >= rows4) return;
    const float4* from = in + (size_t)r * 4 * columns4 + c;
    float4 a = from[0], b = from[columns4], d = from[2 * columns4], e = from[3 * columns4];
    float4* to = out + (size_t)c * 4 * rows4 + r;
    to[0] = make_float4(a.x, b.x, d.x, e.x);
    to[rows4] = make_float4(a.y, b.y, d.y, e.y);
    to[2 * rows4] = make_float4(a.z, b.z, d.z, e.z);
    to[3 * rows4] = make_float4(a.w, b.w, d.w, e.w);
}

extern "C" __global__ void ell_product(const float* values, const int* columns, const float* x, float* y, int rows, int widest, int pitch) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int k = 0; k < widest; k++) {
        int column = columns[k * pitch + row];
        if (column >= 0) sum += values[k * pitch + row] * __ldg(x + column);
    }
    y[row] = sum;
}
