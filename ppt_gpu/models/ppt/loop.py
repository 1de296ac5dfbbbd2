"""The cycle-level part of the PPT GPU module (paper 003, section 3.2): one workload of blocks on one SM, compiled.

In every cycle up to `schedulers` warps issue, each its next task in order if the tasks that this one depends on are
complete and a unit of its class is free: there are lanes / 32 units of each (at least one), of load/store units all,
and each is taken for one cycle. With dual issue the warp's next task may follow in the same cycle. Warps are tried in
turn, after the one that issued last (loose round robin, the only policy of the released code). An access of global
memory is refused while too many are pending. A barrier waits for all results of its warp, then for the block's other
warps. `tests/reference/ppt.py` is the same in plain Python, cycle by cycle.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.compiled import entry, merged
from ppt_gpu.common.errors import PptError
from ppt_gpu.models.ppt.memory import LoadedMemory

#: what a task does: computes, waits at a barrier, or accesses global memory with or without a result
COMPUTE, BARRIER, LOAD, STORE = range(4)
_ONE = np.uint64(1)
_NEVER = 1 << 62
#: of a warp
_ENTRY, _END, _GATE, _LAST, _ARRIVED, _FIELDS = range(6)
#: in `numbers`
_SCHEDULERS, _WIDTH, _START, _UNLOADED, _RISE, _FREE, _MOST = range(7)


@dataclass(frozen=True)
class PptTasks:
    """One workload: the blocks that an SM holds at once. Fields as those of a Program."""

    path_start: NDArray[np.int64]
    entry_op: NDArray[np.int32]
    entry_wait: NDArray[np.uint64]
    entry_slot: NDArray[np.int8]
    warp_path: NDArray[np.int32]
    block_warp: NDArray[np.int64]
    kind: NDArray[np.int64]  # [O] COMPUTE ... STORE
    latency: NDArray[np.int64]  # [O] cycles; unused for global memory
    hold: NDArray[np.int64]  # [O] cycles until the warp's next task may issue, whatever that depends on
    unit: NDArray[np.int64]  # [O] class of units


@dataclass(frozen=True)
class PptSm:
    """units [classes]: how many tasks of each class may issue in a cycle."""

    schedulers: int
    issue_width: int
    units: NDArray[np.int64]
    memory: LoadedMemory
    start: int = 0  # cycle in which the first tasks may issue


@dataclass(frozen=True)
class PptRun:
    """Cycles. Stores that are pending when a block ends trail behind."""

    block_end: NDArray[np.int64]  # [B] all tasks issued, all results there
    last: int  # completion of the last access
    issued: int


def ppt_run(tasks: PptTasks, sm: PptSm) -> PptRun:
    """The workload on one SM. Raises PptError when no access or no task could ever issue."""
    check_sm(sm)
    warps, memory = len(tasks.warp_path), sm.memory
    rise = memory.loaded - memory.unloaded
    numbers = (sm.schedulers, sm.issue_width, sm.start, memory.unloaded, rise, memory.free, memory.most)
    end, found = np.full(len(tasks.block_warp) - 1, sm.start, np.int64), np.array([sm.start, 0], np.int64)
    _run(
        np.array(numbers, np.int64), tasks.path_start, tasks.entry_op, tasks.entry_wait, tasks.entry_slot,
        tasks.warp_path, tasks.block_warp, tasks.kind, tasks.latency, tasks.hold, tasks.unit, sm.units,
        np.zeros_like(sm.units), np.zeros((warps, _FIELDS), np.int64), np.zeros((warps, 64), np.int64),
        np.repeat(np.arange(len(end)), np.diff(tasks.block_warp)),
        np.zeros(min(memory.most, int(np.diff(tasks.path_start)[tasks.warp_path].sum())) + 1, np.int64), end, found,
    )  # fmt: skip
    return PptRun(end, int(found[0]), int(found[1]))


def check_sm(sm: PptSm) -> None:
    """PptError for an SM on which nothing could issue."""
    if min(sm.schedulers, sm.issue_width, sm.memory.most, int(sm.units.min(initial=1))) < 1:
        raise PptError("the PPT GPU module needs at least one scheduler, unit of each class and pending access")


@merged
def _forget(pending: np.ndarray, count: int, now: int) -> int:
    """Drop the accesses that are complete; how many are left."""
    at = 0
    while at < count:
        if pending[at] <= now:
            count -= 1
            pending[at] = pending[count]
        else:
            at += 1
    return count


@merged
def _opens(block: int, block_warp: np.ndarray, warp: np.ndarray) -> bool:
    """Have all warps of the block arrived or issued everything?"""
    for w in range(block_warp[block], block_warp[block + 1]):
        if warp[w, _ARRIVED] == 0 and warp[w, _ENTRY] < warp[w, _END]:
            return False
    return True


@entry
def _run(
    numbers: np.ndarray, path_start: np.ndarray, entry_op: np.ndarray, entry_wait: np.ndarray,
    entry_slot: np.ndarray, warp_path: np.ndarray, block_warp: np.ndarray, kind: np.ndarray, latency: np.ndarray,
    hold: np.ndarray, unit: np.ndarray, units: np.ndarray, taken: np.ndarray, warp: np.ndarray, ready: np.ndarray,
    block_of: np.ndarray, pending: np.ndarray, end: np.ndarray, found: np.ndarray,
) -> None:  # fmt: skip
    """taken [classes]: units in use in this cycle. ready [W, 64]: when each slot of a warp is complete."""
    warps, left, now, turn, flying = len(warp), 0, numbers[_START], 0, 0
    for w in range(warps):
        warp[w, _ENTRY], warp[w, _END] = path_start[warp_path[w]], path_start[warp_path[w] + 1]
        if warp[w, _ENTRY] < warp[w, _END]:
            left += 1
    while left > 0:
        for u in range(len(taken)):
            taken[u] = 0
        issuing, soonest, first = 0, _NEVER, turn
        for k in range(warps):
            if issuing == numbers[_SCHEDULERS]:
                break
            w = first + k
            if w >= warps:
                w -= warps
            did = 0
            while did < numbers[_WIDTH] and warp[w, _ENTRY] < warp[w, _END]:
                at = warp[w, _ENTRY]
                op = entry_op[at]
                time = warp[w, _GATE]
                wait, slot = entry_wait[at], 0
                while wait:
                    if wait & _ONE and ready[w, slot] > time:
                        time = ready[w, slot]
                    wait >>= _ONE
                    slot += 1
                if kind[op] == BARRIER and warp[w, _LAST] > time:
                    time = warp[w, _LAST]
                if warp[w, _ARRIVED]:
                    time = _NEVER
                if time <= now and taken[unit[op]] >= units[unit[op]]:
                    time = now + 1
                if time <= now and kind[op] >= LOAD:
                    flying = _forget(pending, flying, now)
                    if flying >= numbers[_MOST]:
                        time = _NEVER
                        for p in range(flying):
                            if pending[p] < time:
                                time = pending[p]
                if time > now:
                    if time < soonest:
                        soonest = time
                    break
                taken[unit[op]] += 1
                done = now + latency[op]
                if kind[op] >= LOAD:
                    over = flying - numbers[_FREE]
                    done = now + numbers[_UNLOADED]
                    if over > 0:
                        done += (over * numbers[_RISE] + numbers[_MOST] - 1) // numbers[_MOST]
                    pending[flying] = done
                    flying += 1
                if kind[op] != STORE and done > warp[w, _LAST]:
                    warp[w, _LAST] = done
                if done > found[0]:
                    found[0] = done
                if entry_slot[at] >= 0:
                    ready[w, entry_slot[at]] = done
                warp[w, _GATE] = now + hold[op]
                warp[w, _ENTRY] = at + 1
                found[1] += 1
                did += 1
                if kind[op] == BARRIER:
                    warp[w, _ARRIVED] = 1
                if warp[w, _ENTRY] == warp[w, _END]:
                    left -= 1
                    if warp[w, _LAST] <= now:
                        warp[w, _LAST] = now + 1
                if (kind[op] == BARRIER or warp[w, _ENTRY] == warp[w, _END]) and _opens(block_of[w], block_warp, warp):
                    for other in range(block_warp[block_of[w]], block_warp[block_of[w] + 1]):
                        if warp[other, _ARRIVED]:
                            warp[other, _ARRIVED] = 0
                            if warp[other, _GATE] < now + 1:
                                warp[other, _GATE] = now + 1
            if did > 0:
                issuing += 1
                turn = w + 1 if w + 1 < warps else 0
        now = now + 1 if issuing > 0 else soonest
    for w in range(warps):
        if warp[w, _LAST] > end[block_of[w]]:
            end[block_of[w]] = warp[w, _LAST]
        if warp[w, _LAST] > found[0]:
            found[0] = warp[w, _LAST]
