"""The compiled loop of an SM with collector units: `reference/staged.py`, cycle by cycle, bit for bit.

When an instruction issues nobody knows yet when it will start, so its warp cannot be put into a timing wheel at once as
in `loop/loop.py`: it gets there when its operands are announced (`collectors.warps`). A cycle looks at what has moved:
masks say which warps can issue, which units hold something and which pipes have somebody waiting. Cycles in which
nothing can move are passed over.
"""

from __future__ import annotations

import time
from functools import cache
from typing import Any

import numpy as np

from ppt_gpu.common.bits import ctz, int64, pointer
from ppt_gpu.common.compiled import called, entry, merged
from ppt_gpu.common.threads import COMPILING
from ppt_gpu.sm.chip import staged_l1_state as s
from ppt_gpu.sm.chip.staged_l1_state import DUE as L1_DUE
from ppt_gpu.sm.chip.staged_l1_state import L1Memory
from ppt_gpu.sm.collectors.blocks import launch_blocks, leave_blocks, next_due, undecided
from ppt_gpu.sm.collectors.issue import fetch, schedule
from ppt_gpu.sm.collectors.l1 import l1_due, l1_step, next_request, take
from ppt_gpu.sm.collectors.l1_answers import part, put_answer
from ppt_gpu.sm.collectors.pipes import announce, collect, completion, memory_free, start_wakes, take_one
from ppt_gpu.sm.collectors.state import (
    ACCESS,
    BEHIND,
    DUE,
    ENDED,
    ENTRY,
    FIRST_TURN,
    IDLE,
    KIND,
    MOVED,
    OP,
    OP_WORDS,
    PIPE_WORDS,
    RECORDS,
    SCHEDULERS,
    TO_UNIT,
    WAITING_PAST,
    WARP,
    StagedState,
)
from ppt_gpu.sm.collectors.warps import REASONS, next_wake, wake
from ppt_gpu.sm.loop import memory as c
from ppt_gpu.sm.loop.l2_dram_share import l2_read, l2_write
from ppt_gpu.sm.loop.lsu import _round_trip
from ppt_gpu.sm.loop.memory import L1_PIPE
from ppt_gpu.sm.loop.run_end import DEADLOCK, DONE, OVER_BUDGET, PAUSED, result_of, unfinished
from ppt_gpu.sm.loop.skip import NOTHING_DUE, NOW, TRACK_WORDS
from ppt_gpu.sm.loop.tags import line_place, whole
from ppt_gpu.sm.program.machine import NEVER, ONE, Machine
from ppt_gpu.sm.program.program import KIND_ATOMIC, KIND_STORE, RECORDED, Program
from ppt_gpu.sm.program.result import SmResult
from ppt_gpu.sm.program.slot_rotation import turned_together


@called
def send(mem: Any, cycle: int) -> None:
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


@merged
def start(
    sizes: Any, warps: Any, slots: Any, owner: Any, ops: Any, pipes: Any, scheds: Any, gates: Any, records: Any,
    free_records: Any, units: Any, results: Any, writes: Any, wheel: Any, wants: Any, now: Any,
    op_stall: Any, waits: Any, entry_op: Any, entry_slot: Any, accesses: Any, tx: Any, mem: Any, cycle: int,
) -> None:  # fmt: skip
    """Units take what waits for them, and its warps learn when it is done."""
    left = now[WAITING_PAST]
    while left:
        pipe = ctz(left)
        left &= left - 1
        looks = int64(0)
        while pipes[pipe * PIPE_WORDS + BEHIND] > 0:
            at, looks = take_one(
                sizes, ops, pipes, gates, records, free_records, units, results, now,
                memory_free(mem, sizes[TO_UNIT]), pipe, looks, cycle,
            )  # fmt: skip
            if at < 0:
                break
            if mem[L1_PIPE] != 0 and ops[records[at + OP] * OP_WORDS + KIND] in RECORDED:
                take(
                    ops, entry_slot, accesses, tx, mem, records[at + OP], records[at + WARP], records[at + ENTRY],
                    records[at + ACCESS], cycle,
                )  # fmt: skip
                continue
            done = completion(
                ops, records[at + OP] * OP_WORDS, records[at + ACCESS], accesses, tx, mem, cycle - sizes[TO_UNIT]
            )
            announce(
                sizes, warps, slots, owner, ops, scheds, gates, writes, wheel, wants, now, op_stall, waits,
                entry_op, entry_slot, records[at + WARP], records[at + ENTRY], cycle, max(done, cycle), cycle,
            )  # fmt: skip


@cache
def make_staged(start_later: Any = None, memory_free_later: Any = None, send_later: Any = None) -> Any:
    """The loop, compiled. With the functions of `collectors.chip` and `collectors.chip_l1` that of an SM of a whole
    chip, from track[NOW] up to cycle `end`: what is below the L1 answers after the window, and blocks are dispatched to
    the chip.
    """
    ON_CHIP = start_later is not None

    def loop(
        waits: Any, entry_op: Any, entry_slot: Any, path_start: Any, warp_path: Any, warp_access: Any, block_warp: Any,
        accesses: Any, tx: Any, mem: Any,
        warps: Any, slots: Any, owner: Any, ops: Any, pipes: Any, order: Any, scheds: Any, keys: Any, gates: Any,
        collecting: Any, records: Any, free_records: Any, units: Any, results: Any, blocks: Any, writes: Any,
        wheel: Any, wants: Any, now: Any, op_stall: Any, block_start: Any, block_end: Any, sizes: Any,
        policy: int, width: int, steps: int, fetches: int, block_launch: int, warp_launch: int, together: int,
        max_cycles: int, track: Any, end: int,
    ) -> tuple[int, int]:  # fmt: skip
        total, cycle = len(block_start), int64(0)
        if ON_CHIP:
            cycle = track[NOW]
        waits, entry_op, entry_slot = pointer(waits), pointer(entry_op), pointer(entry_slot)
        path_start, warp_path, warp_access = pointer(path_start), pointer(warp_path), pointer(warp_access)
        block_warp, accesses, tx, mem = pointer(block_warp), pointer(accesses), pointer(tx), pointer(mem)
        warps, slots, owner, ops, pipes = pointer(warps), pointer(slots), pointer(owner), pointer(ops), pointer(pipes)
        order, scheds, keys, gates = pointer(order), pointer(scheds), pointer(keys), pointer(gates)
        collecting, records, free_records = pointer(collecting), pointer(records), pointer(free_records)
        units, results, blocks = pointer(units), pointer(results), pointer(blocks)
        writes, wheel = pointer(writes), pointer(wheel)
        wants, now, op_stall, sizes = pointer(wants), pointer(now), pointer(op_stall), pointer(sizes)
        block_start, block_end = pointer(block_start), pointer(block_end)
        k = sizes[SCHEDULERS]
        while not ON_CHIP or cycle < end:
            now[MOVED] = 0
            if cycle >= now[DUE]:
                leave_blocks(sizes, warps, blocks, now, op_stall, block_start, block_end, block_launch, cycle)
                if ON_CHIP and undecided(sizes, blocks, cycle):
                    break
                launch_blocks(
                    sizes, warps, slots, owner, ops, scheds, keys, gates, wheel, wants, blocks, now, op_stall, entry_op,
                    path_start, warp_path, warp_access, block_warp, block_start, policy, warp_launch, together,
                    total, ON_CHIP, cycle,
                )  # fmt: skip
                now[DUE] = next_due(sizes, warps, blocks, wants, now, total, ON_CHIP, cycle)
                if not ON_CHIP and now[ENDED] == total:
                    return DONE, cycle
            if cycle >= max_cycles:
                return OVER_BUDGET, cycle
            wake(sizes, warps, ops, scheds, gates, wheel, wants, now, entry_op, op_stall, cycle)
            if mem[L1_PIPE] != 0 and cycle >= mem[mem[L1_PIPE] + L1_DUE]:
                l1_step(
                    sizes, warps, slots, owner, ops, scheds, gates, writes, wheel, wants, now, op_stall, waits,
                    entry_op, entry_slot, tx, mem, cycle,
                )  # fmt: skip
                if ON_CHIP:
                    send_later(mem, cycle)
                else:
                    send(mem, cycle)
                l1_due(mem, cycle)
            if now[RECORDS] > 0:
                if ON_CHIP:
                    start_later(
                        sizes, warps, slots, owner, ops, pipes, scheds, gates, records, free_records, units, results,
                        writes, wheel, wants, now, op_stall, waits, entry_op, entry_slot, accesses, tx, mem,
                        cycle,
                    )  # fmt: skip
                else:
                    start(
                        sizes, warps, slots, owner, ops, pipes, scheds, gates, records, free_records, units, results,
                        writes, wheel, wants, now, op_stall, waits, entry_op, entry_slot, accesses, tx, mem,
                        cycle,
                    )  # fmt: skip
                for step in range(steps):
                    collect(
                        sizes, pipes, order, scheds, gates, collecting, records, ops, writes, now, cycle, step == 0
                    )  # fmt: skip
            scheduler = (cycle + now[FIRST_TURN]) % k
            for _turn in range(k):
                schedule(
                    sizes, warps, slots, owner, ops, pipes, scheds, keys, gates, records, free_records, blocks, wheel,
                    wants, now, op_stall, waits, entry_op, entry_slot, policy, width, scheduler, cycle,
                )  # fmt: skip
                scheduler = scheduler + 1 if scheduler + 1 < k else int64(0)
            for _fetch in range(fetches):
                fetch(sizes, warps, ops, scheds, gates, wheel, wants, blocks, now, op_stall, entry_op, mem, cycle)
            if now[MOVED] != 0:
                cycle += 1
                continue
            to_unit = sizes[TO_UNIT]
            memory = memory_free_later(mem, to_unit) if ON_CHIP else memory_free(mem, to_unit)
            last = cycle
            cycle = min(
                start_wakes(sizes, ops, pipes, gates, records, units, now, memory, cycle),
                now[DUE],
                next_wake(now, cycle),
            )
            if mem[L1_PIPE] != 0:
                cycle = max(min(cycle, mem[mem[L1_PIPE] + L1_DUE]), last + 1)
            if ON_CHIP:
                track[NOTHING_DUE] = int64(cycle >= NEVER)
            elif cycle >= NEVER:
                return DEADLOCK, cycle
        track[NOW] = min(cycle, end)
        return PAUSED, cycle

    return entry(loop)


def run_staged(program: Program, machine: Machine, resident: int, max_cycles: int) -> SmResult:
    """Simulate `program` on a machine with collector units; the same as `reference.run_reference`, fast."""
    per_block = int(np.diff(program.block_warp).max(initial=0))
    memory, state = L1Memory(program, machine), StagedState(program, machine, resident, per_block)
    with COMPILING:
        loop = make_staged()
    began = time.thread_time()
    status, cycle = loop(
        program.entry_wait, program.entry_op, program.entry_slot, program.path_start, program.warp_path,
        program.warp_access, program.block_warp, memory.access, memory.tx, memory.mem,
        state.warps, state.slots, state.owner, state.ops, state.pipes, state.order, state.scheds, state.keys,
        state.gates, state.collecting, state.records, state.free_records, state.units, state.results, state.blocks,
        state.writes, state.wheel, state.wants, state.now, state.op_stall, state.block_start, state.block_end,
        state.sizes, machine.policy, machine.width, machine.collector_steps, machine.fetches, machine.block_launch,
        machine.warp_launch, turned_together(machine, per_block), max_cycles, np.zeros(TRACK_WORDS, np.int64), NEVER,
    )  # fmt: skip
    seconds = time.thread_time() - began
    if status != DONE:
        raise unfinished(status, max_cycles)
    return result_of(
        program,
        machine,
        cycles=max(int(cycle), memory.idle()),
        block_start=state.block_start,
        block_end=state.block_end,
        op_stall=state.op_stall.reshape(-1, REASONS)[: len(program.op_name)],
        idle=int(state.now[IDLE]),
        counters=memory.counters(),
        seconds=seconds,
    )
