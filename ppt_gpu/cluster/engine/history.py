"""What each rank did when: its time split into compute, communication seen and hidden, copies, and none of these."""

from __future__ import annotations

from array import array
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Intervals:
    """When a rank computed (kernels or host), sent or received, and copied: start, end, start, end ... in ps."""

    __slots__ = ("communication", "compute", "copies")

    def __init__(self) -> None:
        self.compute = array("q")
        self.communication = array("q")
        self.copies = array("q")


class Split(NamedTuple):
    """A rank's time in ps. compute + exposed + copies + idle is all of it; `hidden` lies within compute.

    exposed: communication while nothing computed; copies: while neither; idle: nothing of the rank's was under way.
    """

    compute: int
    exposed: int
    hidden: int
    copies: int
    idle: int


def split_of(intervals: Intervals, end: int) -> Split:
    """The split of a rank's time from 0 to `end`."""
    compute = union(intervals.compute, end)
    communication = union(intervals.communication, end)
    copies = union(intervals.copies, end)
    busy = merge(compute, communication)
    every = merge(busy, copies)
    computed, communicated, spent, all_ = (_length(part) for part in (compute, communication, busy, every))
    exposed = spent - computed
    return Split(computed, exposed, communicated - exposed, all_ - spent, end - all_)


def union(pairs: array[int], end: int) -> NDArray[np.int64]:
    """Disjoint intervals in order, shape (n, 2), from overlapping ones in any order, cut off at `end`."""
    found = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return _disjoint(np.minimum(found, end))


def merge(a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.int64]:
    """The union of two sets of intervals."""
    return _disjoint(np.concatenate((a, b)))


def _disjoint(pairs: NDArray[np.int64]) -> NDArray[np.int64]:
    pairs = pairs[np.argsort(pairs[:, 0], kind="stable")]
    if len(pairs) < 2:
        return pairs
    reach = np.maximum.accumulate(pairs[:, 1])
    first = np.concatenate(([True], pairs[1:, 0] > reach[:-1]))
    starts = np.flatnonzero(first)
    return np.column_stack((pairs[starts, 0], np.maximum.reduceat(pairs[:, 1], starts)))


def _length(pairs: NDArray[np.int64]) -> int:
    return int((pairs[:, 1] - pairs[:, 0]).sum())
