"""Turns the path records of compiled code into paths that are stored once each, and counts executions.

A path record is (segment, how often it is repeated, mask), see `trace.record_words.append_path`. Equal paths are found
by hash: open addressing with linear probing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.compiled import called, entry, merged, popcount
from ppt_gpu.emulator.memory.warp_context import FULL_MASK
from ppt_gpu.emulator.trace.digest import MIX
from ppt_gpu.emulator.trace.record_words import MOST_REPEATS, SEGMENT_BITS

_SEGMENT = (1 << SEGMENT_BITS) - 1  # bits of a record


@entry
def read_paths(
    words: NDArray[np.int64],  # the path buffers of all warps one after another
    starts: NDArray[np.int64],  # [p] first record of each part: of one warp in one block, in the order of the trace
    ends: NDArray[np.int64],  # [p]
    guarded: NDArray[np.int64],  # [p] threads of guarded instructions
    plain: NDArray[np.int64],  # [S] instructions without guard
    warp: int,  # of the first part
    row_warps: int,  # warps that count in one row
    segment_threads: NDArray[np.int64],  # [rows, S]
    warp_threads: NDArray[np.int64],  # [W]
    warp_path: NDArray[np.int32],  # [W]
    known: NDArray[np.int32],  # segments of the paths found so far
    known_end: NDArray[np.int32],  # of each, the place in its path behind the equal ones that follow it
    known_start: NDArray[np.int64],  # [paths + 1 ...]
    known_hash: NDArray[np.int64],
    table: NDArray[np.int32],  # path + 1, 0 free
    paths: int,
    part: int,  # from which on
) -> tuple[int, int]:
    """Give each warp the number of its path, adding paths that are new, and count threads.

    Returns (the number of paths, the first part that is not done because there is no room for its path).
    Neighbouring warps mostly do the same: such a part is counted with the part that it repeats, and one that takes the
    same path with other lanes is not looked for.
    """
    first = end = times = threads = 0  # the records that the last parts had, how many are not counted, threads of each
    row, row_end = -1, 0  # the warp that the next row begins with
    p = part
    full = False
    while p < len(starts) and not full:
        begin, length = starts[p], ends[p] - starts[p]
        w = warp + p
        same = like = row >= 0 and length == end - first
        if like:
            other = 0
            for k in range(length):
                other |= words[np.uint64(begin + k)] ^ words[np.uint64(first + k)]
            same, like = other == 0, other & FULL_MASK == 0
        if times > 0 and (not same or w >= row_end):
            _count_threads(words, first, end, times, row, plain, segment_threads)
            times = 0
        if w >= row_end:
            row = w // row_warps
            row_end = (row + 1) * row_warps
        if same:
            times += 1
            warp_path[w] = warp_path[w - 1]
        elif like:
            first, end = begin, begin + length
            threads = _count_threads(words, first, end, 1, row, plain, segment_threads)
            warp_path[w] = warp_path[w - 1]
        else:
            first, end = begin, begin + length
            segments, threads, code = _count(words, first, end, row, plain, segment_threads)
            slot = _find_path(words, first, end, segments, known, known_end, known_start, known_hash, table, code)
            if table[slot] == 0:
                full = paths == len(known_hash) or known_start[paths] + segments > len(known)
                if full:
                    _count_threads(words, first, end, -1, row, plain, segment_threads)  # it is taken again
                else:
                    known_hash[paths] = code
                    known_start[paths + 1] = _write(words, first, end, known, known_end, known_start[paths])
                    paths += 1
                    table[slot] = paths
            warp_path[w] = table[slot] - 1
        if not full:
            warp_threads[w] += threads + guarded[p]
            p += 1
    if times > 0:
        _count_threads(words, first, end, times, row, plain, segment_threads)
    return paths, p


@entry
def fill_table(known_hash: NDArray[np.int64], paths: int, table: NDArray[np.int32]) -> int:
    """Enter the paths found so far into a table that is free and has room for twice as many."""
    for p in range(paths):
        slot = (known_hash[p] >> 3) & (len(table) - 1)
        while table[slot] != 0:
            slot = (slot + 1) & (len(table) - 1)
        table[slot] = p + 1
    return paths


@entry
def sum_paths(
    warp_path: NDArray[np.int32],  # [W]
    path_start: NDArray[np.int64],  # [P+1] into the segments of all paths
    path_segment: NDArray[np.int32],
    bounds: NDArray[np.int64],  # [S+1] the first instruction of each segment
    segment_start: NDArray[np.int64],  # [S+1] where the accesses of each segment begin among those of all
    of_path: NDArray[np.int64],  # [2, P] room for the accesses and the warps of each path
    start: NDArray[np.int64],  # [W+1] where the accesses of each warp begin
    path_pc_start: NDArray[np.int64],  # [P+1] where the instructions of each path begin
    executed: NDArray[np.int64],  # [S] times that warps ran each segment
) -> int:
    """Fill the last three; `executed` is 0. Returns how many accesses there are."""
    paths = len(of_path[0])
    for p in range(paths):
        of_path[1, p] = 0
    for w in range(len(warp_path) if paths > 0 else 0):
        of_path[1, np.uint64(warp_path[w])] += 1
    instructions = 0
    path_pc_start[0] = 0
    for p in range(paths):
        accesses, warps = 0, of_path[1, p]
        for k in range(path_start[p], path_start[p + 1]):
            s = np.uint64(path_segment[np.uint64(k)])
            accesses += segment_start[s + np.uint64(1)] - segment_start[s]
            instructions += bounds[s + np.uint64(1)] - bounds[s]
            executed[s] += warps
        of_path[0, p] = accesses
        path_pc_start[p + 1] = instructions
    at = 0
    start[0] = 0
    for w in range(len(warp_path)):
        at += of_path[0, np.uint64(warp_path[w])] if paths > 0 else 0
        start[np.uint64(w) + np.uint64(1)] = at
    return at


@merged
def _times(word: int) -> int:
    """How often a warp ran the segment of a record."""
    return (word >> SEGMENT_BITS & MOST_REPEATS) + 1


@called
def _write(words: np.ndarray, first: int, end: int, known: np.ndarray, known_end: np.ndarray, start: int) -> int:
    """Write the segments of these records from `start` on. Returns the place behind them."""
    at = start
    for k in range(first, end):
        word = words[np.uint64(k)]
        count = _times(word)
        for j in range(count):
            known[np.uint64(at + j)] = word & _SEGMENT
        at += count
    behind, following = 0, -1
    for k in range(at - start):
        place = np.uint64(at - 1 - k)
        if known[place] != following:
            behind, following = at - k - start, known[place]
        known_end[place] = behind
    return int(at)


@merged
def _count(
    words: np.ndarray, first: int, end: int, row: int, plain: np.ndarray, segment_threads: np.ndarray
) -> tuple[int, int, int]:
    """Count the records from `first` to `end`. Returns (segments of their path, threads of instructions
    without a guard, hash).

    The hash is a sum over the segments of segment x (what `_mixed` grows by at their place): that of one that is
    repeated follows from where it begins and ends, however the records divide it.
    """
    threads = code = before = at = 0
    for k in range(first, end):
        word = words[np.uint64(k)]
        s = word & _SEGMENT
        count = _times(word)
        lanes = count * _lanes(word >> 32)
        threads += lanes * plain[np.uint64(s)]
        segment_threads[np.uint64(row), np.uint64(s)] += lanes
        at += count
        after = _mixed(at)
        code += (s + 1) * (after - before)
        before = after
    code = (code ^ code >> 32) * MIX
    return at, threads, code ^ code >> 32


@merged
def _count_threads(
    words: np.ndarray, first: int, end: int, times: int, row: int, plain: np.ndarray, segment_threads: np.ndarray
) -> int:
    """As `_count`, so many times, where the path is known. Returns the threads of one."""
    threads = 0
    for k in range(first, end):
        word = words[np.uint64(k)]
        s = np.uint64(word & _SEGMENT)
        lanes = _times(word) * _lanes(word >> 32)
        threads += lanes * plain[s]
        segment_threads[np.uint64(row), s] += times * lanes
    return int(threads)


@merged
def _mixed(place: int) -> int:
    """A number for a place in a path, from which nothing follows for the next one."""
    found = place * MIX
    return (found ^ found >> 29) * MIX


@merged
def _lanes(mask: int) -> int:
    """How many bits of `mask` are set: 32 bits, whatever is above them."""
    return int(popcount(mask & FULL_MASK))


@merged
def _find_path(
    words: np.ndarray, first: int, end: int, segments: int, known: np.ndarray, known_end: np.ndarray,
    known_start: np.ndarray, known_hash: np.ndarray, table: np.ndarray, code: int,
) -> int:  # fmt: skip
    """The place in the table of the path that the records from `first` to `end` take, or the free one for it."""
    slot = (code >> 3) & (len(table) - 1)
    while table[slot] != 0:
        p = table[slot] - 1
        if known_hash[p] == code and known_start[p + 1] - known_start[p] == segments:
            at = unlike = 0
            for k in range(first, end):
                word = words[np.uint64(k)]
                place = np.uint64(known_start[p] + at)
                at += _times(word)
                unlike |= (known[place] ^ (word & _SEGMENT)) | (known_end[place] < at)
            if unlike == 0:
                return slot
        slot = (slot + 1) & (len(table) - 1)
    return slot


@entry
def sum_rows(rows: NDArray[np.int64], total: NDArray[np.int64]) -> None:
    """Add up the rows [n, S] in `total` [S], which is 0."""
    for row in range(len(rows)):
        for k in range(len(total)):
            total[np.uint64(k)] += rows[np.uint64(row), np.uint64(k)]


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
