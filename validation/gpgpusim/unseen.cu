// Kernels of kinds that the reference launches do not have, for hardware/tools/collectors.py: gathers, tables of
// constants, local arrays, bytes, doubles, atomics, divisions, vectors in shared memory, shuffles, early exits.
//
//   nvcc -arch=compute_75 -ptx -O3 unseen.cu, and .target sm_70, which is the simulated board's

extern "C" {

__global__ void matvec(const float *a, const float *x, float *y, int n) {  // a row a thread: 32 lines a load
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int col = 0; col < n; col++) sum += a[row * n + col] * x[col];
  y[row] = sum;
}

__global__ void nbody(const float4 *body, float4 *force, int n) {  // 16 B of shared memory that all lanes read
  __shared__ float4 tile[128];
  float4 own = body[blockIdx.x * blockDim.x + threadIdx.x];
  float x = 0, y = 0, z = 0;
  for (int first = 0; first < n; first += 128) {
    tile[threadIdx.x] = body[first + threadIdx.x];
    __syncthreads();
#pragma unroll 4
    for (int j = 0; j < 128; j++) {
      float dx = tile[j].x - own.x, dy = tile[j].y - own.y, dz = tile[j].z - own.z;
      float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + 1e-3f);
      float pull = tile[j].w * inverse * inverse * inverse;
      x += pull * dx, y += pull * dy, z += pull * dz;
    }
    __syncthreads();
  }
  force[blockIdx.x * blockDim.x + threadIdx.x] = make_float4(x, y, z, 0);
}

__global__ void scan(const int *in, int *out) {  // many barriers, half of the warps idle more and more
  __shared__ int sums[2][256];
  int t = threadIdx.x, at = 0;
  sums[0][t] = in[blockIdx.x * 256 + t];
  __syncthreads();
  for (int d = 1; d < 256; d <<= 1) {
    int sum = sums[at][t];
    if (t >= d) sum += sums[at][t - d];
    sums[1 - at][t] = sum;
    at = 1 - at;
    __syncthreads();
  }
  out[blockIdx.x * 256 + t] = sums[at][t];
}

__global__ void bitonic(int *data) {
  __shared__ int s[512];
  int t = threadIdx.x;
  int *own = data + blockIdx.x * 512;
  s[t] = own[t], s[t + 256] = own[t + 256];
  for (int k = 2; k <= 512; k <<= 1)
    for (int j = k >> 1; j > 0; j >>= 1) {
      __syncthreads();
      int i = 2 * t - (t & (j - 1)), a = s[i], b = s[i + j];
      if ((a > b) == ((i & k) == 0)) s[i] = b, s[i + j] = a;
    }
  __syncthreads();
  own[t] = s[t], own[t + 256] = s[t + 256];
}

__constant__ float weight[25];

__global__ void convolution(const float *in, float *out, int n) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < 2 || y < 2 || x >= n - 2 || y >= n - 2) return;
  float sum = 0;
  for (int j = -2; j <= 2; j++)
    for (int i = -2; i <= 2; i++) sum += in[(y + j) * n + x + i] * weight[(j + 2) * 5 + i + 2];
  out[y * n + x] = sum;
}

__global__ void blur(const unsigned char *in, unsigned char *out, int n) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < 1 || y < 1 || x >= n - 1 || y >= n - 1) return;
  int sum = 0;
  for (int j = -1; j <= 1; j++)
    for (int i = -1; i <= 1; i++) sum += in[(y + j) * n + x + i];
  out[y * n + x] = sum / 9;
}

__global__ void count(const int *in, int *bins, int n) {  // atomics of global memory
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&bins[in[i] & 63], 1);
}

__global__ void count_shared(const int *in, int *bins, int n) {
  __shared__ int own[64];
  if (threadIdx.x < 64) own[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&own[in[i] & 63], 1);
  __syncthreads();
  if (threadIdx.x < 64) atomicAdd(&bins[threadIdx.x], own[threadIdx.x]);
}

__global__ void gather(const float *in, const int *index, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float sum = 0;
  for (int k = 0; k < 4; k++) sum += in[index[i + k * n]];
  out[i] = sum;
}

__global__ void doubles(double a, const double *x, double *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i] * x[i] - a;
}

__global__ void collatz(const unsigned *in, unsigned *out, int n) {  // divergence, remainders
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned v = in[i] % 1000 + 1, steps = 0;
  while (v != 1 && steps < 40) v = v & 1 ? 3 * v + 1 : v / 2, steps++;
  out[i] = steps + v % 7;
}

__global__ void warp_sums(const float *in, float *out, int n) {
  __shared__ float of_warp[8];
  float sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += in[i];
  for (int d = 16; d; d >>= 1) sum += __shfl_down_sync(~0u, sum, d);
  if ((threadIdx.x & 31) == 0) of_warp[threadIdx.x >> 5] = sum;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  sum = threadIdx.x < 8 ? of_warp[threadIdx.x] : 0;
  for (int d = 4; d; d >>= 1) sum += __shfl_down_sync(~0u, sum, d);
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

__global__ void shortest(int *distance, int n, int k) {  // all blocks read one row
  int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y;
  int by_k = distance[i * n + k] + distance[k * n + j];
  if (by_k < distance[i * n + j]) distance[i * n + j] = by_k;
}

__global__ void local_array(const int *in, int *out) {
  int a[16], i = blockIdx.x * blockDim.x + threadIdx.x, at = in[i] & 15;
  for (int k = 0; k < 16; k++) a[k] = in[i] + k;
  for (int k = 0; k < 16; k++) at = a[at & 15] & 15, a[(at + k) & 15] = k;
  out[i] = at + a[in[i] & 15];
}

__global__ void hotspot(const float *heat, const float *power, float *out, int n) {
  __shared__ float s[18][18];
  int tx = threadIdx.x, ty = threadIdx.y, x = blockIdx.x * 16 + tx, y = blockIdx.y * 16 + ty;
  s[ty + 1][tx + 1] = heat[y * n + x];
  if (tx == 0) s[ty + 1][0] = heat[y * n + max(x - 1, 0)];
  if (tx == 15) s[ty + 1][17] = heat[y * n + min(x + 1, n - 1)];
  if (ty == 0) s[0][tx + 1] = heat[max(y - 1, 0) * n + x];
  if (ty == 15) s[17][tx + 1] = heat[min(y + 1, n - 1) * n + x];
  __syncthreads();
  float c = s[ty + 1][tx + 1], across = s[ty + 1][tx] + s[ty + 1][tx + 2], along = s[ty][tx + 1] + s[ty + 2][tx + 1];
  out[y * n + x] = c + 0.1f * (power[y * n + x] + (along - 2 * c) * 0.3f + (across - 2 * c) * 0.2f + (80.f - c) * 0.05f);
}

__global__ void logarithms(const float *price, const float *strike, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float root = sqrtf(strike[i]), d = (logf(price[i] / strike[i]) + 0.065f * strike[i]) / (0.3f * root);
  float k = 1.f / (1.f + 0.2316419f * fabsf(d));
  float c = 0.39894f * expf(-0.5f * d * d) * k * (0.3193f + k * (-0.3565f + k * (1.7814f + k * (-1.8212f + k * 1.3302f))));
  out[i] = price[i] * (d > 0 ? 1.f - c : c);
}

__global__ void life(const int *in, int *out, int n) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, living = 0;
  for (int j = -1; j <= 1; j++)
    for (int i = -1; i <= 1; i++)
      if (i | j) living += in[(y + j + n) % n * n + (x + i + n) % n];
  out[y * n + x] = living == 3 || (in[y * n + x] && living == 2);
}

__global__ void pathfinder(const int *wall, const int *from, int *to, int columns, int rows) {
  __shared__ int before[256];
  int t = threadIdx.x, x = blockIdx.x * 256 + t;
  before[t] = from[x];
  __syncthreads();
  for (int r = 0; r < rows; r++) {
    int least = min(before[t], min(before[max(t - 1, 0)], before[min(t + 1, 255)])) + wall[r * columns + x];
    __syncthreads();
    before[t] = least;
    __syncthreads();
  }
  to[x] = before[t];
}

__global__ void fft(float2 *data) {  // strides of powers of two in shared memory, sines
  __shared__ float2 s[256];
  int t = threadIdx.x;
  float2 *own = data + blockIdx.x * 256;
  s[__brev(t) >> 24] = own[t];
  s[__brev(t + 128) >> 24] = own[t + 128];
  __syncthreads();
  for (int half = 1; half < 256; half <<= 1) {
    int k = t & (half - 1), i = ((t - k) << 1) + k;
    float angle = -3.14159265f * k / half, c = __cosf(angle), d = __sinf(angle);
    float2 u = s[i], v = s[i + half];
    float2 w = make_float2(v.x * c - v.y * d, v.x * d + v.y * c);
    s[i] = make_float2(u.x + w.x, u.y + w.y);
    s[i + half] = make_float2(u.x - w.x, u.y - w.y);
    __syncthreads();
  }
  own[t] = s[t], own[t + 128] = s[t + 128];
}

__global__ void heat(const double *a, double *b, int n) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x > 0 && y > 0 && x < n - 1 && y < n - 1)
    b[y * n + x] = a[y * n + x] + 0.1 * (a[y * n + x - 1] + a[y * n + x + 1] + a[y * n - n + x] + a[y * n + n + x] - 4.0 * a[y * n + x]);
}

__global__ void byte_histogram(const unsigned char *in, unsigned *bins, int n) {
  __shared__ unsigned own[8 * 64];
  for (int i = threadIdx.x; i < 512; i += 256) own[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) atomicAdd(&own[(threadIdx.x >> 5) * 64 + (in[i] >> 2)], 1u);
  __syncthreads();
  if (threadIdx.x >= 64) return;
  unsigned sum = 0;
  for (int k = 0; k < 8; k++) sum += own[k * 64 + threadIdx.x];
  atomicAdd(&bins[threadIdx.x], sum);
}

__global__ void eliminate(float *a, float *b, int n, int t) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= n - 1 - t || y >= n - t) return;
  float factor = a[n * (x + 1 + t) + t] / a[n * t + t];
  a[n * (x + 1 + t) + y + t] -= factor * a[n * t + y + t];
  if (y == 0) b[x + 1 + t] -= factor * b[t];
}

__global__ void sparse(const float *value, const int *column, const float *x, float *y, int n, int width) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float sum = 0;
  for (int j = 0; j < width; j++) sum += value[j * n + i] * x[column[j * n + i]];
  y[i] = sum;
}

__global__ void random_points(unsigned *out, int rounds) {
  unsigned seed = blockIdx.x * blockDim.x + threadIdx.x + 1, inside = 0;
  for (int i = 0; i < rounds; i++) {
    seed = seed * 1664525u + 1013904223u;
    float x = (seed >> 8) * (1.f / 16777216.f);
    seed = seed * 1664525u + 1013904223u;
    float y = (seed >> 8) * (1.f / 16777216.f);
    if (x * x + y * y < 1.f) inside++;
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = inside;
}

__global__ void tiled_product(const float *a, const float *b, float *c, int n) {  // 4 x 4 in registers, vectors of 16 B
  __shared__ float ta[16][64], tb[16][64];
  int tx = threadIdx.x & 15, ty = threadIdx.x >> 4;
  float sum[4][4] = {};
  for (int first = 0; first < n; first += 16) {
    for (int i = threadIdx.x; i < 1024; i += 256) {
      ta[i & 15][i >> 4] = a[(blockIdx.y * 64 + (i >> 4)) * n + first + (i & 15)];
      tb[i >> 6][i & 63] = b[(first + (i >> 6)) * n + blockIdx.x * 64 + (i & 63)];
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 16; k++) {
      float4 u = *(float4 *)&ta[k][ty * 4], v = *(float4 *)&tb[k][tx * 4];
      float us[4] = {u.x, u.y, u.z, u.w}, vs[4] = {v.x, v.y, v.z, v.w};
      for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) sum[i][j] += us[i] * vs[j];
    }
    __syncthreads();
  }
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 4; j++) c[(blockIdx.y * 64 + ty * 4 + i) * n + blockIdx.x * 64 + tx * 4 + j] = sum[i][j];
}
}
