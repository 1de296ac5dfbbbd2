"""What leaves an L1 with pipelines of an SM of a chip: requests that are answered after the window. As `LaterL1`."""

from __future__ import annotations

from typing import Any

from ppt_gpu.common.bits import int64
from ppt_gpu.common.compiled import called, popcount
from ppt_gpu.sm.chip import memory as q
from ppt_gpu.sm.chip import staged_l1_state as s
from ppt_gpu.sm.chip.machine import ATOMIC, READ, STORE
from ppt_gpu.sm.chip.requests import ask, flits
from ppt_gpu.sm.collectors.l1 import next_request
from ppt_gpu.sm.collectors.l1_answers import part, put_answer
from ppt_gpu.sm.loop import memory as c
from ppt_gpu.sm.loop.lsu import _round_trip
from ppt_gpu.sm.loop.tags import whole
from ppt_gpu.sm.program.machine import ONE
from ppt_gpu.sm.program.program import KIND_ATOMIC, KIND_STORE


@called
def send_later(mem: Any, cycle: int) -> None:
    """As `collectors.loop.send`; the L2 answers later. Requests wait for room in the SM's port."""
    if mem[q.PORT_SIZE] != 0 and mem[c.P_PERFECT] == 0:
        room, now = mem[q.PORT_SENT] - mem[q.PORT_SIZE], (cycle - mem[part(mem) + s.LAG]) * ONE
        known = room >= 0 and room < mem[q.PORT_KNOWN]
        if known and mem[mem[q.PORT] + mem[q.PORT_SENT] % mem[q.PORT_SIZE]] > now:
            return
    request = next_request(mem)
    if request == 0:
        return
    mem[request + s.R_LEFT] = cycle
    before, op = cycle - mem[part(mem) + s.LAG], mem[request + s.R_OPERATIONS] & c.PLACE
    if mem[c.P_PERFECT] != 0:
        put_answer(mem, request, before + _round_trip(mem))
        return
    time, line, kind = before * ONE, mem[request + s.R_LINE], int64(READ)
    mask, of = mem[request + s.R_MASK], mem[op + s.O_KIND] if op else int64(KIND_STORE)
    if of in (KIND_ATOMIC, KIND_STORE):
        mem[q.LINK_OUT] = max(mem[q.LINK_OUT], time) + popcount(mask) * mem[c.P_ICNT]
        kind = int64(STORE if of == KIND_STORE else ATOMIC)
    if line >= 0:
        line &= c.LINE_MASK
    wait = mem[q.LINK_OUT] if kind == STORE else int64(0)
    number = ask(mem, time, line, mask, kind, wait)
    at = mem[q.REQS] + (number << q.REQ_SHIFT)
    mem[at + q.R_OF] = request
    mem[q.PORT_SENT] += flits(mem, at)
    if kind == ATOMIC and mem[op + s.O_WAIT] < 0:
        mem[op + s.O_WAIT] = 0
        mem[at + q.R_START], mem[at + q.R_UPDATES] = time, mem[op + s.O_UPDATES]


@called
def settle_l1(mem: Any) -> None:
    """The answers to the requests of the last window have come."""
    for number in range(mem[q.N_REQS]):
        at = mem[q.REQS] + (number << q.REQ_SHIFT)
        done = mem[at + q.R_ANSWER]
        if mem[at + q.R_KIND] == STORE:
            done = whole(max(done, mem[at + q.R_WAIT]) + mem[at + q.R_BACK]) + _round_trip(mem)
        put_answer(mem, mem[at + q.R_OF] & c.PLACE, done)
    mem[q.N_REQS] = 0
