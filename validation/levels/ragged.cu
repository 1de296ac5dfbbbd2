// Blocks that do very different amounts of work, in several waves.
// Compiled with: nvcc -arch=sm_75 -ptx -o ragged.ptx ragged.cu

// Segments of an array, a block each; every 64th is `longer` times as long.
extern "C" __global__ void ragged_copy(const float *__restrict__ in, float *out, int length, int longer)
{
    int b = blockIdx.x, group = b / 64, place = b % 64;
    int begin = (group * (63 + longer) + place) * length, end = begin + (place == 63 ? longer : 1) * length;
    for (int i = begin + threadIdx.x; i < end; i += blockDim.x)
        out[i] = in[i];
}

// Steps from place to place: a block's number of them says how long it waits.
extern "C" __global__ void chains(const unsigned *__restrict__ draw, const unsigned *__restrict__ next, unsigned *out,
                                  int longest, int mask)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, steps = 4 + longest / (1 + (draw[blockIdx.x] & 255));
    unsigned at = i;
    for (int k = 0; k < steps; k++)
        at = next[at & mask];
    out[i] = at;
}

// Arithmetic only: few blocks do most of it.
extern "C" __global__ void rounds(const unsigned *__restrict__ draw, float *out, int longest)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, n = 8 + longest / (1 + (draw[blockIdx.x] & 255));
    float a = i, b = 1, c = 2, d = 3;
    for (int k = 0; k < n; k++) {
        a = a * 0.5f + 1;
        b = b * 0.5f + 2;
        c = c * 0.5f + 3;
        d = d * 0.5f + 4;
    }
    out[i] = a + b + c + d;
}
