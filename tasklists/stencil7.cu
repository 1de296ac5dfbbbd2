// 7-point stencil on an nx x ny x nz grid (x fastest), naive: every thread reads its seven points from memory.
// Threads run along x and y; each walks down z. The faces of the box are not written.
extern "C" __global__ void stencil7(const float *in, float *out, int nx, int ny, int nz, float c0, float c1)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || y < 1 || x >= nx - 1 || y >= ny - 1)
        return;
    int plane = nx * ny;
    for (int z = 1; z < nz - 1; z++) {
        int i = z * plane + y * nx + x;
        out[i] = c1 * (in[i - 1] + in[i + 1] + in[i - nx] + in[i + nx] + in[i - plane] + in[i + plane])
                 + c0 * in[i];
    }
}
