"""Cases of validation/coverage/cuda/arithmetic.cu. Rounded results come from rational arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.validate.coverage.case import Data, case, rng
from ppt_gpu.validate.coverage.exact import each, rounded, rounded_root, table

N = 64
MODES = ("rn", "rz", "ru", "rd")


def floats(seed: int, dtype: str = "f4") -> tuple[NDArray, NDArray]:
    """Two columns of N numbers over several magnitudes; the second is positive."""
    g = rng(seed)
    a = g.standard_normal(N) * 10.0 ** g.integers(-3, 4, N)
    b = (g.random(N) + 1e-3) * 10.0 ** g.integers(-2, 3, N)
    return a.astype(dtype), b.astype(dtype)


def wrapped(values: object, dtype: str) -> NDArray:
    """Integers of any size as the bits of an integer type."""
    bits = 8 * np.dtype(dtype).itemsize
    return np.array([int(v) % (1 << bits) for v in values], f"u{bits // 8}").view(dtype)  # type: ignore[attr-defined]


@case("arithmetic", 1, N)
def roundings() -> Data:
    x, y = floats(1)
    rows = [each(lambda a, b, m=m: rounded(a + b, m, "f4"), x, y) for m in MODES]
    rows += [each(lambda a, b, m=m: rounded(a * b, m, "f4"), x, y) for m in MODES]
    rows += [each(lambda a, b, m=m: rounded(a * b + a, m, "f4"), x, y) for m in MODES]
    rows += [each(lambda a, b, m=m: rounded(a / b, m, "f4"), x, y) for m in MODES]
    rows += [each(lambda b, m=m: rounded_root(b, m, "f4"), y) for m in MODES]
    rows += [each(lambda b: rounded(1 / b, "rn", "f4"), y), list(np.clip(x, 0, 1))]
    return Data([x, y, np.zeros(22 * N, np.float32), N], {2: table(rows, "f4")})


@case("arithmetic", 1, N)
def roundings_double() -> Data:
    x, y = floats(2, "f8")
    rows = [each(lambda a, b, m=m: rounded(a + b, m, "f8"), x, y) for m in MODES]
    rows += [each(lambda a, b, m=m: rounded(a * b, m, "f8"), x, y) for m in MODES[:2]]
    rows += [each(lambda a, b, m=m: rounded(a * b + a, m, "f8"), x, y) for m in MODES[:2]]
    rows += [each(lambda a, b, m=m: rounded(a / b, m, "f8"), x, y) for m in ("rn", "ru")]
    rows += [each(lambda b, m=m: rounded_root(b, m, "f8"), y) for m in ("rn", "rd")]
    rows += [each(lambda b: rounded(1 / b, "rn", "f8"), y), list(np.minimum(x, y)), list(np.maximum(x, y))]
    rows += [list(np.copysign(x, -y))]
    return Data([x, y, np.zeros(16 * N), N], {2: table(rows, "f8")})


@case("arithmetic", 1, N)
def to_integral() -> Data:
    x = floats(3)[0]
    x[:8] = [0.5, -0.5, 1.5, 2.5, -2.5, 3.0, -0.0, 1e9]
    away = np.where(x < 0, -np.floor(0.5 - x.astype(np.float64)), np.floor(x.astype(np.float64) + 0.5))
    f = table([np.floor(x), np.ceil(x), np.trunc(x), np.rint(x), away], "f4")
    i = table([np.trunc(x), np.rint(x), np.ceil(x), np.floor(x)], "i4")
    u = table([np.clip(np.trunc(x), 0, 2**32 - 1), x.view(np.uint32)], "u4")
    wide = (x * np.float32(1e6)).astype(np.float32)
    low = np.trunc(x).astype(np.int64).astype(np.int8).astype(np.int64)
    out = [
        np.zeros(5 * N, np.float32),
        np.zeros(4 * N, np.int32),
        np.zeros(2 * N, np.uint32),
        np.zeros(2 * N, np.int64),
    ]
    return Data([x, *out, N], {1: f, 2: i, 3: u, 4: table([np.rint(wide), low], "i8")})


@case("arithmetic", 1, N)
def from_integer() -> Data:
    x = rng(4).integers(-(2**31), 2**31, N, dtype=np.int32)
    y = rng(5).integers(-(2**62), 2**62, N, dtype=np.int64)

    def exactly(values: NDArray, mode: str, kind: str) -> list[float]:
        return [rounded(Fraction(int(v)), mode, kind) for v in values]

    third = y.astype(np.float64) / 3
    f = [exactly(x, "rn", "f4"), exactly(x, "rz", "f4"), exactly(x.view(np.uint32), "ru", "f4"), exactly(y, "rn", "f4")]
    f += [each(lambda v: rounded(v, "rd", "f4"), third), list(x.astype(np.int16).astype(np.float32))]
    joined = (x.astype(np.int64) << 32 | 12345).view(np.float64)
    d = [x.astype(np.float64), y.astype(np.float64), exactly(y.view(np.uint64), "rz", "f8"), joined]
    d += [x.astype(np.uint8).astype(np.float64)]
    return Data([x, y, np.zeros(6 * N, np.float32), np.zeros(5 * N), N], {2: table(f, "f4"), 3: table(d, "f8")})


@case("arithmetic", 1, N)
def integers() -> Data:
    a = rng(6).integers(-(2**31), 2**31, N, dtype=np.int32)
    b = rng(7).integers(-(2**31), 2**31, N, dtype=np.int32)
    b[:8] = a[:8]
    x, y, u, v = ([int(i) for i in column] for column in (a, b, a.view(np.uint32), b.view(np.uint32)))
    low = [((i & 0xFFFFFF) ^ 0x800000) - 0x800000 for i in u], [((i & 0xFFFFFF) ^ 0x800000) - 0x800000 for i in v]
    two = list(zip(x, y, strict=True))
    unsigned = list(zip(u, v, strict=True))
    rows = [
        [p + q for p, q in two], [p - q for p, q in two], [p * q for p, q in two],
        [math.trunc(Fraction(p, q | 1)) for p, q in two], [math.fmod(p, q | 1) for p, q in two],
        [p // (q | 1) for p, q in unsigned], [p % (q | 1) for p, q in unsigned], [p * q >> 32 for p, q in two],
        [p * q >> 32 for p, q in unsigned], [p * q for p, q in zip(*low, strict=True)],
        [(p & 0xFFFFFF) * (q & 0xFFFFFF) for p, q in unsigned], [abs(p - q) + 7 for p, q in two],
        [min(p, q) for p, q in two], [max(p, q) for p, q in unsigned], [abs(p) for p in x],
        [p + q >> 1 for p, q in two], [p & q for p, q in two], [p | q for p, q in two], [p ^ q for p, q in two],
        [~p for p in x], [p << (q & 31) for p, q in two], [p >> (q & 31) for p, q in two],
        [p >> (q & 31) for p, q in unsigned], [1 if p == q else 2 if p < q else 3 for p, q in two],
    ]  # fmt: skip
    expected = np.concatenate([wrapped(row, "i4") for row in rows])
    return Data([a, b, np.zeros(24 * N, np.int32), N], {2: expected})


def _funnel(low: int, high: int) -> int:
    return high << 32 | low


def _permuted(x: int, y: int, selector: int) -> int:
    content = (y << 32 | x).to_bytes(8, "little")
    return int.from_bytes(bytes(content[selector >> 4 * i & 7] for i in range(4)), "little")


def _bytes(x: int, signed: bool) -> list[int]:
    return [b - 256 if signed and b > 127 else b for b in x.to_bytes(4, "little")]


def _dot(x: int, y: int, c: int, signed: bool) -> int:
    return sum(p * q for p, q in zip(_bytes(x, signed), _bytes(y, signed), strict=True)) + c


def _signed_field(x: int, at: int, size: int) -> int:
    field = x >> at & ((1 << size) - 1)
    return field - (1 << size) if field >> (size - 1) else field


def _nth_set(x: int, start: int, n: int) -> int:
    """fns: the position of the n-th set bit at or above `start`, all ones when there is none."""
    found = [i for i in range(start, 32) if x >> i & 1]
    return found[n - 1] if len(found) >= n else 0xFFFFFFFF


@case("arithmetic", 1, N)
def bits() -> Data:
    g = rng(8)
    a = g.integers(0, 2**32, N, dtype=np.uint32) >> g.integers(0, 32, N, dtype=np.uint32)
    b = g.integers(0, 2**32, N, dtype=np.uint32)
    a[0], a[1] = 0, 2**32 - 1
    c = 0x12345678
    full = 0xFFFFFFFF
    rows: list[list[int]] = [[] for _ in range(21)]
    for x, y in zip(map(int, a), map(int, b), strict=True):
        mask = ((1 << (y & 15)) - 1) << (x & 15)
        size = y & 31
        values = [
            x.bit_count(), 32 - x.bit_length(), int(f"{x:032b}"[::-1], 2), (x & -x).bit_length(),
            _permuted(x, y, 0x6173), _funnel(x, y) << 13 >> 32, _funnel(x, y) >> 13, _funnel(x, y),
            _dot(x, y, -5, True), _dot(x, y, 9, False), x.bit_count() + y.bit_count(),
            64 - (x << 20 | y).bit_length(), x >> 5 & 0x7FF, _signed_field(x, 3, 9),
            (y & ~(0x1FFF << 7)) | (x & 0x1FFF) << 7, x.bit_length() - 1, x ^ y ^ c, (x & y) | (x & c) | (y & c), mask,
            x & ((1 << size) - 1), _nth_set(x, 3, 2),
        ]  # fmt: skip
        for row, value in zip(rows, values, strict=True):
            row.append(value & full)
    return Data([a, b, np.zeros(21 * N, np.uint32), N], {2: np.array(rows, np.uint32)})


@case("arithmetic", 1, N)
def wide_integers() -> Data:
    a = rng(9).integers(-(2**63), 2**63, N, dtype=np.int64)
    b = rng(10).integers(-(2**63), 2**63, N, dtype=np.int64) >> np.repeat([0, 30], N // 2)
    rows: list[list[int]] = [[] for _ in range(14)]
    for x, y in zip(map(int, a), map(int, b), strict=True):
        u, v = x % 2**64, y % 2**64
        divided = math.trunc(Fraction(x, y | 1))
        low = [(i & 0xFFFFFFFF ^ 0x80000000) - 0x80000000 for i in (x, y)]
        values = [
            x * y, x * y >> 64, u * v >> 64, divided, x - divided * (y | 1), u // (v | 1), x << (y & 63), x >> (y & 63),
            x * y + x, x * y + x >> 64, min(x, y), low[0] * low[1], int(f"{u:064b}"[::-1], 2), abs(x),
        ]  # fmt: skip
        for row, value in zip(rows, values, strict=True):
            row.append(value)
    expected = np.concatenate([wrapped(row, "i8") for row in rows])
    return Data([a, b, np.zeros(14 * N, np.int64), N], {2: expected})


@case("arithmetic", 1, N)
def small_integers() -> Data:
    a = rng(11).integers(-128, 128, N, dtype=np.int8)
    b = rng(12).integers(0, 2**16, N, dtype=np.uint16)
    x, y = a.astype(np.int64), b.astype(np.int64)
    expected = wrapped(x * 3 + y // 7 - (x >> 2), "i2")
    data = wrapped((x ^ y) + (y >> 5), "u1")
    return Data([a, b, np.zeros(N, np.int16), np.zeros(N, np.uint8)], {2: expected, 3: data})


@case("arithmetic", 1, N, tolerance=2e-6, absolute=2e-7)
def functions() -> Data:
    x = (rng(13).random(N) * 8 - 4).astype(np.float32)
    d = x.astype(np.float64)
    p = np.abs(d)
    tenth = (x * np.float32(0.1)).astype(np.float64)
    root = np.array([math.erf(v) for v in d])
    rows = [np.sin(d), np.cos(d), np.exp(d), np.log(p + 0.5), np.tanh(d), (p + 0.1) ** 1.7, 1 / np.sqrt(p + 0.1)]
    rows += [np.cbrt(d), root, np.arctan2(d, 1.3), np.log1p(p), np.exp2(d), np.hypot(d, 2), np.tan(d), np.arcsin(tenth)]
    rows += [np.fmod(x, np.float32(0.7))]
    return Data([x, np.zeros(16 * N, np.float32), N], {1: table(rows, "f4")})


@case("arithmetic", 1, N, tolerance=2e-3, absolute=1e-5)
def fast_functions() -> Data:
    x = (rng(14).random(N) * 6 - 3).astype(np.float32)
    d, p = x.astype(np.float64), np.abs(x.astype(np.float64))
    rows = [np.sin(d), np.cos(d), np.exp(d), np.log(p + 2), d / 3.7, (p + 1) ** 1.7, np.tanh(d), 1 / d, np.sqrt(p)]
    return Data([x, np.zeros(9 * N, np.float32), N], {1: table(rows, "f4")})


@case("arithmetic", 1, N, tolerance=1e-14, absolute=1e-15)
def double_functions() -> Data:
    x = rng(15).random(N) * 8 - 4
    p = np.abs(x)
    rows = [np.sin(x), np.cos(x), np.exp(x), np.log(p + 0.5), np.tanh(x), (p + 0.1) ** 1.7, 1 / np.sqrt(p + 0.1)]
    rows += [1 / (x + 100), np.floor(x)]
    return Data([x, np.zeros(9 * N), N], {1: table(rows, "f8")})


@case("arithmetic", 1, 32)
def classes() -> Data:
    some = [0.0, -0.0, 1.0, -1.0, np.nan, -np.nan, np.inf, -np.inf, 1e-45, -1e-45, 3e38, -3e38, 0.999, 1.001, 2.0, -2.0]
    x = np.array(some * 2, np.float32)
    sign = np.signbit(x)
    numbers = np.isnan(x) + 2 * np.isinf(x) + 4 * sign + 8 * np.isfinite(x) + 16 * (x != x)
    numbers += 32 * (x < 1) + 64 * ~(x >= 1)
    picked = np.fmin(x, np.float32(1)) + np.fmax(x, np.float32(-1))
    return Data([x, np.zeros(32, np.int32), np.zeros(32, np.float32)], {1: numbers, 2: picked})


@case("arithmetic", 1, N)
def carries() -> Data:
    words = rng(16).integers(0, 2**32, (2, 3, N), dtype=np.uint32)
    words[:, :, :8] = [[[2**32 - 1] * 8] * 3, [[0, 1] * 4] * 3]
    x, y = (sum(column[k].astype(object) << 32 * k for k in range(3)) for column in words)
    rows = [value >> 32 * k for value in (x + y, x - y) for k in range(3)]
    expected = np.concatenate([wrapped(row, "u4") for row in rows])
    a, b = words.reshape(2, -1)
    return Data([a.copy(), b.copy(), np.zeros(6 * N, np.uint32), N], {2: expected})


@case("arithmetic", 1, N)
def video() -> Data:
    a = rng(17).integers(0, 2**32, N, dtype=np.uint32)
    b = rng(18).integers(0, 2**32, N, dtype=np.uint32)
    x, y = (v.view(np.uint8).astype(np.int64) for v in (a, b))
    s, t = (v.view(np.uint16).astype(np.int64) for v in (a, b))
    apart = np.abs(x - y)
    rows = [
        wrapped(x + y, "u1").view(np.uint32), wrapped(s - t, "u2").view(np.uint32),
        np.maximum(x, y).astype(np.uint8).view(np.uint32), apart.astype(np.uint8).view(np.uint32),
        np.where(s > t, 0xFFFF, 0).astype(np.uint16).view(np.uint32),
        ((x + y + 1) // 2).astype(np.uint8).view(np.uint32), (apart.reshape(-1, 4).sum(axis=1) + 3).astype(np.uint32),
    ]  # fmt: skip
    return Data([a, b, np.zeros(7 * N, np.uint32), N], {2: np.concatenate(rows)})
