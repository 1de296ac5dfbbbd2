"""Arrays of a trace as few bytes: differences, the narrowest integers that hold them, then zlib (RFC 1950).

Three codings (docs/trace.md):

    plain   the values
    delta   each value less the one before it; paths count up by one most of the time
    rows    access by access: each warp's values less those of the warp before that took the same path, because such
            warps make the same accesses a fixed distance apart; other warps as `delta`, one after another
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

LEVEL = 1  # of zlib: the differences repeat, more effort finds little more
RATIO = 1040  # zlib never packs more bytes into one (its limit is 1032)
WIDTHS = ("i1", "i2", "i4", "i8")


class Damaged(Exception):
    """Bytes that are no packed array: the text says why."""


@dataclass(frozen=True)
class Rows:
    """The order in which `rows` stores the accesses of W warps."""

    order: NDArray[np.int64]  # [W] warps by path, then number
    length: NDArray[np.int64]  # [W] accesses of each, in that order
    fresh: NDArray[np.bool_]  # [W] the warp's path is not the path of the one before, in that order

    @staticmethod
    def of(warp_path: NDArray[np.int32], access_start: NDArray[np.int64]) -> Rows:
        """Warps of one path with different numbers of accesses, which no run yields, count as of different paths."""
        length = np.diff(access_start)
        order = np.lexsort((length, warp_path))
        path, length = warp_path[order], length[order]
        fresh = np.ones(len(order), np.bool_)
        fresh[1:] = (path[1:] != path[:-1]) | (length[1:] != length[:-1])
        return Rows(order, length, fresh)


def pack(values: NDArray[Any], coding: str, rows: Rows | None = None) -> tuple[str, bytes]:
    """(type of the stored integers, their packed bytes)."""
    wide = values.astype(np.uint64).view(np.int64) if values.dtype.kind == "u" else values.astype(np.int64)
    wide = wide.ravel()
    if coding == "rows" and rows is not None:
        wide = _differences_by_row(wide, rows)
    elif coding == "delta":
        wide = np.diff(wide, prepend=np.int64(0))
    low, high = (int(wide.min()), int(wide.max())) if len(wide) else (0, 0)
    width = next(w for w in WIDTHS if np.iinfo(w).min <= low and high <= np.iinfo(w).max)
    return width, zlib.compress(wide.astype(f"<{width}").tobytes(), LEVEL)


def unpack(data: bytes, width: str, count: int, coding: str, dtype: Any, rows: Rows | None = None) -> NDArray[Any]:
    """The `count` values of `pack`. Raises Damaged when the bytes are not exactly those, or a value does not fit."""
    if width not in WIDTHS:
        raise Damaged(f"integers of type '{width}', expected {', '.join(WIDTHS)}")
    size = count * np.dtype(width).itemsize
    if not 0 <= size <= len(data) * RATIO:
        raise Damaged(f"{len(data)} bytes cannot hold {count} values")
    engine = zlib.decompressobj()
    try:
        raw = engine.decompress(data, size + 1)
    except zlib.error as error:
        raise Damaged(f"zlib: {error}") from None
    if len(raw) != size or not engine.eof or engine.unused_data:
        raise Damaged(f"expected {count} values")
    wide = np.frombuffer(raw, f"<{width}").astype(np.int64)
    if coding == "rows" and rows is not None:
        wide = _sums_by_row(wide, rows)
    elif coding == "delta":
        wide = np.cumsum(wide)
    kind = np.dtype(dtype)
    if kind != np.uint64:
        info = np.iinfo(kind)
        if len(wide) and not (info.min <= int(wide.min()) and int(wide.max()) <= info.max):
            raise Damaged(f"a value that is no {kind}")
    return wide.view(np.uint64) if kind == np.uint64 else wide.astype(kind)


def _spans(rows: Rows) -> tuple[NDArray[np.int64], list[tuple[int, int]]]:
    """(start of each warp in stored order, [first, last + 1] warps of each run of warps that took one path)."""
    start = np.zeros(len(rows.order) + 1, np.int64)
    np.cumsum(rows.length, out=start[1:])
    first = np.flatnonzero(rows.fresh)
    last = np.append(first[1:], len(rows.order))
    several = (last - first > 1) & (rows.length[first] > 0)
    return start, list(zip(first[several].tolist(), last[several].tolist(), strict=True))


def _differences_by_row(values: NDArray[np.int64], rows: Rows) -> NDArray[np.int64]:
    start, runs = _spans(rows)
    stored = values[_gather(rows)]
    found = np.diff(stored, prepend=np.int64(0))
    for first, end in runs:
        length = int(rows.length[first])
        matrix = stored[start[first] : start[end]].reshape(end - first, length)
        found[start[first + 1] : start[end]] = np.diff(matrix, axis=0).ravel()
        if end < len(rows.order):  # what follows goes on from the run's first row
            _restart(found, stored, int(start[end]), int(start[first + 1]) - 1)
    return found


def _restart(found: NDArray[np.int64], stored: NDArray[np.int64], at: int, before: int) -> None:
    if at < len(stored):
        found[at] = stored[at] - (stored[before] if before >= 0 else 0)


def _sums_by_row(found: NDArray[np.int64], rows: Rows) -> NDArray[np.int64]:
    start, runs = _spans(rows)
    chained = found.copy()
    for first, end in runs:
        chained[start[first + 1] : start[end]] = 0
    stored = np.cumsum(chained)
    for first, end in runs:
        length = int(rows.length[first])
        matrix = found[start[first] : start[end]].reshape(end - first, length).copy()
        matrix[0] = stored[start[first] : start[first + 1]]
        stored[start[first] : start[end]] = np.cumsum(matrix, axis=0).ravel()
    values = np.empty_like(stored)
    values[_gather(rows)] = stored
    return values


def _gather(rows: Rows) -> NDArray[np.int64]:
    """For each place in stored order the access that stands there."""
    start = np.zeros(len(rows.order) + 1, np.int64)
    lengths = np.zeros(len(rows.order), np.int64)
    lengths[rows.order] = rows.length
    np.cumsum(lengths, out=start[1:])
    stored = np.cumsum(rows.length) - rows.length
    return np.repeat(start[:-1][rows.order] - stored, rows.length) + np.arange(int(rows.length.sum()))
