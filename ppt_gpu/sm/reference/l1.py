"""The load/store unit with pipelines before the banks of the L1, in plain Python, cycle by cycle.

See README.md, "Pipelines of the L1". When an operation is done nobody knows before it is. The compiled loop is
`collectors/l1.py`.
"""

from __future__ import annotations

import heapq
import time
from collections import deque
from dataclasses import dataclass, field

import numpy as np

from ppt_gpu.sm.chip.staged_l1_state import AT_ONCE, OF_CODE, WAY_OUT
from ppt_gpu.sm.loop.run_end import DEADLOCK, OVER_BUDGET, result_of, unfinished
from ppt_gpu.sm.program.machine import (
    L1_ACCESSES,
    L1_HITS,
    ONE,
    SHARED_ACCESSES,
    SHARED_PASSES,
    WRITE_EVICT,
    Machine,
    keeps_stores,
    result_bank,
)
from ppt_gpu.sm.program.program import FORCED_L1, KIND_ATOMIC, KIND_LOAD, KIND_SHARED, KIND_STORE, Program
from ppt_gpu.sm.program.result import SmResult
from ppt_gpu.sm.reference.memory import whole
from ppt_gpu.sm.reference.sm import Observer, Sm
from ppt_gpu.sm.reference.staged import Staged, StagedSm

#: whose result is written next: shared memory, what passes the L1 by, the L1
CLIENTS = 3


@dataclass(eq=False)
class Operation:
    """What the load/store unit has taken. `sectors`: (line, number of the L1's sector, mask of its sectors of the L2),
    those that are left."""

    staged: Staged
    kind: int
    looks: bool  # into the L1
    stays: bool  # a store that stays in the L1 if its line is there
    sectors: deque[tuple[int, int, int]]
    updates: int
    pending: int = 0  # sectors that are not back
    enters: int = 0  # cycle from which it goes into the pipeline of shared memory
    began: bool = False  # an atomic, of which a sector has left
    wait: int = 0  # of an atomic, for updates of the same address


@dataclass(eq=False)
class Request:
    """A sector that the L1 does not have, a store or a sector that passes the L1 by, or a line that is written back,
    for no operation. `mask`: of sectors of the L2."""

    kind: int
    line: int
    bit: int
    mask: int
    operations: list[Operation]
    entry: Held | None = None


@dataclass(eq=False)
class Held:
    """A line in the L1."""

    valid: int = 0
    dirty: int = 0  # sectors of the L2 to write back
    filling: dict[int, Request] = field(default_factory=dict)  # by bit


class PipelinedL1:
    """Of one SM. `answers`: (cycle, order, request), a heap; `asked`: requests that have left, in their order."""

    def __init__(self, sm: StagedSm) -> None:
        self.sm, self.m, self.p = sm, sm.m, sm.p
        self.stays = keeps_stores(sm.p, sm.m)
        self.replaced: tuple[int, Held] | None = None  # a line that has to be written back
        self.sets: list[dict[int, Held]] = [{} for _ in range(self.m.l1_sets)]  # the next victim first
        self.unit: Operation | None = None
        self.shared: deque[tuple[int, Operation]] = deque()  # with the cycle in which each came
        self.banks: list[deque[tuple[int, Operation, int, int, int]]] = [deque() for _ in range(self.m.l1_banks)]
        self.misses: deque[Request] = deque()
        self.out: deque[Request] = deque()
        self.answers: list[tuple[int, int, Request]] = []
        self.filled: deque[Request] = deque()
        self.passing: Request | None = None
        self.writing: Operation | None = None
        self.turn = self.requests = self.mshrs = self.order = 0
        self.way_out = WAY_OUT

    # --- one cycle -------------------------------------------------------------------------------------------

    def step(self, cycle: int) -> None:
        self._write(cycle)
        self._answer(cycle)
        if self.misses and len(self.out) < self.way_out:
            self.out.append(self.misses.popleft())
        for bank in self.banks:
            if bank and bank[0][0] + self.m.l1_stages <= cycle and self._look_up(*bank[0][1:], cycle):
                bank.popleft()
        if self.unit is not None and self._serve(self.unit, cycle):
            self.unit = None
        if self.out and self.has_room(cycle):
            self.leave(self.out.popleft(), cycle)

    def take(self, one: Staged, cycle: int) -> None:
        """The load/store unit takes an operation."""
        kind, counters = int(self.p.op_kind[one.op]), self.sm.memory.counters
        passes, sectors = int(self.p.access_cycles[one.access]), deque[tuple[int, int, int]]()
        looks = bool(self.sm.memory.op_l1[one.op]) and kind != KIND_ATOMIC
        group = self.m.l1_group if looks else 1
        if kind != KIND_SHARED:
            first, last = (int(x) for x in self.p.access_start[one.access : one.access + 2])
            for t in range(first, last):
                mask, line = int(self.p.tx_sectors[t]), int(self.p.tx_line[t])
                parts = ((bit, mask & self._sectors(bit, group)) for bit in range(8 // group - 1, -1, -1))
                sectors += [(line, bit, part) for bit, part in parts if part]
        updates = int(self.p.access_atomic[one.access]) if len(self.p.access_atomic) else 1
        stays = kind == KIND_STORE and bool(self.stays[one.op])
        self.unit = Operation(one, kind, looks, stays, sectors, updates, len(sectors), cycle + max(passes, 1))
        if kind == KIND_SHARED:
            counters[SHARED_PASSES] += passes
            counters[SHARED_ACCESSES] += 1

    def _sectors(self, bit: int, group: int) -> int:
        """Mask of the sectors of the L2 that one of the L1 has."""
        return (1 << group) - 1 << bit * group

    # --- results ---------------------------------------------------------------------------------------------

    def _done(self, op: Operation, cycle: int) -> None:
        op.pending -= 1
        if op.pending <= 0:
            self.sm.announce(op.staged, cycle, writes=False)

    def _write(self, cycle: int) -> None:
        """One result a cycle into the registers, where nothing else is written to its bank, and the next in turn."""
        if self.writing is not None and self._free_bank(self.writing.staged, cycle):
            self._done(self.writing, cycle)
            self.writing = None
        for client in range(self.turn, self.turn + CLIENTS):
            if self.writing is None:
                self.writing = self._returned(client % CLIENTS, cycle)
                self.turn = (client + 1) % CLIENTS if self.writing else self.turn

    def _free_bank(self, one: Staged, cycle: int) -> bool:
        """Whether nothing is written to the register bank of the result; then that is."""
        bank = result_bank(int(self.sm.operands[one.op]), self.sm.slots.index(one.warp), self.m.collector_banks)
        if bank < 0:
            return True
        written = self.sm.writes.setdefault((cycle, 0 if self.m.collectors_shared else one.scheduler), set())
        free = bank not in written
        written.add(bank)
        return free

    def _returned(self, client: int, cycle: int) -> Operation | None:
        if client == 0:
            there = bool(self.shared) and self.shared[0][0] + self.m.shared_stages <= cycle
            return self.shared.popleft()[1] if there else None
        if client == 1:
            request, self.passing = self.passing, None
            if request is not None:
                self.requests -= 1
            return request.operations[0] if request else None
        if not self.filled:
            return None
        request = self.filled[0]
        op = request.operations.pop(0)
        if not request.operations:
            self.filled.popleft()
            self.requests -= 1
            self.mshrs -= 1
        return op

    def _answer(self, cycle: int) -> None:
        """One answer a cycle comes in."""
        if not self.answers or self.answers[0][0] > cycle:
            return
        request = self.answers[0][2]
        if request.kind == KIND_ATOMIC and self.passing is not None:
            return
        heapq.heappop(self.answers)
        if request.kind == OF_CODE:
            self.requests -= 1
        elif request.kind == KIND_STORE:
            self.requests -= 1
            for op in request.operations:
                self._done(op, cycle)
        elif request.kind == KIND_ATOMIC:
            self.passing = request
        else:
            if request.entry is not None:
                del request.entry.filling[request.bit]
                request.entry.valid |= 1 << request.bit
            self.filled.append(request)

    # --- the L1 ----------------------------------------------------------------------------------------------

    def _look_up(self, op: Operation, line: int, bit: int, part: int, cycle: int) -> bool:
        """What the L1 does with a sector; False: it has to wait."""
        if op.kind == KIND_STORE:
            return self._store(op, line, bit, part, cycle)
        counters = self.sm.memory.counters
        held = self._set(line).get(line) if line >= 0 else None
        if line == FORCED_L1 or (held and held.valid >> bit & 1):
            self._renew(line)
            counters[L1_ACCESSES] += 1
            counters[L1_HITS] += 1
            self._done(op, cycle)
            return True
        if len(self.misses) + 1 >= self.m.miss_queue:
            return False
        if held and bit in held.filling:
            if len(held.filling[bit].operations) >= self.m.merges:
                return False
            self._renew(line)
            held.filling[bit].operations.append(op)
            counters[L1_ACCESSES] += 1
            counters[L1_HITS] += 1
            return True
        if self.mshrs >= self.m.mshrs or self.requests >= AT_ONCE or not (line < 0 or self._allocate(line)):
            return False
        counters[L1_ACCESSES] += 1
        self.mshrs += 1
        request = self._request(KIND_LOAD, op, line, bit, self._sectors(bit, self.m.l1_group))
        if line >= 0:
            request.entry = self._set(line)[line]
            request.entry.filling[bit] = request
        self.misses.append(request)
        if self.replaced is not None:
            self.requests += 1
            self.misses.append(Request(KIND_STORE, self.replaced[0], 0, self.replaced[1].dirty, []))
            self.replaced = None
        return True

    def _store(self, op: Operation, line: int, bit: int, part: int, cycle: int) -> bool:
        held = self._set(line).get(line) if line >= 0 else None
        if op.stays and held and held.valid >> bit & 1:
            self._renew(line)
            held.dirty |= part
            self._done(op, cycle)
            return True
        if len(self.misses) >= self.m.miss_queue or self.requests >= AT_ONCE:
            return False
        if self.m.l1_write == WRITE_EVICT:
            if held and held.valid >> bit & 1:
                held.valid &= ~(1 << bit)
                if not held.valid and not held.filling:
                    del self._set(line)[line]
        elif line >= 0:
            if self.m.l1_allocate and not self._allocate(line):
                return False
            if line in self._set(line):
                self._renew(line)
                self._set(line)[line].valid |= 1 << bit
        self.misses.append(self._request(KIND_STORE, op, line, bit, part))
        return True

    def _request(self, kind: int, op: Operation, line: int, bit: int, mask: int) -> Request:
        self.requests += 1
        return Request(kind, line, bit, mask, [op])

    def _set(self, line: int) -> dict[int, Held]:
        return self.sets[self.sm.memory.l1_set[line]]

    def _renew(self, line: int) -> None:
        """The line is the newest of its set."""
        if line >= 0 and not self.m.l1_fifo:
            lines = self._set(line)
            lines[line] = lines.pop(line)

    def _allocate(self, line: int) -> bool:
        """A place for the line; False where each is of a line of which something is on its way."""
        lines = self._set(line)
        if line not in lines:
            if len(lines) == self.m.l1_ways:
                victim = next((other for other, held in lines.items() if not held.filling), None)
                if victim is None:
                    return False
                held = lines.pop(victim)
                self.replaced = (victim, held) if held.dirty else None
            lines[line] = Held()
        else:
            self._renew(line)
        return True

    # --- the load/store unit ---------------------------------------------------------------------------------

    def _serve(self, op: Operation, cycle: int) -> bool:
        """What the unit holds goes on; True: it has left it."""
        if op.kind == KIND_SHARED:
            result = self.sm.has_result(op.staged)
            if cycle < op.enters or (result and len(self.shared) == self.m.shared_stages):
                return False
            if result:
                self.shared.append((cycle, op))
            else:
                self._done(op, cycle)
            return True
        if not op.pending:
            self._done(op, cycle)
            return True
        if not op.looks:
            if self.requests < AT_ONCE and len(self.out) < self.way_out:
                kind = KIND_STORE if op.kind == KIND_STORE else KIND_ATOMIC
                self.out.append(self._request(kind, op, *op.sectors.popleft()))
            return not op.sectors
        for _ in range(self.m.l1_banks):
            if op.sectors:
                line, bit, part = op.sectors[0]
                bank = self.banks[bit % self.m.l1_banks]
                if len(bank) == self.m.l1_stages or (bank and bank[-1][0] == cycle):
                    return False
                bank.append((cycle, op, line, bit, part))
                op.sectors.popleft()
        return not op.sectors

    # --- below -----------------------------------------------------------------------------------------------

    def has_room(self, cycle: int) -> bool:
        """Whether a request can leave the SM."""
        return True

    def leave(self, request: Request, cycle: int) -> None:
        """A request leaves the SM."""
        memory = self.sm.memory
        time = (cycle - self.m.memory_lag) * ONE
        if self.m.perfect:
            self.put_answer(cycle - self.m.memory_lag + memory._round_trip(), cycle, request)
        elif request.kind == KIND_STORE:
            accepted = memory._l2_write(time, request.line, request.mask)
            self.put_answer(whole(accepted) + memory._round_trip(), cycle, request)
        else:
            op = request.operations[0]
            if op.kind == KIND_ATOMIC:
                memory.outward = max(memory.outward, time) + self.m.icnt_cost
                if not op.began:
                    op.began, op.wait = True, memory._same_address(time, op.staged.access)
            done = memory._l2_read(time, request.line, request.mask, op.wait, op.kind == KIND_ATOMIC)
            self.put_answer(done, cycle, request)

    def ask_for_code(self, cycle: int) -> None:
        """The answer to a line of the code takes its turn among the others, under perfect memory."""
        self.requests += 1
        self.put_answer(cycle + self.m.code_l2, cycle, Request(OF_CODE, -1, 0, 0, []))

    def put_answer(self, done: int, left: int, request: Request) -> None:
        """A request that left in cycle `left` is answered at `done`."""
        self.order += 1
        heapq.heappush(self.answers, (max(done, left + 1), self.order, request))


class PipelinedSm(StagedSm):
    """An SM with collector units, and with pipelines in its L1 where the machine has some."""

    def __init__(self, program: Program, machine: Machine, resident: int, observer: Observer | None) -> None:
        super().__init__(program, machine, resident, observer)
        self.l1 = PipelinedL1(self) if machine.miss_queue else None


def sm_of(program: Program, machine: Machine, resident: int, observer: Observer | None = None) -> Sm:
    """The SM of a machine, with collector units where it has some."""
    if not machine.collectors:
        return Sm(program, machine, resident, observer)
    return PipelinedSm(program, machine, resident, observer)


def run_reference(program: Program, machine: Machine, resident: int, max_cycles: int) -> SmResult:
    """Simulate `program`; cycles, stalls and counters as README.md defines them."""
    began = time.process_time()
    sm = sm_of(program, machine, resident)
    cycle = 0
    while True:
        sm.begin(cycle)
        if sm.finished:
            break
        if sm.stuck(cycle):
            raise unfinished(DEADLOCK, max_cycles)
        if cycle >= max_cycles:
            raise unfinished(OVER_BUDGET, max_cycles)
        sm.step(cycle)
        cycle += 1
    return result_of(
        program,
        machine,
        cycles=max(cycle, sm.memory.idle()),
        block_start=sm.block_start,
        block_end=sm.block_end,
        op_stall=sm.op_stall,
        idle=sm.no_op_drain,
        counters=np.array(sm.memory.counters, np.int64),
        seconds=time.process_time() - began,
    )
