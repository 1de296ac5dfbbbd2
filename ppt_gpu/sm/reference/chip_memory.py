"""The memory inside an SM whose L2 answers later, in plain Python: operations wait in a queue and are served in order.

A transaction happens whole or not at all in a cycle: `_load_later`, `_store_later` and `_atomic_later` return None,
with nothing changed, where it has to wait for an MSHR, for a fill, or for its time.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ppt_gpu.sm.chip.machine import ATOMIC, COPY, READ, STORE, WRITE_BACK, Chip
from ppt_gpu.sm.program.machine import (
    FRACTION,
    L1_ACCESSES,
    L1_HITS,
    NEVER,
    ONE,
    SHARED_ACCESSES,
    SHARED_PASSES,
    WRITE_EVICT,
)
from ppt_gpu.sm.program.machine import WRITE_BACK as L1_WRITE_BACK
from ppt_gpu.sm.program.program import (
    FORCED_L1,
    KIND_ATOMIC,
    KIND_CONSTANT,
    KIND_LOAD,
    KIND_SHARED,
    KIND_STORE,
    Program,
)
from ppt_gpu.sm.reference.code import Code
from ppt_gpu.sm.reference.memory import Line, Memory, whole
from ppt_gpu.sm.reference.sm import Warp

if TYPE_CHECKING:
    from ppt_gpu.sm.reference.l1 import Request as PipelineRequest
    from ppt_gpu.sm.reference.staged import Staged


@dataclass
class Request:
    """What leaves the SM. `answer`: of a read the cycle of arrival, else the server time of acceptance."""

    time: int
    line: int
    sectors: int
    kind: int
    wait: int = 0
    start: int = 0
    updates: int = 0
    entry: Line | None = None
    answer: int = -1
    back: int = 0  # by how much its answer is later because of others in the crossbar
    of: tuple[int, PipelineRequest] | None = None  # of pipelines in the L1: the cycle in which it left, and theirs

    @property
    def flits(self) -> int:
        """That it has where all of a request is one packet: a load has no data."""
        return 1 if self.kind == READ else self.sectors.bit_count()


@dataclass
class Operation:
    """Of the load/store unit, or of the copy engine. `arrivals`: requests whose answers it waits for."""

    kind: int
    cycle: int
    cached: bool = False
    copied: bool = False  # by the copy engine
    keeps: bool = False  # what it stores, in the L1
    transactions: list[tuple[int, int]] = field(default_factory=list)  # line, sectors; those that are left
    count: int = 0
    passes: int = 0  # cycles in the unit
    updates: int = 1
    time: int = -1
    start: int = 0
    done: int = 0
    posted: int = -1
    posts: bool = False  # its warp may end before it is done
    arrivals: list[Request] = field(default_factory=list)
    served: bool = False
    warp: Warp | None = None
    slot: int = -1
    event: int = -1  # for which it counts when its result is known
    staged: Staged | None = None  # the instruction, of an SM with collector units


class LaterMemory(Memory):
    """`queue`, `copies`: operations that are not served to their end; `open`: those whose results are not known."""

    def __init__(self, program: Program, chip: Chip, code: Code) -> None:
        super().__init__(program, chip.sm)
        self.horizon, self.code = chip.horizon, code
        self.queue: deque[Operation] = deque()
        self.copies: deque[Operation] = deque()
        self.open: list[Operation] = []
        self.asked: list[Request] = []  # in this window
        self.link_out = 0  # the interconnect outward; `inward` stays 0, for instruction lines wait for no data
        self.flow: deque[tuple[int, int]] = deque()  # stores answered: time from which that counts, the answer
        self.flow_limit = 0
        self.limit = ONE  # end of the window
        self.unknown: Operation | None = None  # the operation issued last, if its result is not known

    # --- from and to the SM --------------------------------------------------------------------------------------

    def queue_full(self, cycle: int) -> bool:
        return len(self.queue) + sum(release > cycle for release in self.releases) >= self.m.queue

    def issue(self, cycle: int, op: int, access: int) -> int:
        """As `Memory.issue`; NEVER, and the operation in `unknown`, when its result is not known in this window."""
        p = self.program
        first, last = (int(x) for x in p.access_start[access : access + 2])
        transactions = [(int(p.tx_line[t]), int(p.tx_sectors[t])) for t in range(first, last)]
        cached, copied, keeps = bool(self.op_l1[op]), bool(self.op_copies[op]), bool(self.op_keeps[op])
        operation = Operation(int(p.op_kind[op]), cycle, cached, copied, keeps, transactions)
        operation.posts = operation.kind == KIND_STORE or bool(self.op_posted[op])
        operation.count = last - first
        operation.passes = int(p.access_cycles[access])
        operation.updates = int(p.access_atomic[access]) if len(p.access_atomic) else 1
        return self.put(operation)

    def put(self, operation: Operation) -> int:
        """Put an operation into the queue; the cycle of its result, or NEVER."""
        (self.copies if operation.copied else self.queue).append(operation)
        self._advance()
        if operation.posts and not self.m.store_ack:
            return operation.cycle + self.m.store_latency
        if operation.served and not operation.arrivals:
            return operation.done
        self.open.append(operation)
        self.unknown = operation
        return NEVER

    def serve(self, limit: int) -> list[Operation]:
        """A new window, which ends at `limit`: the operations whose results are known now."""
        self.limit = limit
        self._advance()
        known = [operation for operation in self.open if operation.served and not operation.arrivals]
        self.open = [operation for operation in self.open if operation not in known]
        return known

    def settle(self) -> None:
        """The requests of the window have been answered."""
        for operation in (*self.open, *self.queue, *self.copies):
            for request in operation.arrivals:
                until = request.answer
                if request.kind == STORE:
                    until = whole(until) + self._round_trip()
                operation.done = max(operation.done, until)
            operation.arrivals = []
        for request in self.asked:
            if request.kind == STORE:
                self.flow.append((request.time + self.horizon * ONE, request.answer))
            if request.kind in (READ, ATOMIC):
                self.mshr_release.append(request.answer)
            if request.entry is not None:
                request.entry.fill = max(request.entry.fill, request.answer)
        self.asked = []

    def idle(self) -> int:
        return max(super().idle(), whole(self.link_out))

    # --- the load/store unit ---------------------------------------------------------------------------------------

    def _advance(self) -> None:
        while self.queue and self._serve(self.queue[0]):
            self.queue.popleft().served = True
        while self.copies and self._serve_copy(self.copies[0]):
            self.copies.popleft().served = True

    def _serve(self, op: Operation) -> bool:
        """Serve the first operation of the queue as far as the window goes. True: to its end."""
        m = self.m
        if op.time < 0:
            op.start = op.time = max(op.cycle * ONE, self.lsu)
            if op.kind in (KIND_SHARED, KIND_CONSTANT):
                self._inside(op)
                return True
            op.done = 0 if op.kind == KIND_STORE else whole(op.start) + m.l1_latency
            if op.kind == KIND_ATOMIC and m.perfect and op.count:
                op.posted = max(0, self.atomic - op.start) + (op.updates - 1) * m.atomic_cost
                self.atomic = max(self.atomic, op.start) + op.updates * m.atomic_busy
        step = {KIND_LOAD: self._load_later, KIND_ATOMIC: self._atomic_later, KIND_STORE: self._store_later}[op.kind]
        while op.transactions:
            if op.time >= self.limit:
                return False
            left = step(op, op.time, *op.transactions[0])
            if left is None:
                return False
            op.transactions.pop(0)
            op.time = left + (m.tx_cost if op.transactions else 0)
        rest = op.passes * ONE - max(op.count - 1, 0) * m.tx_cost
        self.lsu = op.time + max(rest, m.tx_cost if op.count else 0)
        self._release(whole(max(self.lsu, op.posted if op.kind == KIND_STORE else -1)))
        if op.kind == KIND_STORE:
            sent = m.store_ack and op.posted >= 0
            op.done = max(op.done, whole(op.posted) + self._round_trip() if sent else whole(op.time))
        op.done = max(op.done, (op.time >> FRACTION) + self.m.memory_lag)  # the SM does not know before
        return True

    def _serve_copy(self, op: Operation) -> bool:
        """Serve what the copy engine is at as far as the window goes. True: to its end."""
        m = self.m
        if op.time < 0:
            op.time = max(op.cycle * ONE, self.copier)
            op.done = whole(op.time) + m.l1_latency
        while op.transactions:
            if op.time >= self.limit:
                return False
            line, sectors = op.transactions.pop(0)
            if line == FORCED_L1:
                op.done = max(op.done, whole(op.time) + m.l1_latency)
            elif m.perfect:
                op.done = max(op.done, whole(op.time) + self._round_trip())
            else:
                self.asked.append(Request(op.time, line, sectors, COPY))
                op.arrivals.append(self.asked[-1])
            op.time += m.tx_cost
        self.copier = op.time
        return True

    def _inside(self, op: Operation) -> None:
        if op.kind == KIND_SHARED:
            self.counters[SHARED_PASSES] += op.passes
            self.counters[SHARED_ACCESSES] += 1
            self.lsu = op.start + op.passes * ONE
            op.done = whole(op.start) + max(op.passes - 1, 0) + self.m.shared_latency
        else:
            self.lsu = op.start + ONE
            op.done = self.code.constant(whole(op.start))
        self._release(whole(self.lsu))

    # --- transactions ------------------------------------------------------------------------------------------------

    def _leaves(self, time: int, mshr: bool) -> int | None:
        """When a transaction that comes at `time` leaves the SM; None: not in this window."""
        if mshr:
            if not self.mshr_release:
                return None
            time = max(time, min(self.mshr_release) * ONE)
        if self.m.request_cost:
            time = max(time, self.requests - self.m.request_queue * self.m.request_cost)
        return time if time < self.limit else None

    def _ask(self, op: Operation, time: int, line: int, sectors: int, kind: int) -> Request:
        """A miss leaves at `time`."""
        self.mshr_release.remove(min(self.mshr_release))
        wait = max(self._leave(time, sectors)[1], self._return(time, sectors))
        request = Request(time, line, sectors, kind, wait)
        self.asked.append(request)
        op.arrivals.append(request)
        return request

    def _uncached(self, op: Operation, time: int, line: int, sectors: int, kind: int) -> int | None:
        if self.m.perfect:
            time, arrived = self._perfect_miss(time, sectors, max(op.posted, 0))
            op.done = max(op.done, arrived)
            return time
        left = self._leaves(time, True)
        if left is not None:
            self._ask(op, left, line, sectors, kind)
        return left

    def _coming(self, entry: Line) -> list[Request]:
        """Requests of this window for the line."""
        return [request for request in self.asked if request.entry is entry]

    def _peek(self, line: int) -> Line | None:
        return next((entry for entry in self.l1.sets[self.l1_set[line]] if entry.line == line), None)

    def _load_later(self, op: Operation, time: int, line: int, sectors: int) -> int | None:
        m = self.m
        if line < 0:
            hit = line == FORCED_L1
            gone = time if hit else self._uncached(op, time, line, sectors, READ)
            if gone is not None:
                self.counters[L1_ACCESSES] += sectors.bit_count()
                self.counters[L1_HITS] += sectors.bit_count() if hit else 0
                op.done = max(op.done, whole(time) + m.l1_latency) if hit else op.done
            return gone
        if not op.cached:
            return self._uncached(op, time, line, sectors, READ)
        sectors = self._whole_l1_sectors(sectors)
        entry = self._peek(line)
        missing = sectors & ~(entry.valid if entry else 0)
        now, waits, coming = time, False, 0
        if entry and (self._coming(entry) or entry.fill > time >> FRACTION):
            coming = sectors & entry.filling & ~missing
            waits = bool(coming) and entry.merged >= m.merges
            if waits and self._coming(entry):
                return None
            now = max(time, entry.fill * ONE) if waits else time
        left: int | None = self._place(now, line) if entry is None and missing else now
        if missing and not m.perfect and left is not None:
            left = self._leaves(left, True)
        if left is None:
            return None
        self.l1.find(self.l1_set[line], line)
        self.counters[L1_ACCESSES] += sectors.bit_count() // m.l1_group
        self.counters[L1_HITS] += (sectors & ~missing).bit_count() // m.l1_group
        op.done = max(op.done, whole(now) + m.l1_latency)
        if entry and coming and not waits:
            entry.merged += 1
            op.done = max(op.done, entry.fill, whole(time + self._return(time, coming)) + m.l1_latency)
            op.arrivals += self._coming(entry)
        return self._fill_later(op, left, line, missing, entry) if missing else left

    def _place(self, time: int, line: int) -> int | None:
        """When a line that the L1 lacks has a place there; None: nobody knows in this window."""
        lines = self.l1.sets[self.l1_set[line]]
        if not self.m.l1_reserves or len(lines) < self.l1.ways:
            return time
        known = [entry.fill for entry in lines if not self._coming(entry)]
        return max(time, min(known) * ONE) if known else None

    def _victim(self, time: int, line: int) -> int:
        lines = self.l1.sets[self.l1_set[line]]
        there = (n for n, entry in enumerate(lines) if entry.fill <= time >> FRACTION and not self._coming(entry))
        return next(there, len(lines) - 1) if self.m.l1_reserves else 0

    def _fill_later(self, op: Operation, time: int, line: int, missing: int, entry: Line | None) -> int:
        if entry is None:
            entry = self._allocate_later(time, line)
        unknown = self._coming(entry)
        if self.m.perfect:
            time, arrived = self._perfect_miss(time, missing)
            op.done = max(op.done, arrived)
        else:
            self._ask(op, time, line, missing, READ).entry = entry
        pending = bool(unknown) or entry.fill > time >> FRACTION
        entry.merged = (entry.merged if pending else 0) + 1
        entry.filling = (entry.filling if pending else 0) | missing
        entry.valid |= missing
        if self.m.perfect:
            entry.fill = max(entry.fill, arrived)
        return time

    def _allocate_later(self, time: int, line: int) -> Line:
        entry, victim = self.l1.allocate(self.l1_set[line], line, self._victim(time, line))
        if victim and victim.dirty and not self.m.perfect:
            self.link_out = max(self.link_out, time) + victim.dirty.bit_count() * self.m.icnt_cost
            self.asked.append(Request(time, victim.line, victim.dirty, WRITE_BACK))
        return entry

    def _store_later(self, op: Operation, time: int, line: int, sectors: int) -> int | None:
        m = self.m
        back, looks = m.l1_write == L1_WRITE_BACK or op.keeps, line >= 0 and op.cached
        entry = self._peek(line) if looks else None
        kept = back and (line == FORCED_L1 or (looks and (entry is not None or m.l1_allocate)))
        left: int | None = time
        if not (kept or m.perfect):
            left = self._leaves(time, False)
        if left is None:
            return None
        if looks and not back and m.l1_write == WRITE_EVICT:
            self.l1.drop(self.l1_set[line], line)
        elif looks:
            entry = self.l1.find(self.l1_set[line], line)
            if entry is None and m.l1_allocate:
                entry = self._allocate_later(time, line)
            if entry:
                entry.valid |= sectors
                entry.dirty |= sectors if back else 0
        if kept:
            return time
        left, wait = self._leave(left, sectors)
        accepted = left + wait
        if not m.perfect:
            accepted = max(accepted, self._flow(left, sectors))
            self.asked.append(Request(left, line, sectors, STORE))
            if m.store_ack:
                op.arrivals.append(self.asked[-1])
        op.posted = max(op.posted, accepted)
        return left

    def _flow(self, time: int, sectors: int) -> int:
        """When a store that leaves at `time` is accepted."""
        while self.flow and self.flow[0][0] <= time:
            self.flow_limit = max(self.flow_limit, self.flow.popleft()[1])
        self.link_out = max(self.link_out, time) + sectors.bit_count() * self.m.icnt_cost
        return max(self.link_out, self.flow_limit)

    def _atomic_later(self, op: Operation, time: int, line: int, sectors: int) -> int | None:
        if not self.m.perfect and self._leaves(time, True) is None:
            return None
        if line >= 0 and op.cached:
            self.l1.drop(self.l1_set[line], line)
        left = self._uncached(op, time, line, sectors, ATOMIC)
        if not self.m.perfect:
            self.link_out = max(self.link_out, time) + sectors.bit_count() * self.m.icnt_cost
            if len(op.transactions) == op.count:
                self.asked[-1].start, self.asked[-1].updates = op.start, op.updates
        return left
