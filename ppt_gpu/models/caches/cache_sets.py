"""Which set of a cache a line belongs to: the mappings of Nugteren et al. (HPCA 2014; tue-es/gpu-cache-model)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.errors import PptError, did_you_mean
from ppt_gpu.sm.program.machine import fermi_place

MAPPINGS = ("modulo", "xor", "fermi")
#: by `l1.index`
MAPPING_OF = {"linear": "modulo", "hash": "xor", "fermi": "fermi"}


def set_of(lines: NDArray[np.int64], sets: int, mapping: str) -> NDArray[np.int64]:
    """The set of each line number in a cache of `sets` sets. PptError for an unknown mapping."""
    number = np.asarray(lines, np.int64)
    if mapping == "modulo":
        return number % sets
    if mapping == "xor":
        return (number % sets ^ number // sets % sets) % sets
    if mapping == "fermi":
        return fermi_place(number.view(np.uint64)).view(np.int64) % sets
    raise PptError(f"unknown mapping of lines to sets '{mapping}'", hint=did_you_mean(mapping, MAPPINGS))
