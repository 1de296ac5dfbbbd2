// Kernels whose blocks differ. Made into irregular.ptx by: nvcc -ptx -arch=compute_75 -o irregular.ptx irregular.cu

// Block b does b + 1 rounds of work: sorted, the longest last (or first).
extern "C" __global__ void triangular(float *out, int backwards) {
    int rounds = backwards ? gridDim.x - blockIdx.x : blockIdx.x + 1;
    float x = threadIdx.x;
    for (int i = 0; i < 4 * rounds; i++) x = x * 0.999f + 0.5f;
    out[blockIdx.x * blockDim.x + threadIdx.x] = x;
}

// One row a thread.
extern "C" __global__ void spmv(const int *first, const int *column, const float *value, const float *x, float *y,
                                int rows) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0;
    for (int i = first[row]; i < first[row + 1]; i++) sum += value[i] * x[column[i]];
    y[row] = sum;
}

extern "C" __global__ void mandelbrot(int *out, int width, int height, int most) {
    int px = blockIdx.x * blockDim.x + threadIdx.x, py = blockIdx.y * blockDim.y + threadIdx.y;
    float cx = 3.0f * px / width - 2.25f, cy = 2.4f * py / height - 1.2f, x = 0, y = 0;
    int i = 0;
    while (i < most && x * x + y * y < 4.0f) {
        float t = x * x - y * y + cx;
        y = 2 * x * y + cy;
        x = t;
        i++;
    }
    out[py * width + px] = i;
}

// One level of a breadth-first search: nodes at `level` visit their neighbours.
extern "C" __global__ void bfs(const int *first, const int *neighbour, int *depth, int nodes, int level) {
    int node = blockIdx.x * blockDim.x + threadIdx.x;
    if (node >= nodes || depth[node] != level) return;
    for (int i = first[node]; i < first[node + 1]; i++)
        if (depth[neighbour[i]] < 0) depth[neighbour[i]] = level + 1;
}

// Blocks at the boundary of the domain only copy; the others relax.
extern "C" __global__ void boundary(const float *in, float *out, int width) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    int at = y * width + x;
    if (y == 0 || y == gridDim.y - 1 || blockIdx.x == 0 || blockIdx.x == gridDim.x - 1) {
        out[at] = in[at];
        return;
    }
    float sum = 0;
    for (int k = -8; k <= 8; k++) sum += in[at + k] + in[at + (k & 1 ? width : -width)];
    out[at] = sum;
}

// Every block the same, except that the last is cut short.
extern "C" __global__ void plain(const float *in, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i] * 2.0f + 1.0f;
}
