"""The SM in plain Python with stages between issue and the units: collector units, as GPGPU-Sim's sub-cores have them.

See README.md, "Collector units". The compiled loop is `collectors/loop.py`; tests/property/test_staged_agreement.py
compares.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence, Sized
from dataclasses import dataclass
from typing import Protocol

from ppt_gpu.sm.program.machine import (
    FETCHED,
    LATE_RESULT,
    LRR,
    NEVER,
    ONE,
    Machine,
    in_banks,
    operand_bits,
    operands_of,
    passages,
    result_bank,
    through_unit,
)
from ppt_gpu.sm.program.program import KIND_BARRIER, KIND_CONSTANT, RECORDED, RESULT_AT, Program
from ppt_gpu.sm.reference.sm import REASON, Observer, Sm, Warp, throttle


@dataclass
class Staged:
    """An instruction between its issue and its start."""

    warp: Warp
    scheduler: int
    entry: int
    op: int
    access: int
    age: int
    reads: int  # operands that are not read yet, `operand_bits` a bank
    issued: int  # cycle
    began: int = -1  # cycle
    taken: int = 0  # in which order collector units took instructions in
    unit: int = -1  # in which it started, of its pipe


class Pipelines(Protocol):
    """What stands in the L1 where that has pipelines (`reference.l1`)."""

    @property
    def unit(self) -> object | None:
        """The operation in the load/store unit."""

    @property
    def answers(self) -> Sized:
        """What the L2 has sent, in order."""

    def step(self, cycle: int) -> None:
        """A cycle passes."""

    def take(self, one: Staged, cycle: int) -> None:
        """The load/store unit takes an operation."""

    def ask_for_code(self, cycle: int) -> None:
        """A line of the code is asked for."""


class StagedSm(Sm):
    """An SM whose instructions wait before, in and behind collector units.

    Those are of a scheduler, for all pipes, with a place for each pipe before and behind them; or of a pipe, for all
    schedulers, with as many places before and behind them as it has units.
    """

    def __init__(self, program: Program, machine: Machine, resident: int, observer: Observer | None) -> None:
        super().__init__(program, machine, resident, observer)
        pipes = len(machine.pipe_units)
        self.before: dict[tuple[int, int], Staged] = {}  # (scheduler or which of its places, pipe)
        self.behind: dict[tuple[int, int], Staged] = {}
        self.collecting: list[list[Staged | None]] = [[None] * units for units in machine.collectors]
        #: of each place of a pipe: the collector unit from which it got the last; the second one is asked first of all
        self.handed = [[0] * units for units in machine.pipe_units]
        self.operands, self.passage = operands_of(program), passages(program, machine)
        self.through_unit = through_unit(program, machine)
        self.result_of: set[tuple[int, int, int, int]] = set()  # (pipe, scheduler or 0, unit, cycle)
        self.results: Counter[int] = Counter()  # of units that compute, by cycle
        self.pipes = range(pipes)
        self.age = self.taken = 0
        self.buffered: dict[int, int] = {}  # warp number -> instructions in its buffer
        self.strayed: set[int] = set()  # warps that were fetched what stands behind a branch that they took
        self.line_asked: dict[int, Warp] = {}  # warps whose line of the code was not there, in the order of asking
        self.seen: set[int] = set()  # warps that are over, as the SM has seen
        self.owner: dict[tuple[int, int], int] = {}  # (warp number, scoreboard slot) -> entry that announces in it
        self.flying: dict[int, int] = {}  # warp number -> instructions whose completion is not known yet
        self.writes: dict[tuple[int, int], set[int]] = {}  # (cycle, whose) -> banks that are written then
        self.fetched_last = 0  # warp slot: slot 1 is the first whose turn it is
        self.fetching: Warp | None = None
        self.l1: Pipelines | None = None
        self.taken_places: set[tuple[int, int]] = set()  # before the collectors, when the schedulers begin
        self.issuing = 0  # the scheduler whose turn it is

    # --- one cycle -------------------------------------------------------------------------------------------

    def step(self, cycle: int) -> None:
        if self.l1 is not None:
            self.l1.step(cycle)
        self._start(cycle)
        for step in range(self.m.collector_steps):
            self._collect(cycle, step == 0)
        self.taken_places = set(self.before)
        super().step(cycle)
        for _ in range(self.m.fetches):
            self._fetch(cycle)

    def complete(self, warp: Warp, cycle: int) -> bool:
        return warp.number in self.seen

    # --- from the collectors to the units --------------------------------------------------------------------

    def _start(self, cycle: int) -> None:
        """Units take what waits for them, one of the SM the oldest of all schedulers, at which each looks once."""
        for pipe in self.pipes:
            looks = 0  # the first unit that has not looked
            while True:
                waiting = sorted((place for place in self.behind if place[1] == pipe), key=self._age_behind)
                if self.m.pipe_shared[pipe]:
                    waiting = waiting[:1]
                found = ((place, self._unit_for(self.behind[place], pipe, cycle, looks)) for place in waiting)
                place, unit = next(((place, unit) for place, unit in found if unit >= 0), (None, -1))
                if place is None:
                    break
                self._begin(self.behind.pop(place), pipe, unit, cycle)
                looks = unit + 1 if self.m.pipe_shared[pipe] else 0

    def _age_behind(self, place: tuple[int, int]) -> int:
        return self.behind[place].age

    def _unit_for(self, one: Staged, pipe: int, cycle: int, first: int) -> int:
        """The first unit of the pipe, from number `first` on, that can take the instruction, -1 if none can."""
        if self._to_memory(one.op) and not self._memory_free(cycle):
            return -1
        end = cycle + int(self.passage[one.op])
        in_the_way = end > cycle  # of other results
        if in_the_way and 0 < self.m.results <= self.results[end]:
            return -1
        for unit, free in enumerate(self.free[pipe, one.scheduler]):
            taken = in_the_way and self._result_of(one, pipe, unit, end) in self.result_of
            if free <= cycle and not taken and unit >= first:
                return unit
        return -1

    def _memory_free(self, cycle: int) -> bool:
        """Whether the load/store unit can take an operation."""
        return (self.l1 is None or self.l1.unit is None) and self.memory.lsu <= (cycle - self.m.to_unit) * ONE

    def _result_of(self, one: Staged, pipe: int, unit: int, end: int) -> tuple[int, int, int, int]:
        return pipe, 0 if self.m.pipe_shared[pipe] else one.scheduler, unit, end

    def _to_memory(self, op: int) -> bool:
        return int(self.p.op_kind[op]) in (*RECORDED, KIND_CONSTANT)

    def _begin(self, one: Staged, pipe: int, unit: int, cycle: int) -> None:
        """The instruction starts: from now on it is known when its result is there."""
        self.free[pipe, one.scheduler][unit] = cycle + int(self.p.op_ii[one.op])
        if self.passage[one.op]:
            end = cycle + int(self.passage[one.op])
            self.results[end] += 1
            if self.m.one_result:
                self.result_of.add(self._result_of(one, pipe, unit, end))
        kind, issued = int(self.p.op_kind[one.op]), cycle - self.m.to_unit
        one.began, one.unit = cycle, unit
        if kind in RECORDED and self.l1 is not None:
            self.l1.take(one, cycle)
            return
        if kind in RECORDED:
            done = self.memory.issue(issued, one.op, one.access)
        elif kind == KIND_CONSTANT:
            done = self.constant(issued)
        else:
            done = issued + int(self.through_unit[one.op])
        self.announce(one, done)

    def announce(self, one: Staged, done: int, writes: bool = True) -> None:
        """The result of an instruction is there at cycle `done`, and not before the instruction began. `writes`: its
        bank of registers is written then."""
        done = max(done, one.began)
        warp = one.warp
        if self.observer is not None:
            self.observer.issued(one.began, one.scheduler, one.unit, warp, one.op, done)
        bank = result_bank(int(self.operands[one.op]), self.slots.index(warp), self.m.collector_banks)
        if writes and bank >= 0 and done - one.began < LATE_RESULT:
            self.writes.setdefault((done, 0 if self.m.collectors_shared else one.scheduler), set()).add(bank)
        self.tell_waiting(one, done)
        warp.results = max(warp.results, done + 1)
        self.flying[warp.number] -= 1

    def tell_waiting(self, one: Staged, done: int) -> None:
        """The scoreboard, where no later instruction announces in the same slot."""
        slot = int(self.p.entry_slot[one.entry])
        if slot >= 0 and self.owner[one.warp.number, slot] == one.entry:
            one.warp.slot_time[slot] = done

    def has_result(self, one: Staged) -> bool:
        """Whether an instruction writes a register, or somebody waits for it."""
        return int(self.p.entry_slot[one.entry]) >= 0 or int(self.operands[one.op]) >> RESULT_AT > 0

    def _collect(self, cycle: int, first: bool) -> None:
        """A step: units whose operands are there hand over, the others read, free ones take in."""
        if self.m.collectors_shared:
            for pipe in self.m.collector_order:
                for place in range(self.m.pipe_units[pipe]):
                    self._hand_over_one(pipe, place)
            self._read([one for units in self.collecting for one in units if one], (cycle, 0), first)
        else:
            for units in self.collecting:
                self._hand_over_all(units)
            for scheduler, units in enumerate(self.collecting):
                self._read([one for one in units if one], (cycle, scheduler), first)
        times = 1 if self.m.collectors_shared else self.m.schedulers
        for _ in range(times):
            for pipe in self.m.collector_order:
                for _ in range(self.m.pipe_units[pipe] if self.m.collectors_shared else 1):
                    self._take_in(pipe)

    def _hand_over_all(self, units: list[Staged | None]) -> None:
        """Units of a scheduler, in their order, where its place behind is empty."""
        for number, one in enumerate(units):
            place = (one.scheduler, int(self.p.op_pipe[one.op])) if one else (-1, -1)
            if one and one.reads == 0 and place not in self.behind:
                self.behind[place], units[number] = one, None

    def _hand_over_one(self, pipe: int, place: int) -> None:
        """The next unit of a pipe, after the one that this place got its last instruction from, to an empty place."""
        units, last = self.collecting[pipe], self.handed[pipe]
        empty = next((lane for lane in range(self.m.pipe_units[pipe]) if (lane, pipe) not in self.behind), None)
        for step in range(1, len(units) + 1):
            number = (last[place] + step) % len(units)
            one = units[number]
            if one and one.reads == 0 and empty is not None:
                self.behind[empty, pipe], units[number], last[place] = one, None, number
                return

    def _read(self, collecting: Sequence[Staged], key: tuple[int, int], first: bool) -> None:
        """Each bank that is not written is read for the instruction that waited longest."""
        written, bits = self.writes.pop(key, set()) if first else set(), operand_bits(self.m.collector_banks)
        for bank in range(self.m.collector_banks):
            reading = [one for one in collecting if one.reads >> bits * bank & (1 << bits) - 1]
            if reading and bank not in written:
                min(reading, key=lambda one: one.taken).reads -= 1 << bits * bank

    def _take_in(self, pipe: int) -> None:
        """The oldest of all schedulers goes to the first free unit; while it finds none the others wait for it."""
        waiting = [place for place in self.before if place[1] == pipe]
        if not waiting:
            return
        place = min(waiting, key=lambda place: self.before[place].age)
        one = self.before[place]
        units = self.collecting[pipe if self.m.collectors_shared else one.scheduler]
        if None in units:
            units[units.index(None)] = self.before.pop(place)
            self.taken += 1
            one.taken = self.taken

    # --- issue -----------------------------------------------------------------------------------------------

    def order(self, scheduler: int) -> Iterator[int]:
        """Greedy is the slot that issued last, whoever is in it."""
        if self.m.policy != LRR:
            self.greedy[scheduler] = self.slots[self.last[scheduler]] if self.last[scheduler] >= 0 else None
        return super().order(scheduler)

    def launch(self, index: int, block: int, cycle: int) -> None:
        super().launch(index, block, cycle)
        for warp in self.slots[index * self.per_block : (index + 1) * self.per_block]:
            if warp is not None:
                self.buffered[warp.number] = 0

    def first_fetch(self, warp: Warp, cycle: int) -> int:
        return cycle

    def ready_at(self, warp: Warp) -> int:
        return max(warp.barrier_until, self.dependences(warp)[0])

    def unit_free(self, op: int, scheduler: int, cycle: int) -> bool:
        return self._empty_place(op, scheduler) is not None

    def _places(self, op: int, scheduler: int) -> list[tuple[int, int]]:
        """Before the collectors, for an operation that the scheduler issues."""
        pipe = int(self.p.op_pipe[op])
        lanes = range(self.m.pipe_units[pipe]) if self.m.collectors_shared else (scheduler,)
        return [(lane, pipe) for lane in lanes]

    def _empty_place(self, op: int, scheduler: int) -> tuple[int, int] | None:
        return next((place for place in self._places(op, scheduler) if place not in self.before), None)

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
                free = any(place not in self.taken_places for place in self._places(op, slot % self.m.schedulers))
                return op, REASON["not_selected" if free else throttle(int(self.p.op_kind[op]))]
        return super().reason(slot, cycle)

    def _issue(self, warp: Warp, scheduler: int, cycle: int) -> None:
        p, op, entry = self.p, self.next_op(warp), warp.entry
        kind, slot = int(p.op_kind[op]), int(p.entry_slot[entry])
        reads = in_banks(int(self.operands[op]), self.slots.index(warp), self.m.collector_banks)
        one = Staged(warp, scheduler, entry, op, warp.access, self.age, reads, cycle)
        place = self._empty_place(op, scheduler)
        assert place is not None
        self.before[place] = one
        self.age += 1
        self.issuing = scheduler
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

    def _release_barrier(self, block: int, cycle: int) -> None:
        """Schedulers whose turn comes later in this cycle find the barrier open a cycle earlier."""
        held = [slot for slot, warp in enumerate(self.slots) if warp and warp.barrier_until == NEVER]
        super()._release_barrier(block, cycle)
        k, first = self.m.schedulers, self.first_turn(cycle)
        for slot in held:
            warp = self.slots[slot]
            assert warp is not None
            later = (slot - first) % k > (self.issuing - first) % k
            if warp.barrier_until < NEVER and later:
                warp.barrier_until -= 1
                if warp.barrier_until <= cycle:
                    self.reasons[slot] = self.reason(slot, cycle)

    def _fetch(self, cycle: int) -> None:
        """What was fetched goes to its warp. Then a line of the code that has come is for the warp that asked for it
        first; else the next warp in turn whose buffer is empty looks its line up. On the way to it the SM sees which
        warps are over."""
        if self.fetching is not None:
            self.buffered[self.fetching.number] = FETCHED
            self.fetching = None
        come = [warp for warp in self.line_asked.values() if warp.fetched <= cycle]
        if come:
            self.fetching = min(come, key=lambda warp: warp.fetched)
            del self.line_asked[self.fetching.number]
            return
        count = len(self.slots)
        for step in range(1, count + 1):
            slot = (self.fetched_last + step) % count
            warp = self.slots[slot]
            if warp is None:
                continue
            if warp.exited:
                if not self.flying.get(warp.number) and warp.results <= cycle + 1:
                    self.seen.add(warp.number)
            elif not self.buffered[warp.number] and warp.fetched <= cycle and warp.number not in self.line_asked:
                self.fetched_last = slot
                l1 = self.l1 if self.m.perfect else None
                queued = len(l1.answers) if l1 is not None else 0
                warp.fetched = self.code.line_there(cycle, self._next_line(warp), queued)
                if l1 is not None and warp.fetched == cycle + queued + self.m.code_l2:
                    l1.ask_for_code(cycle)
                if warp.fetched <= cycle:
                    self.fetching = warp
                else:
                    self.line_asked[warp.number] = warp
                return

    def _next_line(self, warp: Warp) -> int:
        """Of the code, for a warp: behind a jump that nobody has seen yet that of the instruction behind it."""
        if warp.number in self.strayed:
            return int(self.code.behind[warp.last_op])
        return int(self.code.line[self.next_op(warp)])
