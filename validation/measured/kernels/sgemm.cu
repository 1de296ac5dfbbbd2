// C = A B in several ways: the kernels of sgemm_ladder.csv, with the types of the indices and the guards that the sources
// have, since machine code depends on them (PROVENANCE.md). Row-major matrices, m x k and k x n, multiples of every tile.
// sgemm.ptx is made from this with:  nvcc -ptx -arch=sm_80 sgemm.cu -o sgemm.ptx

#define SCALED int m, int n, int k, float alpha, const float *a, const float *b, float beta, float *c

extern "C" {

// --- RTX A6000: C = alpha A B + beta C, one result a thread --------------------------------------------------------

// The row from x: neighbouring threads read a column of A.
__global__ void row_from_x(SCALED) {
  unsigned row = blockIdx.x * blockDim.x + threadIdx.x, column = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= m || column >= n) return;
  float sum = 0;
  for (int i = 0; i < k; ++i) sum += a[row * k + i] * b[i * n + column];
  c[row * n + column] = alpha * sum + beta * c[row * n + column];
}

// 1024 threads in a row cover a 32x32 tile of C.
__global__ void coalesced(SCALED) {
  int row = blockIdx.x * 32u + threadIdx.x / 32u, column = blockIdx.y * 32u + threadIdx.x % 32u;
  if (row >= m || column >= n) return;
  float sum = 0;
  for (int i = 0; i < k; ++i) sum += a[row * k + i] * b[i * n + column];
  c[row * n + column] = alpha * sum + beta * c[row * n + column];
}

__global__ void shared32(SCALED) {
  __shared__ float as[32 * 32], bs[32 * 32];
  unsigned ty = threadIdx.x / 32, tx = threadIdx.x % 32;
  a += blockIdx.x * 32 * k;
  b += blockIdx.y * 32;
  c += blockIdx.x * 32 * n + blockIdx.y * 32;
  float sum = 0;
  for (int t = 0; t < k; t += 32) {
    as[ty * 32 + tx] = a[ty * k + tx];
    bs[ty * 32 + tx] = b[ty * n + tx];
    __syncthreads();
    a += 32;
    b += 32 * n;
    for (int i = 0; i < 32; ++i) sum += as[ty * 32 + i] * bs[i * 32 + tx];
    __syncthreads();
  }
  c[ty * n + tx] = alpha * sum + beta * c[ty * n + tx];
}

// --- several results a thread ----------------------------------------------------------------------------------

// 8 results in a column a thread; 64x64 tile of C, 8 deep; 512 threads in a row.
__global__ void tiling1d(SCALED) {
  __shared__ float as[64 * 8], bs[8 * 64];
  int tx = threadIdx.x % 64, ty = threadIdx.x / 64;
  unsigned ax = threadIdx.x % 8, ay = threadIdx.x / 8, bx = threadIdx.x % 64, by = threadIdx.x / 64;
  a += blockIdx.y * 64 * k;
  b += blockIdx.x * 64;
  c += blockIdx.y * 64 * n + blockIdx.x * 64;
  float sum[8] = {};
  for (unsigned t = 0; t < k; t += 8) {
    as[ay * 8 + ax] = a[ay * k + ax];
    bs[by * 64 + bx] = b[by * n + bx];
    __syncthreads();
    a += 8;
    b += 8 * n;
    for (unsigned i = 0; i < 8; ++i) {
      float value = bs[i * 64 + tx];
      for (unsigned r = 0; r < 8; ++r) sum[r] += as[(ty * 8 + r) * 8 + i] * value;
    }
    __syncthreads();
  }
  for (unsigned r = 0; r < 8; ++r)
    c[(ty * 8 + r) * n + tx] = alpha * sum[r] + beta * c[(ty * 8 + r) * n + tx];
}

// 8x8 results a thread; 128x128 tile of C, 8 deep; 256 threads in a row.
__global__ void __launch_bounds__(256, 1) tiling2d(SCALED) {
  __shared__ float as[128 * 8], bs[8 * 128];
  int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  unsigned ay = threadIdx.x / 8, ax = threadIdx.x % 8, by = threadIdx.x / 128, bx = threadIdx.x % 128;
  a += blockIdx.y * 128 * k;
  b += blockIdx.x * 128;
  c += blockIdx.y * 128 * n + blockIdx.x * 128;
  float sum[64] = {}, left[8] = {}, right[8] = {};
  for (unsigned t = 0; t < k; t += 8) {
    for (unsigned i = 0; i < 128; i += 32) as[(ay + i) * 8 + ax] = a[(ay + i) * k + ax];
    for (unsigned i = 0; i < 8; i += 2) bs[(by + i) * 128 + bx] = b[(by + i) * n + bx];
    __syncthreads();
    a += 8;
    b += 8 * n;
    for (unsigned d = 0; d < 8; ++d) {
      for (unsigned i = 0; i < 8; ++i) left[i] = as[(ty * 8 + i) * 8 + d];
      for (unsigned j = 0; j < 8; ++j) right[j] = bs[d * 128 + tx * 8 + j];
      for (unsigned i = 0; i < 8; ++i)
        for (unsigned j = 0; j < 8; ++j) sum[i * 8 + j] += left[i] * right[j];
    }
    __syncthreads();
  }
  for (unsigned i = 0; i < 8; ++i)
    for (unsigned j = 0; j < 8; ++j)
      c[(ty * 8 + i) * n + tx * 8 + j] = alpha * sum[i * 8 + j] + beta * c[(ty * 8 + i) * n + tx * 8 + j];
}

// The same with 128-bit accesses; A transposed in shared memory.
__global__ void vectorised(int m, int n, int k, float alpha, float *a, float *b, float beta, float *c) {
  __shared__ float as[8 * 128], bs[8 * 128];
  int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  unsigned ay = threadIdx.x / 2, ax = threadIdx.x % 2, by = threadIdx.x / 32, bx = threadIdx.x % 32;
  a += blockIdx.y * 128 * k;
  b += blockIdx.x * 128;
  c += blockIdx.y * 128 * n + blockIdx.x * 128;
  float sum[64] = {}, left[8] = {}, right[8] = {};
  for (unsigned t = 0; t < k; t += 8) {
    float4 four = *reinterpret_cast<float4 *>(&a[ay * k + ax * 4]);
    as[(ax * 4 + 0) * 128 + ay] = four.x;
    as[(ax * 4 + 1) * 128 + ay] = four.y;
    as[(ax * 4 + 2) * 128 + ay] = four.z;
    as[(ax * 4 + 3) * 128 + ay] = four.w;
    *reinterpret_cast<float4 *>(&bs[by * 128 + bx * 4]) = *reinterpret_cast<float4 *>(&b[by * n + bx * 4]);
    __syncthreads();
    a += 8;
    b += 8 * n;
    for (unsigned d = 0; d < 8; ++d) {
      for (unsigned i = 0; i < 8; ++i) left[i] = as[d * 128 + ty * 8 + i];
      for (unsigned j = 0; j < 8; ++j) right[j] = bs[d * 128 + tx * 8 + j];
      for (unsigned i = 0; i < 8; ++i)
        for (unsigned j = 0; j < 8; ++j) sum[i * 8 + j] += left[i] * right[j];
    }
    __syncthreads();
  }
  for (unsigned i = 0; i < 8; ++i)
    for (unsigned j = 0; j < 8; j += 4) {
      float4 *at = reinterpret_cast<float4 *>(&c[(ty * 8 + i) * n + tx * 8 + j]);
      float4 old = *at;
      old.x = alpha * sum[i * 8 + j] + beta * old.x;
      old.y = alpha * sum[i * 8 + j + 1] + beta * old.y;
      old.z = alpha * sum[i * 8 + j + 2] + beta * old.z;
      old.w = alpha * sum[i * 8 + j + 3] + beta * old.w;
      *at = old;
    }
}

// --- A100: C = A B, sides of 64 bits, every access guarded -----------------------------------------------------------

typedef unsigned long long wide;

#define WIDE const float *a, const float *b, float *c, wide m, wide k, wide n

__global__ void column_from_x(WIDE) {
  wide column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= m || column >= n) return;
  float sum = 0;
  for (wide i = 0; i < k; ++i) sum += a[row * k + i] * b[i * n + column];
  c[row * n + column] = sum;
}

__global__ void tiled16(WIDE) {
  __shared__ float as[16][16], bs[16][16];
  wide column = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 16 + threadIdx.y;
  float sum = 0;
  for (wide t = 0; t < k; t += 16) {
    wide across = t + threadIdx.x, down = t + threadIdx.y;
    as[threadIdx.y][threadIdx.x] = row < m && across < k ? a[row * k + across] : 0;
    bs[threadIdx.y][threadIdx.x] = down < k && column < n ? b[down * n + column] : 0;
    __syncthreads();
#pragma unroll
    for (unsigned i = 0; i < 16; ++i) sum += as[threadIdx.y][i] * bs[i][threadIdx.x];
    __syncthreads();
  }
  if (row < m && column < n) c[row * n + column] = sum;
}

// 2x2 results a thread; tiles of 32x16 and 16x32.
__global__ void micro2x2(WIDE) {
  __shared__ float as[32][16], bs[16][32];
  wide top = blockIdx.y * 32 + threadIdx.y, low = top + 16, left = blockIdx.x * 32 + threadIdx.x, right = left + 16;
  float sum00 = 0, sum01 = 0, sum10 = 0, sum11 = 0;
  for (wide t = 0; t < k; t += 16) {
    wide across = t + threadIdx.x, down = t + threadIdx.y;
    as[threadIdx.y][threadIdx.x] = top < m && across < k ? a[top * k + across] : 0;
    as[threadIdx.y + 16][threadIdx.x] = low < m && across < k ? a[low * k + across] : 0;
    bs[threadIdx.y][threadIdx.x] = down < k && left < n ? b[down * n + left] : 0;
    bs[threadIdx.y][threadIdx.x + 16] = down < k && right < n ? b[down * n + right] : 0;
    __syncthreads();
#pragma unroll
    for (unsigned i = 0; i < 16; ++i) {
      float a0 = as[threadIdx.y][i], a1 = as[threadIdx.y + 16][i];
      float b0 = bs[i][threadIdx.x], b1 = bs[i][threadIdx.x + 16];
      sum00 += a0 * b0;
      sum01 += a0 * b1;
      sum10 += a1 * b0;
      sum11 += a1 * b1;
    }
    __syncthreads();
  }
  if (top < m && left < n) c[top * n + left] = sum00;
  if (top < m && right < n) c[top * n + right] = sum01;
  if (low < m && left < n) c[low * n + left] = sum10;
  if (low < m && right < n) c[low * n + right] = sum11;
}

// 4 results in a column a thread; tiles of 64x16 and 16x16.
__global__ void micro4x1(WIDE) {
  __shared__ float as[64][16], bs[16][16];
  wide top = blockIdx.y * 4 * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
  float sums[4] = {};
  for (wide t = 0; t < k; t += 16) {
    wide across = t + threadIdx.x, down = t + threadIdx.y;
#pragma unroll
    for (unsigned r = 0; r < 4; ++r) {
      wide row = top + r * 16;
      as[threadIdx.y + r * 16][threadIdx.x] = row < m && across < k ? a[row * k + across] : 0;
    }
    bs[threadIdx.y][threadIdx.x] = down < k && column < n ? b[down * n + column] : 0;
    __syncthreads();
#pragma unroll
    for (unsigned i = 0; i < 16; ++i) {
      float value = bs[i][threadIdx.x];
#pragma unroll
      for (unsigned r = 0; r < 4; ++r) sums[r] += as[threadIdx.y + r * 16][i] * value;
    }
    __syncthreads();
  }
#pragma unroll
  for (unsigned r = 0; r < 4; ++r) {
    wide row = top + r * 16;
    if (row < m && column < n) c[row * n + column] = sums[r];
  }
}
}
