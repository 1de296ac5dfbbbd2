"""The patterns of a run's accesses, each once, in memory that compiled code fills (`ppt_gpu.exec.jit_patterns`).

A pattern is the distances of the lanes' addresses from that of the lowest active lane, 0 in inactive lanes, and the
mask of active lanes. Patterns are numbered in the order in which warps made them, and found again by hash: open
addressing with linear probing.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.compiled import entry, merged
from ppt_gpu.exec.jit_flow import MAX_SEGMENT

#: patterns that a warp may make between two looks at `FULL`: of every instruction of a segment, were each lane's
#: address in a state space of its own
SLACK = 32 * MAX_SEGMENT
PATTERNS, MANY = 1 << 13, 1 << 20  # room for patterns at first, and at least when that is too little
TABLE = 1 << 14  # entries of the table at first
TAKEN, OF = 3, 4  # so much of the table may be taken
MORE = 4  # times as much, when there is too little room
_LINE = 8  # words: rows begin at the lines of a cache


class PatternWord(IntEnum):
    """Words of a store's control block, which compiled code reads through Slot.PATTERNS."""

    ROWS = 0  # host address of [capacity, 32] 64-bit distances
    MASKS = 1  # host address of [capacity] 32-bit masks
    TABLE = 2  # host address of [2^k] words: pattern + 1, above it 31 bits of its hash; 0 for free
    ENTRIES = 3  # 2^k - 1
    USED = 4  # patterns so far
    FULL = 5  # from so many on, the store has to grow before a warp goes on
    LAST = 6  # the pattern looked up last
    BEFORE = 7  # another one, looked up before that


class PatternStore:
    """Patterns [capacity] of one run. `block` is the control block; it stays where it is when the rest grows."""

    def __init__(self) -> None:
        self.block = np.zeros(len(PatternWord), np.int64)
        self._rows = np.empty((0, 32), np.int64)
        self._masks, self._table = np.empty(0, np.uint32), np.empty(0, np.int64)
        self._room(max(PATTERNS, 2 * SLACK))
        self._spread(max(TABLE, 4 * SLACK))

    @property
    def used(self) -> int:
        return int(self.block[PatternWord.USED])

    @property
    def nbytes(self) -> int:
        """Bytes of the patterns."""
        return self.used * (32 * self._rows.itemsize + self._masks.itemsize + self._table.itemsize)

    def make_room(self, more: int) -> None:
        """Grow unless `more` patterns may come before the store is full."""
        while self.block[PatternWord.FULL] - self.used < more:
            if len(self._masks) <= self._most():
                self._room(max(MORE * len(self._masks), MANY))
            else:
                self._spread(MORE * len(self._table))

    def chosen(
        self, made: NDArray[np.int32], number: NDArray[np.int32]
    ) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
        """(distances, masks) of these patterns. `number` [used]: the place of each in `made`, -1 for none.

        They are moved in place: the store is of no use then.
        """
        arrange(self._rows, self._masks, made.copy(), number)
        return self._rows[: len(made)], self._masks[: len(made)]

    def _room(self, capacity: int) -> None:
        """Room for so many patterns, with those that there are."""
        used, block = self.used, self.block
        words = np.empty(32 * capacity + _LINE, np.int64)
        begin = -(words.ctypes.data // words.itemsize) % _LINE
        rows, masks = words[begin : begin + 32 * capacity].reshape(-1, 32), np.empty(capacity, np.uint32)
        rows[:used], masks[:used] = self._rows[:used], self._masks[:used]
        if not used:
            rows[0, 0], masks[0] = 1, 0  # no pattern: what was looked up before the first
        self._rows, self._masks = rows, masks
        block[PatternWord.ROWS], block[PatternWord.MASKS] = rows.ctypes.data, masks.ctypes.data
        self._set_full()

    def _spread(self, entries: int) -> None:
        """A table of so many entries, with those that there are."""
        table = np.empty(entries, np.int64)  # on larger pages than np.zeros has
        table[:] = 0
        spread(self._table, table)
        self._table = table
        self.block[PatternWord.TABLE], self.block[PatternWord.ENTRIES] = table.ctypes.data, entries - 1
        self._set_full()

    def _most(self) -> int:
        """Patterns that the table is for."""
        return len(self._table) * TAKEN // OF

    def _set_full(self) -> None:
        self.block[PatternWord.FULL] = min(len(self._masks), self._most()) - SLACK


@entry
def spread(old: NDArray[np.int64], new: NDArray[np.int64]) -> None:
    """Put the entries of one table into a larger one that is empty."""
    last = len(new) - 1
    for word in old:
        if word != 0:
            at = (word >> 32) & last
            while new[np.uint64(at)] != 0:
                at = (at + 1) & last
            new[np.uint64(at)] = word


@entry
def arrange(
    rows: NDArray[np.int64], masks: NDArray[np.uint32], source: NDArray[np.int32], number: NDArray[np.int32]
) -> int:
    """Let pattern i be the one that was source[i], for all i, in place; `source` is used up. Returns how many moved.

    Chains that begin at a pattern without a place come first: each takes the place of the one before it. What is left
    are cycles. The last row is free.
    """
    count, spare, moved = len(source), len(rows) - 1, 0
    for cycles in range(2):
        for i in range(count):
            if source[i] == i or (cycles == 0 and number[i] >= 0):
                continue
            if cycles == 1:
                _copy(rows, masks, i, spare)
            at = np.int64(i)
            while at >= 0:
                begin = np.int64(source[at])
                source[at] = at
                moved += 1
                if cycles == 1 and begin == i:
                    _copy(rows, masks, spare, at)
                    at = np.int64(-1)
                else:
                    _copy(rows, masks, begin, at)
                    at = begin if begin < count else np.int64(-1)
    return moved


@merged
def _copy(rows: np.ndarray, masks: np.ndarray, source: int, target: int) -> None:
    for k in range(32):
        rows[target, k] = rows[source, k]
    masks[target] = masks[source]
