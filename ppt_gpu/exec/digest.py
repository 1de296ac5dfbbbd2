"""Turns the raw trace buffers of compiled code into the flat arrays of a `Trace`.

Path records are (segment, mask) pairs, access records as described in `ppt_gpu.exec.jit_access`. Patterns and paths are
stored once each (hash-consed): open addressing with linear probing. Both are numbered in order of first appearance.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.compiled import entry, inlined
from ppt_gpu.exec.jit_access import RECORD_LISTED, RECORD_ROW
from ppt_gpu.exec.schedule import TURN_GUARDED, TURN_PATH, TURN_PATH_END, TURN_WARP

RECORD_FOUND = RECORD_LISTED + 1  # header of a record that waits for its block's end: the pattern in bits 0-31
CACHE_BITS = 12
CACHE = 1 << CACHE_BITS  # entries of the header cache
MIX = 0x9E3779B97F4A7C15 - (1 << 64)  # odd, from the golden ratio; as a signed 64-bit number


class Patterns(NamedTuple):
    """Patterns found so far, and how to find them again. `used` counts them."""

    offset: NDArray[np.int64]  # [capacity, 32]
    mask: NDArray[np.int64]  # [capacity]
    table: NDArray[np.int64]  # [2^k] pattern + 1 and above it 31 bits of its hash, 0 for free; twice the capacity
    used: NDArray[np.int64]  # [1]
    cache_key: NDArray[np.int64]  # [CACHE] headers of records without addresses
    cache_value: NDArray[np.int32]  # [CACHE] their patterns
    scratch: NDArray[np.int64]  # [1, 33] a pattern to look up, as it would be listed


def new_patterns(capacity: int) -> Patterns:
    size = 1 << (2 * capacity - 1).bit_length()
    return Patterns(
        np.zeros((capacity, 32), np.int64),
        np.zeros(capacity, np.int64),
        np.zeros(size, np.int64),
        np.zeros(1, np.int64),
        np.full(CACHE, -1, np.int64),
        np.zeros(CACHE, np.int32),
        np.zeros((1, 33), np.int64),
    )


def grow_patterns(old: Patterns) -> Patterns:
    """The same patterns with four times the room."""
    new = new_patterns(4 * len(old.mask))
    used = int(old.used[0])
    new.offset[:used], new.mask[:used], new.used[0] = old.offset[:used], old.mask[:used], used
    _spread(old.table, new.table)
    new.cache_key[:], new.cache_value[:] = old.cache_key, old.cache_value
    return new


@entry
def _spread(old: np.ndarray, new: np.ndarray) -> None:
    """Put the entries of one table into a larger one."""
    for word in old:
        if word != 0:
            at = (word >> 32) & (len(new) - 1)
            while new[at] != 0:
                at = (at + 1) & (len(new) - 1)
            new[at] = word


@inlined
def _find(
    offset: np.ndarray, mask: np.ndarray, table: np.ndarray, used: np.ndarray, listed: np.ndarray, row: int
) -> int:
    """The number of the pattern listed[row], which is added if it is new; -1 when there is no room."""
    wanted = listed[row]
    a = wanted[0]
    b = 0
    for k in range(1, 33, 2):
        a = (a ^ wanted[k]) * MIX
        b = (b ^ wanted[k + 1]) * MIX
        a ^= a >> 29
        b ^= b >> 31
    tag = ((a ^ (b * MIX)) >> 29) & 0x7FFFFFFF
    at = tag & (len(table) - 1)
    found = -1
    while table[at] != 0 and found < 0:
        found = (table[at] & 0xFFFFFFFF) - 1
        same = table[at] >> 32 == tag and mask[found] == wanted[0]
        for k in range(32):
            if not same:
                break
            same = offset[found, k] == wanted[k + 1]
        if not same:
            found = -1
            at = (at + 1) & (len(table) - 1)
    if found < 0 and used[0] < len(mask):
        found = used[0]
        for k in range(32):
            offset[found, k] = wanted[k + 1]
        mask[found] = wanted[0]
        table[at] = tag << 32 | (found + 1)
        used[0] = found + 1
    return found


@entry
def read_patterns(
    listed: NDArray[np.int64],  # [n, 33] mask and distances
    first: int,
    offset: NDArray[np.int64],
    mask: NDArray[np.int64],
    table: NDArray[np.int32],
    used: NDArray[np.int64],
    found: NDArray[np.int32],  # [n] their numbers
) -> int:
    """Look up listed patterns from `first` on. Returns how many are done; stops early when there is no room."""
    while first < len(listed):
        p = _find(offset, mask, table, used, listed, first)
        if p < 0:
            break
        found[first] = p
        first += 1
    return first


@entry
def read_parts(
    words: NDArray[np.int64],
    parts: NDArray[np.int64],  # [n, 3] warp, first record, end
    order: NDArray[np.int64],
    part: int,  # place in `order` to begin at
    record: int,  # record to begin at, -1: the first of that part
    listed: NDArray[np.int32],
    base: NDArray[np.uint64],
    pattern: NDArray[np.int32],
    space: NDArray[np.uint8],
    at: int,
    offset: NDArray[np.int64],
    mask: NDArray[np.int64],
    table: NDArray[np.int32],
    used: NDArray[np.int64],
    cache_key: NDArray[np.int64],
    cache_value: NDArray[np.int32],
    scratch: NDArray[np.int64],
) -> tuple[int, int, int]:
    """Decode parts in order. Returns (place in `order`, record, free place) reached, to go on with more room."""
    while part < len(order):
        k = parts[order[part], 1] if record < 0 else record
        end = parts[order[part], 2]
        while k < end:
            header = words[k, 0]
            kind = header >> 40 & 255
            if kind == RECORD_LISTED:
                found = listed[header >> 48 & 0xFFFF]
            elif kind == RECORD_FOUND:
                found = header & 0x7FFFFFFF
            else:
                slot = (header * MIX) >> (64 - CACHE_BITS) & (CACHE - 1)
                if cache_key[slot] != header:
                    _regular(kind, header & 0xFFFFFFFF, header >> 48 & 0xFFFF, scratch)
                    p = _find(offset, mask, table, used, scratch, 0)
                    if p < 0:
                        return part, k, at
                    cache_key[slot] = header
                    cache_value[slot] = p
                found = cache_value[slot]
            base[at] = words[k, 1]
            pattern[at] = found
            space[at] = header >> 32 & 255
            at += 1
            k += 1
        part += 1
        record = -1
    return part, record, at


@inlined
def _regular(kind: int, lanes: int, shift: int, listed: np.ndarray) -> None:
    """Write the pattern of a record without addresses to listed[0]: nobody, all at one place, or side by side."""
    listed[0, 0] = lanes
    first = -1
    for k in range(32):
        distance = 0
        if kind == RECORD_ROW and lanes >> k & 1:
            if first < 0:
                first = k
            distance = (k - first) << shift
        listed[0, k + 1] = distance


def resolve(words: NDArray[np.int64], listed: NDArray[np.int32]) -> NDArray[np.int64]:
    """The same records, those with listed patterns as RECORD_FOUND."""
    new = words.copy()
    chosen = np.flatnonzero(new[:, 0] >> 40 & 255 == RECORD_LISTED)
    header = new[chosen, 0]
    found = listed[header >> 48 & 0xFFFF].astype(np.int64)
    new[chosen, 0] = header & (255 << 32) | RECORD_FOUND << 40 | found
    return new


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


@entry
def read_paths(
    pairs: NDArray[np.uint32],  # [n, 2] the path buffer: segment, mask
    turns: NDArray[np.int64],  # [t, 6] with offsets in records instead of addresses
    plain: NDArray[np.int64],  # [S] instructions without guard
    path: NDArray[np.int32],
    at: int,
    segment_count: NDArray[np.int64],
    segment_threads: NDArray[np.int64],  # [rows, S]
    row_warps: int,  # warps that count in one row
    warp_threads: NDArray[np.int64],
) -> int:
    """Append the segments of all turns to `path` and count executions. Returns the next free place."""
    for t in range(len(turns)):
        threads = turns[t, TURN_GUARDED]
        row = turns[t, TURN_WARP] // row_warps
        for k in range(turns[t, TURN_PATH], turns[t, TURN_PATH_END]):
            s = pairs[k, 0]
            lanes = _population(pairs[k, 1])
            path[at] = s
            at += 1
            segment_count[s] += 1
            segment_threads[row, s] += lanes
            threads += lanes * plain[s]
        warp_threads[turns[t, TURN_WARP]] += threads
    return at


@inlined
def _population(mask: int) -> int:
    m = np.int64(mask)
    m = m - (m >> 1 & 0x55555555)
    m = (m & 0x33333333) + (m >> 2 & 0x33333333)
    m = (m + (m >> 4)) & 0x0F0F0F0F
    return int((m * 0x01010101 & 0xFFFFFFFF) >> 24)


@entry
def cons_paths(
    path: NDArray[np.int32],
    order: NDArray[np.int64],  # parts of whole warps, by warp, then time
    part_warp: NDArray[np.int64],
    part_start: NDArray[np.int64],
    part_end: NDArray[np.int64],
    known: NDArray[np.int32],  # segments of the paths found so far, with room for all of `path` behind
    known_start: NDArray[np.int64],  # [paths + 1 ...]
    known_hash: NDArray[np.int64],
    table: NDArray[np.int32],  # path + 1, 0 free
    paths: int,
    warp_path: NDArray[np.int32],
) -> int:
    """Give each warp the number of its path, adding paths that are new. Returns the number of paths."""
    k = 0
    while k < len(order):
        warp = part_warp[order[k]]
        begin = at = known_start[paths]
        code = 1
        while k < len(order) and part_warp[order[k]] == warp:
            for j in range(part_start[order[k]], part_end[order[k]]):
                known[at] = path[j]
                code = (code ^ path[j]) * MIX
                code ^= code >> 32
                at += 1
            k += 1
        slot = _find_path(known, known_start, known_hash, table, begin, at, code)
        if table[slot] == 0:
            known_hash[paths] = code
            paths += 1
            table[slot] = paths
            known_start[paths] = at
        warp_path[warp] = table[slot] - 1
    return paths


@inlined
def _find_path(
    known: np.ndarray, known_start: np.ndarray, known_hash: np.ndarray, table: np.ndarray, begin: int, end: int,
    code: int,
) -> int:  # fmt: skip
    """The place in the table of the path equal to known[begin:end], or the free one where it belongs."""
    slot = (code >> 3) & (len(table) - 1)
    while table[slot] != 0:
        p = table[slot] - 1
        away = begin - known_start[p]
        same = known_hash[p] == code and known_start[p + 1] + away == end
        j = begin
        while same and j < end:
            same = known[j - away] == known[j]
            j += 1
        if same:
            break
        slot = (slot + 1) & (len(table) - 1)
    return slot


def expand_paths(segments: NDArray[np.int32], segment_start: NDArray[np.int64]) -> NDArray[np.int32]:
    """The instruction indices of the segments one after another."""
    length = np.diff(segment_start)[segments]
    first = segment_start[segments] - (np.cumsum(length) - length)
    return (np.repeat(first, length) + np.arange(length.sum())).astype(np.int32)


def plain_accesses(words: NDArray[np.int64], listed: NDArray[np.int64]) -> list[tuple[int, int, tuple[int, ...], int]]:
    """(base, space, offsets, mask) of each access record [n, 2]: the plain reference of `read_parts`."""
    found = []
    for header, base in words.tolist():
        mask, space, kind, detail = header & 0xFFFFFFFF, header >> 32 & 255, header >> 40 & 255, header >> 48 & 0xFFFF
        active = [lane for lane in range(32) if mask >> lane & 1]
        offsets = [0] * 32
        if kind == RECORD_LISTED:
            offsets = listed[detail, 1:].tolist()
        elif kind == RECORD_ROW:
            for lane in active:
                offsets[lane] = (lane - active[0]) << detail
        found.append((base, space, tuple(offsets), mask))
    return found
