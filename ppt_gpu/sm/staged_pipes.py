"""From the collector units to the units, in the compiled loop: as `_start` and `_collect` of `reference_staged.py`."""

from __future__ import annotations

from typing import Any

from ppt_gpu.compiled import called, merged
from ppt_gpu.sm.core_bits import ctz, int64
from ppt_gpu.sm.core_code import constant
from ppt_gpu.sm.core_lsu import issue_global, issue_shared
from ppt_gpu.sm.core_machine import NEVER, TO_MEMORY, TO_UNIT
from ppt_gpu.sm.core_memory import CYCLES_AT, CYCLES_MASK, FIRST_MASK, LSU
from ppt_gpu.sm.core_tags import whole
from ppt_gpu.sm.program import KIND_CONSTANT, KIND_LOAD, KIND_SHARED, RESULT_AT
from ppt_gpu.sm.staged_state import (
    ACCESS,
    AGE,
    BEFORE,
    BEHIND,
    BLOCK,
    BLOCK_WORDS,
    END,
    ENTRY,
    FLYING,
    II,
    KIND,
    LATENCY,
    MOVED,
    OP,
    OP_WORDS,
    OPERANDS,
    PIPE,
    PIPE_WORDS,
    POS,
    READS,
    RECORD_WORDS,
    RECORDS,
    RESULTS,
    SHARED,
    SLOTS,
    TAKEN,
    TAKEN_IN,
    UNITS,
    UNTIL,
    USES_L1,
    WARP,
    WARP_WORDS,
    WRITES,
)


@merged
def first_unit(sizes: Any, units: Any, shared: int, count: int, pipe: int, scheduler: int) -> int:
    """Where in `units` the unit stands that is free first."""
    first = (pipe * sizes[0] + (int64(0) if shared else scheduler)) * sizes[3]
    best = first
    for unit in range(first + 1, first + count):
        if units[unit] < units[best]:
            best = unit
    return best


@merged
def free_from(units: Any, mem: Any, kind: int, unit: int) -> int:
    """The cycle from which an instruction of this kind can start there."""
    free = units[unit]
    if kind >= KIND_LOAD:
        free = max(free, whole(mem[LSU]) + TO_MEMORY)
    return free


@merged
def next_to_start(
    sizes: Any, ops: Any, pipes: Any, behind: Any, records: Any, units: Any, mem: Any, pipe: int, cycle: int
) -> int:
    """The scheduler whose instruction starts next, the oldest that can; where all share the units only the oldest."""
    shared, count = pipes[pipe * PIPE_WORDS + SHARED], pipes[pipe * PIPE_WORDS + UNITS]
    best, least = int64(-1), int64(NEVER)
    for scheduler in range(sizes[0]):
        held = behind[scheduler * sizes[1] + pipe]
        if held != 0:
            age, kind = records[(held - 1) * RECORD_WORDS + AGE], kind_of(records, ops, held)
            unit = first_unit(sizes, units, shared, count, pipe, scheduler)
            can = free_from(units, mem, kind, unit) <= cycle
            if age < least and (can or shared != 0):
                best, least = int64(scheduler if can else -1), age
    return best


@merged
def kind_of(records: Any, ops: Any, held: int) -> int:
    """The kind of the operation of a record, given its number + 1."""
    return ops[records[(held - 1) * RECORD_WORDS + OP] * OP_WORDS + KIND]


@called
def start(
    sizes: Any, warps: Any, slots: Any, owner: Any, ops: Any, pipes: Any, behind: Any, records: Any, free_records: Any,
    units: Any, blocks: Any, writes: Any, now: Any, waits: Any, entry_slot: Any, accesses: Any, tx: Any, mem: Any,
    cycle: int,
) -> None:  # fmt: skip
    """Units take what waits for them."""
    for pipe in range(sizes[1]):
        while pipes[pipe * PIPE_WORDS + BEHIND] > 0:
            scheduler = next_to_start(sizes, ops, pipes, behind, records, units, mem, pipe, cycle)
            if scheduler < 0:
                break
            held = behind[scheduler * sizes[1] + pipe]
            at = (held - 1) * RECORD_WORDS
            op = records[at + OP] * OP_WORDS
            shared, count = pipes[pipe * PIPE_WORDS + SHARED], pipes[pipe * PIPE_WORDS + UNITS]
            units[first_unit(sizes, units, shared, count, pipe, scheduler)] = cycle + ops[op + II]
            done = max(completion(ops, op, records[at + ACCESS], accesses, tx, mem, cycle), cycle)
            bank = ops[op + OPERANDS] >> RESULT_AT
            if bank != 0 and done - cycle < WRITES:
                bank = (bank - 1 + records[at + WARP]) % sizes[7]
                row = done % WRITES * sizes[0] + scheduler
                before = writes[row] & 255 if writes[row] >> 8 == done else int64(0)
                writes[row] = done << 8 | before | int64(1) << bank
            announce(warps, slots, owner, blocks, waits, entry_slot, records, at, done)
            behind[scheduler * sizes[1] + pipe] = 0
            pipes[pipe * PIPE_WORDS + BEHIND] -= 1
            now[RECORDS] -= 1
            free_records[len(free_records) - 1 - now[RECORDS]] = held - 1
            now[MOVED] = 1


@called
def completion(ops: Any, op: int, access: int, accesses: Any, tx: Any, mem: Any, cycle: int) -> int:
    """When an instruction that starts in `cycle` is done."""
    kind = ops[op + KIND]
    if kind < KIND_LOAD:
        return cycle - TO_UNIT + ops[op + LATENCY]
    if kind == KIND_CONSTANT:
        return constant(mem, cycle - TO_MEMORY)[0]
    if kind == KIND_SHARED:
        return issue_shared(mem, cycle - TO_MEMORY, (accesses[access] >> CYCLES_AT) & CYCLES_MASK)[0]
    last = accesses[access + 1] & FIRST_MASK
    return issue_global(kind, ops[op + USES_L1], cycle - TO_MEMORY, accesses[access], last, tx, mem)[0]


@merged
def announce(
    warps: Any, slots: Any, owner: Any, blocks: Any, waits: Any, entry_slot: Any, records: Any, at: int, done: int
) -> None:
    """It is known when the instruction of the record at `at` is done."""
    place, entry = records[at + WARP], records[at + ENTRY]
    me, slot = place * WARP_WORDS, int64(entry_slot[entry])
    this = (warps[me + BLOCK] - 1) * BLOCK_WORDS
    blocks[this + FLYING] -= 1
    blocks[this + RESULTS] = max(blocks[this + RESULTS], done)
    if slot >= 0 and owner[place * SLOTS + slot] == entry:
        slots[place * SLOTS + slot] = done << 2 | (slots[place * SLOTS + slot] & 3)
        next_until(warps, slots, waits, place)


@merged
def next_until(warps: Any, slots: Any, waits: Any, place: int) -> None:
    """UNTIL of the warp's next entry."""
    me = place * WARP_WORDS
    until = int64(0)
    if warps[me + POS] < warps[me + END]:
        left = int64(waits[warps[me + POS]])
        while left:
            until = max(until, slots[place * SLOTS + ctz(left)])
            left &= left - 1
    warps[me + UNTIL] = until


@called
def collect(
    sizes: Any, pipes: Any, order: Any, before: Any, behind: Any, collecting: Any, records: Any, ops: Any, writes: Any,
    now: Any, cycle: int, first: bool,
) -> None:  # fmt: skip
    """A step: units whose operands are there hand over, the others read, free ones take in."""
    for number in range(sizes[0] * sizes[2]):
        held = collecting[number]
        if held == 0 or records[(held - 1) * RECORD_WORDS + READS] != 0:
            continue
        pipe = ops[records[(held - 1) * RECORD_WORDS + OP] * OP_WORDS + PIPE]
        place = number // sizes[2] * sizes[1] + pipe
        if behind[place] == 0:
            behind[place] = held
            collecting[number] = 0
            pipes[pipe * PIPE_WORDS + BEHIND] += 1
            now[MOVED] = 1
    for scheduler in range(sizes[0]):
        row = cycle % WRITES * sizes[0] + scheduler
        written = writes[row] & 255 if first and writes[row] >> 8 == cycle else int64(0)
        read(sizes, collecting, records, now, scheduler, written)
    for _ in range(sizes[0]):
        for index in range(sizes[1]):
            if pipes[order[index] * PIPE_WORDS + BEFORE] > 0:
                take_in(sizes, pipes, before, collecting, records, now, order[index])


@called
def read(sizes: Any, collecting: Any, records: Any, now: Any, scheduler: int, written: int) -> None:
    """Each bank of a scheduler's registers that is not written is read for the instruction that waited longest."""
    wanted, first = int64(0), scheduler * sizes[2]
    for number in range(first, first + sizes[2]):
        if collecting[number] != 0:
            wanted |= records[(collecting[number] - 1) * RECORD_WORDS + READS]
    bank = int64(0)
    if wanted:  # what a write keeps from being read now is read in the next step
        now[MOVED] = 1
    while wanted:
        if wanted & 15 and (written >> (bank >> 2)) & 1 == 0:
            best, least = int64(-1), int64(NEVER)
            for number in range(first, first + sizes[2]):
                at = (collecting[number] - 1) * RECORD_WORDS
                if at >= 0 and (records[at + READS] >> bank) & 15 and records[at + TAKEN] < least:
                    best, least = at, records[at + TAKEN]
            records[best + READS] -= int64(1) << bank
        wanted >>= 4
        bank += 4


@called
def take_in(sizes: Any, pipes: Any, before: Any, collecting: Any, records: Any, now: Any, pipe: int) -> None:
    """The oldest of all schedulers goes to the first free unit of its own; the others wait for it."""
    best, least = int64(-1), int64(NEVER)
    for scheduler in range(sizes[0]):
        held = before[scheduler * sizes[1] + pipe]
        if held != 0 and records[(held - 1) * RECORD_WORDS + AGE] < least:
            best, least = int64(scheduler), records[(held - 1) * RECORD_WORDS + AGE]
    for number in range(best * sizes[2], (best + 1) * sizes[2]):
        if collecting[number] == 0:
            collecting[number] = before[best * sizes[1] + pipe]
            now[TAKEN_IN] += 1
            records[(collecting[number] - 1) * RECORD_WORDS + TAKEN] = now[TAKEN_IN]
            before[best * sizes[1] + pipe] = 0
            pipes[pipe * PIPE_WORDS + BEFORE] -= 1
            now[MOVED] = 1
            return


@called
def start_wakes(sizes: Any, ops: Any, pipes: Any, behind: Any, records: Any, units: Any, mem: Any, cycle: int) -> int:
    """Nothing has moved: the next cycle in which a unit is free for what waits for it."""
    then = int64(NEVER)
    for pipe in range(sizes[1]):
        shared, count = pipes[pipe * PIPE_WORDS + SHARED], pipes[pipe * PIPE_WORDS + UNITS]
        for scheduler in range(sizes[0]):
            held = behind[scheduler * sizes[1] + pipe]
            if held != 0:
                unit = first_unit(sizes, units, shared, count, pipe, scheduler)
                then = min(then, max(free_from(units, mem, kind_of(records, ops, held), unit), cycle + 1))
    return then
