// Texture and surface objects as CUDA C++ uses them. Made with: nvcc -ptx -arch=sm_80 textures.cu
extern "C" __global__ void blur(cudaTextureObject_t image, float *out, int width)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    float sum = 0;
    for (int d = -1; d <= 1; ++d)
        sum += tex2D<float>(image, x + d + 0.5f, y + 0.5f);
    out[y * width + x] = sum;
}

extern "C" __global__ void lookup(cudaTextureObject_t table, const int *index, float4 *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = tex1Dfetch<float4>(table, index[i]);
}

extern "C" __global__ void invert(cudaSurfaceObject_t picture, int width)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x >= width)
        return;
    uchar4 p;
    surf2Dread(&p, picture, x * 4, y);
    surf2Dwrite(make_uchar4(255 - p.x, 255 - p.y, 255 - p.z, p.w), picture, x * 4, y);
}
