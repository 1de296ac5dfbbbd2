"""The numba-cuda kernels of the corpus, and the arguments that they are compiled for."""

import math

import numpy as np
from numba import cuda, float32, int32


@cuda.jit
def axpy(a, x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] += a * x[i]


@cuda.jit
def row_sums(matrix, out):
    part = cuda.shared.array(64, float32)
    lane = cuda.threadIdx.x
    total = float32(0)
    for column in range(lane, matrix.shape[1], 64):
        total += matrix[cuda.blockIdx.x, column]
    part[lane] = total
    cuda.syncthreads()
    step = 32
    while step:
        if lane < step:
            part[lane] += part[lane + step]
        cuda.syncthreads()
        step //= 2
    if lane == 0:
        out[cuda.blockIdx.x] = part[0]


@cuda.jit
def histogram(values, bins):
    for i in range(cuda.grid(1), values.size, cuda.gridsize(1)):
        cuda.atomic.add(bins, values[i] % bins.size, 1)


@cuda.jit
def mandelbrot(counts, limit):
    x, y = cuda.grid(2)
    if x < counts.shape[1] and y < counts.shape[0]:
        c = complex(x / 16.0 - 1.5, y / 16.0 - 1.0)
        z = 0j
        steps = 0
        while steps < limit and z.real * z.real + z.imag * z.imag <= 4.0:
            z = z * z + c
            steps += 1
        counts[y, x] = steps


@cuda.jit
def laplace(grid, out):
    y, x = cuda.grid(2)
    if 0 < y < grid.shape[0] - 1 and 0 < x < grid.shape[1] - 1:
        out[y, x] = grid[y - 1, x] + grid[y + 1, x] + grid[y, x - 1] + grid[y, x + 1] - 4.0 * grid[y, x]


@cuda.jit
def medians(values, out):
    own = cuda.local.array(9, int32)
    i = cuda.grid(1)
    if i + 9 <= values.size:
        for k in range(9):
            own[k] = values[i + k]
        for k in range(1, 9):
            value, j = own[k], k
            while j > 0 and own[j - 1] > value:
                own[j] = own[j - 1]
                j -= 1
            own[j] = value
        out[i] = own[4]


@cuda.jit
def functions(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = math.sin(x[i]) + math.exp(-x[i]) * math.sqrt(x[i]) + math.log(x[i] + 1.0)


@cuda.jit
def warp_sums(values, out):
    value = values[cuda.grid(1)]
    step = 16
    while step:
        value += cuda.shfl_down_sync(0xFFFFFFFF, value, step)
        step //= 2
    if cuda.laneid == 0:
        out[cuda.grid(1) // 32] = value


def _array(dtype, dimensions=1):
    return np.zeros((2,) * dimensions, dtype)


#: file -> kernel, arguments (arrays stand for their types)
KERNELS = {
    "numba_axpy": (axpy, [np.float32(2), _array("f4"), _array("f4")]),
    "numba_row_sums": (row_sums, [_array("f4", 2), _array("f4")]),
    "numba_histogram": (histogram, [_array("i4"), _array("i4")]),
    "numba_mandelbrot": (mandelbrot, [_array("i4", 2), np.int32(50)]),
    "numba_laplace": (laplace, [_array("f8", 2), _array("f8", 2)]),
    "numba_medians": (medians, [_array("i4"), _array("i4")]),
    "numba_functions": (functions, [_array("f8"), _array("f8")]),
    "numba_warp_sums": (warp_sums, [_array("f4"), _array("f4")]),
}
