"""The heart of `lower_access`: what each distinct access shape does, worked out once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.compiled import entry
from ppt_gpu.sm.banks import BankRule, passes
from ppt_gpu.sm.coalesce import LINE, SECTOR, WARP, active_phases, coalesce, phase_lanes

GLOBAL, SHARED, LOCAL = range(3)  # as in MEMORY_SPACES
#: A key is pattern, variant, and the base address modulo the period of the variant.
PERIOD_BITS = 10
VARIANT_BITS = 22
NOTHING = np.uint64(0xFFFFFFFFFFFFFFFF)  # the key of an operation that the run recorded nothing for


def shapes(
    keys: NDArray[np.uint64], offsets: NDArray[np.int64], masks: NDArray[np.uint32], v_space: NDArray[np.int8],
    v_size: NDArray[np.int32], v_load: NDArray[np.bool_], v_atomic: NDArray[np.bool_], rule: int, line: int,
    sector: int, l1_global: bool, per_cycle: float, banks: BankRule,
    banked: bool = False, phase: int = 1, sector_banks: int = 0,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint8], NDArray[np.int32], NDArray[np.int32]]:  # fmt: skip
    """Of every shape: its transactions (start, line number, sectors), load/store cycles, atomic multiplicity.

    banked: loads through the L1 read the banks of shared memory. phase: cycles that the L1 takes for 128 B.
    sector_banks: of the L1, which loads and stores pass; 0: none.
    """
    wide = np.ascontiguousarray(masks, np.int64)
    offsets = np.ascontiguousarray(offsets, np.int64)
    base = (keys & np.uint64((1 << PERIOD_BITS) - 1)).astype(np.int64)
    variant = (keys >> np.uint64(PERIOD_BITS) & np.uint64((1 << VARIANT_BITS) - 1)).astype(np.int64)
    pattern = (keys >> np.uint64(PERIOD_BITS + VARIANT_BITS)).astype(np.int64)
    real = np.flatnonzero(keys != NOTHING)
    real = real[wide[pattern[real]] != 0]
    cycles, atomic, count = np.ones(len(keys), np.int32), np.ones(len(keys), np.int32), np.zeros(len(keys), np.int64)
    chosen = real[v_atomic[variant[real]]]
    if len(chosen):
        _multiplicity(offsets, wide, pattern[chosen], chosen, atomic)
    is_shared = v_space[variant[real]] == SHARED
    chosen = real[is_shared]
    if len(chosen):
        v = variant[chosen]
        taken = passes(banks, offsets, wide, pattern[chosen], base[chosen], v_size[v].astype(np.int64), v_atomic[v])
        cycles[chosen] = np.maximum(taken, 1)
    chosen = real[~is_shared]
    lines, sectors = np.zeros(0, np.int64), np.zeros(0, np.uint8)
    if len(chosen):
        v = variant[chosen]
        size = v_size[v].astype(np.int64)
        whole = (rule == LINE) & v_load[v] & (l1_global | (v_space[v] == LOCAL))
        begin, lines, sectors = coalesce(rule, offsets, wide, pattern[chosen], base[chosen], size, whole, line, sector)
        count[chosen] = np.diff(begin)
        least = _least_cycles(rule, wide[pattern[chosen]], size)
        cycles[chosen] = np.maximum(least, np.ceil(np.diff(begin) / per_cycle).astype(np.int64))
        if phase > 1:
            through = v_load[v]
            cycles[chosen[through]] = np.maximum(cycles[chosen[through]], phase * least[through])
        if sector_banks:
            taken = np.diff(begin)
            _bank_cycles(begin, lines, sectors, (line // sector).bit_length() - 1, sector_banks, v_atomic[v], taken)
            cycles[chosen] = taken
        at = v_load[v] & (v_space[v] == GLOBAL)
        if banked and at.any():
            read = chosen[at]
            nothing = np.zeros(len(read), np.bool_)
            taken = passes(banks, offsets, wide, pattern[read], base[read], size[at], nothing)
            cycles[read] = np.maximum(cycles[read], taken)
    start = np.zeros(len(keys) + 1, np.int64)
    np.cumsum(count, out=start[1:])
    return start, lines, sectors, cycles, atomic


def _least_cycles(rule: int, mask: NDArray[np.int64], size: NDArray[np.int64]) -> NDArray[np.int64]:
    """[U] requests of each access: parts of the warp that are served one after another."""
    least = np.ones(len(mask), np.int64)
    if rule in (LINE, SECTOR):
        for bytes_per_lane in np.unique(size).tolist():
            chosen = size == bytes_per_lane
            least[chosen] = active_phases(mask[chosen], phase_lanes(bytes_per_lane))
    return least


@entry
def _multiplicity(
    offsets: np.ndarray, masks: np.ndarray, pattern: np.ndarray, place: np.ndarray, found: np.ndarray
) -> None:
    """found[place]: most active lanes with the same address, at least 1."""
    for i in range(len(pattern)):
        p = pattern[i]
        mask = masks[p]
        most = 1
        for lane in range(WARP):
            if (mask >> lane) & 1:
                same = 1
                for other in range(lane):
                    if (mask >> other) & 1 and offsets[p, other] == offsets[p, lane]:
                        same += 1
                if same > most:
                    most = same
        found[place[i]] = most


@entry
def _bank_cycles(
    start: np.ndarray, lines: np.ndarray, sectors: np.ndarray, shift: int, banks: int, atomic: np.ndarray,
    found: np.ndarray,
) -> None:  # fmt: skip
    """found [U]: cycles in which the banks look up the sectors of each access, the highest address first.

    A sector whose bank has looked up another in this cycle waits for the next one, and all behind it. Atomics, which
    do not pass the banks, are left out. shift: binary logarithm of the sectors of a line.
    """
    for i in range(len(found)):
        if atomic[i]:
            continue
        cycles, used, below = 1, 0, 1 << 60
        for _ in range(start[i], start[i + 1]):
            highest = -(1 << 60)
            mask = 0
            for at in range(start[i], start[i + 1]):
                if lines[at] < below and lines[at] > highest:
                    highest = lines[at]
                    mask = 0
                if lines[at] == highest:
                    mask |= sectors[at]
            below = highest
            for bit in range((1 << shift) - 1, -1, -1):
                if mask >> bit & 1:
                    bank = 1 << ((highest << shift) + bit) % banks
                    if used & bank:
                        cycles += 1
                        used = 0
                    used |= bank
        found[i] = cycles
