// Grids along one axis that walk through data in another order than theirs.
// Compiled with: nvcc -arch=sm_75 -ptx -o line.ptx line.cu

// The five-point stencil of a picture `width` wide: the rows above and below belong to blocks further back and further on.
extern "C" __global__ void stencil(const float *__restrict__ in, float *out, int width, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, x = i % width;
    if (i < width || i >= n - width || x == 0 || x == width - 1)
        return;
    out[i] = 0.2f * (in[i] + in[i - 1] + in[i + 1] + in[i - width] + in[i + width]);
}

// A step of a transform: each element meets the one whose number differs in one bit.
extern "C" __global__ void butterfly(const float *__restrict__ in, float *out, int apart, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = i & apart ? in[i ^ apart] - in[i] : in[i] + in[i ^ apart];
}
