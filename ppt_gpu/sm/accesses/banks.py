"""Shared-memory bank conflicts: passes through the banks that one warp access needs.

Rules, from the CUDA C Programming Guide, appendix "Compute Capabilities", "Shared Memory":

* 2.x, 5.x and later: 32 banks of 4 B. Lanes that read the same word share it. 8 B words are served by half warps,
  16 B words by quarter warps.
* 3.x: 32 banks deliver 8 B. With `bank_width` 8, successive 8 B words lie in successive banks; with 4, successive
  4 B words, and two words of a bank in the same aligned 256 B row do not conflict. 16 B words: half warps.
* 1.x: 16 banks of 4 B, half warps, wider words as several 4 B requests. In each pass one word (here: that of the
  lowest lane left) is broadcast and every other bank serves one lane.
* 7.0 and later: twice as many lanes are served together when every lane n reads what lane n ^ 1 reads, or every lane
  n what lane n ^ 2 reads: one value is delivered to both (NVIDIA's answer in the developer forum, topic 77228). So
  16 B words that all lanes share take two passes.
* An L1 that delivers less than a row of the banks in a cycle (Turing: 64 B) takes several cycles for the lanes that
  are served together, conflicts or not.
* `shared.first_word`, as a simulator has it: lanes are served together whatever they ask for, and meet in a bank where
  their first words do.
* Atomics: no sharing. A bank serves its lanes one after another, those with the same address too; where
  `shared.atomics_share`, as a simulator has it, they are like loads.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.compiled import entry, merged
from ppt_gpu.sm.accesses.coalesce import HALF, WARP
from ppt_gpu.spec.gpu import Gpu

_MAX_WORDS = WARP * 32


@dataclass(frozen=True)
class BankRule:
    banks: int
    width: int  # B, distance of successive banks
    row: int  # B that all banks deliver in one pass
    half_warp: bool  # 1.x rules
    paired: bool = False  # pairs of lanes that read the same are served as one
    shares_atomics: bool = False  # atomics on the same word are one access, as loads of it are
    cycles: int = 1  # that the lanes served together take at least: a path narrower than the banks
    each: bool = False  # every pass takes so many: others have the path meanwhile
    first_word: bool = False  # of what a lane asks for, banks see the first word


def bank_rule(gpu: Gpu, both: bool = True) -> BankRule:
    """The rule of a GPU: [shared] banks and bank_width, and its compute capability.

    both: of SMs that share a path to their data (`l1.sms`), all are at work.
    """
    shared = gpu.shared
    deep = max(shared.bank_width, 8) if gpu.compute_capability[0] == 3 else shared.bank_width
    paired = shared.paired and gpu.compute_capability >= (7, 0)
    row = shared.banks * deep
    cycles = max(1, round(row / path_bandwidth(gpu, both))) if gpu.l1.banked else 1
    first = gpu.compute_capability[0] == 1
    return BankRule(
        shared.banks, shared.bank_width, row, first, paired, shared.atomics_share, cycles, gpu.l1.sms > 1,
        shared.first_word,
    )  # fmt: skip


def path_bandwidth(gpu: Gpu, both: bool) -> float:
    """B a cycle of an SM from its L1 or shared memory; both: as in `bank_rule`."""
    return gpu.l1.bandwidth * (1 if both else gpu.l1.sms)


def bank_passes(
    rule: BankRule, offsets: NDArray[np.int64], mask: int, base: int, size: int, atomic: bool = False
) -> int:
    """Passes of one access of `size` bytes per lane; 0 when no lane is active."""
    found = passes(
        rule, np.ascontiguousarray(offsets).reshape(1, WARP), np.array([mask], np.int64), np.zeros(1, np.int64),
        np.array([base], np.int64), np.array([size], np.int64), np.array([atomic]),
    )  # fmt: skip
    return int(found[0])


def passes(
    rule: BankRule, offsets: NDArray[np.int64], masks: NDArray[np.int64], pattern: NDArray[np.int64],
    base: NDArray[np.int64], size: NDArray[np.int64], atomic: NDArray[np.bool_],
) -> NDArray[np.int64]:  # fmt: skip
    """[U] passes of U accesses: offsets [N, 32], masks [N] patterns of lanes; the others [U] as in `bank_passes`.

    Only the loop of the generation asked for is compiled.
    """
    found = np.zeros(len(pattern), np.int64)
    if rule.first_word:
        size = np.minimum(size, rule.width)
    if rule.shares_atomics:
        atomic = np.zeros_like(atomic)
    load, seen = np.zeros(rule.banks, np.int64), np.zeros(_MAX_WORDS, np.int64)
    if rule.half_warp:
        _half_warps(offsets, masks, pattern, base, size, atomic, rule.width, load, seen, found)
    else:
        lanes = np.clip(WARP * (rule.row // rule.banks) // size, 1, WARP)
        _phases(
            offsets, masks, pattern, base, size, atomic, lanes, rule.paired, rule.width, rule.row, rule.cycles,
            rule.each, load, seen, found,
        )  # fmt: skip
    return found


@merged
def _phase(
    offsets: np.ndarray, p: int, mask: int, base: int, size: int, atomic: bool, width: int, row: int, first: int,
    last: int, load: np.ndarray, seen: np.ndarray,
) -> int:  # fmt: skip
    """Passes of lanes first .. last-1 of pattern p: the most that one bank has to deliver."""
    banks = len(load)
    for bank in range(banks):
        load[bank] = 0
    count = 0
    most = 0
    for lane in range(first, last):
        if not (mask >> lane) & 1:
            continue
        address = base + offsets[p, lane]
        for word in range(address // width, (address + size - 1) // width + 1):
            bank = word % banks
            key = (word * width // row) * banks + bank
            at = count if atomic else 0
            while at < count and seen[at] != key:
                at += 1
            if at == count:
                seen[count] = key
                count += 1
                load[bank] += 1
                if load[bank] > most:
                    most = load[bank]
    return most


@merged
def _in_pairs(offsets: np.ndarray, p: int, mask: int, apart: int) -> bool:
    """Does every active lane of pattern p read where the lane `apart` from it reads, if that is active?"""
    for lane in range(WARP):
        other = lane ^ apart
        if (mask >> lane) & 1 and (mask >> other) & 1 and offsets[p, lane] != offsets[p, other]:
            return False
    return True


@entry
def _phases(
    offsets: np.ndarray, masks: np.ndarray, pattern: np.ndarray, base: np.ndarray, size: np.ndarray,
    atomic: np.ndarray, lanes: np.ndarray, paired: bool, width: int, row: int, cycles: int, each: bool,
    load: np.ndarray, seen: np.ndarray, found: np.ndarray,
) -> None:  # fmt: skip
    """2.x and later: `lanes` lanes of an access are served together, in `cycles` cycles at least, or `each` pass is."""
    for i in range(len(pattern)):
        p, count = pattern[i], lanes[i]
        wide = paired and count < WARP and not atomic[i]
        if wide and (_in_pairs(offsets, p, masks[p], 1) or _in_pairs(offsets, p, masks[p], 2)):
            count *= 2
        for first in range(0, WARP, count):
            most = _phase(
                offsets, p, masks[p], base[i], size[i], atomic[i], width, row, first, first + count, load, seen
            )
            if most:
                found[i] += most * cycles if each else max(most, cycles)


@entry
def _half_warps(
    offsets: np.ndarray, masks: np.ndarray, pattern: np.ndarray, base: np.ndarray, size: np.ndarray,
    atomic: np.ndarray, width: int, load: np.ndarray, seen: np.ndarray, found: np.ndarray,
) -> None:  # fmt: skip
    """1.x: every half warp by itself, words wider than a bank as several requests."""
    row = len(load) * width
    for i in range(len(pattern)):
        p = pattern[i]
        for word in range(max(1, size[i] // width)):
            at = base[i] + word * width
            for half in range(0, WARP, HALF):
                if atomic[i]:
                    short = min(size[i], width)
                    found[i] += _phase(offsets, p, masks[p], at, short, True, width, row, half, half + HALF, load, seen)
                else:
                    found[i] += _broadcast(offsets, p, (masks[p] >> half) & 0xFFFF, at, width, half, load)


@merged
def _broadcast(offsets: np.ndarray, p: int, left: int, base: int, width: int, half: int, served: np.ndarray) -> int:
    """Passes of the lanes `left` of a half warp for one 4 B request: one word for all, one lane of each other bank."""
    banks = len(served)
    count = 0
    while left:
        for bank in range(banks):
            served[bank] = 0
        leader = 0
        led = False
        for k in range(HALF):
            if not (left >> k) & 1:
                continue
            word = (base + offsets[p, half + k]) // width
            if not led:
                led = True
                leader = word
            elif word != leader and served[word % banks]:
                continue
            served[word % banks] = 1
            left &= ~(1 << k)
        count += 1
    return count
