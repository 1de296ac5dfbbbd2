// Kernels of Rodinia 3.1, Parboil and the CUDA samples that ../suites.csv has times of, written anew to what they do.
// Made with:  nvcc -ptx -arch=compute_75 suites.cu -o suites.ptx
#include <mma.h>

typedef unsigned int uint;
typedef unsigned char uchar;

extern "C" {

// --- CUDA samples: fastWalshTransform ---

// One radix-4 stage in global memory; N / 4 threads in all.
__global__ void walsh_global(float *data, int stride) {
  int thread = blockIdx.x * blockDim.x + threadIdx.x;
  int part = blockIdx.y * (blockDim.x * gridDim.x * 4);
  int low = thread & (stride - 1);
  int i0 = ((thread - low) << 2) + low;
  int i1 = i0 + stride, i2 = i1 + stride, i3 = i2 + stride;
  float *x = data + part;
  float a = x[i0], b = x[i1], c = x[i2], d = x[i3];
  float ac = a + c, bd = b + d, a_c = a - c, b_d = b - d;
  x[i0] = ac + bd;
  x[i1] = ac - bd;
  x[i2] = a_c + b_d;
  x[i3] = a_c - b_d;
}

// All stages of 2^log2n elements in shared memory: radix 4, at last one of radix 2 if log2n is odd; n / 4 threads.
__global__ void walsh_shared(float *data, int log2n) {
  extern __shared__ float s[];
  int n = 1 << log2n;
  float *x = data + (blockIdx.x << log2n);
  for (int i = threadIdx.x; i < n; i += blockDim.x) s[i] = x[i];
  int thread = threadIdx.x;
  for (int stride = n >> 2; stride > 0; stride >>= 2) {
    int low = thread & (stride - 1);
    int i0 = ((thread - low) << 2) + low;
    int i1 = i0 + stride, i2 = i1 + stride, i3 = i2 + stride;
    __syncthreads();
    float a = s[i0], b = s[i1], c = s[i2], d = s[i3];
    float ac = a + c, bd = b + d, a_c = a - c, b_d = b - d;
    s[i0] = ac + bd;
    s[i1] = ac - bd;
    s[i2] = a_c + b_d;
    s[i3] = a_c - b_d;
  }
  if (log2n & 1) {
    __syncthreads();
    for (int i = threadIdx.x; i < n / 2; i += blockDim.x) {
      int i0 = i << 1, i1 = i0 + 1;
      float a = s[i0], b = s[i1];
      s[i0] = a + b;
      s[i1] = a - b;
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) x[i] = s[i];
}

// --- CUDA samples: histogram, 64 bins ---

#define HISTOGRAM_THREADS 64

__device__ inline void count_byte(uchar *mine, uint bin) { mine[bin * HISTOGRAM_THREADS]++; }

__device__ inline void count_word(uchar *mine, uint word) {  // the upper six bits of each byte
  count_byte(mine, (word >> 2) & 63);
  count_byte(mine, (word >> 10) & 63);
  count_byte(mine, (word >> 18) & 63);
  count_byte(mine, (word >> 26) & 63);
}

// A histogram of bytes for each thread in shared memory, threads spread over banks; then one for the block.
__global__ void histogram64(uint *partial, const uint4 *data, uint count) {
  __shared__ uchar bins[HISTOGRAM_THREADS * 64];
  uint place = (threadIdx.x & ~63u) | ((threadIdx.x & 15) << 2) | ((threadIdx.x & 48) >> 4);
  uchar *mine = bins + place;
#pragma unroll
  for (uint i = 0; i < 16; i++) ((uint *)bins)[threadIdx.x + i * HISTOGRAM_THREADS] = 0;
  __syncthreads();
  for (uint i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += blockDim.x * gridDim.x) {
    uint4 four = data[i];
    count_word(mine, four.x);
    count_word(mine, four.y);
    count_word(mine, four.z);
    count_word(mine, four.w);
  }
  __syncthreads();
  if (threadIdx.x < 64) {
    uchar *bin = bins + threadIdx.x * HISTOGRAM_THREADS;
    uint sum = 0, at = 4 * (threadIdx.x & 15);
#pragma unroll
    for (uint i = 0; i < HISTOGRAM_THREADS / 4; i++) {
      sum += bin[at] + bin[at + 1] + bin[at + 2] + bin[at + 3];
      at = (at + 4) & (HISTOGRAM_THREADS - 1);
    }
    partial[blockIdx.x * 64 + threadIdx.x] = sum;
  }
}

// --- CUDA samples: mergeSort, the part in shared memory ---

#define SORTED 1024

// How many of the `count` sorted values stand before `value`; equal ones count if `inclusive`.
__device__ inline uint rank_of(uint value, const uint *sorted, uint count, uint stride, bool inclusive) {
  if (count == 0) return 0;
  uint rank = 0;
  for (; stride > 0; stride >>= 1) {
    uint next = umin(rank + stride, count);
    if (inclusive ? sorted[next - 1] <= value : sorted[next - 1] < value) rank = next;
  }
  return rank;
}

// Sorts each 1024 keys with their values: a thread finds the places of two keys in the other half of a merge.
__global__ void merge_sort_shared(uint *out_keys, uint *out_values, const uint *keys, const uint *values, uint length) {
  __shared__ uint s_key[SORTED];
  __shared__ uint s_value[SORTED];
  uint at = blockIdx.x * SORTED + threadIdx.x;
  s_key[threadIdx.x] = keys[at];
  s_value[threadIdx.x] = values[at];
  s_key[threadIdx.x + SORTED / 2] = keys[at + SORTED / 2];
  s_value[threadIdx.x + SORTED / 2] = values[at + SORTED / 2];
  for (uint stride = 1; stride < length; stride <<= 1) {
    uint low = threadIdx.x & (stride - 1);
    uint *key = s_key + 2 * (threadIdx.x - low);
    uint *value = s_value + 2 * (threadIdx.x - low);
    __syncthreads();
    uint key_a = key[low], value_a = value[low];
    uint key_b = key[low + stride], value_b = value[low + stride];
    uint place_a = rank_of(key_a, key + stride, stride, stride, false) + low;
    uint place_b = rank_of(key_b, key, stride, stride, true) + low;
    __syncthreads();
    key[place_a] = key_a;
    value[place_a] = value_a;
    key[place_b] = key_b;
    value[place_b] = value_b;
  }
  __syncthreads();
  out_keys[at] = s_key[threadIdx.x];
  out_values[at] = s_value[threadIdx.x];
  out_keys[at + SORTED / 2] = s_key[threadIdx.x + SORTED / 2];
  out_values[at + SORTED / 2] = s_value[threadIdx.x + SORTED / 2];
}

// --- CUDA samples: quasirandomGenerator ---

// Moro's approximation of the inverse of the cumulative normal distribution.
__device__ inline float inverse_normal_of(uint x) {
  bool negative = false;
  if (x >= 0x80000000UL) {
    x = 0xffffffffUL - x;
    negative = true;
  }
  const float unit = 1.0f / static_cast<float>(0xffffffffUL);
  float p = x * unit + unit / 2.0f;
  float q = p - 0.5f, z;
  if (q > -0.42f) {
    z = q * q;
    z = q * (((-25.44106049637f * z + 41.39119773534f) * z + -18.61500062529f) * z + 2.50662823884f) /
        ((((3.13082909833f * z + -21.06224101826f) * z + 23.08336743743f) * z + -8.4735109309f) * z + 1.0f);
  } else {
    z = __logf(-__logf(p));
    z = -(0.337475482272615f +
          z * (0.976169019091719f +
               z * (0.160797971491821f +
                    z * (2.76438810333863E-02f +
                         z * (3.8405729373609E-03f +
                              z * (3.951896511919E-04f +
                                   z * (3.21767881768E-05f + z * (2.888167364E-07f + z * 3.960315187E-07f))))))));
  }
  return negative ? -z : z;
}

// Of given numbers, or of n evenly spaced ones if there are none.
__global__ void inverse_normal(float *out, const uint *in, uint n) {
  uint distance = ((uint)-1) / (n + 1);
  uint first = __umul24(blockDim.x, blockIdx.x) + threadIdx.x;
  uint threads = __umul24(blockDim.x, gridDim.x);
  if (in)
    for (uint i = first; i < n; i += threads) out[i] = inverse_normal_of(in[i]);
  else
    for (uint i = first; i < n; i += threads) out[i] = inverse_normal_of((i + 1) * distance);
}

// --- CUDA samples: SobolQRNG ---

#define DIRECTIONS 32

// Every (gridDim.x blockDim.x)th vector of dimension blockIdx.y; that stride is a power of two.
__global__ void sobol(uint vectors, uint dimensions, const uint *directions, float *out) {
  __shared__ uint v[DIRECTIONS];
  directions += DIRECTIONS * blockIdx.y;
  out += vectors * blockIdx.y;
  if (threadIdx.x < DIRECTIONS) v[threadIdx.x] = directions[threadIdx.x];
  __syncthreads();
  int first = threadIdx.x + blockIdx.x * blockDim.x;
  int stride = gridDim.x * blockDim.x;
  uint gray = first ^ (first >> 1);
  uint x = 0;
  for (uint k = 0; k < __ffs(stride) - 1; k++) {
    uint mask = -(gray & 1);
    x ^= mask & v[k];
    gray >>= 1;
  }
  if (first < vectors) out[first] = (float)x * 2.3283064E-10F;
  uint v_stride = v[__ffs(stride) - 2], below = stride - 1;
  for (uint i = first + stride; i < vectors; i += stride) {
    x ^= v_stride ^ v[__ffs(~((i - stride) | below)) - 1];
    out[i] = (float)x * 2.3283064E-10F;
  }
}

// --- CUDA samples: binomialOptions, 2048 steps ---

#define STEPS 2048
#define OPTION_THREADS 128
#define NODES (STEPS / OPTION_THREADS)

struct Option {
  float price, strike, volatility, up, down;
};
__constant__ Option options[1024];

__device__ inline float payoff(float price, float strike, float volatility, int i) {
  float gain = price * __expf(volatility * (2.0f * i - STEPS)) - strike;
  return gain > 0.0f ? gain : 0.0f;
}

// An option a block, 16 nodes of the lattice a thread; a thread takes its right neighbour's first node in each step.
__global__ void binomial_options(float *values) {
  __shared__ float edge[OPTION_THREADS + 1];
  int thread = threadIdx.x;
  float price = options[blockIdx.x].price, strike = options[blockIdx.x].strike;
  float volatility = options[blockIdx.x].volatility;
  float up = options[blockIdx.x].up, down = options[blockIdx.x].down;
  float node[NODES + 1];
#pragma unroll
  for (int i = 0; i < NODES; ++i) node[i] = payoff(price, strike, volatility, thread * NODES + i);
  if (thread == 0) edge[OPTION_THREADS] = payoff(price, strike, volatility, STEPS);
  int last = max(0, thread * NODES - 1);
#pragma unroll 16
  for (int i = STEPS; i > 0; --i) {
    edge[thread] = node[0];
    __syncthreads();
    node[NODES] = edge[thread + 1];
    __syncthreads();
    if (i > last) {
#pragma unroll
      for (int j = 0; j < NODES; ++j) node[j] = up * node[j + 1] + down * node[j];
    }
  }
  if (thread == 0) values[blockIdx.x] = node[0];
}

// --- CUDA samples: cudaTensorCoreGemm ---

#define SIDE 4096
#define TILES (SIDE / 16)
#define CHUNK 4   // tiles along K in shared memory
#define SKEW 16   // halves between rows there, against bank conflicts

// D = alpha A B + beta C: tiles of 128 x 128, block after block; 8 warps, each 2 x 4 tiles of 16 x 16.
__global__ void tensor_gemm(const half *a_in, const half *b_in, const float *c_in, float *d_out, float alpha,
                            float beta) {
  using namespace nvcuda;
  extern __shared__ half shared[][CHUNK * 16 + SKEW];
  const uint warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const size_t b_rows = 8 * 16;  // rows of A before those of B
  float *warp_tile = (float *)&shared[0][0] + (warp / 2) * 128 * 16 * 2 + (warp % 2) * 64;
  float *warp_stream = (float *)&shared[0][0] + warp * 128 * 16;
  beta /= alpha;
  for (uint block = blockIdx.x;; block += gridDim.x) {
    const uint tile_i = ((block * 8) / TILES) * 8;
    const uint tile_j = (block * 8) % TILES;
    if (tile_i >= TILES) break;
    const size_t start = (tile_i + warp) * 16 * SIDE + tile_j * 16;
    const float *c_stream = &c_in[start];
#pragma unroll
    for (int i = 0; i < 16; i++) *((int4 *)(warp_stream + 128 * i) + lane) = *((int4 *)(c_stream + SIDE * i) + lane);
    __syncthreads();
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> c[2][4];
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
      for (int j = 0; j < 4; j++)
        wmma::load_matrix_sync(c[i][j], warp_tile + i * 128 * 16 + j * 16, 128, wmma::mem_row_major);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
      for (int j = 0; j < 4; j++)
#pragma unroll
        for (int t = 0; t < c[i][j].num_elements; t++) c[i][j].x[t] *= beta;
    const half *copied = warp < 4 ? &a_in[tile_i * 16 * SIDE] + 16 * SIDE * (warp % 4) * 2
                                  : &b_in[tile_j * 16 * SIDE] + 16 * SIDE * (warp % 4) * 2;
#pragma unroll 1  // the sample unrolls all 64: 0.8 MB of code
    for (int tile_k = 0; tile_k < TILES; tile_k += CHUNK) {
      size_t row = warp < 4 ? 16 * (warp % 4) * 2 : 16 * (warp % 4) * 2 + b_rows;
      // a row of a chunk is 128 bytes: eight lanes copy it, a warp four rows at once
      int4 *from = (int4 *)(copied + tile_k * 16 + (lane / 8) * SIDE) + lane % 8;
      row += lane / 8;
#pragma unroll
      for (int i = 0; i < 8; i++) {
        *((int4 *)&shared[row][0] + lane % 8) = *from;
        from = (int4 *)((half *)from + SIDE * 4);
        row += 4;
      }
      __syncthreads();
#pragma unroll
      for (int k = 0; k < CHUNK; k++) {
        wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a[2];
        wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> b[4];
#pragma unroll
        for (int i = 0; i < 2; i++) {
          wmma::load_matrix_sync(a[i], &shared[(warp / 2) * 32 + i * 16][k * 16], CHUNK * 16 + SKEW);
#pragma unroll
          for (int j = 0; j < 4; j++) {
            if (i == 0)
              wmma::load_matrix_sync(b[j], &shared[b_rows + 64 * (warp % 2) + j * 16][k * 16], CHUNK * 16 + SKEW);
            wmma::mma_sync(c[i][j], a[i], b[j], c[i][j]);
          }
        }
      }
      __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
      for (int j = 0; j < 4; j++) {
#pragma unroll
        for (int t = 0; t < c[i][j].num_elements; t++) c[i][j].x[t] *= alpha;
        wmma::store_matrix_sync(warp_tile + i * 128 * 16 + j * 16, c[i][j], 128, wmma::mem_row_major);
      }
    __syncthreads();
    float *d_stream = &d_out[start];
#pragma unroll
    for (int i = 0; i < 16; i++) *((int4 *)(d_stream + SIDE * i) + lane) = *((int4 *)(warp_stream + 128 * i) + lane);
    __syncthreads();
  }
}

// --- Parboil: mri-q ---

#define TWO_PI 6.2831853071795864769252867665590058f

struct __align__(8) Sample {  // 64 bits a load, as counted
  float x, y, z, magnitude;
};
__constant__ Sample samples[1024];

// 1024 samples of k-space, or those left from `start`, for one voxel a thread; sines and cosines of -use_fast_math.
__global__ void mri_q(int n, int start, const float *xs, const float *ys, const float *zs, float *reals, float *imags) {
  int i = blockIdx.x * 256 + threadIdx.x;
  float x = xs[i], y = ys[i], z = zs[i], real = reals[i], imag = imags[i];
  int k = 0;
  if (n % 2) {
    float angle = TWO_PI * (samples[0].x * x + samples[0].y * y + samples[0].z * z);
    real += samples[0].magnitude * __cosf(angle);
    imag += samples[0].magnitude * __sinf(angle);
    k++;
    start++;
  }
  for (; k < 1024 && start < n; k += 2, start += 2) {
    float angle = TWO_PI * (samples[k].x * x + samples[k].y * y + samples[k].z * z);
    real += samples[k].magnitude * __cosf(angle);
    imag += samples[k].magnitude * __sinf(angle);
    int next = k + 1;
    float angle1 = TWO_PI * (samples[next].x * x + samples[next].y * y + samples[next].z * z);
    real += samples[next].magnitude * __cosf(angle1);
    imag += samples[next].magnitude * __sinf(angle1);
  }
  reals[i] = real;
  imags[i] = imag;
}

// --- Parboil: sgemm, A B^T in column order ---

// A row of 16 products a thread; 16 x 8 threads, eight rows of B in shared memory at a time.
__global__ void sgemm_nt(const float *a, int lda, const float *b, int ldb, float *c, int ldc, int k, float alpha,
                         float beta) {
  __shared__ float tile[8][16];
  float sum[16];
  for (int i = 0; i < 16; i++) sum[i] = 0.0f;
  int m = blockIdx.x * 128 + threadIdx.y * blockDim.x + threadIdx.x;
  int n = blockIdx.y * 16 + threadIdx.x;
  for (int i = 0; i < k; i += 8) {
    tile[threadIdx.y][threadIdx.x] = b[n + (i + threadIdx.y) * ldb];
    __syncthreads();
    for (int j = 0; j < 8; j++) {
      float value = a[m + (i + j) * lda];
      for (int l = 0; l < 16; l++) sum[l] += value * tile[j][l];
    }
    __syncthreads();
  }
  int at = ldc * blockIdx.y * 16 + m;
  for (int i = 0; i < 16; i++) c[at + i * ldc] = c[at + i * ldc] * beta + alpha * sum[i];
}

// --- Rodinia: hotspot ---

#define HOT 16
#define WITHIN(x, low, high) ((x) >= (low) && (x) <= (high))

// `steps` steps of a tile that shrinks by one at each side in each; constants of the sums are doubles, as measured.
__global__ void hotspot(int steps, const float *power, const float *source, float *result, int cols, int rows,
                        int border_cols, int border_rows, float capacity, float rx, float ry, float rz, float step,
                        float elapsed) {
  __shared__ float hot[HOT][HOT];
  __shared__ float heat[HOT][HOT];
  __shared__ float next[HOT][HOT];
  float ambient = 80.0;
  int tx = threadIdx.x, ty = threadIdx.y;
  float rate = step / capacity;
  float rx1 = 1 / rx, ry1 = 1 / ry, rz1 = 1 / rz;
  int small = HOT - steps * 2;
  int top = small * (int)blockIdx.y - border_rows, left = small * (int)blockIdx.x - border_cols;
  int bottom = top + HOT - 1, right = left + HOT - 1;
  int y = top + ty, x = left + tx;
  int index = cols * y + x;
  if (WITHIN(y, 0, rows - 1) && WITHIN(x, 0, cols - 1)) {
    hot[ty][tx] = source[index];
    heat[ty][tx] = power[index];
  }
  __syncthreads();
  int y_min = top < 0 ? -top : 0, y_max = bottom > rows - 1 ? HOT - 1 - (bottom - rows + 1) : HOT - 1;
  int x_min = left < 0 ? -left : 0, x_max = right > cols - 1 ? HOT - 1 - (right - cols + 1) : HOT - 1;
  int north = ty - 1, south = ty + 1, west = tx - 1, east = tx + 1;
  north = north < y_min ? y_min : north;
  south = south > y_max ? y_max : south;
  west = west < x_min ? x_min : west;
  east = east > x_max ? x_max : east;
  bool computed;
  for (int i = 0; i < steps; i++) {
    computed = false;
    if (WITHIN(tx, i + 1, HOT - i - 2) && WITHIN(ty, i + 1, HOT - i - 2) && WITHIN(tx, x_min, x_max) &&
        WITHIN(ty, y_min, y_max)) {
      computed = true;
      next[ty][tx] = hot[ty][tx] + rate * (heat[ty][tx] +
                                           (hot[south][tx] + hot[north][tx] - 2.0 * hot[ty][tx]) * ry1 +
                                           (hot[ty][east] + hot[ty][west] - 2.0 * hot[ty][tx]) * rx1 +
                                           (ambient - hot[ty][tx]) * rz1);
    }
    __syncthreads();
    if (i == steps - 1) break;
    if (computed) hot[ty][tx] = next[ty][tx];
    __syncthreads();
  }
  if (computed) result[index] = next[ty][tx];
}

}
