"""When an SM comes to an access: in which wave, and after how many loads that its warp waited for one after another."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.compiled import entry
from ppt_gpu.exec.trace_parts import spans
from ppt_gpu.sm.lower_ops import OpTable
from ppt_gpu.sm.program import KIND_ATOMIC, KIND_LOAD
from ppt_gpu.sm.scoreboard import SLOTS, Schedule


def waits_before(plan: Schedule, ops: OpTable) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """(Start of each path [P+1], of each of its memory entries: the longest chain of loads that the warp waited for).

    A load waits for nothing that is issued behind it, so loads that are on their way together count once.
    """
    recorded = ops.recorded[plan.entry_op]
    start = np.concatenate(([0], np.cumsum(recorded)))[plan.path_start].astype(np.int64)
    loads = (ops.kind == KIND_LOAD) | (ops.kind == KIND_ATOMIC)
    depth = np.empty(start[-1], np.int32)
    issued = np.empty(SLOTS, np.int32)
    _waits_before(plan.path_start, plan.entry_op, plan.entry_wait, plan.entry_slot, ops.recorded, loads, issued, depth)
    return start, depth


@entry
def _waits_before(
    path_start: np.ndarray, entry_op: np.ndarray, entry_wait: np.ndarray, entry_slot: np.ndarray,
    recorded: np.ndarray, loads: np.ndarray, issued: np.ndarray, depth: np.ndarray,
) -> None:  # fmt: skip
    """Fill `depth`. issued [slots]: how deep the load in each stands, -1: no load."""
    at = 0
    for path in range(len(path_start) - 1):
        now = 0
        issued[:] = -1
        for i in range(path_start[path], path_start[path + 1]):
            waits = entry_wait[i]
            slot = 0
            while waits != np.uint64(0):
                if waits & np.uint64(1):
                    now = max(now, issued[slot] + 1)
                    issued[slot] = -1
                waits >>= np.uint64(1)
                slot += 1
            op = entry_op[i]
            if recorded[op]:
                depth[at] = now
                at += 1
            if entry_slot[i] >= 0:
                issued[entry_slot[i]] = now if loads[op] else -1


@dataclass(frozen=True)
class Course:
    """How far an SM's blocks are at each of their accesses to global memory; all SMs run alike blocks alike.

    Of two moments of the same wave and depth nobody can say which is first.
    """

    turn: NDArray[np.int64]  # [B] of each block: how many its SM began before it; rising
    start: NDArray[np.int64]  # [B+1]
    depth: NDArray[np.int32]  # [accesses] as `waits_before` says
    resident: int  # blocks of a wave

    @classmethod
    def of(cls, turn: NDArray[np.int64], counts: NDArray[np.int64], depth: NDArray[np.int32], resident: int) -> Course:
        """From blocks in any order: turn, counts [B] of accesses, depth [sum of counts]."""
        order = np.argsort(turn, kind="stable")
        first = np.cumsum(counts) - counts
        start = np.concatenate(([0], np.cumsum(counts[order])))
        return cls(turn[order], start, depth[spans(first[order], counts[order])], resident)

    def moments(self, turn: NDArray[np.int64], start: NDArray[np.int64]) -> NDArray[np.int64]:
        """[accesses] moments, which rise with time, of blocks by `turn` [N]; start [N+1]: of their accesses.

        Of a block with more or fewer accesses than this SM's of the same turn, the same part of the way.
        """
        counts = np.diff(start)
        if len(self.depth) == 0:
            return np.zeros(int(counts.sum()), np.int64)
        like = np.maximum(np.searchsorted(self.turn, turn, side="right") - 1, 0)
        ours = np.diff(self.start)[like]
        place = np.arange(int(counts.sum())) - np.repeat(start[:-1] - start[0], counts)
        place = np.repeat(self.start[like], counts) + place * np.repeat(ours, counts) // np.repeat(counts, counts)
        depth = self.depth[np.minimum(place, len(self.depth) - 1)].astype(np.int64)
        return np.repeat(turn // self.resident, counts) * (int(self.depth.max()) + 1) + depth
