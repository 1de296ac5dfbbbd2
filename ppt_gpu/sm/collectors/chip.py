"""An SM with collector units as one of a whole chip: its loop between windows, as `reference.chip.StagedChipSm`.

What the SM asks for leaves it `Machine.to_unit` cycles before the cycle that the SM is in, as if it had been issued
then: its memory is so many cycles behind, and so is the end of its window. Results that are not known in a window are
UNKNOWN in the scoreboard; their block waits for them as for instructions that have not started.

What leaves an L1 with pipelines of an SM of a chip: requests that are answered after the window. As `LaterL1`.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from ppt_gpu.common.bits import int64
from ppt_gpu.common.compiled import called, entry, merged, popcount
from ppt_gpu.common.records import Words
from ppt_gpu.sm.chip import memory as q
from ppt_gpu.sm.chip import staged_l1_state as s
from ppt_gpu.sm.chip.lsu import operation, pass_settled, passes_unit, posted, put, serve_queue
from ppt_gpu.sm.chip.machine import ATOMIC, READ, STORE, Chip
from ppt_gpu.sm.chip.memory import ChipArrays
from ppt_gpu.sm.chip.requests import ask, flits, settle
from ppt_gpu.sm.chip.round import END
from ppt_gpu.sm.collectors.l1 import next_request
from ppt_gpu.sm.collectors.l1_tags import part, put_answer
from ppt_gpu.sm.collectors.loop import Below, make_staged
from ppt_gpu.sm.collectors.pipes import announce, memory_free
from ppt_gpu.sm.collectors.state import StagedSm, StagedState, staged_sm_at
from ppt_gpu.sm.loop import memory as c
from ppt_gpu.sm.loop.code import constant
from ppt_gpu.sm.loop.lsu import _round_trip
from ppt_gpu.sm.loop.memory import L1_PIPE, P_STORE
from ppt_gpu.sm.loop.tags import whole
from ppt_gpu.sm.program.machine import NEVER, ONE, UNKNOWN
from ppt_gpu.sm.program.program import KIND_ATOMIC, KIND_CONSTANT, KIND_LOAD, KIND_STORE, Program


@called
def send_later(mem: Words, cycle: int) -> None:
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
def settle_l1(mem: Words) -> None:
    """The answers to the requests of the last window have come."""
    for number in range(mem[q.N_REQS]):
        at = mem[q.REQS] + (number << q.REQ_SHIFT)
        done = mem[at + q.R_ANSWER]
        if mem[at + q.R_KIND] == STORE:
            done = whole(max(done, mem[at + q.R_WAIT]) + mem[at + q.R_BACK]) + _round_trip(mem)
        put_answer(mem, mem[at + q.R_OF] & c.PLACE, done)
    mem[q.N_REQS] = 0


@merged
def memory_free_later(mem: Words, to_unit: int) -> int:
    """As `memory_free`; while an operation is not served to its end nobody knows."""
    return int64(NEVER) if mem[q.OP_FIRST] < mem[q.OP_LAST] else memory_free(mem, to_unit)


@called
def completion_later(sm: StagedSm, number: int, issued: int) -> int:
    """When an instruction is done that starts as if it had been issued in that cycle; UNKNOWN where that has to be
    asked."""
    record, mem = sm.records[number], sm.mem
    op = sm.ops[record.op]
    kind, way = op.kind, op.way
    if kind < KIND_LOAD:
        return issued + op.done
    if kind == KIND_CONSTANT and not passes_unit(kind, mem):
        return constant(mem, issued)[0]
    at, now_known = put(mem, sm.tx, sm.accesses, kind, way, record.access, issued)
    if posted(mem, kind, way):
        return issued + mem[P_STORE]
    if now_known:
        return mem[at + q.O_DONE]
    mem[at + q.O_STATE] |= q.ANNOUNCED
    mem[at + q.O_ME], mem[at + q.O_EVENT] = record.warp, record.position
    return int64(UNKNOWN)


@called
def _open_window(sm: StagedSm, cycle: int) -> None:
    """What the answers to the last window's requests change, and how far the load/store unit comes in this one."""
    mem = sm.mem
    if mem[L1_PIPE] != 0:
        settle_l1(mem)
        return
    settle(mem)
    serve_queue(mem, sm.tx)
    for ring in (int64(q.OF_UNIT), int64(q.OF_COPIES)):
        for number in range(mem[q.OP_SETTLED + ring], mem[q.OP_FIRST + ring]):
            op = operation(mem, ring, number)
            if mem[op + q.O_STATE] == q.ANNOUNCED:
                mem[op + q.O_STATE] = 0
                began = mem[op + q.O_ISSUED] + sm.to_unit
                announce(sm, mem[op + q.O_ME], mem[op + q.O_EVENT], began, max(mem[op + q.O_DONE], began), cycle)
        pass_settled(mem, ring)


@merged
def _must_know(sm: StagedSm) -> int:
    """The first cycle in which a slot is due of which the chip has not said which block it gets."""
    first = int64(NEVER)
    for index in range(sm.resident):
        if sm.blocks[index].given < 0:
            first = min(first, sm.blocks[index].launch_at)
    return first


OF_CHIP = Below(memory_free_later, completion_later, send_later)


@cache
def make_advance_staged() -> Any:
    """The function that brings some SMs to the end of the window, or to where they need to know a block."""
    run = make_staged(OF_CHIP)

    def advance_staged(first: int, last: int, chip: Words, sms: Words) -> None:
        end = chip[END]
        for number in range(first, last):
            sm = staged_sm_at(sms[number])
            track, opens = sm.track[0], end - sm.to_unit
            if track.now >= end:
                continue
            if sm.mem[q.WINDOW_END] != opens:
                sm.mem[q.WINDOW_END] = opens
                _open_window(sm, track.now)
            track.nothing_due = 0
            if track.now < _must_know(sm):
                run(sm, int64(NEVER), end)

    return entry(advance_staged)


class StagedSms:
    """SMs in the loop of `collectors/loop.py`: as `whole_chip.CoreSms`."""

    def __init__(self, program: Program, chip: Chip, resident: int) -> None:
        self.state = StagedState(program, chip.sm, resident)

    def advance(self, run: ChipArrays, first: int, last: int) -> None:
        """Bring SMs `first` to `last` - 1 as far as they can go."""
        make_advance_staged()(first, last, run.shared, run.sms)
