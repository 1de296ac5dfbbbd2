"""Cases of validation/coverage/cuda/tensor.cu. Small integers make every sum of products exact."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.validate.coverage.case import Data, case, rng

LANE = np.arange(32)
ROW, COLUMN = LANE >> 2, LANE & 3


def small(seed: int, shape: tuple[int, ...], dtype: str = "f2") -> NDArray:
    """Small integers of any type."""
    return rng(seed).integers(-4, 5, shape).astype(dtype)


@case("tensor")
def wmma_half() -> Data:
    a, b, c = small(1, (16, 16)), small(2, (16, 16)), small(3, (16, 16), "f4")
    expected = 2 * (a.astype("f4") @ b.astype("f4").T + c)  # b is stored by columns
    return Data([a, b, c, np.zeros((16, 16), np.float32)], {3: expected})


@case("tensor")
def wmma_bytes() -> Data:
    a, b = small(4, (32, 16), "i1"), small(5, (16, 8), "i1")
    return Data([a, b, np.zeros((32, 8), np.int32)], {2: a.astype(int) @ b.astype(int) + 5})


@case("tensor")
def mma_half() -> Data:
    a, b = small(6, (16, 16)), small(7, (16, 8))
    return Data([a, b, np.zeros((16, 8), np.float32)], {2: a.astype("f4") @ b.astype("f4")})


def _accumulators(d: NDArray) -> NDArray:
    """A 16 x 8 result as each lane holds it: rows g and g + 8, columns 2 t and 2 t + 1."""
    places = [d[ROW, 2 * COLUMN], d[ROW, 2 * COLUMN + 1], d[ROW + 8, 2 * COLUMN], d[ROW + 8, 2 * COLUMN + 1]]
    return np.stack(places, axis=1)


@case("tensor")
def mma_types() -> Data:
    a, b = small(8, (32, 4), "f4").view(np.uint32), small(9, (32, 2), "f4").view(np.uint32)
    da, db = small(10, (32,), "f8"), small(11, (32,), "f8")

    left, right = np.zeros((16, 8)), np.zeros((8, 8))
    for register, (down, over) in enumerate(((0, 0), (8, 0), (0, 4), (8, 4))):
        left[ROW + down, COLUMN + over] = a.view(np.float32)[:, register]
    for register in range(2):
        right[COLUMN + 4 * register, ROW] = b.view(np.float32)[:, register]
    tf = _accumulators(left @ right) + np.array([1, 2, 3, 4])

    def pairs(bits: NDArray) -> NDArray:  # bf16 is the upper half of an f32
        return (np.ascontiguousarray(bits).view(np.uint16).astype(np.uint32) << 16).view(np.float32).reshape(32, 2)

    left, right = np.zeros((16, 8)), np.zeros((8, 8))
    for i in range(2):
        left[ROW, 2 * COLUMN + i] = pairs(a[:, 0])[:, i]
        left[ROW + 8, 2 * COLUMN + i] = pairs(a[:, 1])[:, i]
        right[2 * COLUMN + i, ROW] = pairs(b[:, 0])[:, i]
    bf = _accumulators(left @ right)

    wide, tall = np.zeros((16, 32), int), np.zeros((32, 8), int)
    for i in range(4):
        for register, (down, over) in enumerate(((0, 0), (8, 0), (0, 16), (8, 16))):
            wide[ROW + down, 4 * COLUMN + over + i] = a.view(np.int8).reshape(32, 4, 4)[:, register, i]
        for register in range(2):
            tall[4 * COLUMN + 16 * register + i, ROW] = b.view(np.int8).reshape(32, 2, 4)[:, register, i]
    s8 = _accumulators(wide @ tall) + np.array([0, 0, 0, 1])

    square = np.zeros((8, 4)), np.zeros((4, 8))
    square[0][ROW, COLUMN], square[1][COLUMN, ROW] = da, db
    product = square[0] @ square[1]
    dd = np.stack([product[ROW, 2 * COLUMN] + 0.5, product[ROW, 2 * COLUMN + 1] + 0.25], axis=1)
    out = [np.zeros(128, np.float32), np.zeros(128, np.float32), np.zeros(128, np.int32), np.zeros(64)]
    return Data([a, b, da, db, *out], {4: tf, 5: bf, 6: s8, 7: dd})


@case("tensor", 1, 128)
def async_copies() -> Data:
    x = rng(12).random((5, 128), dtype=np.float32)
    return Data([x, np.zeros_like(x), 5], {1: x[:, ::-1] * 2})


@case("tensor", 1, 32)
def async_zero_fill() -> Data:
    x = rng(13).integers(1, 100, 70, dtype=np.int32)
    return Data([x, np.full(128, 7, np.int32), 70], {1: np.pad(x, (0, 58))})


@case("tensor", 1, 64)
def warp_reductions() -> Data:
    x = rng(14).integers(-(2**31), 2**31, 64, dtype=np.int32)
    u = x.view(np.uint32)
    rows = []
    for reduce, column in (
        (np.add, u), (np.minimum, x), (np.maximum, u), (np.bitwise_and, u | np.uint32(3)), (np.bitwise_or, u),
        (np.bitwise_xor, u),
    ):  # fmt: skip
        sums = [reduce.reduce(warp, dtype=warp.dtype) for warp in column.reshape(2, 32)]
        rows.append(np.repeat(np.array(sums).astype(column.dtype).view(np.uint32), 32))
    return Data([x, np.zeros(384, np.uint32)], {1: np.concatenate(rows)})


@case("tensor", 1, 64)
def barrier_objects() -> Data:
    x = rng(15).integers(0, 1000, 64, dtype=np.int32)
    v = x.copy()
    for _ in range(2):
        v = 3 * v + np.roll(v, -1)
    return Data([x, np.zeros(64, np.int32)], {1: v})
