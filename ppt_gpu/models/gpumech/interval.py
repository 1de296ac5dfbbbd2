"""The interval algorithm: the stalls of one warp that has the SM to itself (GPUMech, paper 000, section III-B, Eq. 4).

issue(k+1) = max(issue(k) + 1, done(source) + gap) over the sources of k + 1; done(k) = issue(k) + latency(k). Where
k + 1 does not follow k at once, k closes an interval, and the cycles between are its stall. The paper prints gap 1. The
latencies of this program count to the issue of the dependent, which is gap 0. A branch or barrier holds the next
instruction as if that read its result. The last interval has no stall, or with `drain` one until the last result.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.compiled import entry as compiled_entry
from ppt_gpu.sm.program.program import Program


@dataclass(frozen=True)
class Profile:
    """Eq. 2, of one warp: K intervals."""

    insts: NDArray[np.float64]  # [K] instructions
    stall: NDArray[np.float64]  # [K] cycles
    cause: NDArray[np.int64]  # [K] what the stall waits for: an operation, or a place in a trace; -1: there is none
    first: NDArray[np.int64]  # [K] the entry that each interval begins with

    @property
    def instructions(self) -> float:
        return float(self.insts.sum())

    def cycles(self, rate: float = 1.0) -> float:
        """Of the warp alone: instructions / rate + stalls."""
        return self.instructions / rate + float(self.stall.sum())

    def issue_probability(self, rate: float = 1.0) -> float:
        """Eqs. 5 and 9: instructions per cycle of the warp alone. 0 without instructions."""
        cycles = self.cycles(rate)
        return self.instructions / cycles if cycles else 0.0


@dataclass(frozen=True)
class Profiles:
    """The profiles of all P paths, K intervals together."""

    start: NDArray[np.int64]  # [P+1] intervals of each path
    insts: NDArray[np.float64]  # [K]
    stall: NDArray[np.float64]  # [K]
    cause: NDArray[np.int64]  # [K]
    first: NDArray[np.int64]  # [K]

    def __getitem__(self, path: int) -> Profile:
        part = slice(self.start[path], self.start[path + 1])
        return Profile(self.insts[part], self.stall[part], self.cause[part], self.first[part])

    def totals(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """[P] instructions and stall cycles of each path."""
        before = [np.concatenate(([0.0], np.cumsum(values))) for values in (self.insts, self.stall)]
        insts, stall = (np.diff(total[self.start]) for total in before)
        return insts, stall


def interval_profiles(
    program: Program,
    producers: tuple[NDArray[np.int64], NDArray[np.int64]],
    latency: NDArray[np.float64],
    hold: NDArray[np.float64],
    *,
    gap: int,
    drain: bool,
) -> Profiles:
    """Intervals of every path. latency, hold [O]: to the result, and to the next entry, in cycles.

    producers: CSR over the entries, as `ModelInputs.producers`.
    """
    entries = len(program.entry_op)
    start = np.zeros(len(program.path_start), np.int64)
    insts, stall = np.zeros(entries), np.zeros(entries)
    cause, first = np.full(entries, -1, np.int64), np.zeros(entries, np.int64)
    _intervals(
        program.path_start, program.entry_op, *producers, latency, hold, gap, drain, np.zeros(entries), start, insts,
        stall, cause, first,
    )  # fmt: skip
    count = int(start[-1])
    return Profiles(start, insts[:count], stall[:count], cause[:count], first[:count])


@compiled_entry
def _intervals(
    path_start: np.ndarray, entry_op: np.ndarray, producer_start: np.ndarray, producer: np.ndarray,
    latency: np.ndarray, hold: np.ndarray, gap: int, drain: bool, done: np.ndarray, start: np.ndarray,
    insts: np.ndarray, stall: np.ndarray, cause: np.ndarray, first: np.ndarray,
) -> None:  # fmt: skip
    """done [E]: work space."""
    k = -1
    for path in range(len(start) - 1):
        issue, gate, last, last_op = 0.0, 0.0, 0.0, -1
        for entry in range(path_start[path], path_start[path + 1]):
            op = entry_op[entry]
            begins = entry == path_start[path]
            soonest = issue if begins else issue + 1.0
            ready, waits_for = soonest, -1
            if not begins and gate > ready:
                ready, waits_for = gate, entry_op[entry - 1]
            for index in range(producer_start[entry], producer_start[entry + 1]):
                if done[producer[index]] + gap > ready:
                    ready = done[producer[index]] + gap
                    waits_for = entry_op[producer[index]]
            if begins or ready > soonest:
                if not begins:
                    stall[k], cause[k] = ready - soonest, waits_for
                k += 1
                first[k] = entry
            insts[k] += 1.0
            issue = ready
            done[entry] = issue + latency[op]
            gate = issue + hold[op] + gap if hold[op] > 0.0 else 0.0
            if done[entry] > last:
                last, last_op = done[entry], op
        if drain and last > issue + 1.0:
            stall[k], cause[k] = last - issue - 1.0, last_op
        start[path + 1] = k + 1
