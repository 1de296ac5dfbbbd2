"""Turns the path records of compiled code into paths that are stored once each, and puts turns in order of warps.

A path record is (segment, mask). Equal paths are found by hash: open addressing with linear probing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.compiled import called, entry, inlined
from ppt_gpu.exec.digest import MIX
from ppt_gpu.exec.schedule import (
    FULL_MASK,
    TURN_GUARDED,
    TURN_PATH,
    TURN_PATH_END,
    TURN_RECORD,
    TURN_RECORD_END,
    TURN_WARP,
)


def turn_columns(
    turns: NDArray[np.int64], path: int, path_shift: int, record: int, record_shift: int
) -> NDArray[np.int64]:
    """[6, t] the columns of turns [t, 6], with places in the buffers at these host addresses, records of 2^shift B."""
    columns = np.ascontiguousarray(turns.T)
    for rows, begin, shift in (
        ((TURN_PATH, TURN_PATH_END), path, path_shift),
        ((TURN_RECORD, TURN_RECORD_END), record, record_shift),
    ):
        for row in rows:
            columns[row] -= begin
            columns[row] >>= shift
    return columns


def warp_order(warp: NDArray[np.int64]) -> NDArray[np.int64]:
    """The places of `warp` [n] in rising order of warps, those of one warp in their own order."""
    order = np.empty(len(warp), np.int64)
    if len(warp):
        low = int(warp.min())
        _warp_order(warp, low, np.zeros(int(warp.max()) - low + 2, np.int64), order)
    return order


@entry
def _warp_order(warp: np.ndarray, low: int, place: np.ndarray, order: np.ndarray) -> None:
    """Counting sort. place [warps + 1]: 0; becomes where each warp's places end."""
    for t in range(len(warp)):
        place[warp[t] - low + 1] += 1
    for w in range(1, len(place)):
        place[w] += place[w - 1]
    for t in range(len(warp)):
        order[place[warp[t] - low]] = t
        place[warp[t] - low] += 1


@entry
def read_paths(
    pairs: NDArray[np.uint32],  # [n, 2] the path buffer: segment, mask
    turns: NDArray[np.int64],  # [6, t] `turn_columns`
    plain: NDArray[np.int64],  # [S] instructions without guard
    path: NDArray[np.int32],
    at: int,
    segment_count: NDArray[np.int64],
    segment_threads: NDArray[np.int64],  # [rows, S]
    row_warps: int,  # warps that count in one row
    warp_threads: NDArray[np.int64],
) -> int:
    """Append the segments of all turns to `path` and count executions. Returns the next free place.

    Turns one after another are mostly those of neighbouring warps, which do the same: such a turn is copied, and
    counted with the turn that it repeats.
    """
    words = pairs.view(np.int64)
    first = end = times = of_turn = 0  # the records that the last turns had, how many turns, and the threads of each
    row = -1
    for t in range(turns.shape[1]):
        begin, length = turns[TURN_PATH, t], turns[TURN_PATH_END, t] - turns[TURN_PATH, t]
        warp = turns[TURN_WARP, t]
        own_row = warp // row_warps
        same = own_row == row and length == end - first
        if same:
            other = 0
            for k in range(length):
                other |= words[np.uint64(begin + k), 0] ^ words[np.uint64(first + k), 0]
            same = other == 0
        if same:
            for k in range(length):
                path[np.uint64(at + k)] = path[np.uint64(at + k - length)]
            times += 1
        else:
            _count(pairs, first, end, times, row, segment_count, segment_threads)
            first, end, times, row = begin, begin + length, 1, own_row
            of_turn = 0
            for k in range(length):
                s = pairs[begin + k, 0]
                path[at + k] = s
                of_turn += _lanes(pairs[begin + k, 1]) * plain[s]
        at += length
        warp_threads[warp] += of_turn + turns[TURN_GUARDED, t]
    _count(pairs, first, end, times, row, segment_count, segment_threads)
    return at


@called
def _count(
    pairs: np.ndarray, first: int, end: int, times: int, row: int, segment_count: np.ndarray,
    segment_threads: np.ndarray,
) -> None:  # fmt: skip
    """Count the records from `first` to `end` so many times."""
    for k in range(first, end):
        s = pairs[k, 0]
        segment_count[s] += times
        segment_threads[row, s] += times * _lanes(pairs[k, 1])


@inlined
def _lanes(mask: int) -> int:
    return 32 if mask == FULL_MASK else _population(mask)


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
    parts = 0  # of the warp before
    while k < len(order):
        warp = part_warp[order[k]]
        start, before = k, parts
        while k < len(order) and part_warp[order[k]] == warp:
            k += 1
        parts = k - start
        if parts == before and _same_path(path, order, part_start, part_end, start, parts):
            warp_path[warp] = warp_path[part_warp[order[start - 1]]]
            continue
        begin = at = known_start[paths]
        code = 1
        for part in range(start, k):
            for j in range(part_start[order[part]], part_end[order[part]]):
                known[at] = path[j]
                code = (code ^ path[j]) * MIX
                code ^= code >> 32
                at += 1
        slot = _find_path(known, known_start, known_hash, table, begin, at, code)
        if table[slot] == 0:
            known_hash[paths] = code
            paths += 1
            table[slot] = paths
            known_start[paths] = at
        warp_path[warp] = table[slot] - 1
    return paths


@inlined
def _same_path(
    path: np.ndarray, order: np.ndarray, part_start: np.ndarray, part_end: np.ndarray, start: int, parts: int
) -> bool:
    """Are the `parts` parts from place `start` of `order` on equal to those before them?"""
    k = start
    same = True
    while same and k < start + parts:
        own, other = order[k], order[k - parts]
        length = part_end[own] - part_start[own]
        same = part_end[other] - part_start[other] == length
        if same:
            differ = 0
            for j in range(length):
                differ |= path[np.uint64(part_start[own] + j)] ^ path[np.uint64(part_start[other] + j)]
            same = differ == 0
        k += 1
    return same


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
