// C = A B for row-major n x n matrices: 16 x 16 tiles of A and B in shared memory, one element of C a thread.
#define TILE 16

extern "C" __global__ void sgemm(const float *a, const float *b, float *c, int n)
{
    __shared__ float tile_a[TILE][TILE];
    __shared__ float tile_b[TILE][TILE];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * TILE + ty;
    int column = blockIdx.x * TILE + tx;
    float sum = 0.0f;
    for (int k = 0; k < n; k += TILE) {
        tile_a[ty][tx] = a[row * n + k + tx];
        tile_b[ty][tx] = b[(k + ty) * n + column];
        __syncthreads();
#pragma unroll
        for (int i = 0; i < TILE; i++)
            sum += tile_a[ty][i] * tile_b[i][tx];
        __syncthreads();
    }
    c[row * n + column] = sum;
}
