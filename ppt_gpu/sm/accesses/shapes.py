"""The heart of `accesses.access`: what each distinct access shape does, worked out once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.compiled import entry, merged
from ppt_gpu.sm.accesses.banks import BankRule, passes
from ppt_gpu.sm.accesses.coalesce import (
    LINE,
    SECTOR,
    SEGMENT,
    WARP,
    active_phases,
    coalesce,
    phase_lanes,
    updates_so_far,
)

GLOBAL, SHARED, LOCAL = range(3)  # as in MEMORY_SPACES
#: A key is pattern, variant, and the base address modulo the period of the variant.
PERIOD_BITS = 10
VARIANT_BITS = 22
NOTHING = np.uint64(0xFFFFFFFFFFFFFFFF)  # the key of an operation that the run recorded nothing for


def key_parts(keys: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Variant, pattern and place within a period, of each key."""
    place = (keys & np.uint64((1 << PERIOD_BITS) - 1)).astype(np.int64)
    variant = (keys >> np.uint64(PERIOD_BITS) & np.uint64((1 << VARIANT_BITS) - 1)).astype(np.int64)
    return variant, (keys >> np.uint64(PERIOD_BITS + VARIANT_BITS)).astype(np.int64), place


def shapes(
    keys: NDArray[np.uint64], offsets: NDArray[np.int64], masks: NDArray[np.uint32], v_space: NDArray[np.int8],
    v_size: NDArray[np.int32], v_load: NDArray[np.bool_], v_atomic: NDArray[np.bool_], rule: int, line: int,
    sector: int, l1_global: bool, per_cycle: float, banks: BankRule,
    banked: NDArray[np.bool_], phase: int = 1, sector_banks: int = 0, apart: bool = False,
    v_word: NDArray[np.int32] | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint8], NDArray[np.int32], NDArray[np.int32]]:  # fmt: skip
    """Of every shape: its transactions (start, line number, sectors), load/store cycles, atomic multiplicity.

    banked: [V] loads of global memory read the banks of shared memory. phase: cycles that the L1 takes for 128 B.
    sector_banks: of the L1, which loads and stores pass; 0: none. apart: `memory.atomics_apart`. v_word: [V] B, of the
    words that lanes ask for; None: one each.
    """
    wide = np.ascontiguousarray(masks, np.int64)
    offsets = np.ascontiguousarray(offsets, np.int64)
    variant, pattern, base = key_parts(keys)
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
        word = size if v_word is None else v_word[v].astype(np.int64)
        whole = (rule in (LINE, SEGMENT)) & v_load[v] & (l1_global | (v_space[v] == LOCAL))
        begin, lines, sectors = coalesce(
            rule, offsets, wide, pattern[chosen], base[chosen], size, whole, line, sector, word
        )
        if apart and v_atomic[v].any():
            shift, of_line = sector.bit_length() - 1, (line // sector).bit_length() - 1
            begin, lines, sectors = _taken_apart(
                begin, lines, sectors, v_atomic[v], offsets, wide, pattern[chosen], base[chosen], shift, of_line
            )
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
        at = banked[v] & v_load[v] & (v_space[v] == GLOBAL)
        if at.any():
            read = chosen[at]
            nothing = np.zeros(len(read), np.bool_)
            taken = passes(banks, offsets, wide, pattern[read], base[read], size[at], nothing)
            cycles[read] = np.maximum(cycles[read], taken)
    start = np.zeros(len(keys) + 1, np.int64)
    np.cumsum(count, out=start[1:])
    return start, lines, sectors, cycles, atomic


def _taken_apart(
    start: NDArray[np.int64], lines: NDArray[np.int64], sectors: NDArray[np.uint8], atomic: NDArray[np.bool_],
    offsets: NDArray[np.int64], masks: NDArray[np.int64], pattern: NDArray[np.int64], base: NDArray[np.int64],
    shift: int, of_line: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint8]]:  # fmt: skip
    """The transactions of U accesses, where each of `atomic` has one for a sector, and for each lane more on its word.

    shift, of_line: binary logarithms of the bytes of a sector, and of the sectors of a line.
    """
    begin, room = np.zeros(len(start), np.int64), len(lines) + 2 * WARP * int(atomic.sum())
    number, mask, updates = np.empty(room, np.int64), np.empty(room, np.uint8), np.zeros(1 << of_line, np.int64)
    _take_apart(
        start, lines, sectors, atomic, offsets, masks, pattern, base, shift, of_line, updates, begin, number, mask
    )
    return begin, number[: begin[-1]].copy(), mask[: begin[-1]].copy()


@entry
def _take_apart(
    start: np.ndarray, lines: np.ndarray, sectors: np.ndarray, atomic: np.ndarray, offsets: np.ndarray,
    masks: np.ndarray, pattern: np.ndarray, base: np.ndarray, shift: int, of_line: int, updates: np.ndarray,
    begin: np.ndarray, number: np.ndarray, mask: np.ndarray,
) -> None:  # fmt: skip
    """updates [sectors of a line]: room."""
    count = 0
    for i in range(len(atomic)):
        for at in range(start[i], start[i + 1]):
            if not atomic[i]:
                number[count], mask[count] = lines[at], sectors[at]
                count += 1
                continue
            earlier = start[i]
            while lines[earlier] != lines[at]:
                earlier += 1
            if earlier < at:  # lanes that are served one after another may name a line twice
                continue
            _most_updates(offsets[pattern[i]], masks[pattern[i]], base[i], lines[at], shift, of_line, updates)
            for bit in range(len(updates)):
                for _ in range(updates[bit]):
                    number[count], mask[count] = lines[at], 1 << bit
                    count += 1
        begin[i + 1] = count


@merged
def _most_updates(
    offsets: np.ndarray, mask: int, base: int, line: int, shift: int, of_line: int, updates: np.ndarray
) -> None:
    """updates: of each sector of the line, the most active lanes with the same address there."""
    for bit in range(len(updates)):
        updates[bit] = 0
    for lane in range(WARP):
        sector = (base + offsets[lane]) >> shift
        if mask >> lane & 1 and sector >> of_line == line:
            bit = sector - (line << of_line)
            updates[bit] = max(updates[bit], updates_so_far(offsets, mask, lane))


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
                most = max(most, updates_so_far(offsets[p], mask, lane))
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
