"""Shared-memory bank conflicts: passes through the banks that one warp access needs.

Rules, from the CUDA C Programming Guide, appendix "Compute Capabilities", "Shared Memory":

* 2.x, 5.x and later: 32 banks of 4 B. Lanes that read the same word share it. 8 B words are served by half warps,
  16 B words by quarter warps.
* 3.x: 32 banks deliver 8 B. With `bank_width` 8, successive 8 B words lie in successive banks; with 4, successive
  4 B words, and two words of a bank in the same aligned 256 B row do not conflict. 16 B words: half warps.
* 1.x: 16 banks of 4 B, half warps, wider words as several 4 B requests. In each pass one word (here: that of the
  lowest lane left) is broadcast and every other bank serves one lane.
* Atomics: no sharing. A bank serves its lanes one after another, those with the same address too.

The merging of half warps that some chips do when lanes of both read the same words is not modelled.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ppt_gpu.sm.coalesce import HALF, WARP, i64
from ppt_gpu.spec.gpu import Gpu

_MAX_WORDS = WARP * 32


@dataclass(frozen=True)
class BankRule:
    banks: int
    width: int  # B, distance of successive banks
    row: int  # B that all banks deliver in one pass
    half_warp: bool  # 1.x rules


def bank_rule(gpu: Gpu) -> BankRule:
    """The rule of a GPU: [shared] banks and bank_width, and its compute capability."""
    shared = gpu.shared
    deep = max(shared.bank_width, 8) if gpu.compute_capability[0] == 3 else shared.bank_width
    return BankRule(shared.banks, shared.bank_width, shared.banks * deep, gpu.compute_capability[0] == 1)


def bank_passes(
    rule: BankRule, offsets: NDArray[np.int64], mask: int, base: int, size: int, atomic: bool = False
) -> int:
    """Passes of one access of `size` bytes per lane; 0 when no lane is active."""
    return int(passes(offsets, mask, base, size, rule.banks, rule.width, rule.row, rule.half_warp, atomic))


@njit(cache=True)
def _phase(
    offsets: np.ndarray, mask: int, base: int, size: int, banks: int, width: int, row: int, atomic: bool,
    first: int, lanes: int,
) -> int:  # fmt: skip
    """Passes of lanes first .. first+lanes-1: the most that one bank has to deliver."""
    load = np.zeros(banks, np.int64)
    seen = np.empty(_MAX_WORDS, np.int64)
    count = 0
    for lane in range(first, first + lanes):
        if not (mask >> lane) & 1:
            continue
        address = base + offsets[lane]
        for word in range(address // width, (address + size - 1) // width + 1):
            bank = word % banks
            key = (word * width // row) * banks + bank
            known = False
            if not atomic:
                for i in range(count):
                    if seen[i] == key:
                        known = True
                        break
            if not known:
                seen[count] = key
                count += 1
                load[bank] += 1
    return load.max()


@njit(cache=True)
def _half_warp(offsets: np.ndarray, mask: int, base: int, banks: int, width: int, half: int) -> int:
    """Passes of a half warp of 1.x for one 4 B request: broadcast of one word, one lane of each other bank."""
    left = (mask >> half) & 0xFFFF
    count = 0
    while left:
        served = np.zeros(banks, np.bool_)
        leader = 0
        led = False
        for k in range(HALF):
            if not (left >> k) & 1:
                continue
            word = (base + offsets[half + k]) // width
            if not led:
                led = True
                leader = word
                served[word % banks] = True
            elif word != leader:
                if served[word % banks]:
                    continue
                served[word % banks] = True
            left &= ~(1 << k)
        count += 1
    return count


@njit(cache=True)
def passes(
    offsets: np.ndarray, mask: int, base: int, size: int, banks: int, width: int, row: int, half_warp: bool,
    atomic: bool,
) -> int:  # fmt: skip
    """As `bank_passes`, for the compiled callers."""
    mask = i64(mask)
    total = 0
    if half_warp:
        for word in range(max(1, size // width)):
            for half in range(0, WARP, HALF):
                if not (mask >> half) & 0xFFFF:
                    continue
                at = base + word * width
                if atomic:
                    total += _phase(offsets, mask, at, min(size, width), banks, width, row, True, half, HALF)
                else:
                    total += _half_warp(offsets, mask, at, banks, width, half)
        return total
    lanes = max(1, min(WARP, WARP * (row // banks) // size))
    for first in range(0, WARP, lanes):
        if (mask >> first) & ((1 << lanes) - 1):
            total += _phase(offsets, mask, base, size, banks, width, row, atomic, first, lanes)
    return total
