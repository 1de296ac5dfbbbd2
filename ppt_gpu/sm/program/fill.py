"""The records of lines, accesses and transactions of long programs, written in one pass over each.

`loop.memory` writes those of short ones part by part with NumPy, which needs nothing compiled: the same records, with
the sets of `program.machine.set_index` and `even_sets`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.bits import int64
from ppt_gpu.common.compiled import entry
from ppt_gpu.common.records import Words

Masks = NDArray[np.uint8]
Numbers = NDArray[np.int32]

uint64: Any = np.uint64
#: lines of a program for which a compiled pass pays
FILL_FROM = 1 << 17
#: how the lines of an L1 find their sets
INDEXES = ("linear", "hash", "fermi")
_, HASH, FERMI = range(3)


@entry
def fill_lines(
    lines: Words, address: NDArray[np.uint64], warm: Masks, coming: Masks, l2_set: Numbers, line_bytes: int,
    l1_sets: int, l1_index: int, l1_sets_at: int, l2_sets: int, l2_sets_at: int, set_words: int, warm_at: int,
    coming_at: int, turn_factor: int, turn_mask: int,
) -> None:  # fmt: skip
    """Four words a line: no nodes in L1 and L2, its sets there, the latter with the sectors that are warm or coming.

    `l2_set`: empty, or the sets in the L2; no line is warm then.
    """
    shift, bits = uint64(0), uint64(1)
    while uint64(1) << shift < uint64(line_bytes):
        shift += uint64(1)
    while uint64(2) << bits <= uint64(l1_sets):
        bits += uint64(1)
    whole, even = uint64(1) << shift == uint64(line_bytes), l1_sets & (l1_sets - 1) == 0
    set_in_l1 = uint64(0)
    turn, place, begins = int64(0), int64(0), int64(0)
    for line in range(len(address)):
        number = address[line] >> shift if whole else address[line] // uint64(line_bytes)
        if l1_sets != 0:
            if l1_index == FERMI:
                folded = (
                    number >> uint64(6) & uint64(7) | number >> uint64(7) & uint64(8) | number >> uint64(8) & uint64(16)
                )
                set_in_l1 = ((number ^ folded) & uint64(63)) % uint64(l1_sets)
            elif l1_index == HASH and even:
                fold = bits
                while fold < uint64(64):
                    number ^= number >> fold
                    fold += fold
                set_in_l1 = number & uint64(l1_sets - 1)
            elif l1_index == HASH:
                set_in_l1 = (number * uint64(0x9E3779B97F4A7C15) >> uint64(32)) % uint64(l1_sets)
            elif even:
                set_in_l1 = number & uint64(l1_sets - 1)
            else:
                set_in_l1 = number % uint64(l1_sets)
        if place == l2_sets and l2_sets > 0:  # the next turn, with another set first
            place, turn = int64(0), turn + 1
            begins = (turn * turn_factor & turn_mask) % l2_sets
        set_in_l2 = place + begins
        if set_in_l2 >= l2_sets:
            set_in_l2 -= l2_sets
        if l2_sets == 0:
            set_in_l2 = int64(0)
        place += 1
        sectors = int64(0)
        if len(l2_set) != 0:
            set_in_l2 = int64(l2_set[line])
        else:
            sectors = int64(warm[line]) << warm_at
            if len(coming) != 0:
                sectors |= int64(coming[line] & warm[line]) << coming_at
        at = line * 4
        lines[at] = 0
        lines[at + 1] = 0
        lines[at + 2] = int64(set_in_l1) * set_words + l1_sets_at
        lines[at + 3] = set_in_l2 * set_words + l2_sets_at | sectors


@entry
def fill_accesses(
    access: Words, start: Words, cycles: Numbers, updates: Numbers, cycles_at: int, updates_at: int
) -> None:
    """The words of all accesses; without `updates` each has one."""
    one = len(updates) == 0
    for index in range(len(cycles)):
        count = int64(1) if one else int64(updates[index])
        access[index] = start[index] | int64(cycles[index]) << cycles_at | count << updates_at
    access[len(cycles)] = start[len(cycles)]


@entry
def fill_transactions(tx: Words, line: Numbers, sectors: Masks, sector_bits: int, l1_set: Numbers, set_at: int) -> None:
    """The words of all transactions, and one more; with the sets of their lines in the L1, unless that is empty."""
    for index in range(len(line)):
        word = int64(line[index]) << sector_bits | int64(sectors[index])
        if len(l1_set) != 0 and line[index] >= 0:
            word |= int64(l1_set[line[index]]) << set_at
        tx[index] = word
    tx[len(line)] = 0


@entry
def fill_slices(places: Numbers, slice_of: Numbers, count: Words, sets: int, turn_factor: int, turn_mask: int) -> None:
    """The set of each line in its slice, each slice as `even_sets`. `count`: a zero for each slice."""
    for line in range(len(slice_of)):
        number = count[slice_of[line]]
        count[slice_of[line]] = number + 1
        turn = number // sets
        place = number - turn * sets + (turn * turn_factor & turn_mask) % sets
        places[line] = place - sets if place >= sets else place
