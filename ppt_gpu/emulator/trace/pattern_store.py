"""The patterns of a run's accesses, in memory that compiled code fills (`ppt_gpu.emulator.jit.patterns`).

A pattern is the distances of the lanes' addresses from that of the lowest active lane, 0 in inactive lanes, and the
mask of active lanes. Its row holds the distances in 16, 32 or 64 bits each, as few as they all fit in, and begins at a
line of LINE bytes, whose number is the pattern's. A table that stays in the caches knows patterns that came before;
what it has forgotten is stored once more, and `ppt_gpu.emulator.trace.digest_patterns` finds out.

Accesses of an instruction that always does something new are not looked up, and leave rows of places: how many
elements of the access each lane is behind some address, the same for all of them, in 8, 16 or 32 bits.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.emulator.analysis.flow import MAX_SEGMENT
from ppt_gpu.emulator.trace.buffer_pool import empty

LINE = 32  # B; a row of 8-bit places
WORDS = LINE // 8
#: words: lines begin where one of the host's caches does, so that a row of 16-bit distances seldom lies in two of them
_START = 64 // 8
#: bits of a pattern's word, above its mask: from here on the bits of a distance; of rows of places, log2 of their
#: elements' bytes, and a bit that says so
WIDTH_BIT, SHIFT_BIT, PLACES_BIT = 32, 40, 48
ENTRIES = 1 << 12  # of the table
#: lines that a warp may fill between two looks at `FULL`: of every instruction of a segment, were each lane's address
#: in a state space of its own
SLACK = 32 * MAX_SEGMENT * (32 * 8 // LINE)
LINES, MANY = 1 << 17, 1 << 21  # room at first, and at least when that is too little: what is not used costs nothing
MORE = 4  # times as much, when there is too little room


class PatternWord(IntEnum):
    """Words of a store's control block, which compiled code reads through Slot.PATTERNS."""

    ROWS = 0  # host address of the lines
    MASKS = 1  # host address of a word for each line: mask and kind of row of the pattern that begins there
    TABLE = 2  # host address of [ENTRIES] words: the number of a pattern, above it 31 bits of its hash
    USED = 3  # lines so far
    FULL = 4  # from so many on, the store has to grow before a warp goes on
    COUNT = 5  # patterns so far


class PatternStore:
    """Patterns of one run. `block` is the control block; it stays where it is when the rest grows."""

    def __init__(self) -> None:
        self.block = np.zeros(len(PatternWord), np.int64)
        self._rows, self._masks = np.empty((0, WORDS), np.int64), np.empty(0, np.int64)
        self._table = np.zeros(ENTRIES, np.int64)
        self.block[PatternWord.TABLE] = self._table.ctypes.data
        lines = max(LINES, 2 * SLACK)
        self._room(lines, _words(lines))

    @property
    def used(self) -> int:
        """Lines."""
        return int(self.block[PatternWord.USED])

    @property
    def count(self) -> int:
        """Patterns, those that are stored several times as often as that."""
        return int(self.block[PatternWord.COUNT])

    def make_room(self, more: int) -> None:
        """Grow unless `more` lines may come before the store is full."""
        while self.block[PatternWord.FULL] - self.used < more:
            lines = max(MORE * len(self._masks), MANY)
            self._room(lines, _words(lines))

    @property
    def rows(self) -> NDArray[np.int64]:
        """[used, WORDS] the lines."""
        return self._rows[: self.used]

    @property
    def masks(self) -> NDArray[np.int64]:
        """[used] of the patterns that begin at each line: mask, and from WIDTH_BIT on the kind of row."""
        return self._masks[: self.used]

    def _room(self, lines: int, words: NDArray[np.int64]) -> None:
        """Make these `words` room for so many lines, with those that there are."""
        used, block = self.used, self.block
        begin = -(words.ctypes.data // words.itemsize) % _START
        end = begin + WORDS * lines
        rows, masks = words[begin:end].reshape(-1, WORDS), words[end : end + lines]
        rows[:used], masks[:used] = self._rows[:used], self._masks[:used]
        if not used:
            masks[0] = 0  # no pattern: what free entries of the table name
        self._rows, self._masks = rows, masks
        block[PatternWord.ROWS], block[PatternWord.MASKS] = rows.ctypes.data, masks.ctypes.data
        block[PatternWord.FULL] = lines - SLACK


def _words(lines: int) -> NDArray[np.int64]:
    """Room for the lines, and for their masks."""
    return empty(_START + WORDS * lines + lines, np.int64)
