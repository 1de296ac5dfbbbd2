"""Tables of patterns: their numbers, in the order in which they come."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.compiled import entry, merged

MIX = 0x9E3779B97F4A7C15 - (1 << 64)  # odd, from the golden ratio; as a signed 64-bit number
#: odd multipliers of the 32 distances: their sum of products is the hash (multilinear, the high bits count)
FACTORS = np.random.default_rng(32).integers(-(1 << 62), 1 << 62, 32) * 2 + 1


class Patterns(NamedTuple):
    """Patterns found so far, and how to find them again. `used` counts them."""

    offset: NDArray[np.int64]  # [capacity, 32], not touched behind `used`
    mask: NDArray[np.int64]  # [capacity]
    table: NDArray[np.int64]  # [2^k] pattern + 1 and above it 31 bits of its hash, 0 for free; at most half full
    used: NDArray[np.int64]  # [1]


def new_patterns(capacity: int) -> Patterns:
    """Room for `capacity` patterns."""
    return Patterns(
        np.empty((capacity, 32), np.int64),
        np.empty(capacity, np.int64),
        np.zeros(1 << (2 * capacity - 1).bit_length(), np.int64),
        np.zeros(1, np.int64),
    )


@merged
def find_pattern(
    offset: np.ndarray, mask: np.ndarray, table: np.ndarray, used: np.ndarray, listed: np.ndarray, row: int, lanes: int
) -> int:
    """The number of the pattern listed[row] of these lanes, which is added if it is new; -1 when there is no room."""
    code = lanes * MIX
    for k in range(32):
        code += listed[np.uint64(row), np.uint64(k)] * FACTORS[np.uint64(k)]
    tag = ((code ^ code >> 32) * MIX >> 32) & 0x7FFFFFFF
    at = tag & (len(table) - 1)
    found = -1
    while table[np.uint64(at)] != 0 and found < 0:
        if table[np.uint64(at)] >> 32 == tag:
            found = (table[np.uint64(at)] & 0xFFFFFFFF) - 1
            other = mask[found] ^ lanes
            for k in range(32):
                other |= offset[np.uint64(found), np.uint64(k)] ^ listed[np.uint64(row), np.uint64(k)]
            if other != 0:
                found = -1
        if found < 0:
            at = (at + 1) & (len(table) - 1)
    if found < 0 and used[0] < len(mask) and 2 * used[0] < len(table):
        found = used[0]
        for k in range(32):
            offset[np.uint64(found), np.uint64(k)] = listed[np.uint64(row), np.uint64(k)]
        mask[found] = lanes
        table[np.uint64(at)] = tag << 32 | (found + 1)
        used[0] = found + 1
    return found


@entry
def read_patterns(
    listed: NDArray[np.int64],  # [n, 32] distances
    lanes: NDArray[np.int64],  # [n] masks
    first: int,
    offset: NDArray[np.int64],
    mask: NDArray[np.int64],
    table: NDArray[np.int64],
    used: NDArray[np.int64],
    found: NDArray[np.int32],  # [n] their numbers
) -> int:
    """Look up listed patterns from `first` on. Returns how many are done; stops early when there is no room."""
    while first < len(listed):
        p = find_pattern(offset, mask, table, used, listed, first, lanes[first])
        if p < 0:
            break
        found[first] = p
        first += 1
    return first


def number_patterns(pattern: NDArray[np.int32], count: int, first: NDArray[np.int32]) -> int:
    """Renumber the patterns of all accesses by first appearance; `first[new]` is the old number. Returns how many."""
    return int(_renumber(pattern, np.full(count, -1, np.int32), first))


@entry
def _renumber(pattern: np.ndarray, new: np.ndarray, first: np.ndarray) -> int:
    used = 0
    for k in range(len(pattern)):
        p = pattern[k]
        if new[p] < 0:
            new[p] = used
            first[used] = p
            used += 1
        pattern[k] = new[p]
    return used
