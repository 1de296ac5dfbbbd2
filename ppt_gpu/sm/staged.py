"""The compiled loop of an SM with collector units: `reference_staged.py`, cycle by cycle, bit for bit.

When an instruction issues nobody knows yet when it will start, so its warp cannot be put into a timing wheel as in
`core.py`: each cycle looks at every warp. Cycles in which nothing moves are passed over.
"""

from __future__ import annotations

import time
from functools import cache
from typing import Any

import numpy as np

from ppt_gpu.compiled import called, entry, merged
from ppt_gpu.sm.core_bits import fingerprint, int64, pointer
from ppt_gpu.sm.core_machine import FETCHED, GTO, LRR, NEVER, Machine
from ppt_gpu.sm.core_memory import MemoryArrays
from ppt_gpu.sm.core_raw import DEADLOCK, DONE, OVER_BUDGET, Raw
from ppt_gpu.sm.program import KIND_BARRIER, RECORDED, RESULT_AT, Program
from ppt_gpu.sm.result import STALL_REASONS
from ppt_gpu.sm.staged_blocks import launch_blocks, leave_blocks, release_barrier
from ppt_gpu.sm.staged_pipes import collect, next_until, start, start_wakes
from ppt_gpu.sm.staged_state import (
    ACCESS,
    AGE,
    AT_ACCESS,
    BEFORE,
    BLOCK,
    BLOCK_NUMBER,
    BLOCK_WORDS,
    BORN,
    BUFFER,
    CLASS,
    END,
    ENDED,
    ENTRY,
    FETCHED_LAST,
    FETCHING,
    FLYING,
    HELD,
    HELD_FOR,
    IDLE,
    ISSUED,
    KIND,
    LAST_OP,
    LATENCY,
    LAUNCH_AT,
    LEFT,
    MOVED,
    NEXT_AGE,
    NEXT_BLOCK,
    NUMBER,
    OP,
    OP_WORDS,
    OPERANDS,
    PC,
    PIPE,
    PIPE_WORDS,
    POS,
    READS,
    RECORD_WORDS,
    RECORDS,
    RESULTS,
    SLOTS,
    STAMP,
    STRAY,
    UNTIL,
    WARP,
    WARP_WORDS,
    StagedState,
)
from ppt_gpu.threads import COMPILING

(
    SELECTED, NOT_SELECTED, WAIT, MATH, LONG, SHORT, LG, MIO, BARRIER, BRANCH, NO_INSTRUCTION, _DISPATCH, DRAIN,
) = range(len(STALL_REASONS))  # fmt: skip
REASONS = len(STALL_REASONS)
_LG, _MIO = (1 << 3 | 1 << 4 | 1 << 5), (1 << 6 | 1 << 7)  # masks of kinds: load, store, atomic; shared, constant


@merged
def reason_of(warps: Any, ops: Any, entry_op: Any, me: int, taken: int, cycle: int) -> int:
    """Why the warp at `me`, which has not exited, does not issue; NOT_SELECTED if it may. `taken`: a mask of pipes."""
    if warps[me + HELD] > cycle:
        return int64(BARRIER)
    if warps[me + BUFFER] == 0:
        return int64(NO_INSTRUCTION)
    if warps[me + STRAY] != 0:
        return int64(BRANCH)
    if warps[me + UNTIL] >> 2 > cycle:
        kind = warps[me + UNTIL] & 3
        return int64(LONG if kind == 2 else (SHORT if kind == 1 else WAIT))
    op = entry_op[warps[me + POS]] * OP_WORDS
    if (taken >> ops[op + PIPE]) & 1:
        kind = int64(1) << ops[op + KIND]
        return int64(LG if kind & _LG else (MIO if kind & _MIO else MATH))
    return int64(NOT_SELECTED)


@merged
def charge(warps: Any, ops: Any, entry_op: Any, op_stall: Any, now: Any, me: int, taken: int, cycle: int,
           cycles: int) -> int:  # fmt: skip
    """Charge a warp with its reason for so many cycles; returns the reason."""
    if warps[me + POS] == warps[me + END]:
        if warps[me + LAST_OP] < 0:
            now[IDLE] += cycles
        else:
            op_stall[warps[me + LAST_OP] * REASONS + DRAIN] += cycles
        return int64(DRAIN)
    reason = reason_of(warps, ops, entry_op, me, taken, cycle)
    op_stall[entry_op[warps[me + POS]] * REASONS + reason] += cycles
    return reason


@merged
def in_banks(operands: int, place: int, banks: int) -> int:
    """As `core_machine.in_banks`."""
    found, bank = int64(0), place % banks
    while operands:
        found |= (operands & 15) << (bank * 4)
        operands >>= 4
        bank = bank + 1 if bank + 1 < banks else int64(0)
    return found


@called
def issue(
    sizes: Any, warps: Any, slots: Any, owner: Any, ops: Any, pipes: Any, before: Any, records: Any, free_records: Any,
    blocks: Any, now: Any, waits: Any, entry_op: Any, entry_slot: Any, scheduler: int, place: int, cycle: int,
) -> None:  # fmt: skip
    """The warp in slot `place` issues its next entry."""
    me, entry = place * WARP_WORDS, warps[place * WARP_WORDS + POS]
    operation, slot = int64(entry_op[entry]), int64(entry_slot[entry])
    op = operation * OP_WORDS
    kind, pipe = ops[op + KIND], ops[op + PIPE]
    number = free_records[len(free_records) - 1 - now[RECORDS]]
    now[RECORDS] += 1
    at = number * RECORD_WORDS
    records[at + WARP], records[at + ENTRY], records[at + OP] = place, entry, operation
    records[at + ACCESS], records[at + AGE] = warps[me + AT_ACCESS], now[NEXT_AGE]
    operands = ops[op + OPERANDS] & ((int64(1) << RESULT_AT) - 1)
    records[at + READS], records[at + ISSUED] = in_banks(operands, place, sizes[7]), cycle
    now[NEXT_AGE] += 1
    before[scheduler * sizes[1] + pipe] = number + 1
    pipes[pipe * PIPE_WORDS + BEFORE] += 1
    this = (warps[me + BLOCK] - 1) * BLOCK_WORDS
    blocks[this + FLYING] += 1
    blocks[this + RESULTS] = max(blocks[this + RESULTS], cycle + 1)
    warps[me + BUFFER] -= 1
    warps[me + AT_ACCESS] += int64(kind >= RECORDED[0] and kind <= RECORDED[3])
    warps[me + POS] = entry + 1
    warps[me + LAST_OP] = operation
    warps[me + HELD_FOR] = 0
    warps[me + STAMP] = cycle
    if slot >= 0:
        slots[place * SLOTS + slot] = int64(NEVER) << 2 | ops[op + CLASS]
        owner[place * SLOTS + slot] = entry
    next_until(warps, slots, waits, place)
    exited = entry + 1 == warps[me + END]
    if exited:
        blocks[this + LEFT] -= 1
    else:
        jump = ops[entry_op[entry + 1] * OP_WORDS + PC] - ops[op + PC]
        if jump != 0 and jump != 1:
            warps[me + STRAY] = 1
        if kind == KIND_BARRIER:
            warps[me + HELD_FOR] = max(ops[op + LATENCY], 1)
            warps[me + HELD] = NEVER
    if exited or kind == KIND_BARRIER:
        release_barrier(sizes, warps, blocks, this, cycle)


@called
def schedule(
    sizes: Any, warps: Any, slots: Any, owner: Any, ops: Any, pipes: Any, before: Any, records: Any, free_records: Any,
    blocks: Any, now: Any, last: Any, greedy: Any, op_stall: Any, waits: Any, entry_op: Any, entry_slot: Any,
    policy: int, width: int, scheduler: int, cycle: int,
) -> None:  # fmt: skip
    """A scheduler's turn: it looks at its warps in the order of its policy until one issues."""
    k, places = sizes[0], sizes[4]
    taken = taken_before(sizes, before, scheduler)
    rows = (places - scheduler + k - 1) // k
    at = (last[scheduler] // k + 1) if last[scheduler] >= 0 else int64(0)
    chosen, looked = int64(-1), int64(0)
    for turn in range(rows):
        if policy == LRR:
            row = at + turn - (rows if at + turn >= rows else 0)
        else:
            row = next_row(k, rows, warps, greedy[scheduler], policy, scheduler, looked)
            if row < 0:
                break
            looked |= int64(1) << row
        place = row * k + scheduler
        me = place * WARP_WORDS
        if warps[me + BLOCK] == 0:
            continue
        if chosen < 0 and warps[me + POS] < warps[me + END]:
            reason = reason_of(warps, ops, entry_op, me, taken, cycle)
            if reason == NOT_SELECTED:
                chosen = place
                op_stall[entry_op[warps[me + POS]] * REASONS + SELECTED] += 1
                continue
            op_stall[entry_op[warps[me + POS]] * REASONS + reason] += 1
            if reason == BRANCH:
                warps[me + STRAY] = 0
                warps[me + BUFFER] = 0
                now[MOVED] = 1
            continue
        charge(warps, ops, entry_op, op_stall, now, me, taken, cycle, int64(1))
    if chosen < 0:
        return
    now[MOVED] = 1
    me = chosen * WARP_WORDS
    for more in range(width):
        if more > 0 and not goes_on(sizes, warps, ops, before, entry_op, now, scheduler, me, cycle):
            break
        issue(
            sizes, warps, slots, owner, ops, pipes, before, records, free_records, blocks, now, waits, entry_op,
            entry_slot, scheduler, chosen, cycle,
        )  # fmt: skip
    last[scheduler] = chosen
    greedy[scheduler] = chosen if warps[me + POS] < warps[me + END] else int64(-1)


@merged
def taken_before(sizes: Any, before: Any, scheduler: int) -> int:
    """Mask of the pipes whose place before the collectors is taken."""
    taken = int64(0)
    for pipe in range(sizes[1]):
        taken |= int64(before[scheduler * sizes[1] + pipe] != 0) << pipe
    return taken


@called
def goes_on(
    sizes: Any, warps: Any, ops: Any, before: Any, entry_op: Any, now: Any, scheduler: int, me: int, cycle: int
) -> bool:
    """Whether a warp that has issued may issue another entry in the same cycle."""
    if warps[me + POS] == warps[me + END]:
        return False
    reason = reason_of(warps, ops, entry_op, me, taken_before(sizes, before, scheduler), cycle)
    if reason == BRANCH:
        warps[me + STRAY] = 0
        warps[me + BUFFER] = 0
    return reason == NOT_SELECTED


@called
def next_row(k: int, rows: int, warps: Any, greedy: int, policy: int, scheduler: int, looked: int) -> int:
    """Greedy policies: the row that comes after those that have been looked at, -1: none."""
    best, least = int64(-1), int64(NEVER)
    for row in range(rows):
        me = (row * k + scheduler) * WARP_WORDS
        if warps[me + BLOCK] == 0 or (looked >> row) & 1:
            continue
        key = warps[me + STAMP] if policy == GTO else warps[me + NUMBER]
        if row * k + scheduler == greedy:
            key = int64(-1)
        if key < least:
            best, least = int64(row), key
    return best


@called
def fetch(sizes: Any, warps: Any, now: Any, cycle: int) -> None:
    """What was fetched goes to its warp; the next warp in turn whose buffer is empty."""
    if now[FETCHING] >= 0:
        warps[now[FETCHING] * WARP_WORDS + BUFFER] = FETCHED
        now[FETCHING] = -1
        now[MOVED] = 1
    places = sizes[4]
    place = now[FETCHED_LAST]
    for _ in range(places):
        place = place + 1 if place + 1 < places else int64(0)
        me = place * WARP_WORDS
        wants = warps[me + BUFFER] == 0 and warps[me + BLOCK] != 0 and warps[me + POS] < warps[me + END]
        if wants and warps[me + BORN] <= cycle:
            now[FETCHING] = place
            now[FETCHED_LAST] = place
            now[MOVED] = 1
            return


@called
def pass_over(
    sizes: Any, warps: Any, ops: Any, before: Any, blocks: Any, now: Any, op_stall: Any, entry_op: Any, soonest: int,
    total: int, cycle: int,
) -> int:  # fmt: skip
    """Nothing has moved: the next cycle in which something may; until then every warp is charged as in this one."""
    then = soonest
    for index in range(sizes[6]):
        this = index * BLOCK_WORDS
        if blocks[this + BLOCK_NUMBER] < 0:
            if now[NEXT_BLOCK] < total:
                then = min(then, blocks[this + LAUNCH_AT])
        elif blocks[this + LEFT] == 0 and blocks[this + FLYING] == 0:
            then = min(then, max(blocks[this + RESULTS], cycle + 1))
    for place in range(sizes[4]):
        me = place * WARP_WORDS
        if warps[me + BLOCK] != 0 and warps[me + POS] < warps[me + END]:
            for time in (warps[me + UNTIL] >> 2, warps[me + HELD], warps[me + BORN]):
                if time > cycle:
                    then = min(then, time)
    if then >= NEVER:
        return int64(NEVER)
    if then > cycle + 1:
        for scheduler in range(sizes[0]):
            taken = taken_before(sizes, before, scheduler)
            for place in range(scheduler, sizes[4], sizes[0]):
                if warps[place * WARP_WORDS + BLOCK] != 0:
                    charge(
                        warps, ops, entry_op, op_stall, now, place * WARP_WORDS, taken, cycle, then - cycle - 1
                    )  # fmt: skip
    return max(then, cycle + 1)


@cache
def make_staged() -> Any:
    """The loop, compiled."""
    SOURCES = fingerprint(names="core*.py") + fingerprint(names="staged*.py")

    def loop(
        waits: Any, entry_op: Any, entry_slot: Any, path_start: Any, warp_path: Any, warp_access: Any, block_warp: Any,
        accesses: Any, tx: Any, mem: Any,
        warps: Any, slots: Any, owner: Any, ops: Any, pipes: Any, order: Any, before: Any, behind: Any, collecting: Any,
        records: Any, free_records: Any, units: Any, blocks: Any, writes: Any, last: Any, greedy: Any, now: Any,
        op_stall: Any, block_start: Any, block_end: Any, sizes: Any,
        policy: int, width: int, steps: int, fetches: int, block_launch: int, warp_launch: int, max_cycles: int,
    ) -> tuple[int, int]:  # fmt: skip
        _ = SOURCES
        accesses, tx, mem = pointer(accesses), pointer(tx), pointer(mem)
        total, cycle, k = len(block_start), int64(0), sizes[0]
        while True:
            now[MOVED] = 0
            leave_blocks(sizes, warps, blocks, now, block_start, block_end, block_launch, cycle)
            launch_blocks(
                sizes, warps, slots, owner, blocks, now, waits, path_start, warp_path, warp_access, block_warp,
                block_start, warp_launch, total, cycle,
            )  # fmt: skip
            if now[ENDED] == total:
                return DONE, cycle
            if cycle >= max_cycles:
                return OVER_BUDGET, cycle
            if now[RECORDS] > 0:
                start(
                    sizes, warps, slots, owner, ops, pipes, behind, records, free_records, units, blocks, writes, now,
                    waits, entry_slot, accesses, tx, mem, cycle,
                )  # fmt: skip
                for step in range(steps):
                    collect(
                        sizes, pipes, order, before, behind, collecting, records, ops, writes, now, cycle, step == 0
                    )  # fmt: skip
            for turn in range(k):
                schedule(
                    sizes, warps, slots, owner, ops, pipes, before, records, free_records, blocks, now, last, greedy,
                    op_stall, waits, entry_op, entry_slot, policy, width, (cycle + turn) % k, cycle,
                )  # fmt: skip
            for _fetch in range(fetches):
                fetch(sizes, warps, now, cycle)
            if now[MOVED] != 0:
                cycle += 1
                continue
            soonest = start_wakes(sizes, ops, pipes, behind, records, units, mem, cycle)
            cycle = pass_over(
                sizes, warps, ops, before, blocks, now, op_stall, entry_op, soonest, total, cycle
            )  # fmt: skip
            if cycle >= NEVER:
                return DEADLOCK, cycle

    return entry(loop)


def run_staged(program: Program, machine: Machine, resident: int, max_cycles: int) -> Raw:
    """Simulate `program` on a machine with collector units; the same as `reference.run_reference`, fast."""
    per_block = int(np.diff(program.block_warp).max(initial=0))
    memory, state = MemoryArrays(program, machine), StagedState(program, machine, resident, per_block)
    with COMPILING:
        loop = make_staged()
    began = time.thread_time()
    status, cycle = loop(
        program.entry_wait, program.entry_op, program.entry_slot, program.path_start, program.warp_path,
        program.warp_access, program.block_warp, memory.access, memory.tx, memory.mem,
        state.warps, state.slots, state.owner, state.ops, state.pipes, state.order, state.before, state.behind,
        state.collecting, state.records, state.free_records, state.units, state.blocks, state.writes, state.last,
        state.greedy, state.now, state.op_stall, state.block_start, state.block_end, state.sizes,
        machine.policy, machine.width, machine.collector_steps, machine.fetches, machine.block_launch,
        machine.warp_launch, max_cycles,
    )  # fmt: skip
    seconds = time.thread_time() - began
    if status != DONE:
        return Raw.failed(status, program)
    return Raw.done(
        cycles=max(int(cycle), memory.idle()),
        block_start=state.block_start,
        block_end=state.block_end,
        op_stall=state.op_stall.reshape(-1, REASONS)[: len(program.op_name)],
        idle=int(state.now[IDLE]),
        counters=memory.counters(),
        seconds=seconds,
    )
