"""From boxes, the bytes that bulk copies move, to transactions: the lines of their rows, one row after another."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.compiled import entry
from ppt_gpu.workload.box import AXES, FIRST_AXIS, ROW


def box_transactions(
    words: NDArray[np.int64], base: NDArray[np.int64], line: int, sector: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint8]]:
    """(start [U+1], line numbers [T], sector masks [T]) of the transactions of U boxes.

    words [U, 32]: as in `ppt_gpu.workload.box`; base [U]: their addresses; line, sector: B, powers of two. Rows
    one after another that lie in one line share its transaction.
    """
    words = np.ascontiguousarray(words)
    shifts = line.bit_length() - 1, sector.bit_length() - 1
    start = np.zeros(len(words) + 1, np.int64)
    _boxes(words, base, *shifts, start, np.zeros(0, np.int64), np.zeros(0, np.uint8))
    lines, sectors = np.empty(start[-1], np.int64), np.empty(start[-1], np.uint8)
    _boxes(words, base, *shifts, start, lines, sectors)
    return start, lines, sectors


@entry
def _boxes(
    words: np.ndarray, base: np.ndarray, line: int, sector: int, start: np.ndarray, out_line: np.ndarray,
    out_mask: np.ndarray,
) -> None:  # fmt: skip
    """Transactions of boxes [U, 32]. With no room for them they are counted into `start`. line, sector: logarithms."""
    filling = len(out_line) > 0
    n = 0
    for i in range(len(words)):
        rows = 1
        for axis in range(AXES):
            if words[i, FIRST_AXIS + 2 * axis] > 0:
                rows *= words[i, FIRST_AXIS + 2 * axis]
        begun = False
        last = 0
        for row in range(rows):
            address, rest = base[i], row
            for axis in range(AXES):
                repeated = words[i, FIRST_AXIS + 2 * axis]
                if repeated > 0:
                    address += rest % repeated * words[i, FIRST_AXIS + 2 * axis + 1]
                    rest //= repeated
            for index in range(address >> sector, ((address + words[i, ROW] - 1) >> sector) + 1):
                number = index >> (line - sector)
                bit = 1 << (index - (number << (line - sector)))
                if not begun or number != last:
                    if filling:
                        out_line[n] = number
                        out_mask[n] = 0
                    n += 1
                    begun = True
                    last = number
                if filling:
                    out_mask[n - 1] |= bit
        start[i + 1] = n
