// C = A B of floats as the CUDA programming guide has it: a result a thread from device memory, and by tiles of 16 x 16 in shared
// memory; matrices with a width or stride of their own (members of structs there, parameters here). Measured on Maxwell (PROVENANCE.md). nvcc 13.0 -arch=compute_75 -ptx.

struct Matrix { int width; float* elements; };
struct Strided { int stride; float* elements; };

extern "C" __global__ void product(int aw, float* ae, int bw, float* be, int cw, float* ce) {
    Matrix a{aw, ae}, b{bw, be}, c{cw, ce};
    float sum = 0;
    int row = blockIdx.y * blockDim.y + threadIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
    for (int i = 0; i < a.width; ++i) sum += a.elements[row * a.width + i] * b.elements[i * b.width + column];
    c.elements[row * c.width + column] = sum;
}

extern "C" __global__ void product_tiled(int width, int as_, float* ae, int bs_, float* be, int cs_, float* ce) {
    Strided a{as_, ae}, b{bs_, be}, c{cs_, ce};
    int row = threadIdx.y, column = threadIdx.x;
    float* to = &c.elements[c.stride * 16 * (int)blockIdx.y + 16 * (int)blockIdx.x];
    float sum = 0;
    for (int t = 0; t < width / 16; ++t) {
        float* left = &a.elements[a.stride * 16 * (int)blockIdx.y + 16 * t];
        float* right = &b.elements[b.stride * 16 * t + 16 * (int)blockIdx.x];
        __shared__ float as[16][16], bs[16][16];
        as[row][column] = left[row * a.stride + column];
        bs[row][column] = right[row * b.stride + column];
        __syncthreads();
        for (int i = 0; i < 16; ++i) sum += as[row][i] * bs[i][column];
        __syncthreads();
    }
    to[row * c.stride + column] = sum;
}
