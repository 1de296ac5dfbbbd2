"""The raw trace of a block's warps, as compiled code writes it: for each warp its path, headers of accesses and bases.

Each warp has buffers of its own, so that what it records lies together, however often the warps of its block took
turns. Blocks run one after another write one behind the other.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.compiled import entry
from ppt_gpu.emulator.memory.warp_context import Slot
from ppt_gpu.emulator.trace.buffer_pool import empty
from ppt_gpu.emulator.trace.record_words import BASE_BYTES, PATH_BYTES, RECORD_BYTES

#: elements between the buffers of two warps: lines of a cache, so that they do not meet in the same sets
APART = 16
#: columns of the places where a warp's trace of a block ends: in its path, in its accesses; and guarded threads
END_PATH, END_RECORD, END_GUARDED = range(3)
_CURSORS = [int(slot) for slot in (Slot.PATH, Slot.RECORD, Slot.GUARDED_SUM)]
_ENDS = [int(slot) for slot in (Slot.PATH_END, Slot.RECORD_END)]
_BYTES = np.array([PATH_BYTES, RECORD_BYTES, 1])  # of a path record, of a header, of what is no address
_SHIFTS = np.array([int(size).bit_length() - 1 for size in _BYTES])  # powers of two, as dividing takes long


class TraceBuffers:
    """Buffers of the W warps with these `rows`. `paths` and `records`: room of a warp; `least` of it must be free for
    a block to get on. Places are [..., W, 3], in the flat buffers."""

    def __init__(self, rows: NDArray[np.int64], paths: int, records: int, least: int) -> None:
        self.rows, self.least = rows, least
        self._set(*self._first(paths, records))
        self._go_on(np.zeros_like(self.starts))

    def _first(self, paths: int, records: int) -> tuple[NDArray[Any], ...]:
        """The three buffers, in one piece of memory."""
        warps, wide, narrow = len(self.rows), self._width(paths), self._width(records)
        bases = PATH_BYTES * wide * warps
        headers = bases + BASE_BYTES * narrow * warps
        total = headers + RECORD_BYTES * narrow * warps
        slab = empty(total, np.uint8)
        parts = (slab[:bases], np.int64), (slab[headers:total], np.uint32), (slab[bases:headers], np.int64)
        return tuple(part.view(kind).reshape(warps, -1) for part, kind in parts)

    def _width(self, wanted: int) -> int:
        """Elements from the buffer of one warp to that of the next."""
        return max(wanted, 2 * self.least) + APART

    def _set(self, path: NDArray[np.int64], header: NDArray[np.uint32], base: NDArray[np.int64]) -> None:
        self.path, self.header, self.base = path, header, base
        self._origin = np.array([path.ctypes.data, header.ctypes.data, 0])
        #: where the warps' buffers begin
        self.starts = np.arange(len(self.rows))[:, None] * [path.shape[1], header.shape[1], 0]
        self.rows[:, Slot.BASES] = base.ctypes.data - BASE_BYTES // RECORD_BYTES * header.ctypes.data
        self._fresh = (self._origin + _BYTES * self.starts)[:, :2]  # where warps begin to write
        self._fresh_records = int(self._fresh[:, END_RECORD].sum())
        room = np.array([path.shape[1] - APART, header.shape[1] - APART, 0])
        self.rows[:, _ENDS] = (self._origin + _BYTES * (self.starts + room))[:, :2]

    def _go_on(self, length: NDArray[np.int64]) -> None:
        """Let the warps write behind their first records, so many of each kind."""
        self.rows[:, _CURSORS[:2]] = self._fresh + (_BYTES * length)[:, :2]

    def places(self, ends: NDArray[np.int64]) -> NDArray[np.int64]:
        """Places for host addresses."""
        return (ends - self._origin) >> _SHIFTS

    def records(self, end: NDArray[np.int64]) -> int:
        """Accesses of blocks run one after another, the last of which ended at these host addresses [W, 3]."""
        return (int(end[:, END_RECORD].sum()) - self._fresh_records) // RECORD_BYTES

    def take(
        self, ends: NDArray[np.int64], header: NDArray[np.uint32], base: NDArray[np.int64], at: int,
        places: NDArray[np.int64],
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:  # fmt: skip
        """Take over what blocks left that ran one after another and ended at these host addresses [n, W, 3]: records
        of accesses go into `header` and `base` from `at` on, in the order of the trace, and where those of each warp
        end then into `places` [n * W].

        Returns first place [0] and place behind the last [1] of their paths, [2, n * W], and guarded threads [n * W].
        """
        path, guarded = np.empty((2, len(places)), np.int64), np.empty(len(places), np.int64)
        _take(
            ends, self._origin, _SHIFTS, self.starts.copy(), self.header.reshape(-1), self.base.reshape(-1), header,
            base, at, places, path, guarded,
        )  # fmt: skip
        return path, guarded

    def now(self) -> NDArray[np.int64]:
        """Where the warps' traces end now."""
        return self.places(self.cursors())

    def cursors(self) -> NDArray[np.int64]:
        """[W, 3] the host addresses where the warps' traces end now, and their guarded threads."""
        return self.rows[:, _CURSORS]

    def used(self) -> int:
        """Bytes that the warps have written."""
        path, record, _ = (self.now() - self.starts).sum(axis=0).tolist()
        return PATH_BYTES * path + (RECORD_BYTES + BASE_BYTES) * record

    def drop(self, ends: NDArray[np.int64]) -> None:
        """Forget what lies before these places; the rest moves to the front. Makes room where there is little."""
        path, record = ends[:, END_PATH], ends[:, END_RECORD]
        length = self.now() - ends
        length[:, END_GUARDED] = 0
        if length.any():
            self._set(
                self._moved(self.path, path, length[:, END_PATH]),
                self._moved(self.header, record, length[:, END_RECORD]),
                self._moved(self.base, record, length[:, END_RECORD]),
            )
            self._go_on(length)
        else:
            self.rows[:, _CURSORS[:2]] = self._fresh

    def _moved(self, buffer: NDArray[Any], first: NDArray[np.int64], length: NDArray[np.int64]) -> NDArray[Any]:
        """The buffer with so many records from these places on in front; twice as large if they are half of it."""
        room = buffer.shape[1] - APART
        large = 2 * int(length.max()) > room
        target = np.empty((len(self.rows), self._width(2 * room)), buffer.dtype) if large else buffer
        flat = buffer.reshape(-1)
        for w, (at, count) in enumerate(zip(first.tolist(), length.tolist(), strict=True)):
            if count:
                target[w, :count] = flat[at : at + count]
        return target


@entry
def _take(
    ends: NDArray[np.int64],  # [n, W, 3]
    origin: NDArray[np.int64],  # [3]: path, record, guarded threads, as is all with three columns
    shifts: NDArray[np.int64],  # [3]
    first: NDArray[np.int64],  # [W, 3] where each warp begins; where it ends, at last
    headers: NDArray[np.uint32],  # the buffers of all warps one after another
    bases: NDArray[np.int64],
    header: NDArray[np.uint32],
    base: NDArray[np.int64],
    at: int,
    places: NDArray[np.int64],  # [n * W] as are the last two
    path: NDArray[np.int64],  # [2, n * W]
    guarded: NDArray[np.int64],
) -> None:
    """As `TraceBuffers.take`."""
    blocks, warps, _ = ends.shape
    part = np.uint64(0)
    for block in range(blocks):
        for w in range(warps):
            path[0, part] = first[w, END_PATH]
            first[w, END_PATH] = (ends[block, w, END_PATH] - origin[END_PATH]) >> shifts[END_PATH]
            path[1, part] = first[w, END_PATH]
            guarded[part] = ends[block, w, END_GUARDED]
            begin = first[w, END_RECORD]
            end = (ends[block, w, END_RECORD] - origin[END_RECORD]) >> shifts[END_RECORD]
            first[w, END_RECORD] = end
            away = at - begin
            for j in range(begin, end):
                base[np.uint64(j + away)] = bases[np.uint64(j)]
            for j in range(begin, end):
                header[np.uint64(j + away)] = headers[np.uint64(j)]
            at = end + away
            places[part] = at
            part += np.uint64(1)
