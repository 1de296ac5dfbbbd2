"""Cases of validation/coverage/python/numba_kernels.py: each array is 5 + 2 n parameters of numba's convention."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.validate.coverage.case import Data, case, rng


def passed(array: NDArray) -> list[Any]:
    """The parameters of one array; the array itself is the fifth."""
    return [0, 0, array.size, array.itemsize, array, *array.shape, *array.strides]


@case("numba_axpy", 4, 64)
def axpy() -> Data:
    x, y = (rng(seed).integers(0, 100, 250).astype(np.float32) for seed in (1, 2))
    return Data([np.float32(2), *passed(x), *passed(y)], {12: y + 2 * x})


@case("numba_row_sums", 5, 64)
def row_sums() -> Data:
    x = rng(3).integers(0, 100, (5, 300)).astype(np.float32)
    return Data([*passed(x), *passed(np.zeros(5, np.float32))], {13: x.sum(axis=1)})


@case("numba_histogram", 3, 64)
def histogram() -> Data:
    x = rng(4).integers(0, 1000, 700, dtype=np.int32)
    return Data([*passed(x), *passed(np.zeros(16, np.int32))], {11: np.bincount(x % 16, minlength=16)})


def _steps(x: int, y: int, limit: int) -> int:
    c, z, steps = complex(x / 16 - 1.5, y / 16 - 1), 0j, 0
    while steps < limit and z.real * z.real + z.imag * z.imag <= 4:
        z = complex(z.real * z.real - z.imag * z.imag + c.real, z.real * z.imag + z.imag * z.real + c.imag)
        steps += 1
    return steps


@case("numba_mandelbrot", (2, 4), (16, 8))
def mandelbrot() -> Data:
    expected = np.array([[_steps(x, y, 50) for x in range(32)] for y in range(30)], np.int32)
    return Data([*passed(np.zeros((30, 32), np.int32)), np.int32(50)], {4: expected})


@case("numba_laplace", (3, 2), (8, 16))
def laplace() -> Data:
    x = rng(5).integers(0, 100, (20, 30)).astype(np.float64)
    expected = np.zeros_like(x)
    expected[1:-1, 1:-1] = x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:] - 4 * x[1:-1, 1:-1]
    return Data([*passed(x), *passed(np.zeros_like(x))], {13: expected})


@case("numba_medians", 2, 64)
def medians() -> Data:
    x = rng(6).integers(-1000, 1000, 100, dtype=np.int32)
    expected = np.median(np.lib.stride_tricks.sliding_window_view(x, 9), axis=1)
    return Data([*passed(x), *passed(np.zeros(92, np.int32))], {11: expected})


@case("numba_functions", 2, 64, tolerance=1e-13)
def functions() -> Data:
    x = rng(7).random(100) * 5
    expected = np.sin(x) + np.exp(-x) * np.sqrt(x) + np.log(x + 1)
    return Data([*passed(x), *passed(np.zeros(100))], {11: expected})


@case("numba_warp_sums", 2, 64)
def warp_sums() -> Data:
    x = rng(8).integers(0, 100, 128).astype(np.float32)
    return Data([*passed(x), *passed(np.zeros(4, np.float32))], {11: x.reshape(4, 32).sum(axis=1)})
