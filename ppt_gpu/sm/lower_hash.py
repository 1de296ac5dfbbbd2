"""Dense numbers for sparse 64-bit keys, in the order of first appearance: line addresses, memoised access shapes."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

_EMPTY = np.int32(-1)


@njit(cache=True, inline="always")
def mix(key: np.uint64) -> np.uint64:
    """A bijection of 64-bit integers that spreads regular keys (finaliser of MurmurHash3, public domain)."""
    key = np.uint64(key)
    key ^= key >> np.uint64(33)
    key *= np.uint64(0xFF51AFD7ED558CCD)
    key ^= key >> np.uint64(33)
    key *= np.uint64(0xC4CEB9FE1A85EC53)
    key ^= key >> np.uint64(33)
    return key


@njit(cache=True, inline="always")
def find(key: np.uint64, keys: np.ndarray, table: np.ndarray) -> int:
    """The place in `table` (open addressing, a power of two long) of `key`, or of the hole where it belongs.

    Sixteen neighbouring lines of 128 B start in one cache line of the table: streams of lines are looked up fast.
    Keys that differ in their low seven bits (access shapes) are spread by a multiplication.
    """
    mask = np.uint64(len(table) - 1)
    at = (mix(key >> np.uint64(11)) << np.uint64(4)) | ((key >> np.uint64(7)) & np.uint64(15))
    at = (at + (key & np.uint64(127)) * np.uint64(0x9E3779B97F4A7C15)) & mask
    while table[at] != _EMPTY and keys[table[at]] != key:
        at = (at + np.uint64(1)) & mask
    return int(at)


@njit(cache=True)
def build_table(keys: np.ndarray, count: int, capacity: int) -> np.ndarray:
    """A table for `find` over the distinct keys[:count]; `capacity` is a power of two above `count`."""
    table = np.full(capacity, _EMPTY, np.int32)
    for i in range(count):
        table[find(keys[i], keys, table)] = i
    return table


@njit(cache=True)
def _dense_ids(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    ids = np.empty(len(values), np.int32)
    keys = np.empty(512, np.uint64)
    table = np.full(1024, _EMPTY, np.int32)
    count = 0
    last = -1
    for i in range(len(values)):
        if i > 0 and values[i] == values[i - 1]:
            ids[i] = last
            continue
        at = find(values[i], keys, table)
        if table[at] == _EMPTY:
            if count == len(keys):
                grown = np.empty(4 * count, np.uint64)
                grown[:count] = keys
                keys = grown
                table = build_table(keys, count, 8 * count)
                at = find(values[i], keys, table)
            keys[count] = values[i]
            table[at] = count
            count += 1
        last = table[at]
        ids[i] = last
    return ids, keys[:count].copy()


def dense_ids(values: NDArray[np.uint64]) -> tuple[NDArray[np.int32], NDArray[np.uint64]]:
    """(ids [n], distinct values [u]): `distinct[ids] == values`, distinct in the order of first appearance."""
    return _dense_ids(np.ascontiguousarray(values, np.uint64))
