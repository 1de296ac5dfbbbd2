// Two of the three applications of the PPT paper (paper 003, section 4.1), by their description; the third, OPT_STENCIL,
// is tasklists/stencil7_shared.cu.
// kernels.ptx is made from this with:  nvcc -ptx -arch=sm_75 kernels.cu -o kernels.ptx

extern "C" {

// SGEMM, in the way of Volkov and Demmel (SC 2008): C = A B, column-major matrices of side n, a multiple of 64. A block
// of 16 x 4 threads makes 64 x 16 elements of C, a thread 16 of one row; A comes from memory, B from shared memory.
__global__ void sgemm(const float *a, const float *b, float *c, int n)
{
    __shared__ __align__(16) float tile[16][20];  // rows of whole 128-bit words, few banks in common
    int row = blockIdx.x * 64 + threadIdx.y * 16 + threadIdx.x;
    int column = blockIdx.y * 16;
    a += row;
    b += (column + threadIdx.y) * n + threadIdx.x;
    float sum[16] = {};
    for (int k = 0; k < n; k += 16) {
#pragma unroll
        for (int i = 0; i < 16; i += 4)
            tile[threadIdx.x][threadIdx.y + i] = b[i * n];
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 16; i++) {
            float x = a[i * n];
#pragma unroll
            for (int j = 0; j < 16; j++)
                sum[j] += x * tile[i][j];
        }
        a += 16 * n;
        b += 16;
        __syncthreads();
    }
    c += column * n + row;
#pragma unroll
    for (int j = 0; j < 16; j++)
        c[j * n] = sum[j];
}

// STENCIL: seven points, one point of the volume a thread, every point read from memory. The faces are not written.
__global__ void stencil(const float *in, float *out, int n, float c0, float c1)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    int z = blockIdx.z + 1;
    if (x < 1 || y < 1 || x >= n - 1 || y >= n - 1)
        return;
    int i = (z * n + y) * n + x;
    out[i] = c1 * (in[i - 1] + in[i + 1] + in[i - n] + in[i + n] + in[i - n * n] + in[i + n * n]) + c0 * in[i];
}

}
