"""Dense numbers for sparse 64-bit keys, in the order of first appearance: line addresses, memoised access shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.compiled import entry, merged

_FIRST = 512  # keys there is room for at first


def mix(key: Any) -> Any:
    """A bijection of 64-bit integers that spreads regular keys (finaliser of MurmurHash3, public domain).

    `key`: one np.uint64 in compiled code, or an array of them.
    """
    key = (key ^ (key >> _33)) * _MIX_A
    key = (key ^ (key >> _33)) * _MIX_B
    return key ^ (key >> _33)


# constants of the type of the keys, so that compiled code never mixes signed and unsigned numbers
_0, _1, _4, _7, _11, _15, _33, _127 = (np.uint64(value) for value in (0, 1, 4, 7, 11, 15, 33, 127))
_MIX_A, _MIX_B = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_mix = merged(mix)


@entry
def _number(
    values: np.ndarray, i: int, ids: np.ndarray, keys: np.ndarray, table: np.ndarray, used: np.ndarray, add: bool
) -> int:
    """ids[i:] of values[i:]; those without a number get the next one (`used` counts them), or -1 unless `add`.

    `table`: open addressing, a power of two long, -1 for free. Sixteen neighbouring lines of 128 B start in one cache
    line of the table: streams of lines are looked up fast. Keys that differ in their low seven bits (access shapes)
    are spread by a multiplication. Returns how many values are done: fewer than all when `keys` is full.
    """
    mask = np.uint64(len(table) - 1)
    count = used[0]
    while i < len(values):
        key = values[i]
        if i > 0 and key == values[i - 1]:
            ids[i] = ids[i - 1]
            i += 1
            continue
        at = (_mix(key >> _11) << _4) | ((key >> _7) & _15)
        at = (at + (key & _127) * _GOLDEN) & mask
        found = table[at]
        while found >= 0 and keys[found] != key:
            at = (at + _1) & mask
            found = table[at]
        if found < 0 and add:
            if count == len(keys):
                break
            keys[count] = key
            table[at] = found = count
            count += 1
        ids[i] = found
        i += 1
    used[0] = count
    return i


class Numbers:
    """The keys seen so far, numbered."""

    def __init__(self, room: int = _FIRST) -> None:
        self._keys = np.empty(max(room, 1), np.uint64)
        self._table = np.full(1 << (2 * len(self._keys) - 1).bit_length(), -1, np.int32)
        self._used = np.zeros(1, np.int64)

    @property
    def keys(self) -> NDArray[np.uint64]:
        """By number."""
        return self._keys[: int(self._used[0])]

    def add(self, values: NDArray[np.uint64]) -> NDArray[np.int32]:
        """[n] the numbers of the values, new ones included."""
        values = np.ascontiguousarray(values, np.uint64)
        ids = np.empty(len(values), np.int32)
        done = _number(values, 0, ids, self._keys, self._table, self._used, True)
        while done < len(values):
            grown = Numbers(4 * len(self._keys))
            grown.add(self._keys)
            self._keys, self._table, self._used = grown._keys, grown._table, grown._used
            done = _number(values, done, ids, self._keys, self._table, self._used, True)
        return ids

    def look_up(self, values: NDArray[np.uint64]) -> NDArray[np.int32]:
        """[n] the numbers of the values, -1 for unknown ones."""
        values = np.ascontiguousarray(values, np.uint64)
        ids = np.empty(len(values), np.int32)
        _number(values, 0, ids, self._keys, self._table, self._used, False)
        return ids


def dense_ids(values: NDArray[np.uint64]) -> tuple[NDArray[np.int32], NDArray[np.uint64]]:
    """(ids [n], distinct values [u]): `distinct[ids] == values`, distinct in the order of first appearance."""
    numbers = Numbers()
    ids = numbers.add(values)
    return ids, numbers.keys.copy()
