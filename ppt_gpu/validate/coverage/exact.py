"""Exactly rounded results, from rational arithmetic: the truth that floating-point kernels are held against."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: significand bits and least exponent of a unit in the last place
_FORMATS = {"f2": (11, -24), "f4": (24, -149), "f8": (53, -1074), "bf16": (8, -133)}


def rounded(value: Fraction, mode: str, kind: str) -> float:
    """`value` rounded to a format ("f2", "f4", "f8", "bf16") by PTX's mode ("rn", "rz", "ru", "rd"). No overflow."""
    if not value:
        return 0.0
    digits, least = _FORMATS[kind]
    size = abs(value)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    if Fraction(2) ** exponent > size:
        exponent -= 1
    unit = Fraction(2) ** max(exponent - digits + 1, least)
    whole, rest = divmod(size, unit)
    up = {"rn": 2 * rest > unit or (2 * rest == unit and whole & 1), "rz": False}.get(
        mode, bool(rest) and (mode == "ru") == (value > 0)
    )
    result = float((whole + bool(up)) * unit)
    return result if value > 0 else -result


def rounded_root(value: Fraction, mode: str, kind: str) -> float:
    """The square root of `value` >= 0, rounded once."""
    if not value:
        return 0.0
    scale = 1 << 160  # far below half a unit of any format: a root that is not exact never lies on a boundary
    floor = Fraction(isqrt(value.numerator * scale * scale // value.denominator), scale)
    exact = floor * floor == value
    return rounded(floor if exact else floor + Fraction(1, 2 * scale), mode, kind)


def each(function: Callable[..., float], *arrays: NDArray) -> list[float]:
    """`function` of the elements of `arrays` as rationals, one after another."""
    return [function(*(Fraction(float(value)) for value in values)) for values in zip(*arrays, strict=True)]


def table(rows: Sequence[Any], dtype: str) -> NDArray:
    """The rows one after another."""
    return np.concatenate([np.asarray(row, dtype) for row in rows])
