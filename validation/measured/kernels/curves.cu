// What the curves are made of: a chain of dependent loads by one thread, and blocks that read the same data again and
// again. curves.ptx is made from this with:  nvcc -ptx -arch=sm_75 curves.cu -o curves.ptx

extern "C" {

// each element holds the address of the next
__global__ void chase(const long *start, long *out, int steps) {
  const long *at = start;
  for (int i = 0; i < steps; ++i) at = (const long *)*at;
  out[0] = (long)at;
}

// blocks of 1024 threads; `count` elements, a multiple of 8192; the sums keep the loads alive
__global__ void sum(const float *data, float *out, int count, int rounds) {
  float sums[8] = {0};
  for (int round = 0; round < rounds; ++round) {
    const float *at = data + threadIdx.x;
#pragma unroll 1
    for (int i = 0; i < count; i += 8192, at += 8192) {
#pragma unroll
      for (int k = 0; k < 8; ++k) sums[k] += at[1024 * k];
    }
  }
  float total = 0;
  for (int k = 0; k < 8; ++k) total += sums[k];
  if (total == 1.25f) out[threadIdx.x] = total;  // never true
}

// as `sum`, once, of part blockIdx.x modulo `parts` of the data, each of `count` elements
__global__ void sum_parts(const float *data, float *out, int count, int parts) {
  float sums[8] = {0};
  const float *at = data + (long)(blockIdx.x % parts) * count + threadIdx.x;
#pragma unroll 1
  for (int i = 0; i < count; i += 8192, at += 8192) {
#pragma unroll
    for (int k = 0; k < 8; ++k) sums[k] += at[1024 * k];
  }
  float total = 0;
  for (int k = 0; k < 8; ++k) total += sums[k];
  if (total == 1.25f) out[threadIdx.x] = total;  // never true
}

// `steps` loads a warp, a multiple of 8, lanes `stride` floats apart, at eight alignments; four warps read different lines,
// which the L1 holds; zero = 0 keeps the loads in the loop
__global__ void strided(float *out, const float *data, int stride, int steps, int zero) {
  float sums[8] = {0};
  const float *at = data + threadIdx.x % 128 * stride;
#pragma unroll 1
  for (int i = 0; i < steps; i += 8) {
    at += zero;
#pragma unroll
    for (int k = 0; k < 8; ++k) sums[k] += at[4 * k];
  }
  float total = 0;
  for (int k = 0; k < 8; ++k) total += sums[k];
  if (total == 1.25f) out[threadIdx.x] = total;  // never true
}
}
