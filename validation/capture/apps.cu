// Application kernels, each over several sizes. apps.ptx is made from this with:  nvcc -ptx -arch=sm_75 apps.cu -o apps.ptx

extern "C" {

// European options by the formula of Black and Scholes: arithmetic and special functions, five streams.
__global__ void black_scholes(const float *price, const float *strike, const float *years, float *call, float *put,
                              float rate, float volatility, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float s = price[i], x = strike[i], t = years[i];
    float root = volatility * sqrtf(t);
    float d1 = (__logf(s / x) + (rate + 0.5f * volatility * volatility) * t) / root;
    float d2 = d1 - root;
    float n1 = 0.5f * erfcf(-0.70710678f * d1), n2 = 0.5f * erfcf(-0.70710678f * d2);
    float discounted = x * __expf(-rate * t);
    call[i] = s * n1 - discounted * n2;
    put[i] = discounted * (1.0f - n2) - s * (1.0f - n1);
}

// Forces between all pairs of bodies, tiles of them in shared memory. Blocks of 256; n is a multiple of that.
__global__ void nbody(const float4 *body, float4 *force, int n)
{
    __shared__ float4 tile[256];
    int i = blockIdx.x * 256 + threadIdx.x;
    float4 own = body[i];
    float fx = 0.0f, fy = 0.0f, fz = 0.0f;
    for (int first = 0; first < n; first += 256) {
        tile[threadIdx.x] = body[first + threadIdx.x];
        __syncthreads();
#pragma unroll 8
        for (int j = 0; j < 256; j++) {
            float4 other = tile[j];
            float dx = other.x - own.x, dy = other.y - own.y, dz = other.z - own.z;
            float r = rsqrtf(dx * dx + dy * dy + dz * dz + 0.01f);
            float strength = other.w * r * r * r;
            fx += dx * strength;
            fy += dy * strength;
            fz += dz * strength;
        }
        __syncthreads();
    }
    force[i] = make_float4(fx, fy, fz, 0.0f);
}

// A 7 x 7 filter over an image of n x n, edges repeated; the image through the caches.
__global__ void convolution(const float *in, const float *filter, float *out, int n)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= n || y >= n)
        return;
    float sum = 0.0f;
#pragma unroll
    for (int v = 0; v < 7; v++) {
        int row = min(max(y + v - 3, 0), n - 1) * n;
#pragma unroll
        for (int u = 0; u < 7; u++)
            sum += filter[v * 7 + u] * in[row + min(max(x + u - 3, 0), n - 1)];
    }
    out[y * n + x] = sum;
}

// y = A x, a warp a row; blocks of 256, the columns a multiple of 32.
__global__ void gemv(const float *a, const float *x, float *y, int rows, int columns)
{
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x & 31;
    if (row >= rows)
        return;
    float sum = 0.0f;
    for (int k = lane; k < columns; k += 32)
        sum += a[row * columns + k] * x[k];
    for (int step = 16; step; step /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (lane == 0)
        y[row] = sum;
}

// Softmax of each row, a block of 256 a row: three passes, two reductions.
__global__ void softmax(const float *in, float *out, int columns)
{
    __shared__ float part[8];
    const float *row = in + (size_t)blockIdx.x * columns;
    int lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    float most = -3.4e38f;
    for (int k = threadIdx.x; k < columns; k += 256)
        most = fmaxf(most, row[k]);
    for (int step = 16; step; step /= 2)
        most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, step));
    if (lane == 0)
        part[warp] = most;
    __syncthreads();
    for (int k = 0; k < 8; k++)
        most = fmaxf(most, part[k]);
    __syncthreads();
    float sum = 0.0f;
    for (int k = threadIdx.x; k < columns; k += 256)
        sum += __expf(row[k] - most);
    for (int step = 16; step; step /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (lane == 0)
        part[warp] = sum;
    __syncthreads();
    sum = 0.0f;
    for (int k = 0; k < 8; k++)
        sum += part[k];
    for (int k = threadIdx.x; k < columns; k += 256)
        out[(size_t)blockIdx.x * columns + k] = __expf(row[k] - most) / sum;
}

// Inclusive prefix sums of every 512 elements, in shared memory, a block of 512 each.
__global__ void scan(const int *in, int *out)
{
    __shared__ int sums[2][512];
    int t = threadIdx.x, now = 0;
    sums[0][t] = in[blockIdx.x * 512 + t];
    __syncthreads();
    for (int step = 1; step < 512; step *= 2) {
        int value = sums[now][t];
        if (t >= step)
            value += sums[now][t - step];
        now ^= 1;
        sums[now][t] = value;
        __syncthreads();
    }
    out[blockIdx.x * 512 + t] = sums[now][t];
}

}
