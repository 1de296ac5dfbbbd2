"""The SM in plain Python, one cycle after another: slow, and meant to be obviously what README.md says.

The compiled core must give the same cycles, stalls and counters on every program (tests/property/test_sm_agreement.py).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Protocol

import numpy as np

from ppt_gpu.sm.program.machine import (
    GTO,
    GTO_BLOCK,
    LRR,
    NEVER,
    ONE,
    WAIT_LONG,
    WAIT_SHORT,
    Machine,
    event_reasons,
    producer_class,
    queued_kinds,
)  # fmt: skip
from ppt_gpu.sm.program.program import (
    EVENT_COUNTS,
    EVENT_LATE,
    EVENT_WAITS,
    KIND_ATOMIC,
    KIND_BARRIER,
    KIND_BRANCH,
    KIND_CONSTANT,
    KIND_LOAD,
    KIND_SHARED,
    KIND_STORE,
    RECORDED,
    Program,
    events_of,
    looked_up_by,
)  # fmt: skip
from ppt_gpu.sm.program.result import STALL_REASONS
from ppt_gpu.sm.reference.code import Code, place
from ppt_gpu.sm.reference.memory import Memory, whole

REASON = {name: index for index, name in enumerate(STALL_REASONS)}


class Constants:
    """Which lines are in the cache, or on their way to it, and when the cache behind it can send the next one."""

    def __init__(self, program: Program, machine: Machine) -> None:
        self.program, self.m = program, machine
        self.looked_up = looked_up_by(program)
        self.sets: list[dict[int, int]] = [{} for _ in range(machine.constant_sets)]  # line: fill; least recent first
        self.behind = 0  # time from which the cache behind is free

    def looks_up(self, op: int) -> bool:
        """Whether `op` reads constants that the cache may not hold."""
        return bool(self.sets) and bool(self.looked_up[op])

    def read(self, at: int, cycle: int, latency: int) -> tuple[int, int]:
        """A read in `cycle`, `latency` cycles for a hit, whose lines stand from `at` on in Program.constant_line:
        (where those of the next read stand, cycle of the result)."""
        there = cycle
        while True:
            there = max(there, self._line(int(self.program.constant_line[at]), cycle))
            at += 1
            if self.program.constant_last[at - 1]:
                return at, there + latency

    def _line(self, line: int, cycle: int) -> int:
        """Cycle at which a line is in the cache that is asked for in `cycle`."""
        held = self.sets[line % self.m.constant_sets]
        fill = held.pop(line, None)
        if fill is None:
            begin = max(cycle * ONE, self.behind)
            self.behind = begin + self.m.constant_fill
            fill = whole(begin) + self.m.constant_behind
        place(held, self.m.constant_ways, line, fill)
        return fill


@dataclass
class Warp:
    """A resident warp. `slot_time`, `slot_class`: completion and WAIT_* of each scoreboard slot."""

    number: int  # in the program: launch order
    block: int
    entry: int
    end: int
    access: int
    stamp: int  # cycle of the last issue, or of the launch
    slot_time: list[int] = field(default_factory=lambda: [0] * 64)
    slot_class: list[int] = field(default_factory=lambda: [0] * 64)
    branch_until: int = 0
    barrier_until: int = 0  # NEVER while the block has not arrived
    barrier_latency: int = 0
    event: int | None = None  # that it waits for, while barrier_until is NEVER; None: the block's barrier
    event_at: int = 0  # its place in Program.event_of
    line_at: int = 0  # its place in Program.constant_line
    held_by: int = 0  # reason of what barrier_until holds it for
    fetched: int = 0  # cycle at which its next entry is there
    let_in: int = -1  # when those have started that were in the queue before its next entry; -1: it is not ready yet
    results: int = 0  # cycle at which everything has completed
    last_op: int = -1

    @property
    def exited(self) -> bool:
        return self.entry == self.end


class Observer(Protocol):
    """Somebody who watches a run; what it does changes nothing."""

    def issued(self, cycle: int, scheduler: int, unit: int, warp: Warp, op: int, done: int) -> None:
        """`warp` issued `op` on that unit of its pipe; the result is there at cycle `done`."""

    def accounted(self, cycle: int, sm: Sm, reasons: Mapping[int, tuple[int, int]]) -> None:
        """The cycle is over: what each resident warp slot is charged with, (operation, reason)."""


class Sm:
    """State of the SM between two cycles."""

    def __init__(self, program: Program, machine: Machine, resident: int, observer: Observer | None = None) -> None:
        self.p, self.m, self.observer = program, machine, observer
        self.wait_class = producer_class(program)
        self.event_bits, self.event_reason = events_of(program), event_reasons(program)
        self.missing = program.event_count.astype(np.int64)
        self.event_time = np.zeros(len(self.missing), np.int64)
        self.queued = queued_kinds(machine)
        #: of the program, what each cycle looks at; Python's numbers, for NumPy takes long for single ones
        self.entry_op, self.op_pipe = program.entry_op.tolist(), program.op_pipe.tolist()
        self.entry_waits = [slots_in(wait) for wait in program.entry_wait.tolist()]
        self.op_queued = [kind in self.queued for kind in program.op_kind.tolist()]
        self.memory = Memory(program, machine)
        self.code = Code(program, machine, self.memory)
        self.constants = Constants(program, machine)
        blocks = len(program.block_warp) - 1
        self.per_block = int(np.diff(program.block_warp).max(initial=0))
        self.slots: list[Warp | None] = [None] * (self.per_block * resident)
        self.slot_block = [-1] * resident
        self.launch_at = [machine.begins + index * machine.ramp for index in range(resident)]
        self.next_block = 0
        self.turn = 0  # the scheduler that has the first turn when the SM begins
        self.block_start = np.zeros(blocks, np.int64)
        self.block_end = np.zeros(blocks, np.int64)
        k = machine.schedulers
        self.last = [-1] * k  # warp slot issued last, by scheduler
        self.greedy: list[Warp | None] = [None] * k
        self.reasons: dict[int, tuple[int, int]] = {}  # of this cycle, by warp slot: (operation, reason)
        self.free: dict[tuple[int, int], list[int]] = {}  # (pipe, scheduler) -> cycle at which each unit is free
        for pipe, units in enumerate(machine.pipe_units):
            shared, queue = [0] * units, machine.pipe_queue[pipe]
            for scheduler in range(k):
                self.free[pipe, scheduler] = shared if machine.pipe_shared[pipe] else [0] * units
                if queue:  # places before the unit of the SM, each taken until its instruction starts
                    self.free[pipe, scheduler] = [0] * queue
        self.served = [0] * len(machine.pipe_units)  # by pipe with a queue: when its unit is free
        self.door = 0  # when the last instruction in such a queue starts
        self.op_stall = np.zeros((len(program.op_name), len(STALL_REASONS)), np.int64)
        self.no_op_drain = 0

    # --- what keeps a warp from issuing ----------------------------------------------------------------------

    def next_op(self, warp: Warp) -> int:
        return self.entry_op[warp.entry]

    def dependences(self, warp: Warp) -> tuple[int, int]:
        """(cycle from which the waits of the next entry are complete, WAIT_* of the one that ends last)."""
        waits = self.entry_waits[warp.entry]
        return max([(warp.slot_time[s], warp.slot_class[s]) for s in waits], default=(0, 0))

    def ready_at(self, warp: Warp) -> int:
        return max(warp.branch_until, warp.barrier_until, warp.fetched, self.dependences(warp)[0])

    def unit_free(self, op: int, scheduler: int, cycle: int) -> bool:
        """A unit of its pipe is free and, for memory, a place in the queue."""
        if self.op_queued[op] and self.memory.queue_full(cycle):
            return False
        return min(self.free[self.op_pipe[op], scheduler]) <= cycle

    def eligible(self, slot: int, cycle: int) -> bool:
        warp = self.slots[slot]
        if warp is None or warp.exited or self.ready_at(warp) > cycle:
            return False
        let_in = self.held_back(warp) if warp.let_in < 0 else warp.let_in
        return let_in <= cycle and self.unit_free(self.next_op(warp), slot % self.m.schedulers, cycle)

    def held_back(self, warp: Warp) -> int:
        """When those have started before which the next entry of a warp does not pass the load/store queue."""
        return self.door if self.op_queued[self.next_op(warp)] else 0

    @property
    def finished(self) -> bool:
        """All blocks have come and gone."""
        return self.next_block == len(self.block_start) and all(block < 0 for block in self.slot_block)

    def stuck(self, cycle: int) -> bool:
        """Every resident warp that has not exited waits for others, for ever, and no block is to come."""
        warps = [warp for warp in self.slots if warp]
        waiting = [warp for warp in warps if not warp.exited]
        due = self.next_block < len(self.block_start) and any(block < 0 for block in self.slot_block)
        leaves = any(
            all(warp.exited for warp in warps if warp.block == block) for block in self.slot_block if block >= 0
        )
        return bool(waiting) and not due and not leaves and all(warp.barrier_until == NEVER for warp in waiting)

    # --- one cycle -------------------------------------------------------------------------------------------

    def begin(self, cycle: int) -> None:
        """Blocks that ended leave, due blocks start."""
        self.leave(cycle)
        for index, block in enumerate(self.slot_block):
            if block < 0 and self.launch_at[index] <= cycle and self.next_block < len(self.block_start):
                self.launch(index, self.next_block, cycle)
                self.next_block += 1

    def leave(self, cycle: int) -> None:
        """Blocks that ended leave."""
        for index, block in enumerate(self.slot_block):
            if block >= 0 and cycle > self.block_start[block]:
                first = index * self.per_block
                warps = [warp for warp in self.slots[first : first + self.per_block] if warp]
                if all(self.complete(warp, cycle) for warp in warps):
                    self.block_end[block] = cycle
                    self.slots[first : first + self.per_block] = [None] * self.per_block
                    self.slot_block[index] = -1
                    self.launch_at[index] = cycle + self.m.block_launch

    def complete(self, warp: Warp, cycle: int) -> bool:
        """The warp has exited and all its results are there."""
        return warp.exited and warp.results <= cycle

    def launch(self, index: int, block: int, cycle: int) -> None:
        """Put a block into a slot."""
        self.slot_block[index] = block
        self.block_start[block] = cycle
        first, last = (int(x) for x in self.p.block_warp[block : block + 2])
        for number in range(first, last):
            begin, end = (int(x) for x in self.p.path_start[self.p.warp_path[number] :][:2])
            warp = Warp(number, block, begin, end, int(self.p.warp_access[number]), cycle)
            self.slots[index * self.per_block + self.seat(index, number - first, last - first)] = warp
            if len(self.p.event_start):
                warp.event_at = int(self.p.event_start[number])
            if len(self.p.constant_start):
                warp.line_at = int(self.p.constant_start[number])
            if begin < end:
                warp.fetched = self.first_fetch(warp, cycle + (number - first) * self.m.warp_launch)

    def first_fetch(self, warp: Warp, cycle: int) -> int:
        """When the first entry of a warp that enters in `cycle` is there."""
        return self.code.fetch(cycle, warp.entry)

    def seat(self, index: int, warp: int, warps: int) -> int:
        """The slot, of those of block slot `index`, in which warp `warp` of a block of `warps` stands."""
        group = math.gcd(self.per_block, self.m.schedulers)
        if not self.m.turned or warps < self.per_block:
            return warp
        turns = index // (self.m.schedulers // group)  # one more whenever the schedulers would be the same again
        return warp // group * group + (warp + turns) % group

    def order(self, scheduler: int) -> Iterator[int]:
        """Warp slots of a scheduler in the order of its preference."""
        mine = list(range(scheduler, len(self.slots), self.m.schedulers))
        if self.m.policy == LRR:
            last = self.last[scheduler]
            return iter([s for s in mine if s > last] + [s for s in mine if s <= last])
        present = [s for s in mine if self.slots[s] is not None]

        def rank(slot: int) -> tuple[bool, int, int, int]:
            warp = self.slots[slot]
            assert warp is not None
            age = {GTO: (0, warp.stamp), GTO_BLOCK: (warp.block, warp.stamp)}.get(self.m.policy, (0, warp.number))
            return warp is not self.greedy[scheduler], *age, slot

        return iter(sorted(present, key=rank))

    def first_turn(self, cycle: int) -> int:
        """The scheduler that has its turn before the others in a cycle."""
        return (cycle - self.m.begins + self.turn) % self.m.schedulers

    def step(self, cycle: int) -> None:
        """Issue, then account every resident warp for this cycle."""
        k = self.m.schedulers
        resident = [slot for slot, warp in enumerate(self.slots) if warp]
        for slot in resident:
            warp = self.slots[slot]
            if warp and not warp.exited and warp.let_in < 0 and self.ready_at(warp) <= cycle:
                warp.let_in = self.held_back(warp)
        reasons = self.reasons = {slot: self.reason(slot, cycle) for slot in resident}
        for turn in range(k):
            scheduler = (self.first_turn(cycle) + turn) % k
            chosen = next((slot for slot in self.order(scheduler) if self.eligible(slot, cycle)), None)
            if chosen is not None:
                reasons[chosen] = (reasons[chosen][0], REASON["selected"])
                self.issue_from(chosen, cycle)
        for op, why in reasons.values():
            if op < 0:
                self.no_op_drain += 1
            else:
                self.op_stall[op, why] += 1
        if self.observer is not None:
            self.observer.accounted(cycle, self, reasons)

    def reason(self, slot: int, cycle: int) -> tuple[int, int]:
        """(operation, reason) of a warp that does not issue in this cycle, from the state at its start."""
        warp = self.slots[slot]
        assert warp is not None
        if warp.exited:
            return warp.last_op, REASON["drain"]
        op = self.next_op(warp)
        until, kind = self.dependences(warp)
        if warp.barrier_until > cycle:
            return op, warp.held_by
        if warp.branch_until > cycle:
            return op, REASON["branch_resolving"]
        if warp.fetched > cycle:
            return op, REASON["no_instruction"]
        if until > cycle:
            name = {WAIT_LONG: "long_scoreboard", WAIT_SHORT: "short_scoreboard"}.get(kind, "wait")
            return op, REASON[name]
        if warp.let_in > cycle or not self.unit_free(op, slot % self.m.schedulers, cycle):
            return op, REASON[throttle(int(self.p.op_kind[op]))]
        return op, REASON["not_selected"]

    def issue_from(self, slot: int, cycle: int) -> None:
        """Issue the warp's next entry and, with a width above 1, the ones after it that are eligible too."""
        scheduler = slot % self.m.schedulers
        warp = self.slots[slot]
        assert warp is not None
        for more in range(self.m.width):
            if more and (warp.exited or not self.eligible(slot, cycle)):
                break
            self._issue(warp, scheduler, cycle)
        self.last[scheduler] = slot
        self.greedy[scheduler] = None if warp.exited else warp
        warp.stamp = cycle

    def _issue(self, warp: Warp, scheduler: int, cycle: int) -> None:
        p, op, slot = self.p, self.next_op(warp), int(self.p.entry_slot[warp.entry])
        kind, latency = int(p.op_kind[op]), int(p.op_latency[op])
        units = self.free[int(p.op_pipe[op]), scheduler]
        unit = units.index(min(units))
        units[unit] = cycle + int(p.op_ii[op])
        done = cycle + latency
        if self.m.pipe_queue[int(p.op_pipe[op])]:
            units[unit] = max(cycle, self.served[int(p.op_pipe[op])])
            self.served[int(p.op_pipe[op])] = units[unit] + int(p.op_ii[op])
            done = units[unit] + latency
            self.door = max(self.door, units[unit])
        warp.entry += 1
        warp.last_op = op
        warp.barrier_latency, warp.let_in = 0, -1
        if kind in RECORDED:
            done = self.memory.issue(cycle, op, warp.access)
            warp.access += 1
        elif kind == KIND_CONSTANT and self.constants.looks_up(op):
            warp.line_at, done = self.constants.read(warp.line_at, done - latency, latency)
        elif kind == KIND_CONSTANT:
            done = self.constant(cycle)
        elif kind == KIND_BRANCH:
            warp.branch_until = done
        elif kind == KIND_BARRIER and not warp.exited and not self.event_bits[op]:
            self.hold(warp, op)
        if self.event_bits[op]:
            self._meet(warp, op, cycle, done)
        if slot >= 0:
            warp.slot_time[slot], warp.slot_class[slot] = done, int(self.wait_class[op])
        warp.results = max(warp.results, done, cycle + 1)
        if not warp.exited:
            warp.fetched = self.code.fetch(cycle + 1, warp.entry) if self.code.fetched[warp.entry] else 0
        if warp.exited or (warp.barrier_until == NEVER and warp.event is None):
            self._release_barrier(warp.block, cycle)
        if self.observer is not None:
            self.observer.issued(cycle, scheduler, unit, warp, op, done)

    def hold(self, warp: Warp, op: int) -> None:
        """The warp waits at its block's barrier, the operation that it has just issued."""
        warp.barrier_latency = max(int(self.p.op_latency[op]), 1)
        warp.barrier_until, warp.event, warp.held_by = NEVER, None, REASON["barrier"]

    def constant(self, cycle: int) -> int:
        """Cycle at which a constant that is read in `cycle` is there."""
        return self.code.constant(self.memory.constant(cycle) if self.m.constant_queued else cycle)

    def _meet(self, warp: Warp, op: int, cycle: int, done: int) -> None:
        """An operation that counts for an event, or waits for one, or both."""
        bits, event = int(self.event_bits[op]), int(self.p.event_of[warp.event_at])
        warp.event_at += 1
        if bits & EVENT_COUNTS:
            self.count(event, done if bits & EVENT_LATE else cycle)
        if bits & EVENT_WAITS and not warp.exited:
            warp.barrier_latency = max(int(self.p.op_latency[op]), 1)
            warp.held_by = int(self.event_reason[op])
            if event >= 0 and self.missing[event] > 0:
                warp.barrier_until, warp.event = NEVER, event
            else:
                over = int(self.event_time[event]) if event >= 0 else 0
                warp.barrier_until = max(cycle, over) + warp.barrier_latency

    def count(self, event: int, when: int) -> None:
        """Who counts for an event (-1: none) is there at cycle `when`. The last one lets those go who wait for it."""
        if event < 0:
            return
        self.missing[event] -= 1
        self.event_time[event] = max(self.event_time[event], when)
        for other in self.slots:
            if other and other.event == event and self.missing[event] == 0:
                other.event = None
                other.barrier_until = int(self.event_time[event]) + other.barrier_latency

    def _release_barrier(self, block: int, cycle: int) -> None:
        """Let the waiting warps of a block go when no live warp of it is missing."""
        live = [warp for warp in self.slots if warp and warp.block == block and not warp.exited]
        if live and all(warp.barrier_until == NEVER and warp.event is None for warp in live):
            for warp in live:
                warp.barrier_until = cycle + warp.barrier_latency


@cache
def slots_in(wait: int) -> tuple[int, ...]:
    """The scoreboard slots of a mask."""
    return tuple(slot for slot in range(64) if wait >> slot & 1)


def throttle(kind: int) -> str:
    """The reason of a warp whose pipe or queue has no place for an operation of `kind`."""
    if kind in (KIND_LOAD, KIND_STORE, KIND_ATOMIC):
        return "lg_throttle"
    return "mio_throttle" if kind in (KIND_SHARED, KIND_CONSTANT) else "math_pipe_throttle"
