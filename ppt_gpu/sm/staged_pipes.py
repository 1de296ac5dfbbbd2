"""From the collector units to the units, in the compiled loop: as `_start` and `_collect` of `reference_staged.py`."""

from __future__ import annotations

from typing import Any

from ppt_gpu.compiled import called, merged
from ppt_gpu.sm.core_bits import ctz, int64
from ppt_gpu.sm.core_code import constant
from ppt_gpu.sm.core_lsu import issue_global, issue_shared
from ppt_gpu.sm.core_machine import LATE_RESULT, NEVER, TO_UNIT
from ppt_gpu.sm.core_memory import CYCLES_AT, CYCLES_MASK, FIRST_MASK, LSU
from ppt_gpu.sm.core_tags import whole
from ppt_gpu.sm.program import KIND_CONSTANT, KIND_LOAD, KIND_SHARED, RESULT_AT
from ppt_gpu.sm.staged_state import (
    AGE,
    AHEAD,
    BANKS,
    BEFORE,
    BEHIND,
    BLOCK,
    BLOCK_WORDS,
    BLOCKED,
    COLLECTORS,
    COMPLETE,
    DUE,
    FLYING,
    FROM,
    GATE_WORDS,
    HOLDING,
    II,
    KIND,
    LATENCY,
    LEFT,
    MOST_UNITS,
    MOVED,
    NEED,
    OP,
    OP_WORDS,
    OPEN,
    OPERANDS,
    PAST,
    PIPE,
    PIPE_WORDS,
    PIPES,
    READS,
    RECORD_WORDS,
    RECORDS,
    RESULTS,
    SCHED,
    SCHED_WORDS,
    SCHEDULERS,
    SHARED,
    SLOTS,
    STAGED,
    TAKEN,
    TAKEN_IN,
    TURN,
    UNITS,
    USES_L1,
    WAITING_AHEAD,
    WAITING_PAST,
    WARP_WORDS,
)
from ppt_gpu.sm.staged_warps import look_at, wait_until


@merged
def first_unit(sizes: Any, units: Any, shared: int, count: int, pipe: int, scheduler: int) -> int:
    """Where in `units` the unit stands that is free first."""
    first = (pipe * sizes[SCHEDULERS] + (int64(0) if shared else scheduler)) * sizes[MOST_UNITS]
    best = first
    for unit in range(first + 1, first + count):
        if units[unit] < units[best]:
            best = unit
    return best


@merged
def memory_free(mem: Any) -> int:
    """The cycle from which the load/store unit takes an instruction."""
    return whole(mem[LSU]) + TO_UNIT


@merged
def free_from(units: Any, memory: int, kind: int, unit: int) -> int:
    """The cycle from which an instruction of this kind can start there. `memory`: the load/store unit is free then."""
    free = units[unit]
    if kind >= KIND_LOAD:
        free = max(free, memory)
    return free


@merged
def next_to_start(
    sizes: Any, ops: Any, pipes: Any, gates: Any, records: Any, units: Any, memory: int, pipe: int, cycle: int
) -> int:
    """The scheduler whose instruction starts next, the oldest that can; where all share the units only the oldest."""
    shared, count = pipes[pipe * PIPE_WORDS + SHARED], pipes[pipe * PIPE_WORDS + UNITS]
    best, least = int64(-1), int64(NEVER)
    for scheduler in range(sizes[SCHEDULERS]):
        held = gates[(scheduler * sizes[PIPES] + pipe) * GATE_WORDS + PAST]
        if held != 0:
            age, kind = records[(held - 1) * RECORD_WORDS + AGE], kind_of(records, ops, held)
            unit = first_unit(sizes, units, shared, count, pipe, scheduler)
            can = free_from(units, memory, kind, unit) <= cycle
            if age < least and (can or shared != 0):
                best, least = int64(scheduler if can else -1), age
    return best


@merged
def kind_of(records: Any, ops: Any, held: int) -> int:
    """The kind of the operation of a record, given its number + 1."""
    return ops[records[(held - 1) * RECORD_WORDS + OP] * OP_WORDS + KIND]


@merged
def take_one(
    sizes: Any, ops: Any, pipes: Any, gates: Any, records: Any, free_records: Any, units: Any, now: Any, memory: int,
    pipe: int, cycle: int,
) -> int:  # fmt: skip
    """A unit of the pipe takes what waits for it: its record (kept until another issues), -1 if none can."""
    scheduler = next_to_start(sizes, ops, pipes, gates, records, units, memory, pipe, cycle)
    if scheduler < 0:
        return int64(-1)
    gate = (scheduler * sizes[PIPES] + pipe) * GATE_WORDS
    held = gates[gate + PAST]
    at = (held - 1) * RECORD_WORDS
    shared, count = pipes[pipe * PIPE_WORDS + SHARED], pipes[pipe * PIPE_WORDS + UNITS]
    units[first_unit(sizes, units, shared, count, pipe, scheduler)] = cycle + ops[records[at + OP] * OP_WORDS + II]
    gates[gate + PAST] = 0
    pipes[pipe * PIPE_WORDS + BEHIND] -= 1
    if pipes[pipe * PIPE_WORDS + BEHIND] == 0:
        now[WAITING_PAST] &= ~(int64(1) << pipe)
    now[RECORDS] -= 1
    free_records[sizes[STAGED] - 1 - now[RECORDS]] = held - 1
    now[MOVED] = 1
    return at


@merged
def announce(
    sizes: Any, warps: Any, slots: Any, owner: Any, ops: Any, scheds: Any, gates: Any, blocks: Any, writes: Any,
    wheel: Any, wants: Any, now: Any, op_stall: Any, waits: Any, entry_op: Any, entry_slot: Any, place: int, entry: int,
    began: int, done: int, cycle: int, leaves: int,
) -> None:  # fmt: skip
    """In `cycle` it becomes known that the result of what the warp in slot `place` issued as `entry`, and started in
    cycle `began`, is there at `done`. From cycle `leaves` on its block may leave."""
    me, op = place * WARP_WORDS, int64(entry_op[entry]) * OP_WORDS
    bank = ops[op + OPERANDS] >> RESULT_AT
    if bank != 0 and done - began < LATE_RESULT:
        bank = (bank - 1 + place) % sizes[BANKS]
        row = (done & (LATE_RESULT - 1)) * sizes[SCHEDULERS] + warps[me + SCHED]
        before = writes[row] & 255 if writes[row] >> 8 == done else int64(0)
        writes[row] = done << 8 | before | int64(1) << bank
    this = (warps[me + BLOCK] - 1) * BLOCK_WORDS
    blocks[this + FLYING] -= 1
    blocks[this + RESULTS] = max(blocks[this + RESULTS], done)
    if blocks[this + FLYING] == 0 and blocks[this + LEFT] == 0:
        now[DUE] = min(now[DUE], max(blocks[this + RESULTS], leaves))
    tell_waiting(
        sizes, warps, slots, owner, ops, scheds, gates, wheel, wants, now, op_stall, waits, entry_op, entry_slot, place,
        entry, done, cycle,
    )  # fmt: skip


@merged
def tell_waiting(
    sizes: Any, warps: Any, slots: Any, owner: Any, ops: Any, scheds: Any, gates: Any, wheel: Any, wants: Any, now: Any,
    op_stall: Any, waits: Any, entry_op: Any, entry_slot: Any, place: int, entry: int, done: int, cycle: int,
) -> None:  # fmt: skip
    """The scoreboard, where no later entry announces in the same slot, and with it the warp, if it waits for that."""
    slot = int64(entry_slot[entry])
    if slot >= 0 and owner[place * SLOTS + slot] == entry:
        slots[place * SLOTS + slot] = done << 2 | (slots[place * SLOTS + slot] & 3)
        if wait_until(warps, slots, waits, entry_op, op_stall, place, cycle):
            look_at(sizes, warps, ops, scheds, gates, wheel, wants, now, entry_op, op_stall, place, cycle)


@called
def completion(ops: Any, op: int, access: int, accesses: Any, tx: Any, mem: Any, cycle: int) -> int:
    """When an instruction that starts in `cycle` is done."""
    kind = ops[op + KIND]
    if kind < KIND_LOAD:
        return cycle - TO_UNIT + ops[op + LATENCY]
    if kind == KIND_CONSTANT:
        return constant(mem, cycle - TO_UNIT)[0]
    if kind == KIND_SHARED:
        return issue_shared(mem, cycle - TO_UNIT, (accesses[access] >> CYCLES_AT) & CYCLES_MASK)[0]
    last = accesses[access + 1] & FIRST_MASK
    return issue_global(kind, ops[op + USES_L1], cycle - TO_UNIT, accesses[access], last, tx, mem)[0]


@merged
def collect(
    sizes: Any, pipes: Any, order: Any, scheds: Any, gates: Any, collecting: Any, records: Any, ops: Any, writes: Any,
    now: Any, cycle: int, first: bool,
) -> None:  # fmt: skip
    """A step: units whose operands are there hand over, the others read, free ones take in."""
    k = sizes[SCHEDULERS]
    for scheduler in range(k):
        sched = scheduler * SCHED_WORDS
        if scheds[sched + HOLDING] == 0:
            continue
        if scheds[sched + COMPLETE] != 0:
            hand_over(sizes, pipes, scheds, gates, collecting, records, ops, now, scheduler)
        if scheds[sched + HOLDING] & ~scheds[sched + COMPLETE] != 0:
            row = (cycle & (LATE_RESULT - 1)) * k + scheduler
            written = writes[row] & 255 if first and writes[row] >> 8 == cycle else int64(0)
            read(sizes, scheds, collecting, records, now, scheduler, written)
    wanted = now[WAITING_AHEAD]
    for _ in range(k):
        left = wanted
        if left == 0:
            break
        while left:
            turn = ctz(left)
            left &= left - 1
            if not take_in(sizes, pipes, scheds, gates, collecting, records, now, order[turn], cycle):
                wanted &= ~(int64(1) << turn)
        wanted &= now[WAITING_AHEAD]


@called
def hand_over(
    sizes: Any, pipes: Any, scheds: Any, gates: Any, collecting: Any, records: Any, ops: Any, now: Any, scheduler: int
) -> None:
    """Units of a scheduler whose operands are there hand over, where the place behind is empty."""
    sched = scheduler * SCHED_WORDS
    left = scheds[sched + COMPLETE]
    while left:
        bit = left & -left
        number = scheduler * sizes[COLLECTORS] + ctz(left)
        left ^= bit
        held = collecting[number]
        pipe = ops[records[(held - 1) * RECORD_WORDS + OP] * OP_WORDS + PIPE]
        gate = (scheduler * sizes[PIPES] + pipe) * GATE_WORDS
        if gates[gate + PAST] == 0:
            gates[gate + PAST] = held
            collecting[number] = 0
            scheds[sched + COMPLETE] ^= bit
            scheds[sched + HOLDING] ^= bit
            pipes[pipe * PIPE_WORDS + BEHIND] += 1
            now[WAITING_PAST] |= int64(1) << pipe
            now[MOVED] = 1


@called
def read(sizes: Any, scheds: Any, collecting: Any, records: Any, now: Any, scheduler: int, written: int) -> None:
    """Each bank of a scheduler's registers that is not written is read for the instruction that waited longest."""
    first, sched = scheduler * sizes[COLLECTORS], scheduler * SCHED_WORDS
    reading = scheds[sched + HOLDING] & ~scheds[sched + COMPLETE]
    wanted, left = int64(0), reading
    while left:
        wanted |= records[(collecting[first + ctz(left)] - 1) * RECORD_WORDS + READS]
        left &= left - 1
    bank = int64(0)
    now[MOVED] = 1  # what a write keeps from being read now is read in the next step
    while wanted:
        if wanted & 15 and (written >> (bank >> 2)) & 1 == 0:
            best, least, unit, left = int64(-1), int64(NEVER), int64(0), reading
            while left:
                number = ctz(left)
                left &= left - 1
                at = (collecting[first + number] - 1) * RECORD_WORDS
                if (records[at + READS] >> bank) & 15 and records[at + TAKEN] < least:
                    best, least, unit = at, records[at + TAKEN], number
            records[best + READS] -= int64(1) << bank
            if records[best + READS] == 0:
                scheds[sched + COMPLETE] |= int64(1) << unit
        wanted >>= 4
        bank += 4


@merged
def take_in(
    sizes: Any, pipes: Any, scheds: Any, gates: Any, collecting: Any, records: Any, now: Any, pipe: int, cycle: int
) -> bool:
    """The oldest of all schedulers goes to the first free unit of its own; while it has none the others wait."""
    best, least = int64(0), int64(NEVER)
    for scheduler in range(sizes[SCHEDULERS]):
        held = gates[(scheduler * sizes[PIPES] + pipe) * GATE_WORDS + AHEAD]
        if held != 0 and records[(held - 1) * RECORD_WORDS + AGE] < least:
            best, least = int64(scheduler), records[(held - 1) * RECORD_WORDS + AGE]
    sched, gate = best * SCHED_WORDS, (best * sizes[PIPES] + pipe) * GATE_WORDS
    free = ~scheds[sched + HOLDING]
    unit = ctz(free)
    if unit >= sizes[COLLECTORS]:
        return False
    held = gates[gate + AHEAD]
    collecting[best * sizes[COLLECTORS] + unit] = held
    scheds[sched + HOLDING] |= int64(1) << unit
    scheds[sched + COMPLETE] |= int64(records[(held - 1) * RECORD_WORDS + READS] == 0) << unit
    now[TAKEN_IN] += 1
    records[(held - 1) * RECORD_WORDS + TAKEN] = now[TAKEN_IN]
    gates[gate + AHEAD] = 0
    gates[gate + BLOCKED] += cycle - gates[gate + FROM]
    scheds[sched + OPEN] |= gates[gate + NEED]
    pipes[pipe * PIPE_WORDS + BEFORE] -= 1
    if pipes[pipe * PIPE_WORDS + BEFORE] == 0:
        now[WAITING_AHEAD] &= ~(int64(1) << pipes[pipe * PIPE_WORDS + TURN])
    now[MOVED] = 1
    return True


@called
def start_wakes(
    sizes: Any, ops: Any, pipes: Any, gates: Any, records: Any, units: Any, now: Any, memory: int, cycle: int
) -> int:
    """Nothing has moved: the next cycle in which a unit is free for what waits for it."""
    then, left = int64(NEVER), now[WAITING_PAST]
    while left:
        pipe = ctz(left)
        left &= left - 1
        shared, count = pipes[pipe * PIPE_WORDS + SHARED], pipes[pipe * PIPE_WORDS + UNITS]
        for scheduler in range(sizes[SCHEDULERS]):
            held = gates[(scheduler * sizes[PIPES] + pipe) * GATE_WORDS + PAST]
            if held != 0:
                unit = first_unit(sizes, units, shared, count, pipe, scheduler)
                then = min(then, max(free_from(units, memory, kind_of(records, ops, held), unit), cycle + 1))
    return then
