"""GATSim's Algorithm 1 in plain Python, after the listing of the paper (001): occupancy vectors that count down.

What the listing leaves open: line 23 takes the least of the occupancies that are not 0; where a warp waits for a unit,
the times until units are free count too. A unit is busy as long as the warp that it serves, so this changes nothing.
Finished warps count as arrived at a barrier. A block that has ended makes way for the next at once.
"""

from __future__ import annotations

import numpy as np

from ppt_gpu.models.gatsim.loop import check_machine
from ppt_gpu.models.gatsim.work import (
    ACCESS,
    BARRIER,
    CONSTANT,
    L1_GLOBAL,
    LINE_HITS,
    MEMORY,
    PERFECT,
    REGULAR,
    SFU,
    UNCACHED,
    GatsimMachine,
    GatsimTime,
    GatsimWork,
    TagStore,
)


class _Tags:
    """A tag store: each set a list of lines, the most recent first."""

    def __init__(self, shape: TagStore) -> None:
        self.sets: list[list[int]] = [[] for _ in range(shape.sets)]
        self.ways = shape.ways

    def look_up(self, line: int, allocate: bool, evict: bool) -> bool:
        if not self.sets:
            return False
        lines = self.sets[line % len(self.sets)]
        hit = line in lines
        if hit:
            lines.remove(line)
        if (hit and not evict) or (not hit and allocate):
            lines.insert(0, line)
            del lines[self.ways :]
        return hit


class _Warp:
    """Lane p of the occupancy vector: PC_p, l_p, and what the schedulers ask of it."""

    def __init__(self, work: GatsimWork, number: int, now: int) -> None:
        path = work.warp_path[number]
        self.number, self.code = number, list(range(int(work.path_start[path]), int(work.path_start[path + 1])))
        self.pc, self.busy, self.seen, self.waits = 0, 0, now - 1, False
        self.access = int(work.warp_access[number])
        self.kind = REGULAR

    @property
    def done(self) -> bool:
        return self.pc == len(self.code)


class _Sm:
    def __init__(self, work: GatsimWork, machine: GatsimMachine) -> None:
        self.work, self.machine, self.now = work, machine, 0
        self.memory, self.sfu = [0] * machine.memory_units, [0] * machine.sfus
        self.l1, self.constant = _Tags(machine.l1), _Tags(machine.constant)
        self.hits, self.misses = 0, 0
        self.lanes: list[list[_Warp]] = []  # of each block slot
        self.last: list[_Warp | None] = [None] * machine.schedulers
        self.next_lane = 0

    def next_kind(self, warp: _Warp) -> int:
        return int(self.work.entry_kind[warp.code[warp.pc]])

    def unit_free(self, warp: _Warp) -> bool:
        """FUFREE."""
        kind = self.next_kind(warp)
        return 0 in (self.sfu if kind == SFU else self.memory) if kind >= SFU else True

    def schedule_warp(self, scheduler: int, ready: list[_Warp], lanes: list[_Warp]) -> _Warp:
        if self.machine.policy == "lrr":
            order = lanes[self.next_lane :] + lanes[: self.next_lane]
            return next(warp for warp in order if warp in ready)
        greedy = self.last[scheduler]
        if greedy in ready:
            return greedy
        if self.machine.policy == "gto":
            return min(ready, key=lambda warp: (warp.seen, lanes.index(warp)))
        return min(ready, key=lambda warp: warp.number)

    def issue(self, warp: _Warp) -> None:
        entry = warp.code[warp.pc]
        kind, delay = self.next_kind(warp), int(self.work.entry_delay[entry])
        if kind == ACCESS:
            delay = self.access(warp.access)
            warp.access += 1
        if kind >= SFU:
            units = self.sfu if kind == SFU else self.memory
            units[units.index(0)] = delay
        warp.busy, warp.seen, warp.kind = delay, self.now, kind
        warp.pc += 1
        block = next(slot for slot in self.lanes if warp in slot)
        if kind == BARRIER:
            warp.waits = True
        if all(other.waits or other.done for other in block):
            for other in block:
                other.waits = False

    def access(self, number: int) -> int:
        """HANDLESPECIAL of a memory instruction: the sum over its lines."""
        work, store = self.work, int(self.work.access_store[number])
        write, latency = bool(work.access_write[number]), int(work.access_fixed[number])
        for line in work.access_line[work.access_start[number] : work.access_start[number + 1]].tolist():
            if line < 0:
                hit = line == LINE_HITS
            elif store in (PERFECT, UNCACHED):
                hit = store == PERFECT
            elif store == CONSTANT:
                hit = self.constant.look_up(line, allocate=True, evict=False)
            else:
                hit = self.l1.look_up(line, allocate=not write, evict=write and store == L1_GLOBAL)
            self.hits, self.misses = self.hits + hit, self.misses + (not hit)
            latency += self.machine.hit if hit else self.machine.miss
        return max(latency, 1)


def gatsim_time_reference(
    work: GatsimWork, machine: GatsimMachine, log: list[tuple[int, int, int]] | None = None, *, literal: bool = False
) -> GatsimTime:
    """`gatsim.loop.gatsim_time`. literal: line 23 as printed, without the units."""
    check_machine(machine)
    sm = _Sm(work, machine)
    blocks = len(work.block_warp) - 1
    end, idle, issued = np.zeros(blocks, np.int64), [0] * (ACCESS + 1), 0
    size = int(np.diff(work.block_warp).max(initial=0))
    waiting, running = list(range(blocks)), [-1] * min(machine.resident, blocks)
    sm.lanes = [[] for _ in running]
    while True:
        for slot in range(len(running)):
            while True:
                if running[slot] < 0:
                    if not waiting:
                        break
                    running[slot] = waiting.pop(0)
                    first, last = work.block_warp[running[slot]], work.block_warp[running[slot] + 1]
                    sm.lanes[slot] = [_Warp(work, number, sm.now) for number in range(first, last)]
                if any(not warp.done or warp.busy for warp in sm.lanes[slot]):
                    break
                end[running[slot]] = sm.now
                running[slot] = -1
        if all(block < 0 for block in running):
            break
        lanes = [warp for slot in sm.lanes for warp in (*slot, *[_empty(work)] * (size - len(slot)))]
        step = 0
        for scheduler in range(machine.schedulers):
            ready = [w for w in lanes if w.busy == 0 and not w.done and not w.waits and sm.unit_free(w)]
            if not ready:
                break
            warp = sm.schedule_warp(scheduler, ready, lanes)
            if log is not None:
                log.append((sm.now, warp.number, warp.pc))
            sm.issue(warp)
            sm.last[scheduler], sm.next_lane = warp, (lanes.index(warp) + 1) % len(lanes)
            issued, step = issued + 1, 1
        if not step:
            kind, step = _wait(sm, lanes, literal)
            idle[kind] += step
        sm.now += step
        for warp in lanes:
            warp.busy = max(0, warp.busy - step)
        sm.memory = [max(0, left - step) for left in sm.memory]
        sm.sfu = [max(0, left - step) for left in sm.sfu]
    return GatsimTime(sm.now, issued, tuple(idle), sm.hits, sm.misses, end)


def _empty(work: GatsimWork) -> _Warp:
    """A lane of a block with fewer warps than the largest."""
    warp = _Warp(work, 0, 0)
    warp.pc = len(warp.code)
    return warp


def _wait(sm: _Sm, lanes: list[_Warp], literal: bool) -> tuple[int, int]:
    """Line 23: (kind of what is waited for, cycles until the first warp is ready or has finished)."""
    found = []
    for warp in lanes:
        if warp.busy:
            found.append((warp.kind, warp.busy))
        elif not literal and not warp.done and not warp.waits:
            kind = SFU if sm.next_kind(warp) == SFU else MEMORY
            found += [(kind, left) for left in (sm.sfu if kind == SFU else sm.memory) if left]
    return min(found, key=lambda pair: pair[1])
