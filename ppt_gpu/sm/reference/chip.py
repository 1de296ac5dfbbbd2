"""A whole chip in plain Python: all SMs go through one cycle, then what they asked for in it is answered.

That is a window of one cycle. The compiled loop must give the same for any window
(tests/property/test_chip_agreement.py). After a window SMs learn how full their ports are: here, too.
"""

from __future__ import annotations

import time
from collections import defaultdict

import numpy as np

from ppt_gpu.sm.chip.crossbar import RING
from ppt_gpu.sm.chip.machine import ATOMIC, COPY, READ, STORE, Chip
from ppt_gpu.sm.loop.run_end import DEADLOCK, OVER_BUDGET, result_of, unfinished
from ppt_gpu.sm.program.machine import COUNTERS, NEVER, ONE, UNKNOWN, WAIT_FIXED, WAIT_LONG, WAIT_SHORT
from ppt_gpu.sm.program.program import KIND_ATOMIC, KIND_CONSTANT, KIND_LOAD, KIND_STORE, Program
from ppt_gpu.sm.program.result import SmResult
from ppt_gpu.sm.reference.chip_memory import LaterMemory, Operation, Request
from ppt_gpu.sm.reference.crossbar import Crossbar, Sent
from ppt_gpu.sm.reference.l1 import PipelinedL1
from ppt_gpu.sm.reference.l1 import Request as PipelineRequest
from ppt_gpu.sm.reference.memory import Memory, whole
from ppt_gpu.sm.reference.sm import REASON, Sm, Warp
from ppt_gpu.sm.reference.staged import Staged, StagedSm

REASON_OF_WAIT = {
    WAIT_FIXED: REASON["wait"],
    WAIT_SHORT: REASON["short_scoreboard"],
    WAIT_LONG: REASON["long_scoreboard"],
}


class OnChip(Sm):
    """What an SM, of either kind, has more as part of a chip: it learns the results of some operations later, and which
    blocks it runs from the chip."""

    memory: LaterMemory
    unknown = NEVER  # the time of a result that the L2 has not answered

    def join(self, program: Program, chip: Chip) -> None:
        self.memory = LaterMemory(program, chip, self.code)
        self.code.memory = self.memory
        self.given: list[int] = [-1] * len(self.slot_block)
        self.launch_at = [NEVER] * len(self.slot_block)
        self.waited: dict[int, list[tuple[int, int]]] = {}  # by warp: (operation, reason) of cycles

    def constant(self, cycle: int) -> int:
        if not self.m.constant_queued:
            return self.code.constant(cycle)
        return self.memory.put(Operation(KIND_CONSTANT, cycle))

    def reason(self, slot: int, cycle: int) -> tuple[int, int]:
        """As `Sm.reason`; cycles of waiting for what nobody knows are charged anew when all of it is known."""
        op, why = super().reason(slot, cycle)
        warp = self.slots[slot]
        assert warp is not None
        held = warp.barrier_until > cycle  # by what is charged as a wait for a scoreboard, and is none
        if why in REASON_OF_WAIT.values() and not held and self.dependences(warp)[0] == self.unknown:
            self.waited.setdefault(warp.number, []).append((op, why))
        return op, why

    def charge(self, warp: Warp) -> None:
        if warp.number in self.waited and not warp.exited and self.dependences(warp)[0] < self.unknown:
            for op, why in self.waited.pop(warp.number):
                self.op_stall[op, why] -= 1
                self.op_stall[op, REASON_OF_WAIT[self.dependences(warp)[1]]] += 1

    @property
    def nothing_due(self) -> bool:
        """No warp can issue, no block end or come, and no result is unknown, unless other SMs change that."""
        live = [warp for warp in self.slots if warp and not warp.exited]
        ends = len({warp.block for warp in live}) < sum(block >= 0 for block in self.slot_block)
        memory = self.memory
        unknown = memory.open or memory.queue or memory.copies or memory.asked
        comes = any(block >= 0 for block in self.given)
        return not (ends or comes or unknown) and all(warp.barrier_until == NEVER for warp in live)

    def tell(self, finished: list[Operation]) -> None:
        """Results have become known."""
        raise NotImplementedError

    def settle(self, answered: list[Request]) -> None:
        """Those requests have been answered; without a crossbar that is all of the cycle."""
        self.memory.settle()

    def port_takes(self, taken: list[int]) -> None:
        """When the crossbar takes each flit, of those that have left."""
        raise NotImplementedError


class LaterL1(PipelinedL1):
    """Pipelines of the L1 of an SM whose L2 answers after the window. `flits`: how many have left; `taken`: of each,
    when the crossbar takes it, as far as that is known."""

    def __init__(self, sm: StagedChipSm, port: int) -> None:
        super().__init__(sm)
        self.memory, self.port, self.flits, self.taken = sm.memory, port, 0, list[int]()
        if port:
            self.way_out = 1  # requests wait where the crossbar takes them, and for that in the miss queue

    def has_room(self, cycle: int) -> bool:
        before = self.flits - self.port
        if self.m.perfect or not self.port or not 0 <= before < len(self.taken):
            return True
        return self.taken[before] <= (cycle - self.m.memory_lag) * ONE

    def leave(self, request: PipelineRequest, cycle: int) -> None:
        if self.m.perfect:
            super().leave(request, cycle)
            return
        memory, time = self.memory, (cycle - self.m.memory_lag) * ONE
        asked = Request(time, request.line, request.mask, READ)
        kind = request.operations[0].kind if request.operations else KIND_STORE
        if kind != KIND_LOAD:
            memory.link_out = max(memory.link_out, time) + request.mask.bit_count() * self.m.icnt_cost
            asked.kind = STORE if kind == KIND_STORE else ATOMIC
            asked.wait = memory.link_out if kind == KIND_STORE else 0
        if kind == KIND_ATOMIC and not request.operations[0].began:
            op = request.operations[0]
            op.began, asked.start, asked.updates = True, time, op.updates
        asked.of = cycle, request
        self.flits += asked.flits
        memory.asked.append(asked)

    def settle(self, answered: list[Request]) -> None:
        """Those requests have been answered."""
        for asked in answered:
            assert asked.of is not None
            done = asked.answer
            if asked.kind == STORE:
                done = whole(max(done, asked.wait) + asked.back) + self.memory._round_trip()
            self.put_answer(done, *asked.of)
        self.memory.asked = []


class StagedChipSm(OnChip, StagedSm):
    """One with collector units. Its memory is `to_unit` cycles behind, as if operations had been issued then."""

    unknown = UNKNOWN

    def __init__(self, program: Program, chip: Chip, resident: int) -> None:
        super().__init__(program, chip.sm, resident, None)
        self.join(program, chip)
        self.later_l1 = LaterL1(self, chip.port) if chip.sm.miss_queue else None
        self.l1 = self.later_l1

    def settle(self, answered: list[Request]) -> None:
        if self.later_l1 is None:
            super().settle(answered)
        else:
            self.later_l1.settle(answered)

    def port_takes(self, taken: list[int]) -> None:
        if self.later_l1 is not None:
            self.later_l1.taken = taken

    def _unit_for(self, one: Staged, pipe: int, cycle: int, first: int) -> int:
        if self._to_memory(one.op) and self.memory.queue:
            return -1
        return super()._unit_for(one, pipe, cycle, first)

    def _begin(self, one: Staged, pipe: int, unit: int, cycle: int) -> None:
        self.memory.unknown = None
        super()._begin(one, pipe, unit, cycle)

    def announce(self, one: Staged, done: int, writes: bool = True) -> None:
        if self.memory.unknown is None or not writes:
            super().announce(one, done, writes)
        else:
            self.memory.unknown.staged = one
            self.tell_waiting(one, UNKNOWN)

    def tell(self, finished: list[Operation]) -> None:
        self.memory.unknown = None
        told = [(operation, operation.staged) for operation in finished if operation.staged is not None]
        for operation, one in told:
            self.announce(one, operation.done)
        for _, one in told:
            self.charge(one.warp)


class ChipSm(OnChip):
    """One without."""

    def __init__(self, program: Program, chip: Chip, resident: int) -> None:
        super().__init__(program, chip.sm, resident)
        self.join(program, chip)
        self.announced: dict[tuple[int, int], Operation | None] = {}  # who did last, by warp and slot
        self.known: dict[int, int] = {}  # by warp: the latest result that is known, while others are not

    def _issue(self, warp: Warp, scheduler: int, cycle: int) -> None:
        slot, before = int(self.p.entry_slot[warp.entry]), self.known.get(warp.number, warp.results)
        warp.results, self.memory.unknown = before, None
        super()._issue(warp, scheduler, cycle)
        unknown = self.memory.unknown
        self.announced[warp.number, slot] = unknown
        if unknown is not None:
            unknown.warp, unknown.slot = warp, slot
            warp.results = max(before, cycle + 1)
        if unknown is not None or warp.number in self.known:
            self.known[warp.number] = warp.results
            warp.results = NEVER

    def _meet(self, warp: Warp, op: int, cycle: int, done: int) -> None:
        unknown = self.memory.unknown
        if unknown is None:
            super()._meet(warp, op, cycle, done)
            return
        unknown.event = int(self.p.event_of[warp.event_at])  # for which it counts when its result is known
        warp.event_at += 1

    def tell(self, finished: list[Operation]) -> None:
        told = [(operation, operation.warp) for operation in finished if operation.warp is not None]
        for operation, warp in told:
            if operation.slot >= 0 and self.announced[warp.number, operation.slot] is operation:
                warp.slot_time[operation.slot] = operation.done
            self.known[warp.number] = max(self.known[warp.number], operation.done)
            self.count(operation.event, operation.done)
        for _, warp in told:
            self.charge(warp)
            if warp.number in self.known and not any(other.warp is warp for other in self.memory.open):
                warp.results = self.known.pop(warp.number)


class Below:
    """L2 slices and DRAM channels."""

    def __init__(self, program: Program, chip: Chip) -> None:
        self.chip = chip
        self.memory = Memory(program, chip.below)
        self.memory.l2_set = chip.l2_set
        self.memory.warm = self.memory.coming = {}
        self.memory.kept = set()
        for line, dirty in zip(chip.warm.tolist(), chip.dirty.tolist(), strict=True):
            entry, _ = self.memory.l2.allocate(int(chip.l2_set[line]), line)
            entry.valid = entry.near = 0xFF
            entry.dirty = dirty
        self.l2 = [0] * chip.slices
        self.updates = [0] * chip.slices
        self.dram = [0] * chip.channels
        self.conflict = [0] * chip.sms
        self.link = [0] * chip.sms  # time of the interconnect into each SM
        self.without_address = 0
        self.across = 0  # time of the way of all SMs together to the L2
        self.steps = 2 if chip.router else 1
        self.there = Crossbar(chip.sms, chip.slices, not chip.router)
        self.back = Crossbar(chip.slices, chip.sms, not chip.router)
        self.taken = [list[int]() for _ in range(chip.sms)]  # by flit: when it left the port of its SM
        self.stops = defaultdict[int, set[int]](set)  # by step: slices that take nothing
        self.queue = [-NEVER] * chip.slices  # the step from which the queue before each is empty

    def serve(self, requests: list[tuple[int, int, tuple[bool, int], Request]], now: int) -> list[list[Request]]:
        """Take requests of the cycle `now`: (time, SM, order in the SM, those of its copy engine last, request). Of
        each SM, those that are answered: they, or with a crossbar what comes through it."""
        answered = [list[Request]() for _ in range(self.chip.sms)]
        ordered = [(sm, request) for _, sm, _, request in sorted(requests, key=lambda entry: entry[:3])]
        if self.chip.crossbar:
            self._cross(ordered, now, answered)
            return answered
        for sm, request in ordered:
            self._answer(sm, request, self._slice(request.line))
            answered[sm].append(request)
        return answered

    @property
    def all_back(self) -> bool:
        """Nothing is in a crossbar."""
        return not any(self.there.queues) and not any(self.back.queues)

    def _cross(self, requests: list[tuple[int, Request]], now: int, answered: list[list[Request]]) -> None:
        for sm, request in requests:
            step, this, sectors = whole(request.time) * self.steps, self._slice(request.line), request.sectors
            packets, hold = (1, 1 + request.flits) if self.chip.router else (sectors.bit_count(), 1)
            self.there.send(sm, Sent(step, this, packets, hold, what=request))
        for step in range(now * self.steps, (now + 1) * self.steps):
            for sm, one in self.there.step(step, self.stops.get(step, ())):
                request = one.what
                if self.chip.answers:
                    self._into_queue(one.to, request.sectors.bit_count(), step)
                time = self._through(one)
                self.taken[sm] += [time] * request.flits
                self._at_slice(sm, request, one.to, time, time, 0, time)
                sent = max(step, self._answered(request) * self.steps)
                self.back.send(one.to, Sent(sent, sm, request.sectors.bit_count(), self.steps, what=request))
            if self.chip.answers:
                waiting = [self.back.waiting(this, step) for this in range(self.chip.slices)]
                stopped = {this for this, count in enumerate(waiting) if count > self.chip.answers}
                self.stops[step + self.chip.stops_after * self.steps] |= stopped
            for _, one in self.back.step(step):
                request = one.what
                late = one.there - one.step - (one.packets - 1) * self.steps
                request.back = -(-late // self.steps) * ONE
                request.answer += whole(request.back) if request.kind != STORE else 0
                answered[one.to].append(request)

    def _into_queue(self, this: int, sectors: int, now: int) -> None:
        """A slice serves a sector a cycle."""
        self.queue[this] = max(self.queue[this], now) + sectors * self.steps
        last = min(self.queue[this] - self.chip.queue * self.steps, now + RING // 2)
        for step in range(now, last):
            self.stops[step + self.chip.stops_after * self.steps].add(this)

    def _answered(self, request: Request) -> int:
        """The cycle in which its slice sends the answer, as if that took no time where it is in the L2."""
        return whole(request.answer) if request.kind == STORE else request.answer - self.chip.below.l2_latency

    def _through(self, one: Sent) -> int:
        """The time at which a request is through the crossbar to the slices."""
        time: int = one.what.time
        return time - (one.step - one.there) // self.steps * ONE

    def look_ahead(self, now: int) -> list[list[int]]:
        """As `taken`, and when what still waits will be taken, if from cycle `now` on nothing more comes."""
        known = [list(taken) for taken in self.taken]
        for sm, one in self.there.look_ahead(now * self.steps, self.stops):
            known[sm] += [self._through(one)] * one.what.flits
        return known

    def _slice(self, line: int) -> int:
        if line >= 0:
            return int(self.chip.slice_of[line])
        self.without_address += 1
        return (self.without_address - 1) % self.chip.slices

    def _answer(self, sm: int, request: Request, this: int) -> None:
        time, count = request.time, request.sectors.bit_count()
        wait = max(self.across - time, 0)
        self.across = max(self.across, time) + count * self.chip.across_cost
        if request.kind in (READ, COPY, ATOMIC):
            wait = max(request.wait, wait, self.link[sm] - time)
            self.link[sm] = max(self.link[sm], time) + count * self.chip.sm.icnt_cost
        self._at_slice(sm, request, this, time, request.start, wait, self.across)

    def _at_slice(
        self, sm: int, request: Request, this: int, time: int, start: int, wait: int, there: int
    ) -> None:  # fmt: skip
        """The request comes to its slice at `time`, the operation of an atomic at `start`. wait: for others on the way
        of a read, at least; there: when a store is there, at least."""
        memory, channel = self.memory, self.chip.channel(this)
        memory.l2_server, memory.dram = self.l2[this], self.dram[channel]
        if request.kind in (READ, COPY, ATOMIC):
            if request.kind == ATOMIC:
                wait = max(wait, self._conflict(sm, this, request, start))
            request.answer = memory._l2_read(time, request.line, request.sectors, wait, request.kind == ATOMIC)
        else:
            request.answer = max(memory._l2_write(time, request.line, request.sectors), there)
        self.l2[this], self.dram[channel] = memory.l2_server, memory.dram

    def _conflict(self, sm: int, this: int, request: Request, start: int) -> int:
        """Wait for updates of the same address, which the first transaction of an atomic brings."""
        if request.updates:
            cost, busy = self.memory.m.atomic_cost, self.memory.m.atomic_busy
            self.conflict[sm] = max(0, self.updates[this] - start) + (request.updates - 1) * cost
            self.updates[this] = max(self.updates[this], start) + request.updates * busy
        return self.conflict[sm]

    def idle(self) -> int:
        return whole(max(*self.l2, *self.dram, self.across, *self.updates, *self.link))


class Dispatcher:
    """Gives blocks to slots, in the order in which they become free; by SM and slot in one cycle."""

    def __init__(self, sms: list[OnChip], blocks: int, chip: Chip) -> None:
        self.sms, self.blocks, self.next = sms, blocks, 0
        begins = [
            (begin + slot * chip.ramp, slot, sm)
            for slot in range(len(sms[0].given))
            for sm, begin in zip(sms, chip.first_slots.tolist(), strict=True)
        ]
        for begin, slot, sm in begins:
            sm.launch_at[slot] = begin
        for begin, slot, sm in sorted(
            begins, key=lambda entry: (entry[0], 0 if chip.ramp == 0 else sms.index(entry[2]))
        ):
            if self.next < blocks and begin - chip.sm.begins < max(chip.sm.block_launch, 1):
                sm.given[slot] = self.next
                self.next += 1

    @property
    def idle(self) -> bool:
        """All blocks have been given out, or nobody has a slot for the next."""
        return self.next == self.blocks or all(block >= 0 for sm in self.sms for block in sm.slot_block)

    def dispatch(self, cycle: int) -> None:
        for sm in self.sms:
            for slot, block in enumerate(sm.slot_block):
                free = block < 0 and sm.given[slot] < 0 and sm.launch_at[slot] == cycle + sm.m.block_launch
                if free and self.next < self.blocks:
                    sm.given[slot] = self.next
                    self.next += 1


def run_chip_reference(program: Program, chip: Chip, resident: int, max_cycles: int, window: int = 1) -> SmResult:
    """Simulate `program` on all SMs; cycles, stalls and counters as README.md defines them.

    `window`: SMs learn after each how full their ports are; nothing else depends on it.
    """
    began = time.process_time()
    sms: list[OnChip] = [
        (StagedChipSm if chip.sm.collectors else ChipSm)(program, chip, resident) for _ in range(chip.sms)
    ]
    for sm, turn in zip(sms, chip.turns.tolist(), strict=True):
        sm.turn = turn
    below, blocks = Below(program, chip), len(program.block_warp) - 1
    dispatcher = Dispatcher(sms, blocks, chip)
    cycle = ended = 0
    while True:
        for sm in sms:
            sm.tell(sm.memory.serve((cycle + 1 - chip.sm.memory_lag) * ONE))
            sm.leave(cycle)
        dispatcher.dispatch(cycle)
        for sm in sms:
            for slot in range(resident):
                if sm.given[slot] >= 0 and sm.launch_at[slot] <= cycle:
                    sm.launch(slot, sm.given[slot], cycle)
                    sm.given[slot], sm.launch_at[slot] = -1, NEVER
        running = any(block >= 0 for sm in sms for block in sm.slot_block) or any(
            block >= 0 for sm in sms for block in sm.given
        )
        unserved = any(sm.memory.queue or sm.memory.copies or sm.memory.asked for sm in sms)
        if not running and not unserved and below.all_back:
            break
        if running and dispatcher.idle and below.all_back and all(sm.nothing_due for sm in sms):
            raise unfinished(DEADLOCK, max_cycles)
        if cycle >= max_cycles and running:
            raise unfinished(OVER_BUDGET, max_cycles)
        ended = cycle if running else ended
        requests = []
        for number, sm in enumerate(sms):
            sm.step(cycle)
            requests += [(r.time, number, (r.kind == COPY, order), r) for order, r in enumerate(sm.memory.asked)]
        now = cycle - chip.sm.memory_lag
        for sm, answered in zip(sms, below.serve(requests, now), strict=True):
            sm.settle(answered)
        cycle += 1
        if chip.port and cycle % window == 0:
            for sm, taken in zip(sms, below.look_ahead(now + 1), strict=True):
                sm.port_takes(taken)
    seconds = time.process_time() - began
    end = np.max([sm.block_end for sm in sms], axis=0)
    counters = np.sum([sm.memory.counters for sm in sms], axis=0) + np.array(below.memory.counters)
    return result_of(
        program,
        chip.sm,
        cycles=max(int(end.max(initial=0)), below.idle(), *(sm.memory.idle() for sm in sms)),
        block_start=np.max([sm.block_start for sm in sms], axis=0),
        block_end=end,
        op_stall=np.sum([sm.op_stall for sm in sms], axis=0),
        idle=sum(sm.no_op_drain for sm in sms),
        counters=counters[: len(COUNTERS)],
        seconds=seconds,
    )
