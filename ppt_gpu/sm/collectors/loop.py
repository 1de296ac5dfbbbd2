"""The compiled loop of an SM with collector units: `reference/staged.py`, cycle by cycle, bit for bit.

When an instruction issues nobody knows yet when it will start, so its warp cannot be put into a timing wheel at once as
in `loop/loop.py`: it gets there when its operands are announced (`collectors.warps`). A cycle looks at what has moved:
masks say which warps can issue, which units hold something and which pipes have somebody waiting. Cycles in which
nothing can move are passed over.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from ppt_gpu.common.bits import ctz, int64
from ppt_gpu.common.compiled import called, entry, merged
from ppt_gpu.common.records import Words, known
from ppt_gpu.common.threads import COMPILING
from ppt_gpu.sm.chip import staged_l1_state as s
from ppt_gpu.sm.chip.staged_l1_state import DUE as L1_DUE
from ppt_gpu.sm.chip.staged_l1_state import L1Memory
from ppt_gpu.sm.collectors.blocks import launch_blocks, leave_blocks, next_due, undecided
from ppt_gpu.sm.collectors.issue import fetch, schedule
from ppt_gpu.sm.collectors.l1 import l1_due, l1_step, next_request, take
from ppt_gpu.sm.collectors.l1_tags import part, put_answer
from ppt_gpu.sm.collectors.pipes import announce, collect, completion, memory_free, start_wakes, take_one, tell_waiting
from ppt_gpu.sm.collectors.state import StagedSm, StagedState, staged_sm_at
from ppt_gpu.sm.collectors.warps import next_wake, wake
from ppt_gpu.sm.loop import memory as c
from ppt_gpu.sm.loop.l2_dram_share import l2_read, l2_write
from ppt_gpu.sm.loop.lsu import _round_trip
from ppt_gpu.sm.loop.memory import L1_PIPE
from ppt_gpu.sm.loop.run_end import DEADLOCK, DONE, OVER_BUDGET, PAUSED, result_of, unfinished
from ppt_gpu.sm.loop.tags import line_place, whole
from ppt_gpu.sm.program.machine import NEVER, ONE, UNKNOWN, Machine
from ppt_gpu.sm.program.program import KIND_ATOMIC, KIND_STORE, RECORDED, Program
from ppt_gpu.sm.program.result import SmResult


@called
def send(mem: Words, cycle: int) -> None:
    """The next request leaves, if there is one."""
    request = next_request(mem)
    if request == 0:
        return
    mem[request + s.R_LEFT] = cycle
    op, line = mem[request + s.R_OPERATIONS] & c.PLACE, mem[request + s.R_LINE]
    sector = mem[request + s.R_MASK]
    before = cycle - mem[part(mem) + s.LAG]
    time = before * ONE
    if line >= 0:
        line &= c.LINE_MASK
    if mem[c.P_PERFECT] != 0:
        done = before + _round_trip(mem)
    elif mem[request + s.R_KIND] == KIND_STORE:
        done = whole(l2_write(mem, time, line_place(mem, line) & c.PLACE, line, sector)) + _round_trip(mem)
    else:
        atomic = int64(mem[op + s.O_KIND] == KIND_ATOMIC)
        if atomic != 0:
            mem[c.OUTWARD] = max(mem[c.OUTWARD], time) + mem[c.P_ICNT]
            if mem[op + s.O_WAIT] < 0:
                updates = mem[op + s.O_UPDATES]
                mem[op + s.O_WAIT] = max(0, mem[c.ATOMIC] - time) + (updates - 1) * mem[c.P_ATOMIC]
                mem[c.ATOMIC] = max(mem[c.ATOMIC], time) + updates * mem[c.P_ATOMIC_BUSY]
        done = l2_read(mem, time, line, sector, max(mem[op + s.O_WAIT], 0), atomic)
    put_answer(mem, request, done)


class Below(NamedTuple):
    """What the loop asks of an SM's memory, as compiled functions."""

    free: Callable[..., Any]  # as `pipes.memory_free`
    completion: Callable[..., Any]  # as `pipes.completion`, or UNKNOWN
    send: Callable[..., Any]  # as `send`


OF_ONE_SM = Below(memory_free, completion, send)


@cache
def make_start(below: Below) -> Callable[..., Any]:
    """How instructions go from the collector units to the units."""
    memory_free, completion, _ = below

    @merged
    def start(sm: StagedSm, cycle: int) -> None:
        """Units take what waits for them, and its warps learn when it is done."""
        mem, left = sm.mem, sm.now[0].waiting_past
        while left:
            pipe = ctz(left)
            left &= left - 1
            looks = int64(0)
            while sm.pipes[pipe].behind > 0:
                number, looks = take_one(sm, memory_free(mem, sm.to_unit), pipe, looks, cycle)
                if number < 0:
                    break
                issued = sm.records[number]
                place, entry = issued.warp, issued.position
                if mem[L1_PIPE] != 0 and sm.ops[issued.op].kind in RECORDED:
                    take(sm, issued.op, place, entry, issued.access, cycle)
                    continue
                done = completion(sm, number, cycle - sm.to_unit)
                if done == UNKNOWN:
                    tell_waiting(sm, place, entry, done, cycle)
                else:
                    announce(sm, place, entry, cycle, max(done, cycle), cycle)

    return start


@cache
def make_staged(below: Below = OF_ONE_SM) -> Any:
    """The loop, up to cycle `end`; with `below` of `collectors.chip` that of an SM of a whole chip, where what is below
    the L1 answers after the window, and blocks are dispatched to the chip."""
    ON_CHIP = int(below is not OF_ONE_SM)
    memory_free, _, send = below
    start = make_start(below)

    @merged
    def step(sm: StagedSm, cycle: int) -> None:
        """A cycle: from the units, which start instructions, back to the fetch."""
        mem, now = sm.mem, sm.now[0]
        wake(sm, cycle)
        if mem[L1_PIPE] != 0 and cycle >= mem[mem[L1_PIPE] + L1_DUE]:
            l1_step(sm, cycle)
            send(mem, cycle)
            l1_due(mem, cycle)
        if now.staged > 0:
            start(sm, cycle)
            for turn in range(sm.steps):
                collect(sm, cycle, turn == 0)
        scheduler = (cycle + now.first_turn) % sm.schedulers
        for _turn in range(sm.schedulers):
            schedule(sm, scheduler, cycle)
            scheduler = scheduler + 1 if scheduler + 1 < sm.schedulers else int64(0)
        for _fetch in range(sm.fetches):
            fetch(sm, cycle)

    @merged
    def next_cycle(sm: StagedSm, cycle: int) -> int:
        """The next cycle in which something can happen, when nothing has moved in this one; NEVER without any."""
        mem, now = sm.mem, sm.now[0]
        then = min(start_wakes(sm, memory_free(mem, sm.to_unit), cycle), now.due, next_wake(sm, cycle))
        if mem[L1_PIPE] != 0:
            then = max(min(then, mem[mem[L1_PIPE] + L1_DUE]), cycle + 1)
        return then

    @merged
    def run(given: StagedSm, max_cycles: int, end: int) -> int:
        sm = known(given, "on_chip", ON_CHIP)
        now, track = sm.now[0], sm.track[0]
        cycle = track.now
        while cycle < end:
            now.moved = 0
            if cycle >= now.due:
                leave_blocks(sm, cycle)
                if ON_CHIP and undecided(sm, cycle):
                    break
                launch_blocks(sm, cycle)
                now.due = next_due(sm, cycle)
                if not ON_CHIP and track.ended == sm.total:
                    track.now = cycle
                    return DONE
            if cycle >= max_cycles:
                return OVER_BUDGET
            step(sm, cycle)
            if now.moved != 0:
                cycle += 1
                continue
            cycle = next_cycle(sm, cycle)
            track.nothing_due = int64(cycle >= NEVER)
            if not ON_CHIP and cycle >= NEVER:
                return DEADLOCK
        track.now = min(cycle, end)
        return PAUSED

    return run


@cache
def make_loop() -> Any:
    """The loop of one SM, compiled: `make_staged`, for Python."""
    run = make_staged()

    def loop(words: Words, max_cycles: int) -> int:
        return run(staged_sm_at(words), max_cycles, int64(NEVER))

    return entry(loop)


def run_staged(program: Program, machine: Machine, resident: int, max_cycles: int) -> SmResult:
    """Simulate `program` on a machine with collector units; the same as `reference.run_reference`, fast."""
    memory, state = L1Memory(program, machine), StagedState(program, machine, resident)
    sm, track = state.sm(state.core, memory.access, memory.tx, memory.mem), state.tables(state.core)["track"][0]
    with COMPILING:
        loop = make_loop()
    began = time.thread_time()
    status = loop(sm, max_cycles)
    seconds = time.thread_time() - began
    if status != DONE:
        raise unfinished(status, max_cycles)
    return result_of(
        program,
        machine,
        cycles=max(int(track["now"]), memory.idle()),
        block_start=state.block_start,
        block_end=state.block_end,
        op_stall=state.charged(state.core),
        idle=int(track["idle"]),
        counters=memory.counters(),
        seconds=seconds,
    )
