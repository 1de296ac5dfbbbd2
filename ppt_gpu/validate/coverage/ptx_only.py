"""Cases of validation/coverage/cuda/ptx_only.cu."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.frontends.texture_argument import ArrayTexture
from ppt_gpu.validate.coverage.arithmetic import N, wrapped
from ppt_gpu.validate.coverage.case import Data, case, rng


@case("ptx_only", 2, 64)
def reductions() -> Data:
    x = rng(1).integers(1, 1000, 128, dtype=np.int32)
    out = np.array([5, 2**31 - 1, 0, 9, 2**32 - 1, 45, 0, 0, 0, 0], np.uint32)
    counted = 45
    for _ in range(128):
        counted = 0 if counted >= 50 else counted + 1
    u = x.view(np.uint32)
    expected = [5 + x.sum(), x.min(), np.bitwise_or.reduce(u), 9 ^ np.bitwise_xor.reduce(u)]
    expected += [np.bitwise_and.reduce(u | np.uint32(0x7FFFF0)), counted]
    for block in x.reshape(2, 64):
        expected += [block.sum(), block.max()]
    wide = np.array([3 + (x.astype(np.int64) ** 2).sum(), x.max()])
    args = [x, out, np.array([3, -7]), np.array([0.5], np.float32), np.array([0.25])]
    return Data(
        args, {1: np.array(expected, np.uint32), 2: wide, 3: np.array([x.sum() + 0.5]), 4: np.array([x.sum() + 0.25])}
    )


def _low24(value: int) -> int:
    return ((value & 0xFFFFFF) ^ 0x800000) - 0x800000


def _clamped(value: int) -> int:
    return min(max(value, -(2**31)), 2**31 - 1)


def _dot2(x: int, low: list[int], c: int) -> int:
    halves = np.array([x], np.int32).view(np.int16)
    return int(halves[0]) * low[0] + int(halves[1]) * low[1] + c


@case("ptx_only", 1, N)
def rare_integers() -> Data:
    a = rng(2).integers(-(2**31), 2**31, N, dtype=np.int32)
    b = rng(3).integers(-(2**31), 2**31, N, dtype=np.int32)
    a[:3] = [0, 2**31 - 1, -(2**31)]
    rows: list[list[int]] = [[] for _ in range(16)]
    for x, y in zip(map(int, a), map(int, b), strict=True):
        u, v = x % 2**32, y % 2**32
        content = list(y.to_bytes(4, "little", signed=True))
        signed = [byte - 256 if byte > 127 else byte for byte in content]
        picked = (v << 32 | u).to_bytes(8, "little")[3:7]
        chosen = (3 if x < y and x > 0 else 4) + (10 if x >= y else 0)
        values = [
            _clamped(x + y), _clamped(x - y), _clamped((x * y >> 32) + x), _low24(x) * _low24(y) >> 16,
            (u & 0xFFFFFF) * (v & 0xFFFFFF) + 5, int(not x & 3), x if x ^ y >= 0 else y, _dot2(x, content[:2], 7),
            _dot2(x, signed[2:], 7), 32 - u.bit_length() if u else -1, x, int.from_bytes(picked, "little"),
            (u >> 16) * 0x10001, chosen, -int(x < y), u >> 16 | u << 16,
        ]  # fmt: skip
        for row, value in zip(rows, values, strict=True):
            row.append(value)
    expected = np.concatenate([wrapped(row, "i4") for row in rows])
    return Data([a, b, np.zeros(16 * N, np.int32), N], {2: expected})


def _flushed(values: NDArray[np.float32]) -> NDArray[np.float32]:
    tiny = np.abs(values) < np.finfo(np.float32).tiny
    return np.where(tiny, np.copysign(np.float32(0), values), values)


@case("ptx_only", 1, N)
def rare_floats() -> Data:
    x, y = rng(4).standard_normal((2, N)).astype(np.float32)
    x, y = x.copy(), y.copy()
    x[:8] = [np.nan, np.inf, -np.inf, 1e-40, -1e-40, 0.0, -0.0, 3e38]
    y[3:6] = [1e-41, 1e-38, 1e-42]
    with np.errstate(invalid="ignore", over="ignore"):
        total = _flushed(_flushed(x) + _flushed(y))
        fx, fy = _flushed(x).astype(np.float64), _flushed(y).astype(np.float64)
        fused = _flushed((fx * fy + fx).astype(np.float32))  # exact in f64 but for far smaller addends
        sign = np.where(np.signbit(x) ^ np.signbit(y), -1, 1)
        rows = [total, np.nan_to_num(np.clip(x * y, 0, 1)), np.nan_to_num(np.clip(fused, 0, 1)), np.minimum(x, y)]
        rows += [
            np.fmax(np.abs(x), np.abs(y)) * sign,
            np.where(np.arange(N) & 1, y, x),
            np.rint(_flushed(x)),
            -_flushed(x),
        ]
        finite, subnormal = np.isfinite(x), (x != 0) & (np.abs(x) < np.finfo(np.float32).tiny)
        whole = np.nan_to_num(np.clip(np.trunc(x * np.float32(100)), -128, 127))
    kinds = [finite, np.isinf(x), ~np.isnan(x), np.isnan(x), finite & ~subnormal, subnormal, ~(x >= y), x == x, whole]
    args = [x, y, np.zeros(8 * N, np.float32), np.zeros(9 * N, np.int32), N]
    return Data(args, {2: np.concatenate(rows).astype(np.float32), 3: np.concatenate(kinds).astype(np.int32)})


@case("ptx_only", 1, 32)
def moved_matrix() -> Data:
    x = rng(5).integers(0, 2**16, (8, 8), dtype=np.uint16)
    return Data([x, np.zeros_like(x)], {1: x.T.copy()})


@case("ptx_only", 1, 128)
def uniform_votes() -> Data:
    x = rng(6).integers(0, 100, 128, dtype=np.int32)
    x[32:64] |= 64
    x[64:96] &= 31
    above = (x > 50).reshape(4, 32)
    return Data([x, np.zeros(128, np.int32)], {1: np.repeat((above == above[:, :1]).all(axis=1), 32).astype(np.int32)})


@case("ptx_only", 1, 64)
def stack_memory() -> Data:
    x = rng(7).integers(0, 100, 64, dtype=np.int32)
    which = [next(i for i in range(8) if (i * 3 + t) % 8 == 5) for t in range(64)]
    return Data([x, np.zeros(64, np.int32)], {1: x + np.array(which)})


@case("ptx_only", 1, 64)
def surface_lines() -> Data:
    x = rng(8).integers(0, 100, 64, dtype=np.int32)
    to = np.zeros(64, np.int32)
    return Data([ArrayTexture(x), ArrayTexture(to)], {1: 2 * x})
