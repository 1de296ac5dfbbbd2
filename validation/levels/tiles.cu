// A product of square matrices in tiles of 64 x 64, whose blocks stand on one axis and number their tiles themselves.
// Compiled with: nvcc -arch=sm_75 -ptx -o tiles.ptx tiles.cu

#define TILE 64
#define DEPTH 16

__device__ void tile(const float *a, const float *b, float *c, int n, int row, int column)
{
    __shared__ float of_a[DEPTH][TILE], of_b[DEPTH][TILE];
    int t = threadIdx.x, x = t % 16, y = t / 16;
    float sum[4][4] = {};
    for (int k = 0; k < n; k += DEPTH) {
        for (int i = t; i < TILE * DEPTH; i += 256) {
            of_a[i % DEPTH][i / DEPTH] = a[(row * TILE + i / DEPTH) * n + k + i % DEPTH];
            of_b[i / TILE][i % TILE] = b[(k + i / TILE) * n + column * TILE + i % TILE];
        }
        __syncthreads();
        for (int q = 0; q < DEPTH; q++)
            for (int i = 0; i < 4; i++)
                for (int j = 0; j < 4; j++)
                    sum[i][j] += of_a[q][y * 4 + i] * of_b[q][x * 4 + j];
        __syncthreads();
    }
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++)
            c[(row * TILE + y * 4 + i) * n + column * TILE + x * 4 + j] = sum[i][j];
}

// Row after row of tiles.
extern "C" __global__ void product_rows(const float *a, const float *b, float *c, int n)
{
    int columns = n / TILE;
    tile(a, b, c, n, blockIdx.x / columns, blockIdx.x % columns);
}

// Column after column of eight rows, then the next eight rows, as Triton's tutorial numbers them.
extern "C" __global__ void product_groups(const float *a, const float *b, float *c, int n)
{
    int columns = n / TILE, group = 8 * columns, first = blockIdx.x / group * 8, rows = min(columns - first, 8);
    tile(a, b, c, n, first + blockIdx.x % group % rows, blockIdx.x % group / rows);
}
