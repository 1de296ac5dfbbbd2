"""Which set of a cache a line belongs to: the mappings of Nugteren et al. (HPCA 2014; tue-es/gpu-cache-model)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.errors import PptError, did_you_mean

MAPPINGS = ("modulo", "xor", "fermi")
#: Fermi: these bits of the line number are folded into the lowest five
_FOLDED = (6, 7, 8, 10, 12)


def set_of(lines: NDArray[np.int64], sets: int, mapping: str) -> NDArray[np.int64]:
    """The set of each line number in a cache of `sets` sets. PptError for an unknown mapping."""
    number = np.asarray(lines, np.int64)
    if mapping == "modulo":
        return number % sets
    if mapping == "xor":
        return (number % sets ^ number // sets % sets) % sets
    if mapping == "fermi":
        folded = sum((number >> bit & 1) << place for place, bit in enumerate(_FOLDED))
        return ((number & 31 ^ folded) + (number >> 5 & 1) * 32) % sets
    raise PptError(f"unknown mapping of lines to sets '{mapping}'", hint=did_you_mean(mapping, MAPPINGS))
