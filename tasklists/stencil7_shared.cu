// The 7-point stencil in 2.5 dimensions: a block keeps the current plane with its halo in shared memory, and each
// thread the points above and below in registers, so every point is loaded from memory about once.
#define BX 32
#define BY 8

extern "C" __global__ void stencil7_shared(const float *in, float *out, int nx, int ny, int nz, float c0, float c1)
{
    __shared__ float plane_now[BY + 2][BX + 2];
    int tx = threadIdx.x + 1, ty = threadIdx.y + 1;
    int x = blockIdx.x * BX + threadIdx.x;
    int y = blockIdx.y * BY + threadIdx.y;
    int plane = nx * ny;
    bool exists = x < nx && y < ny;
    bool inside = x >= 1 && y >= 1 && x < nx - 1 && y < ny - 1;
    int i = y * nx + x;
    float below = 0.0f, here = 0.0f, above = 0.0f;
    if (exists) {
        below = in[i];
        here = in[i + plane];
    }
    for (int z = 1; z < nz - 1; z++) {
        i += plane;
        if (exists)
            above = in[i + plane];
        plane_now[ty][tx] = here;
        if (tx == 1 && x > 0 && y < ny)
            plane_now[ty][0] = in[i - 1];
        if (tx == BX && x < nx - 1 && y < ny)
            plane_now[ty][BX + 1] = in[i + 1];
        if (ty == 1 && y > 0 && x < nx)
            plane_now[0][tx] = in[i - nx];
        if (ty == BY && y < ny - 1 && x < nx)
            plane_now[BY + 1][tx] = in[i + nx];
        __syncthreads();
        if (inside)
            out[i] = c1 * (plane_now[ty][tx - 1] + plane_now[ty][tx + 1] + plane_now[ty - 1][tx]
                           + plane_now[ty + 1][tx] + below + above) + c0 * here;
        __syncthreads();
        below = here;
        here = above;
    }
}
