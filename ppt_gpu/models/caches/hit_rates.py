"""Hit rates of L1 and L2 from probabilities that a line is still there: what models of reuse distance say of a launch.

Counted as the simulator counts: the L1 in its sectors that loads look up, the L2 in sectors of what the L1 does not
answer, of stores (but for those that a write-back L1 keeps) and of atomics. A sector that nobody asked for before is
not in the cache, whatever the line's distance; in the L2 it is where the host or another SM brought it (warm), each
time that it is asked for where the uses of other SMs keep its line.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.compiled import entry
from ppt_gpu.models.base.access_stream import AccessStream
from ppt_gpu.sm.program.program import FORCED_L1, FORCED_L2, KIND_ATOMIC, KIND_LOAD, KIND_STORE
from ppt_gpu.sm.program.result import SmResult

_ONES = np.array([number.bit_count() for number in range(256)], np.int64)


@dataclass(frozen=True)
class HitRates:
    """Shares between 0 and 1; None: nothing looks into that cache, or the model does not know it."""

    model: str
    l1: float | None
    l2: float | None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Touched:
    """[T] sectors of the program, of each transaction: asked for, and those of them that were asked for before."""

    asked: NDArray[np.int64]
    in_l1: NDArray[np.int64]  # since a store or atomic dropped the line
    in_l2: NDArray[np.int64]
    warm: NDArray[np.int64]  # in the L2 by others: not asked for by this SM before, or kept there


def touched(stream: AccessStream) -> Touched:
    """What each transaction could find in caches without end."""
    found = np.zeros((3, len(stream.line)), np.int64)
    machine = stream.machine
    _touch(
        stream.line, stream.sectors, stream.kind, stream.cached, stream.drops,
        machine.l1_allocate, _ONES, np.zeros((len(stream.warm), 2), np.int64), stream.warm, stream.kept, found,
    )  # fmt: skip
    return Touched(_ONES[stream.sectors], *found)


def hit_rates(
    model: str,
    stream: AccessStream,
    before: Touched,
    l1_stays: NDArray[np.float64],
    l2_stays: NDArray[np.float64] | None,
    notes: tuple[str, ...] = (),
) -> HitRates:
    """l1_stays, l2_stays [T]: the probability that the line is still there since its last use; None: unknown."""
    load = stream.kind == KIND_LOAD
    forced = stream.line < 0
    looks = load & (stream.cached | forced)
    hits = np.where(stream.cached & load, before.in_l1 * l1_stays, 0.0)
    hits[load & (stream.line == FORCED_L1)] = before.asked[load & (stream.line == FORCED_L1)]
    l1 = _share(float(hits.sum()), float(before.asked[looks].sum()))
    if l2_stays is None:
        return HitRates(model, l1, None, notes)
    machine = stream.machine
    kept = stream.keeps & (stream.kind == KIND_STORE) & machine.l1_allocate
    below = np.where(kept, 0.0, before.asked - hits)
    again = np.maximum(before.in_l2 - np.where(load, hits, 0.0), 0.0)
    found = np.minimum(again * l2_stays + before.warm, below)
    found[forced] = np.where(stream.line[forced] == FORCED_L2, below[forced], 0.0)
    return HitRates(model, l1, _share(float(found.sum()), float(below.sum())), notes)


def simulated_rates(result: SmResult) -> HitRates:
    """Those of a simulation."""
    l1, l2 = (result.l1_hits, result.l1_accesses), (result.l2_hits, result.l2_accesses)
    return HitRates("simulation", _share(*l1), _share(*l2))


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None


@entry
def _touch(
    line: np.ndarray, sectors: np.ndarray, kind: np.ndarray, cached: np.ndarray, evict: np.ndarray, allocate: bool,
    ones: np.ndarray, seen: np.ndarray, warm: np.ndarray, kept: np.ndarray, found: np.ndarray,
) -> None:  # fmt: skip
    """seen [L, 2]: sectors of each line that the L1, and that the L2 has been asked for. found [3, T]."""
    for t in range(len(line)):
        if line[t] < 0:
            continue
        at, mask = line[t], sectors[t]
        if cached[t]:
            if kind[t] == KIND_LOAD:
                found[0, t] = ones[mask & seen[at, 0]]
                seen[at, 0] |= mask
            elif kind[t] == KIND_ATOMIC or evict[t]:
                seen[at, 0] = 0
            elif kind[t] == KIND_STORE and allocate:
                seen[at, 0] |= mask
        by_others = warm[at] if kept[at] else warm[at] & ~seen[at, 1]
        found[1, t] = ones[mask & seen[at, 1] & ~by_others]
        found[2, t] = ones[mask & by_others]
        seen[at, 1] |= mask
