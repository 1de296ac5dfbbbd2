"""The floating-point formats of PTX as numbers, and exact conversion between their bits and f64 values, in numpy.

f16, bf16, tf32 and f32 are IEEE formats; e4m3, e5m2, e3m2, e2m3, e2m1 and ue8m0 those of the Open Compute Project
(OCP 8-bit Floating Point Specification 1.0, Microscaling Formats 1.0). Results that are NaN are the format's canonical
NaN (PTX ISA, "cvt"); a format without NaN gives its largest number. `arith.formats` is the same in compiled code.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.emulator.forms.opcode import WIDTH

Bits = NDArray[np.uint64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Format:
    """A number is (-1)^s 2^(e - bias) 1.m, or (-1)^s 2^(1 - bias) 0.m where e is 0."""

    name: str
    width: int  # bits of the storage
    mantissa: int  # bits of m
    bias: int
    largest: int  # bits of the largest number
    infinity: int | None  # bits; None: the format has none
    nan: int | None  # bits of the canonical NaN; None: the format has none
    pad: int = 0  # unused low bits of the storage

    @property
    def sign(self) -> int:
        """The sign bit; 0 where there is none."""
        used = {"e3m2": 6, "e2m3": 6, "e2m1": 4}.get(self.name, self.width)
        return 0 if self.name == "ue8m0" else 1 << (used - 1)


FORMATS: dict[str, Format] = {
    f.name: f
    for f in (
        Format("f32", 32, 23, 127, 0x7F7FFFFF, 0x7F800000, 0x7FFFFFFF),
        Format("tf32", 32, 10, 127, 0x7F7FE000, 0x7F800000, 0x7FFFFFFF, pad=13),
        Format("f16", 16, 10, 15, 0x7BFF, 0x7C00, 0x7FFF),
        Format("bf16", 16, 7, 127, 0x7F7F, 0x7F80, 0x7FFF),
        Format("e5m2", 8, 2, 15, 0x7B, 0x7C, 0x7F),
        Format("e4m3", 8, 3, 7, 0x7E, None, 0x7F),
        Format("e3m2", 8, 2, 3, 0x1F, None, None),
        Format("e2m3", 8, 3, 1, 0x1F, None, None),
        Format("e2m1", 8, 1, 1, 0x7, None, None),
        Format("ue8m0", 8, 0, 127, 0xFE, None, 0xFF),
    )
}
#: types of numbers in registers -> bits of the mantissa
MANTISSA = {"f16": 10, "bf16": 7, "f32": 23, "f64": 52}
ROUNDINGS = ("rn", "rz", "rm", "rp", "rna")  # rna: to nearest, ties away from zero
_ONE = np.uint64(1)
_FRACTION = np.uint64((1 << 52) - 1)
_SIGN = np.uint64(1 << 63)


def decode(bits: Bits, name: str) -> Floats:
    """The values of `bits` (lowest bits of each element), exactly. tf32 ignores the low 13 bits."""
    f = FORMATS[name]
    bits = np.asarray(bits, np.uint64)
    if f.name == "ue8m0":
        value = np.ldexp(1.0, (bits & np.uint64(0xFF)).astype(np.int64) - 127)
        return np.where(bits & np.uint64(0xFF) == np.uint64(0xFF), np.nan, value)
    magnitude = (bits & np.uint64(f.sign - 1)) >> np.uint64(f.pad)
    exponent = (magnitude >> np.uint64(f.mantissa)).astype(np.int64)
    fraction = (magnitude & np.uint64((1 << f.mantissa) - 1)).astype(np.int64)
    whole = np.where(exponent > 0, fraction + (1 << f.mantissa), fraction).astype(np.float64)
    value = np.ldexp(whole, np.maximum(exponent, 1) - f.bias - f.mantissa)
    if f.infinity is not None:
        value = np.where(magnitude == np.uint64(f.infinity >> f.pad), np.inf, value)
        value = np.where(magnitude > np.uint64(f.infinity >> f.pad), np.nan, value)
    elif f.nan is not None:
        value = np.where(magnitude == np.uint64(f.nan), np.nan, value)
    return np.where(bits & np.uint64(f.sign) != 0, -value, value)


def to_odd(value: Floats, error: NDArray[np.int8]) -> Floats:
    """An f64 that rounds like the exact value, given as the nearest f64 and the sign of (exact - value).

    It is moved to its odd neighbour in the direction of the error (Boldo and Melquiond, IEEE Trans. Computers 57(4)).
    """
    bits = np.ascontiguousarray(value, np.float64).view(np.uint64)
    move = (error != 0) & (bits & _ONE == 0) & np.isfinite(value)
    outward = (error > 0) == (value > 0)
    moved = np.where(outward, bits + _ONE, bits - _ONE)
    return np.where(move, moved, bits).view(np.float64)


def encode(value: Floats, name: str, mode: str = "rn", saturate: bool = False) -> Bits:
    """The bits of f64 values rounded once to a format of at most 51 mantissa bits.

    `mode` is one of ROUNDINGS. Overflow gives infinity, or the largest number where the mode rounds that way, with
    `saturate` (.satfinite) or where the format has no infinity; e4m3 then has a NaN. ue8m0 drops the sign.
    """
    f = FORMATS[name]
    raw = np.ascontiguousarray(value, np.float64).view(np.uint64)
    magnitude = raw & ~_SIGN
    if name == "ue8m0":
        return _encode_power(magnitude, mode, saturate)
    negative = raw & _SIGN != 0
    exponent = (magnitude >> np.uint64(52)).astype(np.int64)
    significand = np.where(exponent > 0, (magnitude & _FRACTION) | np.uint64(1 << 52), magnitude & _FRACTION)
    exponent = np.maximum(exponent, 1) - 1023 + f.bias  # in the format
    shift = np.minimum(52 - f.mantissa + np.maximum(1 - exponent, 0), 62).astype(np.uint64)
    kept, rest = significand >> shift, significand & ((_ONE << shift) - _ONE)
    half = _ONE << (shift - _ONE)
    up = {
        "rn": (rest > half) | ((rest == half) & (kept & _ONE == _ONE)),
        "rna": rest >= half,
        "rz": np.zeros(rest.shape, bool),
        "rm": (rest != 0) & negative,
        "rp": (rest != 0) & ~negative,
    }[mode]
    lead = (np.maximum(exponent, 1) - 1).astype(np.uint64) << np.uint64(f.mantissa)
    bits = (lead + kept + up.astype(np.uint64)) << np.uint64(f.pad)
    infinite = magnitude == np.uint64(0x7FF << 52)
    over = np.where((bits > np.uint64(f.largest)) | infinite, True, False)
    bits = np.where(over, _overflow(f, mode, saturate, negative, infinite), bits)
    bits = np.where(negative, bits | np.uint64(f.sign), bits)
    nan = np.uint64(f.largest if f.nan is None else f.nan)
    return np.where(magnitude > np.uint64(0x7FF << 52), nan, bits)


def _overflow(f: Format, mode: str, saturate: bool, negative: NDArray[np.bool_], infinite: NDArray[np.bool_]) -> Bits:
    beyond = f.infinity if f.infinity is not None else f.nan if f.nan is not None else f.largest
    if saturate:
        beyond = f.largest
    inward = {"rz": np.ones(negative.shape, bool), "rm": ~negative, "rp": negative}.get(mode)
    if inward is None:
        return np.full(negative.shape, beyond, np.uint64)
    return np.where(inward & ~infinite, np.uint64(f.largest), np.uint64(beyond))


def _encode_power(magnitude: Bits, mode: str, saturate: bool) -> Bits:
    """ue8m0: the power of two at or below (.rz), or at or above (.rp) the magnitude; at least 2^-127."""
    exponent = (magnitude >> np.uint64(52)).astype(np.int64) - 1023 + 127
    if mode == "rp":
        exponent = exponent + (magnitude & _FRACTION != 0)
    exponent = np.where(magnitude <= np.uint64((1023 - 127) << 52), 0, np.clip(exponent, 0, 255))
    limit = np.where(magnitude > np.uint64(0x7FF << 52), 255, 254 if saturate else 255)
    return np.minimum(exponent, limit).astype(np.uint64)


def canonical_nan(type_name: str) -> int:
    """The NaN that arithmetic produces, whatever the NaNs of its operands.

    f16, bf16, f32: PTX ISA, "Floating-Point Instructions"; f64, about which it says nothing: CUDART_NAN of CUDA's
    math_constants.h.
    """
    return {"f16": 0x7FFF, "bf16": 0x7FFF, "f32": 0x7FFFFFFF, "f64": 0xFFF8000000000000}[type_name]


def infinity(type_name: str) -> int:
    """The bits of infinity, of a type in MANTISSA."""
    return ((1 << (WIDTH[type_name] - 1)) - 1) >> MANTISSA[type_name] << MANTISSA[type_name]


def one(type_name: str) -> int:
    """The bits of 1.0, of a type in MANTISSA."""
    return (infinity(type_name) >> 1) & infinity(type_name)
