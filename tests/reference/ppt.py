"""The cycle-level part of the PPT GPU module in plain Python, one cycle after another; see `ppt.loop`."""

from __future__ import annotations

import numpy as np

from ppt_gpu.models.ppt.loop import BARRIER, LOAD, STORE, PptRun, PptSm, PptTasks, check_sm
from ppt_gpu.models.ppt.memory import pending_latency


class _Warp:
    def __init__(self, tasks: PptTasks, number: int) -> None:
        path = tasks.warp_path[number]
        self.left = list(range(int(tasks.path_start[path]), int(tasks.path_start[path + 1])))
        self.ready = [0] * 64
        self.gate = self.last = 0
        self.arrived = False


def ppt_run_reference(tasks: PptTasks, sm: PptSm) -> PptRun:
    """`ppt.loop.ppt_run`."""
    check_sm(sm)
    blocks = [
        [_Warp(tasks, number) for number in range(first, last)]
        for first, last in zip(tasks.block_warp[:-1], tasks.block_warp[1:], strict=True)
    ]
    warps = [(warp, block) for block in blocks for warp in block]
    pending: list[int] = []
    now, turn, issued, last = sm.start, 0, 0, sm.start
    while any(warp.left for warp, _ in warps):
        units = sm.units.tolist()
        pending = [time for time in pending if time > now]
        issuing = 0
        for number in [*range(turn, len(warps)), *range(turn)]:
            if issuing == sm.schedulers:
                break
            warp, block = warps[number]
            did = 0
            while did < sm.issue_width and warp.left and _eligible(tasks, sm, warp, now, units, pending):
                last = max(last, _issue(tasks, sm, warp, now, units, pending))
                did += 1
                if all(other.arrived or not other.left for other in block):
                    for other in block:
                        other.gate = max(other.gate, now + 1) if other.arrived else other.gate
                        other.arrived = False
            if did:
                issuing, turn, issued = issuing + 1, (number + 1) % len(warps), issued + did
        now += 1
    end = [max([sm.start, *(warp.last for warp in block)]) for block in blocks]
    return PptRun(np.array(end, np.int64), max([last, *end]), issued)


def _eligible(tasks: PptTasks, sm: PptSm, warp: _Warp, now: int, units: list[int], pending: list[int]) -> bool:
    entry = warp.left[0]
    op = tasks.entry_op[entry]
    waits = [warp.ready[slot] for slot in range(64) if int(tasks.entry_wait[entry]) >> slot & 1]
    if tasks.kind[op] == BARRIER:
        waits.append(warp.last)
    if warp.arrived or max([warp.gate, *waits]) > now or units[tasks.unit[op]] == 0:
        return False
    return tasks.kind[op] < LOAD or len(pending) < sm.memory.most


def _issue(tasks: PptTasks, sm: PptSm, warp: _Warp, now: int, units: list[int], pending: list[int]) -> int:
    """Issue the warp's next task; the cycle of its completion."""
    entry = warp.left.pop(0)
    op = tasks.entry_op[entry]
    units[tasks.unit[op]] -= 1
    done = now + int(tasks.latency[op])
    if tasks.kind[op] >= LOAD:
        done = now + pending_latency(len(pending), sm.memory)
        pending.append(done)
    if tasks.kind[op] != STORE:
        warp.last = max(warp.last, done)
    if tasks.entry_slot[entry] >= 0:
        warp.ready[tasks.entry_slot[entry]] = done
    warp.gate = now + int(tasks.hold[op])
    warp.arrived = bool(tasks.kind[op] == BARRIER)
    if not warp.left:
        warp.last = max(warp.last, now + 1)
    return done
