"""The raw trace of a block's warps, as compiled code writes it: for each warp its path, headers of accesses and bases.

Each warp has buffers of its own, so that what it records lies together, however often the warps of its block took
turns. Blocks run one after another write one behind the other.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.exec.jit_context import Slot

WORD = 8  # B of a path record, a header and a base
#: words between the buffers of two warps: one line of a cache, so that they do not meet in the same sets
APART = 8
#: words of memory that NumPy asks large pages for, with room to begin anywhere
LARGE = 6 << 17
#: columns of the places where a warp's trace of a block ends: in its path, in its accesses; and guarded threads
END_PATH, END_RECORD, END_GUARDED = range(3)
_CURSORS = [int(slot) for slot in (Slot.PATH, Slot.RECORD, Slot.GUARDED_SUM)]
_ENDS = [int(slot) for slot in (Slot.PATH_END, Slot.RECORD_END)]
_SHIFT = np.array([3, 3, 0])  # addresses to words


class TraceBuffers:
    """Buffers of the W warps with these `rows`. `paths` and `records`: words of a warp; `least` of them must be free
    for a block to get on. Places are [..., W, 3], in the flat buffers."""

    def __init__(self, rows: NDArray[np.int64], paths: int, records: int, least: int) -> None:
        self.rows, self.least = rows, least
        self.held = np.zeros(len(rows), np.int64)  # accesses of each warp that refer to patterns that are held back
        self._set(*self._first(paths, records))
        self._go_on(np.zeros_like(self.starts))

    def _first(self, paths: int, records: int) -> Iterator[NDArray[np.int64]]:
        """The three buffers, in one piece of memory: large pages, where it is large, cost little to touch."""
        words = [max(wanted, 2 * self.least) + APART for wanted in (paths, records, records)]
        total = len(self.rows) * sum(words)
        slab, at = np.empty(LARGE if LARGE // 4 < total < LARGE else total, np.int64), 0
        for each in words:
            yield slab[at : at + len(self.rows) * each].reshape(len(self.rows), each)
            at += len(self.rows) * each

    def _empty(self, words: int) -> NDArray[np.int64]:
        return np.empty((len(self.rows), max(words, 2 * self.least) + APART), np.int64)

    def _set(self, path: NDArray[np.int64], header: NDArray[np.int64], base: NDArray[np.int64]) -> None:
        self.path, self.header, self.base = path, header, base
        self._origin = np.array([path.ctypes.data, header.ctypes.data, 0])
        #: where the warps' buffers begin
        self.starts = np.arange(len(self.rows))[:, None] * [path.shape[1], header.shape[1], 0]
        self.rows[:, Slot.BASES] = base.ctypes.data - header.ctypes.data
        room = WORD * np.array([path.shape[1] - APART, header.shape[1] - APART])
        self.rows[:, _ENDS] = (self._origin + WORD * self.starts)[:, :2] + room

    def _go_on(self, length: NDArray[np.int64]) -> None:
        """Let the warps write behind their first words, so many of each kind."""
        self.rows[:, _CURSORS[:2]] = (self._origin + WORD * (self.starts + length))[:, :2]

    def places(self, ends: NDArray[np.int64]) -> NDArray[np.int64]:
        """Places for host addresses."""
        return (ends - self._origin) >> _SHIFT

    def now(self) -> NDArray[np.int64]:
        """Where the warps' traces end now."""
        return self.places(self.rows[:, _CURSORS])

    def used(self) -> int:
        """Bytes that the warps have written."""
        path, record, _ = (self.now() - self.starts).sum(axis=0).tolist()
        return WORD * path + 2 * WORD * record

    def drop(self, ends: NDArray[np.int64]) -> None:
        """Forget what lies before these places; the rest moves to the front. Makes room where there is little."""
        path, record = ends[:, END_PATH], ends[:, END_RECORD]
        length = self.now() - ends
        length[:, END_GUARDED] = 0
        if length.any():
            self.held = np.maximum(self.held - (record - self.starts[:, END_RECORD]), 0)
            self._set(
                self._moved(self.path, path, length[:, END_PATH]),
                self._moved(self.header, record, length[:, END_RECORD]),
                self._moved(self.base, record, length[:, END_RECORD]),
            )
        else:
            self.held[:] = 0
        self._go_on(length)

    def _moved(
        self, buffer: NDArray[np.int64], first: NDArray[np.int64], length: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """The buffer with so many words from these places on in front; twice as large if they are half of it."""
        room = buffer.shape[1] - APART
        target = self._empty(2 * room) if 2 * int(length.max()) > room else buffer
        flat = buffer.reshape(-1)
        for w, (at, count) in enumerate(zip(first.tolist(), length.tolist(), strict=True)):
            if count:
                target[w, :count] = flat[at : at + count]
        return target
