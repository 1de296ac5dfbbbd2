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

    Neighbouring warps mostly do the same: such a part is counted with the part that it repeats.
    """
    first = end = times = threads = 0  # the records that the last parts had, how many parts, and the threads of each
    row = -1
    for p in range(len(starts)):
        begin, length = starts[p], ends[p] - starts[p]
        w = warp + p
        same = times > 0 and length == end - first
        if same:
            other = 0
            for k in range(length):
                other |= words[np.uint64(begin + k)] ^ words[np.uint64(first + k)]
            same = other == 0
        if not same or w // row_warps != row:
            _count(words, first, end, times, row, segment_count, segment_threads)
            row, times = w // row_warps, 0
        times += 1
        if same:
            warp_path[w] = warp_path[w - 1]
        else:
            first, end = begin, begin + length
            at = known_start[paths]
            code = 1
            threads = 0
            for k in range(begin, end):
                s = words[k] & FULL_MASK
                threads += _lanes(words[k] >> 32) * plain[s]
                known[at] = s
                code = (code ^ s) * MIX
                code ^= code >> 32
                at += 1
            slot = _find_path(known, known_start, known_hash, table, known_start[paths], at, code)
            if table[slot] == 0:
                known_hash[paths] = code
                paths += 1
                table[slot] = paths
                known_start[paths] = at
            warp_path[w] = table[slot] - 1
        warp_threads[w] += threads + guarded[p]
    _count(words, first, end, times, row, segment_count, segment_threads)
    return paths


@called
def _count(
    words: np.ndarray, first: int, end: int, times: int, row: int, segment_count: np.ndarray,
    segment_threads: np.ndarray,
) -> None:  # fmt: skip
    """Count the records from `first` to `end` so many times."""
    if times == 0:
        return
    for k in range(first, end):
        s = words[k] & FULL_MASK
        segment_count[s] += times
        segment_threads[row, s] += times * _lanes(words[k] >> 32)


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
