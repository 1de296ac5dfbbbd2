"""What leaves an SM of a chip for the L2, and what its answers change. As `reference.chip_memory`, on `mem`.

A request is written down with its time, and so are the operations that wait for its answer, until the window is over.
"""

from __future__ import annotations

from ppt_gpu.common.bits import int64
from ppt_gpu.common.compiled import called, merged, popcount
from ppt_gpu.common.records import Words
from ppt_gpu.sm.chip import memory as q
from ppt_gpu.sm.chip.machine import ATOMIC, READ, STORE
from ppt_gpu.sm.loop import memory as c
from ppt_gpu.sm.loop.lsu import _leave, _perfect_miss, _return, _round_trip, hold_mshr
from ppt_gpu.sm.loop.tags import whole
from ppt_gpu.sm.program.machine import ONE

WAITS = -1  # a transaction cannot go on in this window


@called
def ask(mem: Words, time: int, line: int, sectors: int, kind: int, wait: int) -> int:
    """Write a request down; its number."""
    number = mem[q.N_REQS]
    at = mem[q.REQS] + (number << q.REQ_SHIFT)
    mem[at + q.R_TIME] = time
    mem[at + q.R_LINE] = line
    mem[at + q.R_SECTORS] = sectors
    mem[at + q.R_KIND] = kind
    mem[at + q.R_WAIT] = wait
    mem[at + q.R_UPDATES] = 0
    mem[at + q.R_NODE] = 0
    mem[q.N_REQS] = number + 1
    return number


@merged
def flits(mem: Words, at: int) -> int:
    """Of the request at `at`, where all of it is one packet: a load has no data."""
    return int64(1) if mem[at + q.R_KIND] == READ else popcount(mem[at + q.R_SECTORS])


@called
def wait_for(mem: Words, op: int, number: int, reason: int) -> None:
    at = mem[q.DEPS] + (mem[q.N_DEPS] << q.DEP_SHIFT)
    mem[at + q.D_OF] = op
    mem[at + q.D_ON] = number
    mem[at + q.D_FOR] = reason
    mem[q.N_DEPS] += 1
    mem[op + q.O_STATE] |= q.UNRESOLVED


@called
def leaves(mem: Words, time: int, mshr: int) -> int:
    """When a transaction that comes at `time`, and needs an MSHR if `mshr`, leaves; WAITS: not in this window."""
    if mshr != 0:
        if mem[q.TAKEN] == mem[c.P_MSHRS]:
            return int64(WAITS)
        time = max(time, mem[mem[c.MSHRS] + mem[c.MSHR_HEAD]] * ONE)
    if mem[c.P_REQUEST] != 0:
        time = max(time, mem[c.REQUESTS] - mem[c.P_REQUEST_QUEUE] * mem[c.P_REQUEST])
    return time if time < mem[q.WINDOW_END] * ONE else int64(WAITS)


@called
def miss(mem: Words, op: int, time: int, line: int, sectors: int, kind: int) -> int:
    """Ask the L2 at `time`, which `leaves` gave. The request's number."""
    head = mem[c.MSHR_HEAD]
    mem[c.MSHR_HEAD] = head + 1 if head + 1 < mem[c.P_MSHRS] else 0
    mem[q.TAKEN] += 1
    wait = max(_leave(mem, time, sectors), _return(mem, time, sectors))
    number = ask(mem, time, line, sectors, kind, wait)
    wait_for(mem, op, number, q.FOR_ANSWER)
    return number


@called
def uncached(mem: Words, op: int, time: int, line: int, sectors: int, kind: int, wait: int) -> int:
    """A load or atomic that the L1 does not look at: when it has left, or WAITS. `wait`: of perfect memory."""
    if mem[c.P_PERFECT] != 0:
        mem[op + q.O_DONE] = max(mem[op + q.O_DONE], _perfect_miss(mem, time, sectors, wait))
        return mem[c.NOW]
    time = leaves(mem, time, int64(1))
    if time >= 0:
        miss(mem, op, time, line, sectors, kind)
    return time


@called
def settle(mem: Words) -> None:
    """The answers to the requests of the last window have come: MSHRs, lines and operations learn of them."""
    size = mem[c.P_MSHRS]
    known = size - mem[q.TAKEN]
    for number in range(mem[q.N_REQS]):
        at = mem[q.REQS] + (number << q.REQ_SHIFT)
        kind, answer = mem[at + q.R_KIND], mem[at + q.R_ANSWER]
        if kind == STORE:
            to = mem[q.FLOW] + (mem[q.FLOW_LAST] & mem[q.FLOW_MASK]) * 2
            mem[to] = mem[at + q.R_TIME] + mem[q.HORIZON] * ONE
            mem[to + 1] = answer
            mem[q.FLOW_LAST] += 1
        if kind in (READ, ATOMIC):
            hold_mshr(mem, mem[c.MSHRS], size, (mem[c.MSHR_HEAD] + known) % size, known, answer)
            known += 1
            _filled(mem, number, at)
    mem[q.TAKEN] = 0
    for number in range(mem[q.N_DEPS]):
        at = mem[q.DEPS] + (number << q.DEP_SHIFT)
        op, on = mem[at + q.D_OF], mem[q.REQS] + (mem[at + q.D_ON] << q.REQ_SHIFT)
        until = mem[on + q.R_ANSWER]
        if mem[at + q.D_FOR] == q.FOR_FILL:
            until = mem[on + q.R_FILL]
        elif mem[at + q.D_FOR] == q.FOR_ACCEPTANCE:
            until = whole(until) + _round_trip(mem)
        mem[op + q.O_DONE] = max(mem[op + q.O_DONE], until)
        mem[op + q.O_STATE] &= ~int64(q.UNRESOLVED)
    mem[q.N_REQS] = 0
    mem[q.N_DEPS] = 0


@called
def _filled(mem: Words, number: int, at: int) -> None:
    """The node for which request `number` was made is filled by then, unless it holds another line now."""
    node = mem[at + q.R_NODE]
    if node == 0:
        return
    fill = max(mem[at + q.R_BASE], mem[at + q.R_ANSWER])
    before = mem[at + q.R_BEFORE]
    if before:
        fill = max(fill, mem[mem[q.REQS] + ((before - 1) << q.REQ_SHIFT) + q.R_FILL])
    mem[at + q.R_FILL] = fill
    if mem[node + q.ASKED] == number + 1:
        mem[node + c.FILL] = fill
        mem[node + q.ASKED] = 0
