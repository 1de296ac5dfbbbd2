"""The patterns of a trace from those that compiled code stored: each once, numbered by first appearance in the trace.

Compiled code stores patterns in rows of several kinds, and some of them more than once
(`ppt_gpu.emulator.trace.pattern_store`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.compiled import entry, merged
from ppt_gpu.emulator.trace.digest import find_pattern, new_patterns
from ppt_gpu.emulator.trace.pattern_store import PLACES_BIT, SHIFT_BIT, WIDTH_BIT, WORDS
from ppt_gpu.emulator.trace.record_words import SPACE_BITS

_KIND = 0xFF  # of a row, from WIDTH_BIT or SHIFT_BIT on


class Rows(NamedTuple):
    """Rows as compiled code reads them: all lines in elements of 8, 16, 32 and 64 bits, and a word for each line."""

    places8: NDArray[np.uint8]
    places16: NDArray[np.uint16]
    places32: NDArray[np.uint32]
    away16: NDArray[np.int16]
    away32: NDArray[np.int32]
    away64: NDArray[np.int64]
    masks: NDArray[np.int64]


@dataclass(frozen=True)
class Stored:
    """Patterns of a run: L lines (`ppt_gpu.emulator.trace.pattern_store`)."""

    rows: NDArray[np.int64]  # [L, WORDS]
    masks: NDArray[np.int64]  # [L] of the pattern that begins at a line: mask, and from WIDTH_BIT on the kind of row
    count: int  # of patterns

    @staticmethod
    def of(offset: NDArray[np.int64], mask: NDArray[np.uint32]) -> Stored:
        """Those of a trace: pattern n begins at line n x `LINES_OF_TRACE`."""
        masks = np.zeros(LINES_OF_TRACE * len(mask), np.int64)
        masks[::LINES_OF_TRACE] = mask.astype(np.int64) | 64 << WIDTH_BIT
        return Stored(np.ascontiguousarray(offset).reshape(-1, WORDS), masks, len(mask))

    @property
    def nbytes(self) -> int:
        return self.rows.nbytes + self.masks.nbytes

    def views(self) -> Rows:
        words: NDArray[Any] = np.ascontiguousarray(self.rows).reshape(-1)
        kinds: tuple[Any, ...] = (np.uint8, np.uint16, np.uint32, np.int16, np.int32, np.int64)
        return Rows._make((*(words.view(kind) for kind in kinds), self.masks))

    def pattern(self, line: int) -> tuple[int, ...]:
        """Mask and distances of the pattern that begins at a line."""
        found = np.empty((1, 32), np.int64)
        return (expand_row(self.views(), line, found, 0), *found[0].tolist())

    def numbered(
        self, headers: NDArray[np.uint32], spans: NDArray[np.int64]
    ) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.uint32]]:
        """(number [L] of the pattern at each line, -1 for those that are not used; distances [N, 32]; masks [N]) of
        the records in these spans [n, 2], in this order."""
        number = np.full(len(self.masks), -1, np.int32)
        known = new_patterns(min(self.count, int((spans[:, 1] - spans[:, 0]).sum())))
        used = number_lines(headers, spans, self.views(), *known, np.empty((1, 32), np.int64), number)
        return number, known.offset[:used], known.mask[:used].astype(np.uint32)


LINES_OF_TRACE = 32 // WORDS  # of a pattern in a trace, whose distances have 64 bits


@merged
def _copy_row(source: np.ndarray, at: int, found: np.ndarray, row: int) -> None:
    for k in range(32):
        found[np.uint64(row), np.uint64(k)] = source[np.uint64(at + k)]


@merged
def distances(rows: Rows, line: int, found: NDArray[np.int64], row: int) -> int:
    """Write the distances of the pattern that begins at a line to found[row]. Returns its mask."""
    word = rows.masks[np.uint64(line)]
    mask = word & 0xFFFFFFFF
    bits = word >> WIDTH_BIT & _KIND
    at = line * (64 * WORDS) // bits
    if word >> PLACES_BIT == 0:
        if bits == 16:
            _copy_row(rows.away16, at, found, row)
        elif bits == 32:
            _copy_row(rows.away32, at, found, row)
        else:
            _copy_row(rows.away64, at, found, row)
        return int(mask)
    if bits == 8:
        _copy_row(rows.places8, at, found, row)
    elif bits == 16:
        _copy_row(rows.places16, at, found, row)
    else:
        _copy_row(rows.places32, at, found, row)
    lane = 0
    while mask >> lane & 1 == 0:
        lane += 1
    first = found[row, lane]
    shift = word >> SHIFT_BIT & _KIND
    for k in range(32):
        found[np.uint64(row), np.uint64(k)] = ((found[np.uint64(row), np.uint64(k)] - first) << shift) * (mask >> k & 1)
    return int(mask)


@entry
def expand_row(rows: Rows, line: int, found: NDArray[np.int64], row: int) -> int:
    """As `distances`, for Python."""
    return int(distances(rows, line, found, row))


@entry
def number_lines(
    headers: NDArray[np.uint32],  # [R]
    spans: NDArray[np.int64],  # [n, 2]
    rows: Rows,
    offset: NDArray[np.int64],  # of `digest.Patterns`, as the next three
    mask: NDArray[np.int64],
    table: NDArray[np.int64],
    used: NDArray[np.int64],
    listed: NDArray[np.int64],  # [1, 32] a row at work
    number: NDArray[np.int32],  # [L] -1, or the number of the pattern that begins at this line
) -> int:
    """Number the patterns of records by first appearance. Returns how many there are; for all of them is room."""
    for part in range(len(spans)):
        for r in range(spans[part, 0], spans[part, 1]):
            line = np.int64(headers[np.uint64(r)] >> SPACE_BITS)
            if number[np.uint64(line)] < 0:
                lanes = distances(rows, line, listed, 0)
                number[np.uint64(line)] = find_pattern(offset, mask, table, used, listed, 0, lanes)
    return int(used[0])
