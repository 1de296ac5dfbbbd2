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

from ppt_gpu.common.compiled import entry

LEVEL = 1  # of zlib: the differences repeat, more effort finds little more
RATIO = 1040  # zlib never packs more bytes into one (its limit is 1032)
WIDTHS = ("i1", "i2", "i4", "i8")


class Damaged(Exception):
    """Bytes that are no packed array: the text says why."""


@dataclass(frozen=True)
class Rows:
    """The order in which `rows` stores the accesses of W warps."""

    order: NDArray[np.int64]  # [W] warps by path, then number
    start: NDArray[np.int64]  # [W+1] first access of each warp
    fresh: NDArray[np.bool_]  # [W] the warp's path is not the path of the one before, in that order

    @staticmethod
    def of(warp_path: NDArray[np.int32], access_start: NDArray[np.int64]) -> Rows:
        """Warps of one path with different numbers of accesses, which no run yields, count as of different paths."""
        length = np.diff(access_start)
        order = np.lexsort((length, warp_path))
        path, length = warp_path[order], length[order]
        fresh = np.ones(len(order), np.bool_)
        fresh[1:] = (path[1:] != path[:-1]) | (length[1:] != length[:-1])
        return Rows(order, np.ascontiguousarray(access_start, np.int64), fresh)


def pack(values: NDArray[Any], coding: str, rows: Rows | None = None) -> tuple[str, bytes]:
    """(type of the stored integers, their packed bytes). ValueError when `rows` are not those of the values."""
    wide = values.astype(np.uint64).view(np.int64) if values.dtype.kind == "u" else values.astype(np.int64)
    wide = wide.ravel()
    if coding == "rows" and rows is not None:
        if rows.start[0] != 0 or rows.start[-1] != len(wide) or (np.diff(rows.start) < 0).any():
            raise ValueError("the rows are not those of the values")
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
    narrow = np.frombuffer(raw, f"<{width}")
    if coding == "delta":
        wide = np.cumsum(narrow, dtype=np.int64)
    else:
        wide = narrow.astype(np.int64)
        if coding == "rows" and rows is not None:
            wide = _sums_by_row(wide, rows)
    kind = np.dtype(dtype)
    if kind not in (np.uint64, np.int64):
        info = np.iinfo(kind)
        if len(wide) and not (info.min <= int(wide.min()) and int(wide.max()) <= info.max):
            raise Damaged(f"a value that is no {kind}")
    return wide.view(np.uint64) if kind == np.uint64 else wide.astype(kind, copy=False)


def _differences_by_row(values: NDArray[np.int64], rows: Rows) -> NDArray[np.int64]:
    found = np.empty(len(values), np.int64)
    _subtract(values, rows.order, rows.start, rows.fresh, found)
    return found


def _sums_by_row(found: NDArray[np.int64], rows: Rows) -> NDArray[np.int64]:
    values = np.empty(len(found), np.int64)
    _add(found, rows.order, rows.start, rows.fresh, values)
    return values


@entry
def _subtract(values: np.ndarray, order: np.ndarray, start: np.ndarray, fresh: np.ndarray, found: np.ndarray) -> None:
    """Rows in stored order: a fresh one goes on from the last fresh one, another subtracts the row before."""
    at = last = before = 0
    for w in range(len(order)):
        first = start[order[w]]
        length = start[order[w] + 1] - first
        if fresh[w]:
            for k in range(length):
                found[np.uint64(at + k)] = values[np.uint64(first + k)] - last
                last = values[np.uint64(first + k)]
        else:
            for k in range(length):
                found[np.uint64(at + k)] = values[np.uint64(first + k)] - values[np.uint64(before + k)]
        at += length
        before = first


@entry
def _add(found: np.ndarray, order: np.ndarray, start: np.ndarray, fresh: np.ndarray, values: np.ndarray) -> None:
    """The inverse of `_subtract`."""
    at = last = before = 0
    for w in range(len(order)):
        first = start[order[w]]
        length = start[order[w] + 1] - first
        if fresh[w]:
            for k in range(length):
                last += found[np.uint64(at + k)]
                values[np.uint64(first + k)] = last
        else:
            for k in range(length):
                values[np.uint64(first + k)] = values[np.uint64(before + k)] + found[np.uint64(at + k)]
        at += length
        before = first
