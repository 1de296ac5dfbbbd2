"""Turns the path records of compiled code into paths that are stored once each, and puts turns in order of warps.

A path record is (segment, mask). Equal paths are found by hash: open addressing with linear probing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.compiled import entry, inlined
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
    """Append the segments of all turns to `path` and count executions. Returns the next free place."""
    for t in range(turns.shape[1]):
        threads = turns[TURN_GUARDED, t]
        warp = turns[TURN_WARP, t]
        row = warp // row_warps
        for k in range(turns[TURN_PATH, t], turns[TURN_PATH_END, t]):
            s = pairs[k, 0]
            lanes = 32 if pairs[k, 1] == FULL_MASK else _population(pairs[k, 1])
            path[at] = s
            at += 1
            segment_count[s] += 1
            segment_threads[row, s] += lanes
            threads += lanes * plain[s]
        warp_threads[warp] += threads
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
