"""Elements of matrix multiplications as numbers: floats by their format, integers by sign and width.

e2m1 stands in bits 2 to 5 of its byte, which reads as e2m3 (PTX ISA 9.0, "Packing formats of A and B").
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.emulator.forms.float_formats import FORMATS, decode
from ppt_gpu.emulator.forms.matrix_form import format_of

_SIGNED = {"s8": 8, "s4": 4, "s32": 32}


def numbers(bits: NDArray[np.uint64], kind: str) -> NDArray:
    """The values of elements: float64 for floats, int64 for integers and the words of one-bit elements."""
    if kind == "f64":
        return bits.view(np.float64)
    if kind in FORMATS:
        return decode(bits, format_of(kind))
    value = bits.astype(np.int64)
    width = _SIGNED.get(kind, 0)
    return value - ((value >> (width - 1) & 1) << width) if width else value
