"""Atomics that meet at the same line of the L2, whichever SMs they come from: it serves them one after another.

A line belongs to one slice of the L2, whose atomic unit updates a word `memory.atomics_per_cycle` times a cycle. One
simulated SM has one server for its atomics; `atomic_share` says how long an update of this SM keeps it, so that all of
them together take as long as the line that most updates of all SMs go to.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.compiled import entry
from ppt_gpu.sm.coalesce import WARP, updates_so_far
from ppt_gpu.sm.lower_hash import Numbers

#: atomics looked at together
PART = 1 << 14


@dataclass(frozen=True)
class Atomics:
    """A atomics of global memory."""

    pattern: NDArray[np.int32]  # [A]
    base: NDArray[np.int64]  # [A]
    offsets: NDArray[np.int64]  # [N, 32] of the patterns
    masks: NDArray[np.uint32]  # [N]

    def updates(self, line: int) -> Iterator[tuple[slice, NDArray[np.uint64], NDArray[np.int64], NDArray[np.int64]]]:
        """Parts of the atomics: which, and of these, U each: the lines of `line` bytes that an atomic goes to, the
        updates of one address that follow one another there, most over its addresses, and the atomic's number."""
        masks, offsets = np.ascontiguousarray(self.masks, np.int64), np.ascontiguousarray(self.offsets, np.int64)
        pattern, base = np.ascontiguousarray(self.pattern, np.int64), np.ascontiguousarray(self.base, np.int64)
        room = min(len(pattern), PART) * WARP
        address, count, atomic = (np.empty(room, np.int64) for _ in range(3))
        for first in range(0, len(pattern), PART):
            part = slice(first, min(first + PART, len(pattern)))
            found = _updates(pattern[part], base[part], offsets, masks, line, address, count, atomic)
            yield part, address[:found].view(np.uint64), count[:found], atomic[:found]


def atomic_share(
    own: Atomics, line: int, others: Atomics | None = None, weight: NDArray[np.float64] | None = None
) -> float:
    """Updates by all SMs of the line that gets the most, over all updates by this SM; 1 where it makes none.

    line: B. others: of sampled SMs; weight [atomics of others]: for how many SMs each stands. Only lines that this SM
    updates count: what a sampled SM alone does with a line of its own, the SMs that it stands for do not add to.
    """
    numbers, total, of_line = Numbers(), 0.0, np.zeros(0)
    for _, address, count, atomic in own.updates(line):
        of_line = _added(of_line, numbers.add(address), count.astype(np.float64))
        if len(atomic):  # it keeps the server for its longest chain
            total += float(np.maximum.reduceat(count, np.flatnonzero(np.diff(atomic, prepend=-1))).sum())
    if others is not None and weight is not None:
        for part, address, count, atomic in others.updates(line):
            number = numbers.look_up(address)
            known = number >= 0
            of_line = _added(of_line, number[known], (count * weight[part][atomic])[known])
    return float(of_line.max()) / total if total else 1.0


def _added(total: NDArray[np.float64], number: NDArray[np.int32], count: NDArray[np.float64]) -> NDArray[np.float64]:
    found = np.bincount(number, count, len(total)).astype(np.float64)  # of nothing it is a count of integers
    found[: len(total)] += total
    return found


@entry
def _updates(
    pattern: np.ndarray, base: np.ndarray, offsets: np.ndarray, masks: np.ndarray, line: int, address: np.ndarray,
    count: np.ndarray, atomic: np.ndarray,
) -> int:  # fmt: skip
    """Fill address, count and atomic; how many."""
    at = 0
    for i in range(len(pattern)):
        p, first = pattern[i], at
        for lane in range(WARP):
            if not (masks[p] >> lane) & 1:
                continue
            same = updates_so_far(offsets[p], masks[p], lane)
            this = (base[i] + offsets[p, lane]) // line * line
            place = first
            while place < at and address[place] != this:
                place += 1
            if place == at:
                address[at], count[at], atomic[at] = this, same, i
                at += 1
            elif same > count[place]:
                count[place] = same
    return at
