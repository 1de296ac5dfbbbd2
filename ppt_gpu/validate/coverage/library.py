"""Cases of validation/coverage/cuda/library.cu: what kernels of libraries do."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.validate.coverage.case import Data, case, rng


@case("library")
def wide_integers() -> Data:
    x = rng(1).integers(0, 2**64, 96, dtype=np.uint64)
    whole = [int(v) for v in x]
    pairs = [divmod(whole[i] << 64 | whole[i + 32], (whole[i + 64] >> i) << i | 1) for i in range(32)]
    words = [[value & (1 << 64) - 1 for value in part] for part in zip(*pairs, strict=True)]
    upper = [[value >> 64 for value in part] for part in zip(*pairs, strict=True)]
    expected = [np.array(low + high, np.uint64) for low, high in zip(words, upper, strict=True)]
    return Data([x, np.zeros(64, np.uint64), np.zeros(64, np.uint64)], dict(enumerate(expected, 1)))


@case("library", 20, 64)
def look_back() -> Data:
    x = rng(2).integers(0, 1000, 20 * 64, dtype=np.uint32)
    state, ticket = np.zeros(20, np.uint64), np.zeros(1, np.uint32)
    return Data([x, np.zeros_like(x), state, ticket], {1: np.cumsum(x, dtype=np.uint32), 3: np.array([20], np.uint32)})


def factors(rows: int, columns: int, depth: int) -> tuple[NDArray, NDArray, NDArray]:
    """f16 matrices A [rows, depth] and B [columns, depth] of small integers, and f32 A B^T, which is exact."""
    a, b = (rng(3 + k).integers(-3, 4, (n, depth)).astype(np.float16) for k, n in enumerate((rows, columns)))
    return a, b, a.astype(np.float32) @ b.astype(np.float32).T


@case("library", 1, 128, dynamic_shared=3 * 8192)
def multistage() -> Data:
    a, b, product = factors(64, 64, 96)
    return Data([a, b, np.zeros_like(product), 64, 96], {2: product})


@case("library", 1, 256, dynamic_shared=2 * 12288)
def specialised() -> Data:
    """Tensor maps are of buffers: A and B lie behind the product in that of the third argument."""
    a, b, product = factors(64, 32, 256)
    parts = [product, a.view(np.float32), b.view(np.float32)]
    expected = np.concatenate([part.ravel() for part in parts])
    given = expected.copy()
    given[: product.size] = 0
    maps = [
        f"tensormap(arg2+{at}, dims=256x{rows}, box=64x{rows}, type=f16, swizzle=128B)"
        for at, rows in ((product.nbytes, 64), (product.nbytes + a.nbytes, 32))
    ]
    return Data([*maps, given, 32, 256], {2: expected})
