"""Turns the path records of compiled code into paths that are stored once each, and counts executions.

A path record is (segment, mask). Equal paths are found by hash: open addressing with linear probing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.compiled import called, entry, inlined
from ppt_gpu.exec.digest import MIX
from ppt_gpu.exec.schedule import FULL_MASK


@entry
def read_paths(
    words: NDArray[np.int64],  # the path buffers of all warps one after another: segment, mask
    starts: NDArray[np.int64],  # [p] first record of each part: of one warp in one block, in the order of the trace
    ends: NDArray[np.int64],  # [p]
    guarded: NDArray[np.int64],  # [p] threads of guarded instructions
    plain: NDArray[np.int64],  # [S] instructions without guard
    warp: int,  # of the first part
    row_warps: int,  # warps that count in one row
    segment_count: NDArray[np.int64],  # [S]
    segment_threads: NDArray[np.int64],  # [rows, S]
    warp_threads: NDArray[np.int64],  # [W]
    warp_path: NDArray[np.int32],  # [W]
    known: NDArray[np.int32],  # segments of the paths found so far, with room for all parts behind
    known_start: NDArray[np.int64],  # [paths + 1 ...]
    known_hash: NDArray[np.int64],
    table: NDArray[np.int32],  # path + 1, 0 free
    paths: int,
) -> int:
    """Give each warp the number of its path, adding paths that are new, and count. Returns the number of paths.

    Neighbouring warps mostly do the same: such a part is counted with the part that it repeats. In loops of one segment
    a warp repeats its last record: such runs are counted, and hashed, at once.
    """
    first = end = times = threads = 0  # the records that the last parts had, how many are not counted, threads of each
    row = -1
    for p in range(len(starts)):
        begin, length = starts[p], ends[p] - starts[p]
        w = warp + p
        same = row >= 0 and length == end - first
        if same:
            other = 0
            for k in range(length):
                other |= words[np.uint64(begin + k)] ^ words[np.uint64(first + k)]
            same = other == 0
        if times > 0 and (not same or w // row_warps != row):
            _count(words, first, end, times, row, plain, segment_count, segment_threads)
            times = 0
        row = w // row_warps
        if same:
            times += 1
            warp_path[w] = warp_path[w - 1]
        else:
            first, end = begin, begin + length
            threads, code = _count(words, first, end, 1, row, plain, segment_count, segment_threads)
            slot = _find_path(words, first, end, known, known_start, known_hash, table, code)
            if table[slot] == 0:
                at = known_start[paths]
                for k in range(length):
                    known[np.uint64(at + k)] = words[np.uint64(begin + k)] & FULL_MASK
                known_hash[paths] = code
                paths += 1
                table[slot] = paths
                known_start[paths] = at + length
            warp_path[w] = table[slot] - 1
        warp_threads[w] += threads + guarded[p]
    if times > 0:
        _count(words, first, end, times, row, plain, segment_count, segment_threads)
    return paths


@called
def _count(
    words: np.ndarray, first: int, end: int, times: int, row: int, plain: np.ndarray, segment_count: np.ndarray,
    segment_threads: np.ndarray,
) -> tuple[int, int]:  # fmt: skip
    """Count the records from `first` to `end` so many times. Returns (threads of instructions without a guard, hash).

    The hash is a sum over the records of segment x (what `_mixed` grows by at their place): that of a run of equal
    segments follows from its ends.
    """
    threads = code = before = 0
    k = first
    while k < end:
        word = words[np.uint64(k)]
        stop = k + 1
        while stop < end and words[np.uint64(stop)] == word:
            stop += 1
        s = word & FULL_MASK
        lanes = (stop - k) * _lanes(word >> 32)
        threads += lanes * plain[np.uint64(s)]
        segment_count[np.uint64(s)] += times * (stop - k)
        segment_threads[row, np.uint64(s)] += times * lanes
        after = _mixed(stop - first)
        code += (s + 1) * (after - before)
        before = after
        k = stop
    code = (code ^ code >> 32) * MIX
    return threads, code ^ code >> 32


@inlined
def _mixed(place: int) -> int:
    """A number for a place in a path, from which nothing follows for the next one."""
    found = place * MIX
    return (found ^ found >> 29) * MIX


@inlined
def _lanes(mask: int) -> int:
    """`mask`: 32 bits as a signed number."""
    return 32 if mask == -1 else _population(mask & FULL_MASK)


@inlined
def _population(mask: int) -> int:
    m = np.int64(mask)
    m = m - (m >> 1 & 0x55555555)
    m = (m & 0x33333333) + (m >> 2 & 0x33333333)
    m = (m + (m >> 4)) & 0x0F0F0F0F
    return int((m * 0x01010101 & 0xFFFFFFFF) >> 24)


@inlined
def _find_path(
    words: np.ndarray, first: int, end: int, known: np.ndarray, known_start: np.ndarray, known_hash: np.ndarray,
    table: np.ndarray, code: int,
) -> int:  # fmt: skip
    """The place in the table of the path that the records from `first` to `end` take, or the free one for it."""
    slot = (code >> 3) & (len(table) - 1)
    while table[slot] != 0:
        p = table[slot] - 1
        begin = known_start[p]
        if known_hash[p] == code and known_start[p + 1] - begin == end - first:
            other = np.int32(0)
            for k in range(end - first):
                other |= known[np.uint64(begin + k)] ^ np.int32(words[np.uint64(first + k)])
            if other == 0:
                break
        slot = (slot + 1) & (len(table) - 1)
    return slot


@entry
def expand_paths(segments: NDArray[np.int32], segment_start: NDArray[np.int64], pcs: NDArray[np.int32]) -> int:
    """Write the instruction indices of the segments one after another. Returns how many."""
    at = 0
    for s in segments:
        first, end = segment_start[np.uint64(s)], segment_start[np.uint64(s) + np.uint64(1)]
        for k in range(end - first):
            pcs[np.uint64(at + k)] = first + k
        at += end - first
    return at
