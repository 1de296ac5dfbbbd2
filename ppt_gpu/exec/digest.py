"""Turns the raw access records of compiled code into the flat arrays of a `Trace`.

Records are described in `ppt_gpu.exec.jit_access`. Patterns are stored once each (hash-consed): open addressing with
linear probing. They are looked up in the order of the trace, so that they are numbered by first appearance in it. What
a block that has not ended recorded is held back, with a table of its own of the patterns that it refers to.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.compiled import entry, inlined, merged
from ppt_gpu.exec.jit_access import RECORD_LISTED, RECORD_ROW

RECORD_HELD = RECORD_LISTED + 1  # header of a record that is held back: number of the held pattern in bits 0-31
CACHE_BITS = 12
CACHE = 1 << CACHE_BITS  # entries of the header cache
PIECE = 32  # headers compared at a time
MIX = 0x9E3779B97F4A7C15 - (1 << 64)  # odd, from the golden ratio; as a signed 64-bit number
#: odd multipliers of the 32 distances: their sum of products is the hash (multilinear, the high bits count)
FACTORS = np.random.default_rng(32).integers(-(1 << 62), 1 << 62, 32) * 2 + 1


class Patterns(NamedTuple):
    """Patterns found so far, and how to find them again. `used` counts them."""

    offset: NDArray[np.int64]  # [capacity, 32], not touched behind `used`
    mask: NDArray[np.int64]  # [capacity]
    table: NDArray[np.int64]  # [2^k] pattern + 1 and above it 31 bits of its hash, 0 for free; at most half full
    used: NDArray[np.int64]  # [1]
    cache_key: NDArray[np.int64]  # [CACHE] headers of records without addresses
    cache_value: NDArray[np.int32]  # [CACHE] their patterns
    scratch: NDArray[np.int64]  # [1, 32] a pattern to look up, as it would be listed


def new_patterns(capacity: int, table: int = 0) -> Patterns:
    """Room for `capacity` patterns, in a table for `table` (0: as many) until it has to grow."""
    return Patterns(
        np.empty((capacity, 32), np.int64),
        np.empty(capacity, np.int64),
        np.zeros(1 << (2 * (table or capacity) - 1).bit_length(), np.int64),
        np.zeros(1, np.int64),
        np.full(CACHE, -1, np.int64),
        np.empty(CACHE, np.int32),
        np.empty((1, 32), np.int64),
    )


def grow_patterns(old: Patterns) -> Patterns:
    """The same patterns with four times the room, in the table or, where that is not what is short, for patterns."""
    used = int(old.used[0])
    offset, mask, table = old.offset, old.mask, old.table
    if 2 * used >= len(table):
        table = np.zeros(4 * len(table), np.int64)
        _spread(old.table, table)
    if used == len(mask):
        offset, mask = np.empty((4 * used, 32), np.int64), np.empty(4 * used, np.int64)
        offset[:used], mask[:used] = old.offset, old.mask
    return old._replace(offset=offset, mask=mask, table=table)


def clear_patterns(patterns: Patterns) -> None:
    """Forget all patterns; the room stays."""
    if patterns.used[0]:
        patterns.table[:] = 0
        patterns.used[0] = 0
        patterns.cache_key[:] = -1


@entry
def _spread(old: np.ndarray, new: np.ndarray) -> None:
    """Put the entries of one table into a larger one."""
    for word in old:
        if word != 0:
            at = (word >> 32) & (len(new) - 1)
            while new[at] != 0:
                at = (at + 1) & (len(new) - 1)
            new[at] = word


@merged
def _find(
    offset: np.ndarray, mask: np.ndarray, table: np.ndarray, used: np.ndarray, listed: np.ndarray, row: int, lanes: int
) -> int:
    """The number of the pattern listed[row] of these lanes, which is added if it is new; -1 when there is no room."""
    code = lanes * MIX
    for k in range(listed.shape[1]):
        code += listed[row, k] * FACTORS[k]
    tag = ((code ^ code >> 32) * MIX >> 32) & 0x7FFFFFFF
    at = tag & (len(table) - 1)
    found = -1
    while table[at] != 0 and found < 0:
        if table[at] >> 32 == tag:
            found = (table[at] & 0xFFFFFFFF) - 1
            other = mask[found] ^ lanes
            for k in range(listed.shape[1]):
                other |= offset[found, k] ^ listed[row, k]
            if other != 0:
                found = -1
        if found < 0:
            at = (at + 1) & (len(table) - 1)
    if found < 0 and used[0] < len(mask) and 2 * used[0] < len(table):
        found = used[0]
        for k in range(listed.shape[1]):
            offset[found, k] = listed[row, k]
        mask[found] = lanes
        table[at] = tag << 32 | (found + 1)
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
        p = _find(offset, mask, table, used, listed, first, lanes[first])
        if p < 0:
            break
        found[first] = p
        first += 1
    return first


@entry
def read_accesses(
    headers: NDArray[np.int64],  # [n] the buffers of all warps one after another, as are `bases`
    bases: NDArray[np.int64],
    starts: NDArray[np.int64],  # [p] first access of each part: of one warp in one block, in the order of the trace
    ends: NDArray[np.int64],  # [p]
    part: int,  # to begin at
    record: int,  # access to begin at, -1: the first of that part
    listed: NDArray[np.int64],  # [n, 32] listed patterns
    numbers: NDArray[np.int32],  # [n] their numbers once they are looked up, -1 before
    held: NDArray[np.int64],  # [m, 32] patterns that were held back
    held_lanes: NDArray[np.int64],  # [m] their masks
    held_numbers: NDArray[np.int32],  # [m] as `numbers`
    base: NDArray[np.int64],
    pattern: NDArray[np.int32],
    space: NDArray[np.uint8],
    at: int,
    offset: NDArray[np.int64],
    mask: NDArray[np.int64],
    table: NDArray[np.int64],
    used: NDArray[np.int64],
    cache_key: NDArray[np.int64],
    cache_value: NDArray[np.int32],
    scratch: NDArray[np.int64],
) -> tuple[int, int, int]:
    """Decode parts. Returns (part, access, free place) reached, to go on with more room.

    Neighbouring warps mostly do the same: where all headers of a part are those of the part before it, its patterns
    and spaces are copied.
    """
    like = like_at = np.int64(0)  # the part before: its first access, and where it was decoded to
    like_length = np.int64(-1)  # not known yet
    while part < len(starts):
        k, end = starts[part], ends[part]
        length = end - k
        begin = np.int64(at)
        if record >= 0:
            begin -= record - k
            k = record
        elif length == like_length and _same_headers(headers, k, like, length):
            _copy_part(bases, k, length, like_at, base, pattern, space, at)
            at += length
            k = end
        while k < end:
            header = headers[np.uint64(k)]
            kind = header >> 40 & 255
            if kind >= RECORD_LISTED:
                own = kind == RECORD_LISTED
                row = header >> 48 & 0xFFFF if own else header & 0xFFFFFFFF
                found = numbers[row] if own else held_numbers[row]
                if found < 0:
                    source = listed if own else held
                    lanes = header & 0xFFFFFFFF if own else held_lanes[row]
                    found = _find(offset, mask, table, used, source, row, lanes)
                    if found < 0:
                        return part, k, at
                    if own:
                        numbers[row] = found
                    else:
                        held_numbers[row] = found
            else:
                slot = (header * MIX) >> (64 - CACHE_BITS) & (CACHE - 1)
                if cache_key[np.uint64(slot)] != header:
                    _regular(kind, header & 0xFFFFFFFF, header >> 48 & 0xFFFF, scratch)
                    p = _find(offset, mask, table, used, scratch, np.int64(0), header & 0xFFFFFFFF)
                    if p < 0:
                        return part, k, at
                    cache_key[slot] = header
                    cache_value[slot] = p
                found = cache_value[np.uint64(slot)]
            place = np.uint64(at)  # unsigned: an index that is not looked at for being negative
            base[place] = bases[np.uint64(k)]
            pattern[place] = found
            space[place] = header >> 32 & 255
            at += 1
            k += 1
        like, like_at, like_length = starts[part], begin, length
        part += 1
        record = -1
    return part, record, at


@merged
def _same_headers(headers: np.ndarray, first: int, other: int, length: int) -> bool:
    """Are the `length` headers from `first` on those from `other` on?"""
    at = 0
    differ = np.int64(0)
    while differ == 0 and at < length:  # piece by piece: within one, nothing is decided
        for k in range(at, min(at + PIECE, length)):
            differ |= headers[np.uint64(first + k)] ^ headers[np.uint64(other + k)]
        at += PIECE
    return bool(differ == 0)


@merged
def _copy_part(
    bases: np.ndarray, first: int, length: int, like: int, base: np.ndarray, pattern: np.ndarray, space: np.ndarray,
    at: int,
) -> None:  # fmt: skip
    """Write `length` accesses to `at`: their bases from `first` on, the rest from the accesses at `like`."""
    for k in range(length):
        base[np.uint64(at + k)] = bases[np.uint64(first + k)]
    for k in range(length):
        pattern[np.uint64(at + k)] = pattern[np.uint64(like + k)]
    for k in range(length):
        space[np.uint64(at + k)] = space[np.uint64(like + k)]


@inlined
def _regular(kind: int, lanes: int, shift: int, listed: np.ndarray) -> None:
    """Write the pattern of a record without addresses to listed[0]: nobody, all at one place, or side by side."""
    first = -1
    for k in range(32):
        distance = 0
        if kind == RECORD_ROW and lanes >> k & 1:
            if first < 0:
                first = k
            distance = (k - first) << shift
        listed[0, k] = distance


@entry
def hold_records(
    headers: NDArray[np.int64],  # become those of held accesses
    k: int,
    end: int,
    listed: NDArray[np.int64],
    numbers: NDArray[np.int32],  # [listed] numbers of held patterns once they are looked up, -1 before
    offset: NDArray[np.int64],
    mask: NDArray[np.int64],
    table: NDArray[np.int64],
    used: NDArray[np.int64],
) -> int:
    """Let the accesses from `k` to `end` refer to held patterns. Returns how far; stops when there is no room."""
    while k < end:
        header = headers[k]
        if header >> 40 & 255 == RECORD_LISTED:
            row = header >> 48 & 0xFFFF
            if numbers[row] < 0:
                p = _find(offset, mask, table, used, listed, row, header & 0xFFFFFFFF)
                if p < 0:
                    break
                numbers[row] = p
            headers[k] = header & (255 << 32) | RECORD_HELD << 40 | numbers[row]
        k += 1
    return k


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


def plain_accesses(
    headers: NDArray[np.int64], bases: NDArray[np.int64], listed: NDArray[np.int64]
) -> list[tuple[int, int, tuple[int, ...], int]]:
    """(base, space, offsets, mask) of each access: the plain reference of `read_accesses`."""
    found = []
    for header, base in zip(headers.tolist(), bases.tolist(), strict=True):
        mask, space, kind, detail = header & 0xFFFFFFFF, header >> 32 & 255, header >> 40 & 255, header >> 48 & 0xFFFF
        active = [lane for lane in range(32) if mask >> lane & 1]
        offsets = [0] * 32
        if kind == RECORD_LISTED:
            offsets = listed[detail].tolist()
        elif kind == RECORD_ROW:
            for lane in active:
                offsets[lane] = (lane - active[0]) << detail
        found.append((base, space, tuple(offsets), mask))
    return found
