// One element of a vector or of a square matrix a thread: the kernels of kepler_microapps.csv, by their description.
// kepler.ptx is made from this with:  nvcc -ptx -arch=sm_75 kepler.cu -o kepler.ptx

extern "C" {

__global__ void vectorAdd(const float *a, const float *b, float *c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}

__global__ void matrix_sum_coalesced(const float *a, const float *b, float *c, int n) {
  int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && j < n) c[i * n + j] = a[i * n + j] + b[i * n + j];
}

__global__ void matrix_sum_normal(const float *a, const float *b, float *c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
  if (i < n && j < n) c[i * n + j] = a[i * n + j] + b[i * n + j];
}

__device__ __forceinline__ void multiply(const float *a, const float *b, float *c, int n, int row, int column) {
  if (row >= n || column >= n) return;
  float sum = 0;
  for (int k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + column];
  c[row * n + column] = sum;
}

__global__ void matMul_gpu(const float *a, const float *b, float *c, int n) {
  multiply(a, b, c, n, blockIdx.y * blockDim.y + threadIdx.y, blockIdx.x * blockDim.x + threadIdx.x);
}

__global__ void matMul_gpu_uncoalesced(const float *a, const float *b, float *c, int n) {
  multiply(a, b, c, n, blockIdx.x * blockDim.x + threadIdx.x, blockIdx.y * blockDim.y + threadIdx.y);
}
}

// Tiles of both operands in shared memory, two barriers a tile. TURNED: x and y swapped in every index.
template <bool TURNED>
__device__ __forceinline__ void tiled(const float *a, const float *b, float *c, int n) {
  __shared__ float as[16][16], bs[16][16];
  int tx = TURNED ? threadIdx.y : threadIdx.x, ty = TURNED ? threadIdx.x : threadIdx.y;
  int bx = TURNED ? blockIdx.y : blockIdx.x, by = TURNED ? blockIdx.x : blockIdx.y;
  int row = by * 16 + ty, column = bx * 16 + tx;
  float sum = 0;
  for (int t = 0; t < n / 16; ++t) {
    as[ty][tx] = a[row * n + t * 16 + tx];
    bs[ty][tx] = b[(t * 16 + ty) * n + column];
    __syncthreads();
    for (int k = 0; k < 16; ++k) sum += as[ty][k] * bs[k][tx];
    __syncthreads();
  }
  c[row * n + column] = sum;
}

extern "C" __global__ void matMul_gpu_sharedmem(const float *a, const float *b, float *c, int n) {
  tiled<false>(a, b, c, n);
}

extern "C" __global__ void matMul_gpu_sharedmem_uncoalesced(const float *a, const float *b, float *c, int n) {
  tiled<true>(a, b, c, n);
}
