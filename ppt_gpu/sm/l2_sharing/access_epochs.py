"""When an SM comes to an access: in which wave, and after how many loads that its block waited for one after another.

The warps of a block wait for each other at barriers, so the longest chain of loads among them counts up to there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.compiled import entry
from ppt_gpu.sm.accesses.scoreboard import SLOTS, Schedule
from ppt_gpu.sm.program.ops import OpTable
from ppt_gpu.sm.program.program import KIND_ATOMIC, KIND_BARRIER, KIND_LOAD

#: no load is on its way into the slot
NO_LOAD = np.iinfo(np.int32).min // 2


@dataclass(frozen=True)
class Waits:
    """Of P paths with M memory entries and R barriers: chains of loads that the warp waited for.

    A load waits for nothing that is issued behind it, so loads that are on their way together count once.
    """

    start: NDArray[np.int64]  # [P+1]
    depth: NDArray[np.int32]  # [M] the longest chain since the last barrier
    barriers: NDArray[np.int32]  # [M] how many there were
    round_start: NDArray[np.int64]  # [P+1]
    rounds: NDArray[np.int32]  # [R] of each barrier: the longest chain since the one before

    def of_warps(self, path: NDArray[np.int32], per_block: int) -> NDArray[np.int32]:
        """[memory entries] of warps with these paths [W], block after block: the longest chain in the block."""
        longest = int(np.diff(self.round_start).max(initial=0))
        found = np.empty(int(np.diff(self.start)[path].sum()), np.int32)
        met = np.empty(longest + 1, np.int32)
        _of_warps(self.start, self.depth, self.barriers, self.round_start, self.rounds, path, per_block, met, found)
        return found


def waits_before(plan: Schedule, ops: OpTable) -> Waits:
    """Of all paths."""
    recorded, barrier = ops.recorded[plan.entry_op], (ops.kind == KIND_BARRIER)[plan.entry_op]
    start, round_start = (np.concatenate(([0], np.cumsum(of)))[plan.path_start] for of in (recorded, barrier))
    loads = (ops.kind == KIND_LOAD) | (ops.kind == KIND_ATOMIC)
    depth, barriers = np.empty((2, int(start[-1])), np.int32)
    rounds = np.empty(int(round_start[-1]), np.int32)
    _waits_before(
        plan.path_start, plan.entry_op, plan.entry_wait, plan.entry_slot, recorded, barrier, loads,
        np.empty(SLOTS, np.int32), depth, barriers, rounds,
    )  # fmt: skip
    return Waits(start, depth, barriers, round_start, rounds)


@entry
def _waits_before(
    path_start: np.ndarray, entry_op: np.ndarray, entry_wait: np.ndarray, entry_slot: np.ndarray,
    recorded: np.ndarray, barrier: np.ndarray, loads: np.ndarray, issued: np.ndarray, depth: np.ndarray,
    barriers: np.ndarray, rounds: np.ndarray,
) -> None:  # fmt: skip
    """Fill `depth`, `barriers` and `rounds`. issued [slots]: how deep the load in each stands, NO_LOAD."""
    at = 0
    met = 0
    for path in range(len(path_start) - 1):
        now = 0
        before = met
        issued[:] = NO_LOAD
        for i in range(path_start[path], path_start[path + 1]):
            waits = entry_wait[i]
            slot = 0
            while waits != np.uint64(0):
                if waits & np.uint64(1):
                    now = max(now, issued[slot] + 1)
                    issued[slot] = NO_LOAD
                waits >>= np.uint64(1)
                slot += 1
            if recorded[i]:
                depth[at] = now
                barriers[at] = met - before
                at += 1
            if barrier[i]:
                rounds[met] = now
                met += 1
                for slot in range(len(issued)):
                    if issued[slot] != NO_LOAD:
                        issued[slot] -= now
                now = 0
            if entry_slot[i] >= 0:
                issued[entry_slot[i]] = now if loads[entry_op[i]] else NO_LOAD


@entry
def _of_warps(
    start: np.ndarray, depth: np.ndarray, barriers: np.ndarray, round_start: np.ndarray, rounds: np.ndarray,
    path: np.ndarray, per_block: int, met: np.ndarray, found: np.ndarray,
) -> None:  # fmt: skip
    """Fill `found`. met: how deep a block is behind each of its barriers."""
    at = 0
    for first in range(0, len(path), per_block):
        met[:] = 0
        for warp in range(first, first + per_block):
            begin = round_start[path[warp]]
            for number in range(round_start[path[warp] + 1] - begin):
                met[number + 1] = max(met[number + 1], rounds[begin + number])
        for number in range(1, len(met)):
            met[number] += met[number - 1]
        for warp in range(first, first + per_block):
            for of in range(start[path[warp]], start[path[warp] + 1]):
                found[at] = met[barriers[of]] + depth[of]
                at += 1


@dataclass(frozen=True)
class Course:
    """How far an SM's blocks are at each of their accesses to global memory; all SMs run alike blocks alike.

    Of two moments of the same wave and depth nobody can say which is first.
    """

    turn: NDArray[np.int64]  # [B] of each block: how many its SM began before it; rising
    count: NDArray[np.int64]  # [B, I] how often it comes to each instruction
    place: NDArray[np.int64]  # [B, I] where these begin in
    depth: NDArray[np.int32]  # [accesses] as `Waits.of_warps` says, by block and instruction
    resident: int  # blocks of a wave

    @classmethod
    def of(
        cls,
        turn: NDArray[np.int64],
        counts: NDArray[np.int64],
        pc: NDArray[np.int32],
        depth: NDArray[np.int32],
        resident: int,
    ) -> Course:
        """From blocks in any order: turn, counts [B] of accesses; pc, depth [sum of counts]."""
        order = np.argsort(turn, kind="stable")
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        instructions = int(pc.max(initial=0)) + 1
        key = np.repeat(rank, counts) * instructions + pc
        count = np.bincount(key, minlength=len(turn) * instructions)
        shape = len(turn), instructions
        place = (np.cumsum(count) - count).reshape(shape)
        return cls(turn[order], count.reshape(shape), place, depth[np.argsort(key, kind="stable")], resident)

    @property
    def waves(self) -> int:
        """How many there are."""
        return len(np.unique(self.turn // self.resident))

    @property
    def of_a_wave(self) -> int:
        """Moments from one wave to the next."""
        return int(self.depth.max(initial=0)) + 1

    def moments(self, turn: NDArray[np.int64], start: NDArray[np.int64], pc: NDArray[np.int32]) -> NDArray[np.int64]:
        """[accesses] moments, which rise with time, of blocks by `turn` [N]; start [N+1], pc: of their accesses.

        A block comes to an instruction for the n-th time when a block of this SM does: of those of the same turn, or
        the one before, the one that comes to it as often; if there is none, one that does at all, at the same part.
        What no block of this SM comes to has been joined with the instruction before it.
        """
        found = np.zeros(int(start[-1] - start[0]), np.int64)
        known = np.flatnonzero(self.count.any(axis=0))
        if len(known):
            like = np.maximum(np.searchsorted(self.turn, turn, side="right") - 1, 0)
            of = known[np.maximum(np.searchsorted(known, pc, side="right") - 1, 0)]
            times, seen, chosen = np.zeros((3, self.count.shape[1]), np.int64)
            _depths(self.turn, self.count, self.place, self.depth, like, start, of, times, seen, chosen, found)
        return np.repeat(turn // self.resident, np.diff(start)) * self.of_a_wave + found


@entry
def _depths(
    turn: np.ndarray, count: np.ndarray, place: np.ndarray, depth: np.ndarray, like: np.ndarray, start: np.ndarray,
    pc: np.ndarray, times: np.ndarray, seen: np.ndarray, chosen: np.ndarray, found: np.ndarray,
) -> None:  # fmt: skip
    """Fill `found`. like [N]: the last of this SM's blocks with the turn of each block. Of the instructions that a
    block comes to: times: how often; seen: how often until now; chosen: which block of this SM shows when."""
    blocks = len(count)
    for block in range(len(like)):
        for i in range(start[block], start[block + 1]):
            times[pc[i]] = 0
            seen[pc[i]] = 0
        for i in range(start[block], start[block + 1]):
            times[pc[i]] += 1
        for i in range(start[block], start[block + 1]):
            of = pc[i]
            if seen[of] == 0:
                best = -1
                for step in range(blocks):
                    one = (like[block] - step) % blocks  # those of the same turn first
                    if count[one, of] == 0:
                        continue
                    same_turn = turn[one] == turn[like[block]]
                    if best < 0 or (same_turn and count[one, of] == times[of] and count[best, of] != times[of]):
                        best = one
                    if not same_turn and best >= 0:
                        break
                chosen[of] = best
            number = seen[of] * count[chosen[of], of] // times[of]
            found[i - start[0]] = depth[place[chosen[of], of] + number]
            seen[of] += 1
