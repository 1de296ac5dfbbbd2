"""Cases of validation/coverage/cuda/half.cu. bf16 numbers are arrays of their 16 bits."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.validate.coverage.case import Data, case, rng
from ppt_gpu.validate.coverage.exact import each, rounded, table

N = 64
MODES = ("rn", "rz", "ru", "rd")


def halves(seed: int) -> NDArray[np.float16]:
    """N halves of moderate size, so that no product overflows."""
    g = rng(seed)
    return (g.standard_normal(N) * 2.0 ** g.integers(-4, 5, N)).astype(np.float16)


def bf16(values: object) -> NDArray[np.uint16]:
    """Numbers that bf16 holds exactly, as its bits."""
    bits = np.asarray(values, np.float32).view(np.uint32)
    assert not (bits & 0xFFFF).any()
    return (bits >> 16).astype(np.uint16)


def numbers(bits: NDArray[np.uint16]) -> NDArray[np.float32]:
    """The values of bf16 bits."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


@case("half", 1, N)
def half_arithmetic() -> Data:
    x, y = halves(1), halves(2)
    y[:5] = x[:5]
    fused = each(lambda a, b: rounded(a * b + a, "rn", "f2"), x, y)
    rows = [x + y, x - y, x * y, fused, np.clip(x + y, 0, 1), np.maximum(fused, 0), -x, np.abs(x)]
    rows += [np.minimum(x, y), np.maximum(x, y), np.where(x < y, x, y), x == y]
    return Data([x, y, np.zeros(12 * N, np.float16), N], {2: table(rows, "f2")})


@case("half", 1, N // 2)
def half2_arithmetic() -> Data:
    x, y = halves(3), halves(4)
    fused = each(lambda a, b: rounded(a * b + a, "rn", "f2"), x, y)
    swapped = x.reshape(-1, 2)[:, ::-1].reshape(-1)
    mixed = np.stack([x[1::2], y[::2]], axis=1).reshape(-1)
    rows = [x + y, x * y, fused, y - x, np.minimum(x, y), np.maximum(x, y), x > y, -x, swapped, mixed]
    return Data([x, y, np.zeros(10 * N, np.float16), N // 2], {2: table(rows, "f2")})


@case("half", 1, N)
def bf16_arithmetic() -> Data:
    def some(seed: int) -> NDArray[np.uint16]:
        g = rng(seed)
        values = g.standard_normal(N) * 10.0 ** g.integers(-3, 4, N)
        return bf16([rounded(Fraction(float(v)), "rn", "bf16") for v in values])

    a, b = some(5), some(6)
    x, y = numbers(a), numbers(b)

    def fma(p: Fraction, q: Fraction, r: Fraction) -> float:
        return rounded(p * q + r, "rn", "bf16")

    rows = [
        each(lambda p, q: rounded(p + q, "rn", "bf16"), x, y),
        each(lambda p, q: rounded(p * q, "rn", "bf16"), x, y),
    ]
    rows += [each(fma, x, y, x), list(np.maximum(x, y)), list(np.minimum(x, y)), list(-x), list(np.abs(x))]
    rows += [each(fma, x, x, x), each(fma, y, y, y)]
    return Data([a, b, np.zeros(9 * N, np.uint16), N], {2: np.concatenate([bf16(row) for row in rows])})


@case("half", 1, N)
def conversions() -> Data:
    g = rng(7)
    x = (g.standard_normal(N) * 10.0 ** g.integers(-6, 4, N)).astype(np.float32)
    d = g.standard_normal(N) * 10.0 ** g.integers(-6, 4, N)
    i = g.integers(-60000, 60000, N, dtype=np.int32)

    def as_half(values: NDArray, mode: str = "rn") -> NDArray[np.uint16]:
        return np.array(each(lambda v: rounded(v, mode, "f2"), values), np.float16).view(np.uint16)

    def as_bf16(mode: str) -> NDArray[np.uint16]:
        return bf16(each(lambda v: rounded(v, mode, "bf16"), x))

    h = as_half(x).view(np.float16)
    rows = [as_half(x, mode) for mode in MODES] + [as_half(d), as_half(i), as_half(i.astype(np.int16)), as_bf16("rn")]
    rows += [as_bf16("rz"), np.trunc(h).astype(np.int16).view(np.uint16), np.floor(h).view(np.uint16)]
    rows += [np.rint(h).view(np.uint16), (-h).view(np.uint16)]
    back = h.astype(np.float32) + numbers(as_bf16("rn"))
    args = [x, d, i, np.zeros(13 * N, np.uint16), np.zeros(N, np.float32), N]
    return Data(args, {3: np.concatenate(rows), 4: back})


@case("half", 1, N, tolerance=2e-3, absolute=1e-3)
def half_functions() -> Data:
    x = (rng(8).random(N) * 4 + 0.25).astype(np.float16)
    d = x.astype(np.float64)
    rows = [np.sqrt(d), np.exp2(d), 1 / d, np.tanh(d), np.sin(d), d / 3]
    return Data([x, np.zeros(6 * N, np.float32), N], {1: table(rows, "f4")})


@case("half", 1, 32)
def half_dot() -> Data:
    a = rng(9).integers(-8, 9, (200, 2)).astype(np.float16)
    b = rng(10).integers(-8, 9, (200, 2)).astype(np.float16)
    return Data([a, b, np.zeros(1, np.float32), 200], {2: np.array([(a.astype(int) * b.astype(int)).sum()])})
