// C = alpha A B + beta C in several ways: the kernels of sgemm_ladder.csv, by their description. Row-major matrices of
// side n, a multiple of every tile.
// sgemm.ptx is made from this with:  nvcc -ptx -arch=sm_80 sgemm.cu -o sgemm.ptx

#define ARGUMENTS int n, float alpha, const float *a, const float *b, float beta, float *c

__device__ __forceinline__ void dot(int n, float alpha, const float *a, const float *b, float beta, float *c, int row,
                                    int column) {
  if (row >= n || column >= n) return;
  float sum = 0;
  for (int k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + column];
  c[row * n + column] = alpha * sum + beta * c[row * n + column];
}

extern "C" {

// --- one result a thread ---------------------------------------------------------------------------------------

// The row from x: neighbouring threads read a column of A.
__global__ void row_from_x(ARGUMENTS) {
  dot(n, alpha, a, b, beta, c, blockIdx.x * blockDim.x + threadIdx.x, blockIdx.y * blockDim.y + threadIdx.y);
}

__global__ void column_from_x(ARGUMENTS) {
  dot(n, alpha, a, b, beta, c, blockIdx.y * blockDim.y + threadIdx.y, blockIdx.x * blockDim.x + threadIdx.x);
}

// 1024 threads in a row cover a 32x32 tile of C.
__global__ void coalesced(ARGUMENTS) {
  dot(n, alpha, a, b, beta, c, blockIdx.x * 32 + threadIdx.x / 32, blockIdx.y * 32 + threadIdx.x % 32);
}

__global__ void shared32(ARGUMENTS) {
  __shared__ float as[32 * 32], bs[32 * 32];
  int ty = threadIdx.x / 32, tx = threadIdx.x % 32;
  a += blockIdx.x * 32 * n;
  b += blockIdx.y * 32;
  c += blockIdx.x * 32 * n + blockIdx.y * 32;
  float sum = 0;
  for (int t = 0; t < n; t += 32) {
    as[ty * 32 + tx] = a[ty * n + tx];
    bs[ty * 32 + tx] = b[ty * n + tx];
    __syncthreads();
    a += 32;
    b += 32 * n;
    for (int k = 0; k < 32; ++k) sum += as[ty * 32 + k] * bs[k * 32 + tx];
    __syncthreads();
  }
  c[ty * n + tx] = alpha * sum + beta * c[ty * n + tx];
}

__global__ void tiled16(ARGUMENTS) {
  __shared__ float as[16][16], bs[16][16];
  int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * 16 + ty, column = blockIdx.x * 16 + tx;
  float sum = 0;
  for (int t = 0; t < n; t += 16) {
    as[ty][tx] = a[row * n + t + tx];
    bs[ty][tx] = b[(t + ty) * n + column];
    __syncthreads();
    for (int k = 0; k < 16; ++k) sum += as[ty][k] * bs[k][tx];
    __syncthreads();
  }
  c[row * n + column] = alpha * sum + beta * c[row * n + column];
}

// --- several results a thread ----------------------------------------------------------------------------------

// 2x2 results a thread; tiles of 32x16 and 16x32.
__global__ void micro2x2(ARGUMENTS) {
  __shared__ float as[32][16], bs[16][32];
  int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * 32, column = blockIdx.x * 32;
  float sum[2][2] = {};
  for (int t = 0; t < n; t += 16) {
    for (int i = 0; i < 2; ++i) {
      as[ty + 16 * i][tx] = a[(row + ty + 16 * i) * n + t + tx];
      bs[ty][tx + 16 * i] = b[(t + ty) * n + column + tx + 16 * i];
    }
    __syncthreads();
    for (int k = 0; k < 16; ++k)
      for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 2; ++j) sum[i][j] += as[ty + 16 * i][k] * bs[k][tx + 16 * j];
    __syncthreads();
  }
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2; ++j) {
      float *at = c + (row + ty + 16 * i) * n + column + tx + 16 * j;
      *at = alpha * sum[i][j] + beta * *at;
    }
}

// 4 results in a column a thread; tiles of 64x16 and 16x16.
__global__ void micro4x1(ARGUMENTS) {
  __shared__ float as[64][16], bs[16][16];
  int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * 64, column = blockIdx.x * 16 + tx;
  float sum[4] = {};
  for (int t = 0; t < n; t += 16) {
    for (int i = 0; i < 4; ++i) as[ty + 16 * i][tx] = a[(row + ty + 16 * i) * n + t + tx];
    bs[ty][tx] = b[(t + ty) * n + column];
    __syncthreads();
    for (int k = 0; k < 16; ++k)
      for (int i = 0; i < 4; ++i) sum[i] += as[ty + 16 * i][k] * bs[k][tx];
    __syncthreads();
  }
  for (int i = 0; i < 4; ++i) {
    float *at = c + (row + ty + 16 * i) * n + column;
    *at = alpha * sum[i] + beta * *at;
  }
}

// 8 results in a column a thread; 64x64 tile of C, 8 deep; 512 threads in a row.
__global__ void tiling1d(ARGUMENTS) {
  __shared__ float as[64 * 8], bs[8 * 64];
  int tx = threadIdx.x % 64, ty = threadIdx.x / 64;
  int ax = threadIdx.x % 8, ay = threadIdx.x / 8, bx = threadIdx.x % 64, by = threadIdx.x / 64;
  a += blockIdx.y * 64 * n;
  b += blockIdx.x * 64;
  c += blockIdx.y * 64 * n + blockIdx.x * 64;
  float sum[8] = {};
  for (int t = 0; t < n; t += 8) {
    as[ay * 8 + ax] = a[ay * n + ax];
    bs[by * 64 + bx] = b[by * n + bx];
    __syncthreads();
    a += 8;
    b += 8 * n;
    for (int k = 0; k < 8; ++k) {
      float value = bs[k * 64 + tx];
      for (int i = 0; i < 8; ++i) sum[i] += as[(ty * 8 + i) * 8 + k] * value;
    }
    __syncthreads();
  }
  for (int i = 0; i < 8; ++i) {
    float *at = c + (ty * 8 + i) * n + tx;
    *at = alpha * sum[i] + beta * *at;
  }
}

// 8x8 results a thread; 128x128 tile of C, 8 deep; 256 threads in a row.
__global__ void __launch_bounds__(256) tiling2d(ARGUMENTS) {
  __shared__ float as[128 * 8], bs[8 * 128];
  int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  int ax = threadIdx.x % 8, ay = threadIdx.x / 8, bx = threadIdx.x % 128, by = threadIdx.x / 128;
  a += blockIdx.y * 128 * n;
  b += blockIdx.x * 128;
  c += blockIdx.y * 128 * n + blockIdx.x * 128;
  float sum[8][8] = {}, left[8], right[8];
  for (int t = 0; t < n; t += 8) {
    for (int i = 0; i < 128; i += 32) as[(ay + i) * 8 + ax] = a[(ay + i) * n + ax];
    for (int i = 0; i < 8; i += 2) bs[(by + i) * 128 + bx] = b[(by + i) * n + bx];
    __syncthreads();
    a += 8;
    b += 8 * n;
    for (int k = 0; k < 8; ++k) {
      for (int i = 0; i < 8; ++i) left[i] = as[(ty * 8 + i) * 8 + k];
      for (int j = 0; j < 8; ++j) right[j] = bs[k * 128 + tx * 8 + j];
      for (int i = 0; i < 8; ++i)
        for (int j = 0; j < 8; ++j) sum[i][j] += left[i] * right[j];
    }
    __syncthreads();
  }
  for (int i = 0; i < 8; ++i)
    for (int j = 0; j < 8; ++j) {
      float *at = c + (ty * 8 + i) * n + tx * 8 + j;
      *at = alpha * sum[i][j] + beta * *at;
    }
}

// The same with 128-bit accesses; A transposed in shared memory.
__global__ void __launch_bounds__(256) vectorised(ARGUMENTS) {
  __shared__ __align__(16) float as[8 * 128];
  __shared__ __align__(16) float bs[8 * 128];
  int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  int ax = threadIdx.x % 2, ay = threadIdx.x / 2, bx = threadIdx.x % 32, by = threadIdx.x / 32;
  a += blockIdx.y * 128 * n;
  b += blockIdx.x * 128;
  c += blockIdx.y * 128 * n + blockIdx.x * 128;
  float sum[8][8] = {}, left[8], right[8];
  for (int t = 0; t < n; t += 8) {
    float4 four = *reinterpret_cast<const float4 *>(a + ay * n + ax * 4);
    as[(ax * 4 + 0) * 128 + ay] = four.x;
    as[(ax * 4 + 1) * 128 + ay] = four.y;
    as[(ax * 4 + 2) * 128 + ay] = four.z;
    as[(ax * 4 + 3) * 128 + ay] = four.w;
    *reinterpret_cast<float4 *>(bs + by * 128 + bx * 4) = *reinterpret_cast<const float4 *>(b + by * n + bx * 4);
    __syncthreads();
    a += 8;
    b += 8 * n;
    for (int k = 0; k < 8; ++k) {
      for (int i = 0; i < 8; ++i) left[i] = as[k * 128 + ty * 8 + i];
      for (int j = 0; j < 8; ++j) right[j] = bs[k * 128 + tx * 8 + j];
      for (int i = 0; i < 8; ++i)
        for (int j = 0; j < 8; ++j) sum[i][j] += left[i] * right[j];
    }
    __syncthreads();
  }
  for (int i = 0; i < 8; ++i)
    for (int j = 0; j < 8; j += 4) {
      float4 *at = reinterpret_cast<float4 *>(c + (ty * 8 + i) * n + tx * 8 + j);
      float4 old = *at;
      old.x = alpha * sum[i][j] + beta * old.x;
      old.y = alpha * sum[i][j + 1] + beta * old.y;
      old.z = alpha * sum[i][j + 2] + beta * old.z;
      old.w = alpha * sum[i][j + 3] + beta * old.w;
      *at = old;
    }
}
}
