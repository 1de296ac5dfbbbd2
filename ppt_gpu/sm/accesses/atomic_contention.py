"""Atomics that meet in the L2, whichever SMs they come from: it serves them one after another.

A line belongs to one slice of the L2, whose atomic unit updates a word `memory.atomics_per_cycle` times a cycle. One
simulated SM has one server for its atomics; `atomic_share` says how long an update of this SM keeps it, so that all of
them together take as long as the line that most updates of all SMs go to.

Where it is known how many such units there are (`l2.atomic_units`), all lines of a unit wait for one another, and what
an atomic asks of a line takes as long as an update and one for each sector of it, or as the updates of one word if
those are more. Which unit a line belongs to: pairs of units have chunks of `PAIR` bytes, and take turns in them at
`TURN` bytes. Found in histograms of 2 to 8,192 counts on Turing, Ampere and Ada (validation/RESULTS.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.compiled import entry
from ppt_gpu.common.hash_ids import Numbers, mix
from ppt_gpu.sm.accesses.coalesce import WARP, updates_so_far
from ppt_gpu.sm.accesses.sharing import BITS

#: atomics looked at together
PART = 1 << 14
#: B that a pair of units updates, and in which one of the two
PAIR, TURN = 1024, 256


@dataclass(frozen=True)
class Serving:
    """How the L2 serves atomics."""

    line: int  # B
    sector: int = 0  # B; 0: the whole line
    units: int = 0  # that update words, each by addresses of its own; 0: lines do not wait for one another
    float_update: float = 1.0  # time of an addition of a float where lanes meet on a word, in updates


@dataclass(frozen=True)
class Atomics:
    """A atomics of global memory."""

    pattern: NDArray[np.int32]  # [A]
    base: NDArray[np.int64]  # [A]
    offsets: NDArray[np.int64]  # [N, 32] of the patterns
    masks: NDArray[np.uint32]  # [N]
    floats: NDArray[np.bool_] | None = None  # [A] those that add floating-point numbers; None: none

    def updates(
        self, serving: Serving
    ) -> Iterator[tuple[slice, NDArray[np.uint64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]]:
        """Parts of the atomics: which, and of these, U each: the lines that an atomic goes to, the updates of one
        address that follow one another there (of floats the time), most over its addresses, the sectors there, and the
        atomic's number."""
        masks, offsets = np.ascontiguousarray(self.masks, np.int64), np.ascontiguousarray(self.offsets, np.int64)
        pattern, base = np.ascontiguousarray(self.pattern, np.int64), np.ascontiguousarray(self.base, np.int64)
        room = min(len(pattern), PART) * WARP
        address, count, sectors, atomic = (np.empty(room, np.int64) for _ in range(4))
        line, sector = serving.line, serving.sector or serving.line
        for first in range(0, len(pattern), PART):
            part = slice(first, min(first + PART, len(pattern)))
            found = _updates(pattern[part], base[part], offsets, masks, line, sector, address, count, sectors, atomic)
            if self.floats is not None:
                slow = self.floats[part][atomic[:found]]
                count[:found][slow] = in_updates(count[:found][slow], serving.float_update)
            yield (
                part,
                address[:found].view(np.uint64),
                count[:found],
                BITS[sectors[:found]].astype(np.int64),
                atomic[:found],
            )


def in_updates(lanes: NDArray[np.int_], float_update: float) -> NDArray[np.int64]:
    """[U] time of additions of floats by so many lanes that meet on a word, in updates; one lane alone is an update.

    An adder of floats is several cycles deep, and each sum waits for the one before it; integers come one a cycle.
    """
    return np.where(lanes > 1, np.rint(lanes * float_update), lanes).astype(np.int64)


def atomic_share(
    own: Atomics, serving: Serving, others: Atomics | None = None, weight: NDArray[np.float64] | None = None
) -> float:
    """Updates by all SMs of the line that gets the most, over all updates by this SM; 1 where it makes none.

    With `serving.units`, of the unit that takes longest for its lines, in the time of an update. others: of sampled
    SMs; weight [atomics of others]: for how many SMs each stands. Only lines that this SM updates count: what a
    sampled SM alone does with a line of its own, the SMs that it stands for do not add to; it lies anywhere.
    """
    numbers, total, of_line, elsewhere = Numbers(), 0.0, np.zeros(0), 0.0
    for _, address, count, sectors, atomic in own.updates(serving):
        of_line = _added(of_line, numbers.add(address), _time(serving, count, sectors))
        if len(atomic):  # it keeps the server for its longest chain
            total += float(np.maximum.reduceat(count, np.flatnonzero(np.diff(atomic, prepend=-1))).sum())
    if others is not None and weight is not None:
        for part, address, count, sectors, atomic in others.updates(serving):
            number, time = numbers.look_up(address), _time(serving, count, sectors) * weight[part][atomic]
            of_line = _added(of_line, number[number >= 0], time[number >= 0])
            elsewhere += float(time[number < 0].sum())
    if not total:
        return 1.0
    if not serving.units:
        return float(of_line.max()) / total
    unit = units_of_lines(numbers.keys, serving.units)
    return (float(np.bincount(unit, of_line).max()) + elsewhere / serving.units) / total


def units_of_lines(address: NDArray[np.uint64], units: int) -> NDArray[np.int64]:
    """[L] the atomic unit of the line at each address.

    Pairs of units take chunks in turn, from another one on in every round, so that no stride stays on one.
    """
    pairs, two = np.uint64(max(1, units // 2)), np.uint64(2)
    chunk = address.astype(np.uint64) // np.uint64(PAIR)
    pair = (chunk + mix(chunk // pairs) % pairs) % pairs
    return (pair * two + address // np.uint64(TURN) % two).astype(np.int64) % units


def _time(serving: Serving, count: NDArray[np.int64], sectors: NDArray[np.int64]) -> NDArray[np.float64]:
    """In updates of a word."""
    return (np.maximum(count, 1 + sectors) if serving.units else count).astype(np.float64)


def _added(total: NDArray[np.float64], number: NDArray[np.int32], count: NDArray[np.float64]) -> NDArray[np.float64]:
    found = np.bincount(number, count, len(total)).astype(np.float64)  # of nothing it is a count of integers
    found[: len(total)] += total
    return found


@entry
def _updates(
    pattern: np.ndarray, base: np.ndarray, offsets: np.ndarray, masks: np.ndarray, line: int, sector: int,
    address: np.ndarray, count: np.ndarray, sectors: np.ndarray, atomic: np.ndarray,
) -> int:  # fmt: skip
    """Fill address, count, sectors (bit sets) and atomic; how many."""
    at = 0
    for i in range(len(pattern)):
        p, first = pattern[i], at
        for lane in range(WARP):
            if not (masks[p] >> lane) & 1:
                continue
            same = updates_so_far(offsets[p], masks[p], lane)
            word = base[i] + offsets[p, lane]
            this, part = word // line * line, 1 << (word % line // sector)
            place = first
            while place < at and address[place] != this:
                place += 1
            if place == at:
                address[at], count[at], sectors[at], atomic[at] = this, same, part, i
                at += 1
            else:
                sectors[place] |= part
                count[place] = max(count[place], same)
    return at
