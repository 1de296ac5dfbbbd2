// Temperatures of a chip some steps on, in our words: a block holds its part of the field in shared memory twice, with a margin of as
// many points as it makes steps, and each step writes a part smaller by one point on each side. 2.0 is a constant of type double, as in
// the kernel whose space was measured (PROVENANCE.md says whose). Blocks of X x Y threads with ACROSS x DOWN results each; loops over
// steps unrolled UNROLLED times; power kept in shared memory or read at each step; RESIDENT blocks asked for on an SM, if any.
// Made with:  nvcc -ptx -arch=compute_80 hotspot.cu
#define SIDE 4096
#define MOST 10  // margin of the arrays: the most steps
#define PITCH (SIDE + 2 * MOST)
#define AMBIENT 80.0f

template <int X, int Y, int ACROSS, int DOWN, int STEPS, int UNROLLED, bool KEPT>
__device__ __forceinline__ void stepped(const float *power, const float *before, float *after, float rx, float ry, float rz,
                                        float rate) {
    constexpr int WIDTH = X * ACROSS + 2 * STEPS, HEIGHT = Y * DOWN + 2 * STEPS;
    constexpr int CORNER = (MOST - STEPS) * PITCH + MOST - STEPS;
    __shared__ float field[2][HEIGHT][WIDTH];
    __shared__ float kept[KEPT ? HEIGHT : 1][KEPT ? WIDTH : 1];
    const float *sources = power + CORNER, *values = before + CORNER;
    int left = ACROSS * X * blockIdx.x, top = DOWN * Y * blockIdx.y;
    int now = 1;
#pragma unroll
    for (int row = threadIdx.y; row < HEIGHT; row += Y)
#pragma unroll
        for (int column = threadIdx.x; column < WIDTH; column += X) {
            int x = left + column, y = top + row;
            if (x < PITCH && y < PITCH) {
                field[now][row][column] = values[y * PITCH + x];
                if (KEPT) kept[row][column] = sources[y * PITCH + x];
            } else {
                field[1 - now][row][column] = 0;
                field[now][row][column] = 0;
                if (KEPT) kept[row][column] = 0;
            }
        }
    __syncthreads();
#pragma unroll UNROLLED
    for (int step = 1; step <= STEPS; ++step) {
#pragma unroll
        for (int row = threadIdx.y + step; row < HEIGHT - step; row += Y)
#pragma unroll
            for (int column = threadIdx.x + step; column < WIDTH - step; column += X) {
                float source = 0;
                if (KEPT) {
                    source = kept[row][column];
                } else {
                    int x = left + column, y = top + row;
                    if (x < PITCH && y < PITCH) source = sources[y * PITCH + x];
                }
                float here = field[now][row][column];
                field[1 - now][row][column] =
                    here + rate * (source + (field[now][row + 1][column] + field[now][row - 1][column] - 2.0 * here) * ry +
                                   (field[now][row][column + 1] + field[now][row][column - 1] - 2.0 * here) * rx +
                                   (AMBIENT - here) * rz);
            }
        __syncthreads();
        now = 1 - now;
    }
#pragma unroll
    for (int j = 0; j < DOWN; ++j)
#pragma unroll
        for (int i = 0; i < ACROSS; ++i) {
            int x = left + i * X + threadIdx.x, y = top + j * Y + threadIdx.y;
            if (x < SIDE && y < SIDE)
                after[y * SIDE + x] = field[now][j * Y + threadIdx.y + STEPS][i * X + threadIdx.x + STEPS];
        }
}

#define ARGUMENTS const float *power, const float *before, float *after, float rx, float ry, float rz, float rate
#define STEPPED(NAME, X, Y, ACROSS, DOWN, STEPS, UNROLLED, KEPT)                                                              \
    extern "C" __global__ void NAME(ARGUMENTS) {                                                                              \
        stepped<X, Y, ACROSS, DOWN, STEPS, UNROLLED, KEPT>(power, before, after, rx, ry, rz, rate);                           \
    }
#define ANY(X, Y, ACROSS, DOWN, STEPS, UNROLLED, KEPT)                                                                        \
    STEPPED(block##X##x##Y##_tile##ACROSS##x##DOWN##_steps##STEPS##_by##UNROLLED##_kept##KEPT, X, Y, ACROSS, DOWN, STEPS,     \
            UNROLLED, KEPT)
#define BOUND(X, Y, ACROSS, DOWN, STEPS, UNROLLED, KEPT, RESIDENT)                                                            \
    STEPPED(__launch_bounds__(X * Y, RESIDENT) block##X##x##Y##_tile##ACROSS##x##DOWN##_steps##STEPS##_by##UNROLLED##_kept##KEPT, \
            X, Y, ACROSS, DOWN, STEPS, UNROLLED, KEPT)

ANY(8, 8, 4, 1, 2, 1, 0)
BOUND(160, 1, 1, 6, 8, 2, 0, 3)
BOUND(32, 2, 8, 1, 4, 4, 0, 4)
ANY(64, 2, 2, 7, 6, 2, 1)
BOUND(8, 16, 4, 3, 4, 2, 1, 2)
BOUND(64, 8, 4, 2, 2, 1, 0, 4)
BOUND(4, 8, 10, 1, 8, 8, 1, 3)
BOUND(4, 8, 9, 4, 7, 1, 0, 3)
ANY(96, 2, 2, 6, 6, 2, 0)
BOUND(16, 8, 5, 3, 8, 4, 1, 2)
ANY(32, 4, 2, 5, 5, 5, 0)
BOUND(16, 4, 5, 4, 9, 3, 1, 1)
BOUND(288, 1, 2, 8, 1, 1, 0, 2)
BOUND(4, 16, 2, 1, 3, 3, 1, 2)
BOUND(8, 4, 1, 3, 8, 8, 1, 1)
BOUND(8, 16, 3, 5, 3, 1, 1, 3)
BOUND(64, 4, 6, 1, 3, 3, 1, 2)
BOUND(2, 32, 7, 2, 4, 2, 0, 4)
BOUND(32, 2, 1, 2, 7, 1, 0, 3)
BOUND(64, 4, 2, 3, 6, 6, 0, 3)
BOUND(160, 2, 1, 6, 2, 1, 0, 3)
ANY(64, 2, 1, 1, 9, 3, 1)
ANY(4, 32, 2, 1, 6, 2, 0)
BOUND(16, 8, 4, 4, 4, 4, 1, 2)
BOUND(32, 1, 6, 9, 3, 3, 0, 2)
ANY(2, 16, 4, 5, 4, 2, 1)
BOUND(128, 2, 1, 6, 8, 8, 0, 2)
BOUND(4, 16, 8, 1, 6, 3, 1, 2)
BOUND(4, 16, 1, 1, 7, 1, 1, 4)
ANY(2, 32, 4, 1, 4, 2, 0)
