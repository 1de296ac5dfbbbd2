"""Cases of validation/coverage/python/triton_kernels.py: the arguments not compiled in, then scratch pointers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.validate.coverage.case import Data, case, rng

SCRATCH = (0, 0)  # hidden pointers, null


@case("triton_vector_add", 4, 128)
def vector_add() -> Data:
    x, y = rng(1).random((2, 1000), dtype=np.float32)
    x, y = x.copy(), y.copy()
    return Data([x, y, np.zeros(1000, np.float32), 1000, *SCRATCH], {2: x + y})


@case("triton_softmax", 8, 128, tolerance=2e-6)
def softmax() -> Data:
    x = rng(2).standard_normal((8, 200)).astype(np.float32)
    powers = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    expected = powers / powers.sum(axis=1, keepdims=True)
    return Data([np.zeros_like(x), x, 200, 200, *SCRATCH], {0: expected})


@case("triton_layer_norm", 4, 128, tolerance=1e-5, absolute=1e-6)
def layer_norm() -> Data:
    x = rng(3).standard_normal((4, 300)).astype(np.float32)
    weight, bias = (rng(4 + i).standard_normal(300).astype(np.float32) for i in range(2))
    d = x.astype(np.float64)
    scale = 1 / np.sqrt(d.var(axis=1, keepdims=True) + 1e-5)
    expected = (d - d.mean(axis=1, keepdims=True)) * scale * weight + bias
    return Data([np.zeros_like(x), x, weight, bias, 300, 1e-5, *SCRATCH], {0: expected})


@case("triton_scan_and_count", 1, 128)
def scan_and_count() -> Data:
    x = rng(6).integers(0, 1000, 500, dtype=np.int32)
    args = [x, np.zeros(500, np.int32), np.zeros(1, np.int32), np.zeros(8, np.int32), 500, *SCRATCH]
    return Data(args, {1: np.cumsum(x), 2: np.array([x.argmax()]), 3: np.bincount(x % 8, minlength=8)})


def _product() -> tuple[list[object], NDArray]:
    a = rng(7).integers(-4, 5, (64, 96)).astype(np.float16)
    b = rng(8).integers(-4, 5, (96, 64)).astype(np.float16)
    args = [a, b, np.zeros((64, 64), np.float32), 64, 64, 96, *SCRATCH]
    return args, a.astype(np.float32) @ b.astype(np.float32)


@case("triton_matmul", (2, 2), 128)
def matmul() -> Data:
    args, expected = _product()
    return Data(args, {2: expected})


@case("triton_matmul_hopper", (1, 2), 128, kernel="matmul")
def matmul_hopper() -> Data:
    args, expected = _product()
    return Data(args, {2: expected})


@case("triton_attention", 3, 128, tolerance=2e-3, absolute=2e-3)
def attention() -> Data:
    q, k, v = (rng(9 + i).standard_normal((96, 32)).astype(np.float16) for i in range(3))
    scores = q.astype(np.float64) @ k.astype(np.float64).T * 0.25
    powers = np.exp2(scores - scores.max(axis=1, keepdims=True))
    expected = powers / powers.sum(axis=1, keepdims=True) @ v.astype(np.float64)
    return Data([q, k, v, np.zeros((96, 32), np.float32), 96, 0.25, *SCRATCH], {3: expected})
