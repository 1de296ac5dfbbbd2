"""Slices of the L2 by a polynomial: the number of a chunk of addresses modulo an irreducible one over GF(2).

Where each channel has one slice, no stride of a power of two meets a slice twice before it has met all of them (B. R.
Rau, Pseudo-Randomly Interleaved Memory, ISCA 1991); nor does one with the two slices of each channel of the QV100.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

#: by how many bits the number of a slice has; bit i is the coefficient of x^i
POLYNOMIALS = {1: 0x3, 2: 0x7, 3: 0xB, 4: 0x13, 5: 0x25, 6: 0x43, 7: 0x83, 8: 0x11D, 9: 0x211, 10: 0x409}


def polynomial_slice(chunk: NDArray[np.uint64], slices: int, channels: int) -> NDArray[np.uint64]:
    """The slice of each chunk, of a power of two, which `channels` share evenly.

    The lowest bits of the number of a chunk say which channel, the next ones which of its slices; what is above is the
    part of higher degree.
    """
    bits, each = (slices - 1).bit_length(), slices // channels
    lowest, higher = chunk % np.uint64(slices), chunk // np.uint64(slices)
    found = lowest % np.uint64(channels) * np.uint64(each) + lowest // np.uint64(channels)
    remainder = slices
    while higher.any():
        remainder ^= POLYNOMIALS[bits] if remainder >> bits & 1 else 0
        found = found ^ (higher & np.uint64(1)) * np.uint64(remainder)
        higher, remainder = higher >> np.uint64(1), remainder << 1
    return found
