"""Floating-point arithmetic with exact rounding: f16, bf16, f32 and f64 in all four modes.

Values are computed in f64 together with the sign of the error (exact - computed). Narrow types are rounded from the
f64 value "rounded to odd" (`float_formats`), which makes the second rounding exact. Arrays are [lanes].
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.emulator.forms.float_formats import Bits, Floats, canonical_nan, decode, encode, to_odd

Signs = NDArray[np.int8]
Rounded = tuple[Floats, Signs]  # nearest f64 value, sign of (exact - value)

#: type -> (bits, smallest normal magnitude as bits)
FLOATS: dict[str, tuple[int, int]] = {
    "f16": (16, 0x0400), "bf16": (16, 0x0080), "f32": (32, 0x0080_0000), "f64": (64, 0x0010_0000_0000_0000),
}  # fmt: skip
PACKED = {"f16x2": "f16", "bf16x2": "bf16", "f32x2": "f32"}
ROUNDINGS = ("rn", "rz", "rm", "rp")


def widen(bits: Bits, type_name: str) -> Floats:
    """The values of `bits`, exactly."""
    if type_name == "f64":
        return bits.view(np.float64).copy()
    return decode(bits, type_name)


def round_to(rounded: Rounded, type_name: str, mode: str = "rn", saturate: bool = False) -> Bits:
    """The bits of an exact value, given as nearest f64 and error sign, rounded once to `type_name` in `mode`."""
    value, error = rounded
    if type_name != "f64":
        return encode(to_odd(value, error), type_name, mode, saturate)
    bits = np.ascontiguousarray(value).view(np.uint64).copy()
    if mode != "rn":
        bits = _step(bits, 64, value, error, mode)
    return np.where(np.isnan(value), np.uint64(canonical_nan(type_name)), bits)


def exactly(value: Floats) -> Rounded:
    """A value without error."""
    return value, np.zeros(value.shape, np.int8)


def flush(bits: Bits, type_name: str) -> Bits:
    """Subnormals become zeros of the same sign (.ftz)."""
    width, normal = FLOATS[type_name]
    sign = np.uint64(1 << (width - 1))
    return np.where((bits & (sign - np.uint64(1))) < np.uint64(normal), bits & sign, bits)


def saturate(rounded: Rounded) -> Rounded:
    """Clamped to 0..1; NaN and -0 become +0 (.sat)."""
    value, error = rounded
    # 1 that was rounded up from below is still to be rounded as its mode says
    inside = (value > 0) & ((value < 1) | ((value == 1) & (error < 0)))
    return np.where(inside, value, np.where(value >= 1, 1.0, 0.0)), np.where(inside, error, 0).astype(np.int8)


def rectify(rounded: Rounded) -> Rounded:
    """Negative numbers and -0 become +0 (.relu)."""
    value, error = rounded
    drop = ~np.isnan(value) & ((value < 0) | (value == 0))
    return np.where(drop, 0.0, value), np.where(drop, 0, error).astype(np.int8)


def add(a: Floats, b: Floats, mode: str) -> Rounded:
    """a + b. The error comes from Knuth's TwoSum."""
    with np.errstate(all="ignore"):
        total = a + b
        part = total - a
        error = (a - (total - part)) + (b - part)
        sign = np.where(np.isfinite(total), np.sign(error), 0)
    overflow = np.isfinite(a) & np.isfinite(b) & np.isinf(total)
    sign = np.where(overflow, -np.sign(total), sign)
    return _signed_zero(total, (a, b), mode), np.nan_to_num(sign).astype(np.int8)


def multiply(a: Floats, b: Floats, type_name: str) -> Rounded:
    """a b. Products of narrow types are exact in f64."""
    with np.errstate(all="ignore"):
        product = a * b
    if type_name != "f64":
        return exactly(product)
    return _exact(lambda x, y: Fraction(x) * Fraction(y), product, a, b)


def fma(a: Floats, b: Floats, c: Floats, type_name: str, mode: str) -> Rounded:
    """a b + c, rounded once."""
    with np.errstate(all="ignore"):
        product = a * b
        if type_name != "f64":
            return add(product, c, mode)
        total = _signed_zero(product + c, (product, c), mode)
    # the exact product of finite numbers is finite, however large: an infinite c decides
    total = np.where(np.isfinite(a) & np.isfinite(b) & np.isinf(c), c, total)
    return _exact(lambda x, y, z: Fraction(x) * Fraction(y) + Fraction(z), total, a, b, c)


def divide(a: Floats, b: Floats) -> Rounded:
    """a / b."""
    with np.errstate(all="ignore"):
        quotient = a / b
    finite = np.isfinite(a) & np.isfinite(b) & (b != 0)
    safe = np.where(finite, b, 1.0)
    value, error = _exact(lambda x, y: Fraction(x) / Fraction(y), quotient, np.where(finite, a, 0.0), safe)
    return np.where(finite, value, quotient), np.where(finite, error, 0).astype(np.int8)


def square_root(a: Floats) -> Rounded:
    """The square root of a. The sign of the error is that of a - root^2."""
    with np.errstate(invalid="ignore"):
        root = np.sqrt(a)
    error = np.zeros(a.shape, np.int8)
    for lane in np.flatnonzero(np.isfinite(root) & (root > 0)):
        error[lane] = _sign(Fraction(float(a[lane])) - Fraction(float(root[lane])) ** 2)
    return root, error


def extremum(operands: list[Bits], type_name: str, largest: bool, flags: tuple[str, ...]) -> Bits:
    """min or max of two or three values (PTX ISA, "min", "max").

    A NaN loses against a number, with .NaN it wins; -0 is below +0. All NaN: the canonical NaN. .abs takes magnitudes,
    .xorsign gives the result the product of the operands' signs.
    """
    sign = np.uint64(1 << (FLOATS[type_name][0] - 1))
    if "ftz" in flags:
        operands = [flush(bits, type_name) for bits in operands]
    signs = (operands[0] ^ operands[1]) & sign
    if "abs" in flags:
        operands = [bits & ~sign for bits in operands]
    result = operands[0]
    for other in operands[1:]:
        result = _extremum(result, other, type_name, largest, "NaN" in flags)
    if "xorsign" in flags:
        result = np.where(np.isnan(widen(result, type_name)), result, result | signs)
    return result


def _extremum(a: Bits, b: Bits, type_name: str, largest: bool, keep_nan: bool) -> Bits:
    x, y = widen(a, type_name), widen(b, type_name)
    with np.errstate(invalid="ignore"):
        less = (x < y) | ((x == y) & np.signbit(x) & ~np.signbit(y))
    chosen = np.where(less != largest, a, b)
    chosen = np.where(np.isnan(x), b, np.where(np.isnan(y), a, chosen))
    nan = (np.isnan(x) | np.isnan(y)) if keep_nan else (np.isnan(x) & np.isnan(y))
    return np.where(nan, np.uint64(canonical_nan(type_name)), chosen)


def _exact(function: Callable[..., Fraction], nearest: Floats, *operands: Floats) -> Rounded:
    """`nearest` replaced by the f64 nearest to the exact result wherever that is a finite rational."""
    value, error = nearest.copy(), np.zeros(nearest.shape, np.int8)
    finite = np.logical_and.reduce([np.isfinite(x) for x in operands])
    for lane in np.flatnonzero(finite):
        exact = function(*(float(x[lane]) for x in operands))
        if exact == 0:
            continue  # `nearest` is a zero with the right sign
        try:
            value[lane] = float(exact)
        except OverflowError:
            value[lane] = math.inf if exact > 0 else -math.inf
            error[lane] = -_sign(exact)
            continue
        error[lane] = _sign(exact - Fraction(float(value[lane])))
    return value, error


def _sign(exact: Fraction) -> int:
    return (exact > 0) - (exact < 0)


def _signed_zero(total: Floats, parts: tuple[Floats, Floats], mode: str) -> Floats:
    """Toward minus infinity an exact zero sum is -0, unless both parts are +0 (IEEE 754, 6.3)."""
    if mode != "rm":
        return total
    positive = (parts[0] == 0) & (parts[1] == 0) & ~np.signbit(parts[0]) & ~np.signbit(parts[1])
    return np.where((total == 0) & ~positive, -0.0, total)


def _step(bits: Bits, width: int, value: Floats, error: Signs, mode: str) -> Bits:
    """`bits` moved to its neighbour where the nearest value lies on the wrong side for `mode`."""
    negative = (bits >> np.uint64(width - 1)) & np.uint64(1) == 1
    outward = np.zeros(bits.shape, bool)
    inward = np.zeros(bits.shape, bool)
    if mode == "rz":
        inward = np.where(negative, error > 0, error < 0)
    elif mode == "rm":
        inward, outward = (error < 0) & ~negative, (error < 0) & negative
    elif mode == "rp":
        inward, outward = (error > 0) & negative, (error > 0) & ~negative
    keep = np.isnan(value)
    stepped = np.where(inward, bits - np.uint64(1), np.where(outward, bits + np.uint64(1), bits))
    return np.where(keep, bits, stepped)
