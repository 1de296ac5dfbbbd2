// Norms, softmax and gates of the rows of a matrix, from a thread a row to rows that stay in registers, of floats and of
// bfloat16. Written to the description of a ladder on an RTX 5090 (PROVENANCE.md). nvcc 13.0 -arch=compute_80 -ptx.
#include <cuda_bf16.h>

using half_float = __nv_bfloat16;
struct __align__(16) Floats { float value[4]; };
// Of bfloat16 through integers: nvcc 13.0 would copy the struct in pieces of 4 B.
union Halves { uint4 all; unsigned value[4]; };

__device__ __forceinline__ float wide(float value) { return value; }
__device__ __forceinline__ float wide(half_float value) { return __bfloat162float(value); }
__device__ __forceinline__ void narrow(float& to, float value) { to = value; }
__device__ __forceinline__ void narrow(half_float& to, float value) { to = __float2bfloat16(value); }

// 16 bytes as floats
template <typename T> constexpr int LANES = 16 / sizeof(T);
__device__ __forceinline__ void load(const float* from, float* to) {
    Floats four = *reinterpret_cast<const Floats*>(from);
#pragma unroll
    for (int i = 0; i < 4; ++i) to[i] = four.value[i];
}
__device__ __forceinline__ void load(const half_float* from, float* to) {
    Halves eight{*reinterpret_cast<const uint4*>(from)};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        to[2 * i] = __uint_as_float(eight.value[i] << 16);
        to[2 * i + 1] = __uint_as_float(eight.value[i] & 0xffff0000);
    }
}
__device__ __forceinline__ void store(float* to, const float* from) {
    Floats four;
#pragma unroll
    for (int i = 0; i < 4; ++i) four.value[i] = from[i];
    *reinterpret_cast<Floats*>(to) = four;
}
__device__ __forceinline__ void store(half_float* to, const float* from) {
    Halves eight;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        __nv_bfloat162 two = __float22bfloat162_rn(make_float2(from[2 * i], from[2 * i + 1]));
        eight.value[i] = *reinterpret_cast<unsigned*>(&two);
    }
    *reinterpret_cast<uint4*>(to) = eight.all;
}

__device__ __forceinline__ float sum_of_warp(float value) {
#pragma unroll
    for (int apart = 16; apart > 0; apart /= 2) value += __shfl_xor_sync(~0u, value, apart);
    return value;
}
__device__ __forceinline__ float top_of_warp(float value) {
#pragma unroll
    for (int apart = 16; apart > 0; apart /= 2) value = fmaxf(value, __shfl_xor_sync(~0u, value, apart));
    return value;
}

// --- root mean square ------------------------------------------------------------------------------------------------

#define NORM const T *__restrict__ x, const T *__restrict__ weight, T *__restrict__ out, int rows, int columns, float least

template <typename T> __device__ __forceinline__ void norm_by_thread(NORM) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    const T* from = x + (long long)row * columns;
    T* to = out + (long long)row * columns;
    float squares = 0;
    for (int c = 0; c < columns; ++c) {
        float value = wide(from[c]);
        squares += value * value;
    }
    float factor = rsqrtf(squares / columns + least);
    for (int c = 0; c < columns; ++c) narrow(to[c], wide(from[c]) * factor * wide(weight[c]));
}

template <typename T> __device__ __forceinline__ void norm_by_warp(NORM) {
    int lane = threadIdx.x % 32u, row = blockIdx.x * 8 + threadIdx.x / 32u;
    if (row >= rows) return;
    const T* from = x + (long long)row * columns;
    T* to = out + (long long)row * columns;
    float squares = 0;
    for (int c = lane; c < columns; c += 32) {
        float value = wide(from[c]);
        squares += value * value;
    }
    float factor = rsqrtf(sum_of_warp(squares) / columns + least);
    for (int c = lane; c < columns; c += 32) narrow(to[c], wide(from[c]) * factor * wide(weight[c]));
}

template <typename T> __device__ __forceinline__ void norm_by_warp_wide(NORM) {
    constexpr int W = LANES<T>;
    int lane = threadIdx.x % 32u, row = blockIdx.x * 8 + threadIdx.x / 32u;
    if (row >= rows) return;
    const T* from = x + (long long)row * columns;
    T* to = out + (long long)row * columns;
    float squares = 0;
    for (int c = lane * W; c < columns; c += 32 * W) {
        float value[W];
        load(from + c, value);
#pragma unroll
        for (int i = 0; i < W; ++i) squares += value[i] * value[i];
    }
    float factor = rsqrtf(sum_of_warp(squares) / columns + least);
    for (int c = lane * W; c < columns; c += 32 * W) {
        float value[W], by[W];
        load(from + c, value);
        load(weight + c, by);
#pragma unroll
        for (int i = 0; i < W; ++i) value[i] = value[i] * factor * by[i];
        store(to + c, value);
    }
}

template <typename T> __device__ __forceinline__ void norm_by_block(NORM) {
    __shared__ float parts[32];
    int row = blockIdx.x, lane = threadIdx.x % 32u, warp = threadIdx.x / 32u, warps = blockDim.x / 32u;
    if (row >= rows) return;
    const T* from = x + (long long)row * columns;
    T* to = out + (long long)row * columns;
    float squares = 0;
    for (int c = threadIdx.x; c < columns; c += 256) {
        float value = wide(from[c]);
        squares += value * value;
    }
    squares = sum_of_warp(squares);
    if (lane == 0) parts[warp] = squares;
    __syncthreads();
    squares = threadIdx.x < warps ? parts[lane] : 0;
    if (warp == 0) squares = sum_of_warp(squares);
    if (threadIdx.x == 0) parts[0] = squares;
    __syncthreads();
    squares = parts[0];
    __syncthreads();
    float factor = rsqrtf(squares / columns + least);
    for (int c = threadIdx.x; c < columns; c += 256) narrow(to[c], wide(from[c]) * factor * wide(weight[c]));
}

// A block of THREADS holds its row in registers, EACH times 16 bytes a thread.
template <int THREADS, int EACH, typename T> __device__ __forceinline__ void norm_in_registers(NORM) {
    constexpr int W = LANES<T>;
    __shared__ float parts[THREADS / 32];
    int thread = threadIdx.x, row = blockIdx.x, pieces = columns / W;
    bool inside = row < rows;
    const T* from = x + (long long)row * columns;
    float value[EACH][W], squares = 0;
    if (inside) {
#pragma unroll
        for (int e = 0; e < EACH; ++e) {
            int piece = thread + e * THREADS;
            if (piece >= pieces) continue;
            load(from + piece * W, value[e]);
#pragma unroll
            for (int i = 0; i < W; ++i) squares += value[e][i] * value[e][i];
        }
    }
    squares = sum_of_warp(squares);
    if (thread % 32u == 0) parts[thread / 32u] = squares;
    __syncthreads();
    squares = 0;
#pragma unroll
    for (int w = 0; w < THREADS / 32; ++w) squares += parts[w];
    if (!inside) return;
    float factor = rsqrtf(squares / columns + least);
    T* to = out + (long long)row * columns;
#pragma unroll
    for (int e = 0; e < EACH; ++e) {
        int piece = thread + e * THREADS;
        if (piece >= pieces) continue;
        float by[W], result[W];
        load(weight + piece * W, by);
#pragma unroll
        for (int i = 0; i < W; ++i) result[i] = value[e][i] * factor * by[i];
        store(to + piece * W, result);
    }
}

#define NORMS(name, body)                                                                                               \
    extern "C" __global__ void name(const TYPE* __restrict__ x, const TYPE* __restrict__ weight, TYPE* __restrict__ out, \
                                    int rows, int columns, float least) {                                               \
        body(x, weight, out, rows, columns, least);                                                                     \
    }

#define TYPE float
NORMS(norm_floats_by_thread, norm_by_thread<float>)
NORMS(norm_floats_by_warp, norm_by_warp<float>)
NORMS(norm_floats_by_warp_wide, norm_by_warp_wide<float>)
NORMS(norm_floats_by_block, norm_by_block<float>)
extern "C" __global__ void __launch_bounds__(256) norm_floats_in_registers(
    const float* __restrict__ x, const float* __restrict__ weight, float* __restrict__ out, int rows, int columns, float least) {
    norm_in_registers<256, 8, float>(x, weight, out, rows, columns, least);
}
#undef TYPE
#define TYPE half_float
NORMS(norm_halves_by_thread, norm_by_thread<half_float>)
NORMS(norm_halves_by_warp, norm_by_warp<half_float>)
NORMS(norm_halves_by_warp_wide, norm_by_warp_wide<half_float>)
NORMS(norm_halves_by_block, norm_by_block<half_float>)
extern "C" __global__ void __launch_bounds__(256) norm_halves_in_registers(
    const half_float* __restrict__ x, const half_float* __restrict__ weight, half_float* __restrict__ out, int rows, int columns,
    float least) {
    norm_in_registers<256, 4, half_float>(x, weight, out, rows, columns, least);
}

// --- softmax ---------------------------------------------------------------------------------------------------------

#define ROWS const T *__restrict__ x, T *__restrict__ out, int rows, int columns

template <typename T> __device__ __forceinline__ void softmax_by_thread(ROWS) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    const T* from = x + (size_t)row * columns;
    T* to = out + (size_t)row * columns;
    float top = -INFINITY, sum = 0;
    for (int c = 0; c < columns; ++c) top = fmaxf(top, wide(from[c]));
    for (int c = 0; c < columns; ++c) sum += __expf(wide(from[c]) - top);
    float factor = 1.0f / sum;
    for (int c = 0; c < columns; ++c) narrow(to[c], __expf(wide(from[c]) - top) * factor);
}

// Two maxima with their sums become one.
__device__ __forceinline__ void merge(float& top, float& sum, float other_top, float other_sum) {
    float both = fmaxf(top, other_top);
    if (both == -INFINITY) {
        top = -INFINITY;
        sum = 0;
        return;
    }
    sum = sum * __expf(top - both) + other_sum * __expf(other_top - both);
    top = both;
}
__device__ __forceinline__ void merge_of_warp(float& top, float& sum) {
#pragma unroll
    for (int apart = 16; apart > 0; apart /= 2) {
        float other_top = __shfl_xor_sync(~0u, top, apart), other_sum = __shfl_xor_sync(~0u, sum, apart);
        merge(top, sum, other_top, other_sum);
    }
}
template <typename T>
__device__ __forceinline__ void merge_of_row(const T* from, int columns, int thread, int threads, float& top, float& sum) {
    constexpr int W = LANES<T>;
    top = -INFINITY;
    sum = 0;
    for (int piece = thread; piece < columns / W; piece += threads) {
        float value[W];
        load(from + piece * W, value);
        float own_top = value[0], own_sum = 0;
#pragma unroll
        for (int i = 1; i < W; ++i) own_top = fmaxf(own_top, value[i]);
#pragma unroll
        for (int i = 0; i < W; ++i) own_sum += __expf(value[i] - own_top);
        merge(top, sum, own_top, own_sum);
    }
}
template <typename T>
__device__ __forceinline__ void write_row(
    const T* from, T* to, int columns, int thread, int threads, float top, float factor) {
    constexpr int W = LANES<T>;
    for (int piece = thread; piece < columns / W; piece += threads) {
        float value[W];
        load(from + piece * W, value);
#pragma unroll
        for (int i = 0; i < W; ++i) value[i] = __expf(value[i] - top) * factor;
        store(to + piece * W, value);
    }
}

template <typename T> __device__ __forceinline__ void softmax_by_warp(ROWS) {
    int lane = threadIdx.x % 32u, row = blockIdx.x * 4 + threadIdx.x / 32u;
    if (row >= rows) return;
    const T* from = x + (size_t)row * columns;
    float top, sum;
    merge_of_row(from, columns, lane, 32, top, sum);
    merge_of_warp(top, sum);
    write_row(from, out + (size_t)row * columns, columns, lane, 32, top, 1.0f / sum);
}

template <typename T> __device__ __forceinline__ void softmax_by_block(ROWS) {
    __shared__ float tops[32], sums[32];
    int row = blockIdx.x, lane = threadIdx.x % 32u, warp = threadIdx.x / 32u, warps = blockDim.x / 32u;
    if (row >= rows) return;
    const T* from = x + (size_t)row * columns;
    float top, sum;
    merge_of_row(from, columns, threadIdx.x, blockDim.x, top, sum);
    merge_of_warp(top, sum);
    if (lane == 0) {
        tops[warp] = top;
        sums[warp] = sum;
    }
    __syncthreads();
    if (warp == 0) {
        float all_top = lane < warps ? tops[lane] : -INFINITY, all_sum = lane < warps ? sums[lane] : 0;
        merge_of_warp(all_top, all_sum);
        if (lane == 0) {
            tops[0] = all_top;
            sums[0] = all_sum;
        }
    }
    __syncthreads();
    write_row(from, out + (size_t)row * columns, columns, threadIdx.x, blockDim.x, tops[0], 1.0f / sums[0]);
}

template <int THREADS, int EACH, typename T> __device__ __forceinline__ void softmax_in_registers(ROWS) {
    constexpr int W = LANES<T>;
    __shared__ float parts[THREADS / 32];
    int thread = threadIdx.x, row = blockIdx.x, pieces = columns / W;
    bool inside = row < rows;
    const T* from = x + (size_t)row * columns;
    float value[EACH][W], top = -INFINITY, sum = 0;
    if (inside) {
#pragma unroll
        for (int e = 0; e < EACH; ++e) {
            int piece = thread + e * THREADS;
            if (piece >= pieces) continue;
            load(from + piece * W, value[e]);
#pragma unroll
            for (int i = 0; i < W; ++i) top = fmaxf(top, value[e][i]);
        }
    }
    top = top_of_warp(top);
    __syncthreads();
    if (thread % 32u == 0) parts[thread / 32u] = top;
    __syncthreads();
    top = -INFINITY;
#pragma unroll
    for (int w = 0; w < THREADS / 32; ++w) top = fmaxf(top, parts[w]);
    if (inside) {
#pragma unroll
        for (int e = 0; e < EACH; ++e) {
            if (thread + e * THREADS >= pieces) continue;
#pragma unroll
            for (int i = 0; i < W; ++i) {
                value[e][i] = __expf(value[e][i] - top);
                sum += value[e][i];
            }
        }
    }
    sum = sum_of_warp(sum);
    __syncthreads();
    if (thread % 32u == 0) parts[thread / 32u] = sum;
    __syncthreads();
    sum = 0;
#pragma unroll
    for (int w = 0; w < THREADS / 32; ++w) sum += parts[w];
    if (!inside) return;
    float factor = 1.0f / sum;
    T* to = out + (size_t)row * columns;
#pragma unroll
    for (int e = 0; e < EACH; ++e) {
        int piece = thread + e * THREADS;
        if (piece >= pieces) continue;
#pragma unroll
        for (int i = 0; i < W; ++i) value[e][i] *= factor;
        store(to + piece * W, value[e]);
    }
}

#define SOFTMAX(type, name, bounds, ...)                                                                                 \
    extern "C" __global__ void bounds name(const type* __restrict__ x, type* __restrict__ out, int rows, int columns) { \
        __VA_ARGS__(x, out, rows, columns);                                                                             \
    }
SOFTMAX(float, softmax_floats_by_thread, , softmax_by_thread<float>)
SOFTMAX(float, softmax_floats_by_warp, , softmax_by_warp<float>)
SOFTMAX(float, softmax_floats_by_block, , softmax_by_block<float>)
SOFTMAX(float, softmax_floats_in_registers, __launch_bounds__(512), softmax_in_registers<512, 8, float>)
SOFTMAX(half_float, softmax_halves_by_thread, , softmax_by_thread<half_float>)
SOFTMAX(half_float, softmax_halves_by_warp, , softmax_by_warp<half_float>)
SOFTMAX(half_float, softmax_halves_by_block, , softmax_by_block<half_float>)
SOFTMAX(half_float, softmax_halves_in_registers, __launch_bounds__(512), softmax_in_registers<512, 4, half_float>)

// --- gates -----------------------------------------------------------------------------------------------------------

__device__ __forceinline__ float gated(float gate, float up) { return gate / (1.0f + __expf(-gate)) * up; }

template <typename T>
__device__ __forceinline__ void gate_one(const T* gate, const T* up, T* out, long long n) {
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) narrow(out[i], gated(wide(gate[i]), wide(up[i])));
}
template <typename T>
__device__ __forceinline__ void gate_wide(const T* gate, const T* up, T* out, long long n) {
    constexpr int W = LANES<T>;
    long long pieces = n / W, first = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    long long step = (long long)gridDim.x * blockDim.x;
    for (long long piece = first; piece < pieces; piece += step) {
        float left[W], right[W];
        load(gate + piece * W, left);
        load(up + piece * W, right);
#pragma unroll
        for (int i = 0; i < W; ++i) left[i] = gated(left[i], right[i]);
        store(out + piece * W, left);
    }
    for (long long i = pieces * W + first; i < n; i += step) narrow(out[i], gated(wide(gate[i]), wide(up[i])));
}
#define GATES(type, name, body)                                                                                          \
    extern "C" __global__ void name(                                                                                    \
        const type* __restrict__ gate, const type* __restrict__ up, type* __restrict__ out, long long n) {              \
        body(gate, up, out, n);                                                                                         \
    }
GATES(float, gate_floats, gate_one<float>)
GATES(float, gate_floats_wide, gate_wide<float>)
GATES(half_float, gate_halves, gate_one<half_float>)
GATES(half_float, gate_halves_wide, gate_wide<half_float>)
