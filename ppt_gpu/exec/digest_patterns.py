"""The patterns of a trace from those that compiled code stored: each once, numbered by first appearance in the trace.

Compiled code stores patterns in rows of several widths, and some of them more than once (`ppt_gpu.exec.pattern_store`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.compiled import entry
from ppt_gpu.exec.digest import FACTORS, MIX
from ppt_gpu.exec.jit_records import SPACE_BITS
from ppt_gpu.exec.pattern_store import WIDTH_BIT, WORDS

_LINE_BITS = 64 * WORDS // 32  # of a distance in a row of one line


@dataclass(frozen=True)
class Stored:
    """Patterns of a run: L lines of 64 B."""

    rows: NDArray[np.int64]  # [L, WORDS]
    masks: NDArray[np.int64]  # [L] of the pattern that begins at a line: mask, and from WIDTH_BIT on bits of a distance
    count: int  # of patterns

    @property
    def nbytes(self) -> int:
        return self.rows.nbytes + self.masks.nbytes

    def numbered(
        self, headers: NDArray[np.uint32], spans: NDArray[np.int64]
    ) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.uint32]]:
        """(number [L] of the pattern at each line, -1 for those that are not used; distances [N, 32]; masks [N]) of
        the records in these spans [n, 2], in this order."""
        most = min(self.count, int((spans[:, 1] - spans[:, 0]).sum()))
        number, first = np.full(len(self.masks), -1, np.int32), np.empty(most, np.int32)
        table = np.zeros(1 << (2 * most).bit_length(), np.int64)
        found = first[: number_lines(headers, spans, self.rows, self.masks, table, number, first)]
        offset, mask = np.empty((len(found), 32), np.int64), np.empty(len(found), np.uint32)
        words = np.ascontiguousarray(self.rows).reshape(-1)
        expand_rows(words.view(np.int16), words.view(np.int32), words, self.masks, found, offset, mask)
        return number, offset, mask


@entry
def number_lines(
    headers: NDArray[np.uint32],  # [R]
    spans: NDArray[np.int64],  # [n, 2]
    rows: NDArray[np.int64],  # [L, WORDS]
    masks: NDArray[np.int64],  # [L]
    table: NDArray[np.int64],  # [2^k] pattern + 1 and above it 31 bits of its hash, 0 for free; at most half full
    number: NDArray[np.int32],  # [L] -1, or the number of the pattern that begins at this line
    first: NDArray[np.int32],  # the line where each pattern begins
) -> int:
    """Number the patterns of records by first appearance. Returns how many there are."""
    count, last = 0, len(table) - 1
    for part in range(len(spans)):
        for r in range(spans[part, 0], spans[part, 1]):
            line = np.int64(headers[np.uint64(r)] >> SPACE_BITS)
            if number[np.uint64(line)] >= 0:
                continue
            word = masks[np.uint64(line)]
            lines = (word >> WIDTH_BIT) // _LINE_BITS
            code = word * MIX
            for i in range(lines):
                for k in range(WORDS):
                    code += rows[line + i, k] * FACTORS[WORDS * i + k]
            tag = ((code ^ code >> 32) * MIX >> 32) & 0x7FFFFFFF
            at = tag & last
            found = np.int64(-1)
            while table[np.uint64(at)] != 0 and found < 0:
                if table[np.uint64(at)] >> 32 == tag:
                    found = (table[np.uint64(at)] & 0xFFFFFFFF) - 1
                    other = np.int64(first[found])
                    differ = masks[other] ^ word
                    for i in range(lines if differ == 0 else 0):
                        for k in range(WORDS):
                            differ |= rows[other + i, k] ^ rows[line + i, k]
                    if differ != 0:
                        found = np.int64(-1)
                if found < 0:
                    at = (at + 1) & last
            if found < 0:
                found = np.int64(count)
                first[found] = line
                table[np.uint64(at)] = tag << 32 | (found + 1)
                count += 1
            number[np.uint64(line)] = found
    return count


@entry
def expand_rows(
    short: NDArray[np.int16],  # all lines in 16 bits, then in 32 and in 64
    middle: NDArray[np.int32],
    wide: NDArray[np.int64],
    masks: NDArray[np.int64],
    first: NDArray[np.int32],  # [N] lines
    offset: NDArray[np.int64],  # [N, 32]
    mask: NDArray[np.uint32],  # [N]
) -> None:
    """Write the distances and the masks of patterns."""
    for n in range(len(first)):
        line = np.int64(first[n])
        word = masks[line]
        mask[n] = np.uint32(word & 0xFFFFFFFF)
        bits = word >> WIDTH_BIT
        at = line * WORDS * 64 // bits
        for k in range(32):
            if bits == 16:
                offset[n, k] = short[np.uint64(at + k)]
            elif bits == 32:
                offset[n, k] = middle[np.uint64(at + k)]
            else:
                offset[n, k] = wide[np.uint64(at + k)]
