// An image filtered with 17 x 17 weights, in our words: the block's part of the image with its margin in shared memory, weights in
// constant memory, all loops over weights and over a thread's own tile of results unrolled, as in the kernel whose space of block
// sizes, tiles and padding was measured (PROVENANCE.md says whose). A thread's results lie a block apart. Rows of the part are
// padded, where asked for, so that a warp's rows fall into different banks. Made with:  nvcc -ptx -arch=compute_80 convolve.cu
#define SIDE 4096
#define TAPS 17
#define MARGIN (TAPS - 1)
__constant__ float weights[TAPS * TAPS];

// Blocks of X x Y threads, each with `ACROSS` x `DOWN` results, rows with PADDING more elements.
template <int X, int Y, int ACROSS, int DOWN, int PADDING>
__device__ __forceinline__ void filtered(float *result, const float *image) {
    constexpr int WIDTH = X * ACROSS + MARGIN, HEIGHT = Y * DOWN + MARGIN;
    constexpr bool FITS = SIDE % (X * ACROSS) == 0 && SIDE % (Y * DOWN) == 0;  // else the last blocks reach beyond the image
    __shared__ float part[HEIGHT][WIDTH + PADDING];
    int left = blockIdx.x * X * ACROSS, top = blockIdx.y * Y * DOWN;
#pragma unroll
    for (int row = threadIdx.y; row < HEIGHT; row += Y)
#pragma unroll
        for (int column = threadIdx.x; column < WIDTH; column += X) {
            float value = 0;
            if (FITS || (top + row < SIDE + MARGIN && left + column < SIDE + MARGIN))
                value = image[(top + row) * (SIDE + MARGIN) + left + column];
            part[row][column] = value;
        }
    __syncthreads();
    float sum[DOWN][ACROSS] = {};
#pragma unroll
    for (int i = 0; i < TAPS; ++i)
#pragma unroll
        for (int j = 0; j < TAPS; ++j)
#pragma unroll
            for (int y = 0; y < DOWN; ++y)
#pragma unroll
                for (int x = 0; x < ACROSS; ++x)
                    sum[y][x] += part[threadIdx.y + y * Y + i][threadIdx.x + x * X + j] * weights[i * TAPS + j];
#pragma unroll
    for (int y = 0; y < DOWN; ++y)
#pragma unroll
        for (int x = 0; x < ACROSS; ++x) {
            int row = top + threadIdx.y + y * Y, column = left + threadIdx.x + x * X;
            if (FITS || (row < SIDE && column < SIDE)) result[row * SIDE + column] = sum[y][x];
        }
}

// Elements by which a row of the part is lengthened, so that the next one begins X banks further on.
#define PADDING(X, ACROSS) (X % 32 ? (32 - (X * ACROSS + MARGIN - X) % 32) % 32 : 0)

#define PLAIN(X, Y, ACROSS, DOWN)                                                                                          \
    extern "C" __global__ void block##X##x##Y##_tile##ACROSS##x##DOWN(float *result, const float *image) {                 \
        filtered<X, Y, ACROSS, DOWN, 0>(result, image);                                                                    \
    }
#define PADDED(X, Y, ACROSS, DOWN)                                                                                         \
    extern "C" __global__ void block##X##x##Y##_tile##ACROSS##x##DOWN##_padded(float *result, const float *image) {        \
        filtered<X, Y, ACROSS, DOWN, PADDING(X, ACROSS)>(result, image);                                                   \
    }

PLAIN(16, 8, 1, 4)
PADDED(16, 8, 1, 4)
PLAIN(16, 8, 2, 1)
PLAIN(16, 8, 2, 2)
PLAIN(16, 8, 2, 3)
PLAIN(48, 2, 3, 2)
PLAIN(48, 2, 4, 1)
PLAIN(64, 2, 1, 4)
PADDED(80, 1, 3, 2)
PADDED(112, 2, 1, 2)
PADDED(144, 2, 4, 2)
PLAIN(144, 4, 1, 1)
PLAIN(144, 4, 1, 2)
PLAIN(144, 4, 1, 3)
PLAIN(144, 4, 1, 4)
