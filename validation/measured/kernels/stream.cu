// One element of double arrays a thread: the six kernels of stream_vs_occupancy.csv, by their stated arithmetic.
// stream.ptx is made from this with:  nvcc -ptx -arch=sm_75 stream.cu -o stream.ptx

extern "C" {

__global__ void init(double *a, const double *b, const double *c, double k, long n) {
  long i = (long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) a[i] = k;
}

__global__ void read(double *a, const double *b, const double *c, double k, long n) {
  long i = (long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  double value = b[i];
  if (value == k) a[i] = value;  // never true
}

__global__ void scale(double *a, const double *b, const double *c, double k, long n) {
  long i = (long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) a[i] = b[i] * k;
}

__global__ void triad(double *a, const double *b, const double *c, double k, long n) {
  long i = (long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) a[i] = b[i] * k + c[i];
}

__global__ void stencil3(double *a, const double *b, const double *c, double k, long n) {
  long i = (long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n - 1 && i > 0) a[i] = k * b[i - 1] - b[i] + k * b[i + 1];
}

__global__ void stencil5(double *a, const double *b, const double *c, double k, long n) {
  long i = (long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n - 2 && i > 1) a[i] = k * b[i - 2] + 0.25 * b[i - 1] + 0.5 * b[i] + 0.25 * b[i + 1] + k * b[i + 2];
}
}
