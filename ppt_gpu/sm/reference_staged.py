"""The SM in plain Python with stages between issue and the units: collector units, as GPGPU-Sim's sub-cores have them.

See README.md, "Collector units". The compiled loop is `staged.py`; tests/property/test_staged_agreement.py compares.
"""

from __future__ import annotations

from dataclasses import dataclass

from ppt_gpu.sm.core_machine import (
    FETCHED,
    LATE_RESULT,
    NEVER,
    ONE,
    TO_UNIT,
    Machine,
    in_banks,
    operands_of,
    result_bank,
)
from ppt_gpu.sm.program import KIND_BARRIER, KIND_CONSTANT, RECORDED, Program
from ppt_gpu.sm.reference import REASON, Observer, Sm, Warp, throttle


@dataclass
class Staged:
    """An instruction between its issue and its start."""

    warp: Warp
    scheduler: int
    entry: int
    op: int
    access: int
    age: int
    reads: int  # operands that are not read yet, four bits a bank
    issued: int  # cycle
    began: int = -1  # cycle
    taken: int = 0  # in which order collector units took instructions in


class StagedSm(Sm):
    """An SM whose instructions wait before, in and behind the collector units of their scheduler."""

    def __init__(self, program: Program, machine: Machine, resident: int, observer: Observer | None) -> None:
        super().__init__(program, machine, resident, observer)
        k, pipes = machine.schedulers, len(machine.pipe_units)
        self.before: dict[tuple[int, int], Staged] = {}  # (scheduler, pipe)
        self.behind: dict[tuple[int, int], Staged] = {}
        self.collecting: list[list[Staged | None]] = [[None] * machine.collectors for _ in range(k)]
        self.operands = operands_of(program)
        self.pipes = range(pipes)
        self.age = self.taken = 0
        self.buffered: dict[int, int] = {}  # warp number -> instructions in its buffer
        self.strayed: set[int] = set()  # warps that were fetched what stands behind a branch that they took
        self.owner: dict[tuple[int, int], int] = {}  # (warp number, scoreboard slot) -> entry that announces in it
        self.flying: dict[int, int] = {}  # warp number -> instructions whose completion is not known yet
        self.writes: dict[tuple[int, int], set[int]] = {}  # (cycle, scheduler) -> banks that are written then
        self.fetched_last = -1  # warp slot
        self.fetching: Warp | None = None

    # --- one cycle -------------------------------------------------------------------------------------------

    def step(self, cycle: int) -> None:
        self._start(cycle)
        for step in range(self.m.collector_steps):
            self._collect(cycle, step == 0)
        super().step(cycle)
        for _ in range(self.m.fetches):
            self._fetch(cycle)

    def complete(self, warp: Warp, cycle: int) -> bool:
        return not self.flying.get(warp.number) and super().complete(warp, cycle)

    # --- from the collectors to the units --------------------------------------------------------------------

    def _start(self, cycle: int) -> None:
        """Units take what waits for them, one of the SM the oldest of all schedulers."""
        for pipe in self.pipes:
            while True:
                waiting = sorted((one for (_, of), one in self.behind.items() if of == pipe), key=lambda one: one.age)
                if self.m.pipe_shared[pipe]:
                    waiting = waiting[:1]
                one = next((one for one in waiting if self._unit_takes(one, pipe, cycle)), None)
                if one is None:
                    break
                self._begin(one, pipe, cycle)

    def _unit_takes(self, one: Staged, pipe: int, cycle: int) -> bool:
        if self._to_memory(one.op) and self.memory.lsu > (cycle - TO_UNIT) * ONE:
            return False
        return min(self.free[pipe, one.scheduler]) <= cycle

    def _to_memory(self, op: int) -> bool:
        return int(self.p.op_kind[op]) in (*RECORDED, KIND_CONSTANT)

    def _begin(self, one: Staged, pipe: int, cycle: int) -> None:
        """The instruction starts: from now on it is known when its result is there."""
        del self.behind[one.scheduler, pipe]
        units = self.free[pipe, one.scheduler]
        unit = units.index(min(units))
        units[unit] = cycle + int(self.p.op_ii[one.op])
        kind = int(self.p.op_kind[one.op])
        if kind in RECORDED:
            done = self.memory.issue(cycle - TO_UNIT, one.op, one.access)
        elif kind == KIND_CONSTANT:
            done = self.constant(cycle - TO_UNIT)
        else:
            done = cycle - TO_UNIT + int(self.p.op_latency[one.op])
        one.began = cycle
        self.announce(one, done)
        if self.observer is not None:
            self.observer.issued(cycle, one.scheduler, unit, one.warp, one.op, max(done, cycle))

    def announce(self, one: Staged, done: int) -> None:
        """The result of an instruction is there at cycle `done`, and not before the instruction began."""
        done = max(done, one.began)
        warp = one.warp
        bank = result_bank(int(self.operands[one.op]), self.slots.index(warp), self.m.collector_banks)
        if bank >= 0 and done - one.began < LATE_RESULT:
            self.writes.setdefault((done, one.scheduler), set()).add(bank)
        self.tell_waiting(one, done)
        warp.results = max(warp.results, done, one.issued + 1)
        self.flying[warp.number] -= 1

    def tell_waiting(self, one: Staged, done: int) -> None:
        """The scoreboard, where no later instruction announces in the same slot."""
        slot = int(self.p.entry_slot[one.entry])
        if slot >= 0 and self.owner[one.warp.number, slot] == one.entry:
            one.warp.slot_time[slot] = done

    def _collect(self, cycle: int, first: bool) -> None:
        """A step: units whose operands are there hand over, the others read, free ones take in."""
        for scheduler, units in enumerate(self.collecting):
            for number, one in enumerate(units):
                place = (scheduler, int(self.p.op_pipe[one.op])) if one else (-1, -1)
                if one and one.reads == 0 and place not in self.behind:
                    self.behind[place], units[number] = one, None
        for scheduler, units in enumerate(self.collecting):
            written = self.writes.pop((cycle, scheduler), set()) if first else set()
            for bank in range(self.m.collector_banks):
                reading = [one for one in units if one and one.reads >> 4 * bank & 15]
                if reading and bank not in written:
                    min(reading, key=lambda one: one.taken).reads -= 1 << 4 * bank
        for _ in range(self.m.schedulers):
            for pipe in self.m.collector_order:
                waiting = [one for (_, of), one in self.before.items() if of == pipe]
                if waiting:
                    self._take_in(min(waiting, key=lambda one: one.age), pipe)

    def _take_in(self, one: Staged, pipe: int) -> None:
        """The oldest of all schedulers goes to the first free unit of its own; the others wait for it."""
        units = self.collecting[one.scheduler]
        if None in units:
            units[units.index(None)] = one
            self.taken += 1
            one.taken = self.taken
            del self.before[one.scheduler, pipe]

    # --- issue -----------------------------------------------------------------------------------------------

    def launch(self, index: int, block: int, cycle: int) -> None:
        super().launch(index, block, cycle)
        first = int(self.p.block_warp[block])
        for warp in self.slots[index * self.per_block : (index + 1) * self.per_block]:
            if warp is not None:
                warp.fetched = cycle + (warp.number - first) * self.m.warp_launch
                self.buffered[warp.number] = 0

    def ready_at(self, warp: Warp) -> int:
        return max(warp.barrier_until, self.dependences(warp)[0])

    def unit_free(self, op: int, scheduler: int, cycle: int) -> bool:
        return (scheduler, int(self.p.op_pipe[op])) not in self.before

    def eligible(self, slot: int, cycle: int) -> bool:
        """Looking at a warp whose buffer holds the wrong instructions empties it."""
        warp = self.slots[slot]
        if warp is None or warp.exited or warp.barrier_until > cycle or not self.buffered[warp.number]:
            return False
        if warp.number in self.strayed:
            self.strayed.remove(warp.number)
            self.buffered[warp.number] = 0
            return False
        return super().eligible(slot, cycle)

    def reason(self, slot: int, cycle: int) -> tuple[int, int]:
        warp = self.slots[slot]
        assert warp is not None
        if not warp.exited and warp.barrier_until <= cycle:
            if not self.buffered[warp.number]:
                return self.next_op(warp), REASON["no_instruction"]
            if warp.number in self.strayed:
                return self.next_op(warp), REASON["branch_resolving"]
            op = self.next_op(warp)
            if self.ready_at(warp) <= cycle:
                free = self.unit_free(op, slot % self.m.schedulers, cycle)
                return op, REASON["not_selected" if free else throttle(int(self.p.op_kind[op]))]
        return super().reason(slot, cycle)

    def _issue(self, warp: Warp, scheduler: int, cycle: int) -> None:
        p, op, entry = self.p, self.next_op(warp), warp.entry
        kind, slot = int(p.op_kind[op]), int(p.entry_slot[entry])
        reads = in_banks(int(self.operands[op]), self.slots.index(warp), self.m.collector_banks)
        one = Staged(warp, scheduler, entry, op, warp.access, self.age, reads, cycle)
        self.before[scheduler, int(p.op_pipe[op])] = one
        self.age += 1
        self.flying[warp.number] = self.flying.get(warp.number, 0) + 1
        self.buffered[warp.number] -= 1
        warp.access += kind in RECORDED
        warp.entry += 1
        warp.last_op = op
        warp.barrier_latency = 0
        warp.results = max(warp.results, cycle + 1)
        if slot >= 0:
            warp.slot_time[slot], warp.slot_class[slot] = NEVER, int(self.wait_class[op])
            self.owner[warp.number, slot] = entry
        if not warp.exited and int(p.op_pc[self.next_op(warp)]) - int(p.op_pc[op]) not in (0, 1):
            self.strayed.add(warp.number)
        if kind == KIND_BARRIER and not warp.exited:
            self.hold(warp, op)
        if warp.exited or warp.barrier_until == NEVER:
            self._release_barrier(warp.block, cycle)

    def _fetch(self, cycle: int) -> None:
        """What was fetched goes to its warp; the next warp in turn whose buffer is empty."""
        if self.fetching is not None:
            self.buffered[self.fetching.number] = FETCHED
            self.fetching = None
        count = len(self.slots)
        for step in range(1, count + 1):
            slot = (self.fetched_last + step) % count
            warp = self.slots[slot]
            if warp is not None and not warp.exited and not self.buffered[warp.number] and warp.fetched <= cycle:
                self.fetching, self.fetched_last = warp, slot
                return
