"""From the collector units to the units, in the compiled loop: as `_start` and `_collect` of `reference/staged.py`."""

from __future__ import annotations

from typing import Any

from ppt_gpu.common.bits import ctz, int64
from ppt_gpu.common.compiled import called, merged
from ppt_gpu.sm.chip.staged_l1_state import UNIT
from ppt_gpu.sm.collectors.state import (
    AGE,
    AHEAD,
    BANK_BITS,
    BANKS,
    BEFORE,
    BEHIND,
    BITS,
    BLOCKED,
    BUSES,
    CLOSED,
    COLLECTORS,
    COMPLETE,
    DONE,
    END,
    FIRST_UNIT,
    FLYING,
    FROM,
    GATE_WORDS,
    HANDED,
    HOLDING,
    II,
    IN_SM,
    KIND,
    LANES,
    MOST_UNITS,
    MOVED,
    NEED,
    ONE_RESULT,
    OP,
    OP_WORDS,
    OPEN,
    OPERANDS,
    OVER,
    PASSAGE,
    PAST,
    PIPE,
    PIPE_WORDS,
    PIPES,
    POS,
    READS,
    RECORD_WORDS,
    RECORDS,
    RESULT_COUNT,
    RESULT_CYCLE,
    RESULT_UNITS,
    RESULT_WORDS,
    SCHED,
    SCHED_WORDS,
    SCHEDULERS,
    SET,
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
from ppt_gpu.sm.collectors.warps import ends, look_at, wait_until
from ppt_gpu.sm.loop.code import constant
from ppt_gpu.sm.loop.lsu import issue_global, issue_shared
from ppt_gpu.sm.loop.memory import CYCLES_AT, CYCLES_MASK, FIRST_MASK, L1_PIPE, LSU
from ppt_gpu.sm.loop.tags import whole
from ppt_gpu.sm.program.machine import FAR_RESULT, LATE_RESULT, NEVER
from ppt_gpu.sm.program.program import KIND_CONSTANT, KIND_LOAD, KIND_SHARED, RESULT_AT

BANKS_MASK = (1 << BANK_BITS) - 1


@merged
def first_unit(sizes: Any, pipes: Any, pipe: int, scheduler: int) -> int:
    """Where in `units` those begin that an instruction of the scheduler can start in."""
    shared = pipes[pipe * PIPE_WORDS + SHARED]
    return (pipe * sizes[SCHEDULERS] + (int64(0) if shared else scheduler)) * sizes[MOST_UNITS]


@merged
def memory_free(mem: Any, to_unit: int) -> int:
    """The cycle from which the load/store unit takes an instruction; NEVER while one is in it and nobody knows."""
    if mem[L1_PIPE] != 0 and mem[mem[L1_PIPE] + UNIT] != 0:
        return int64(NEVER)
    return whole(mem[LSU]) + to_unit


@merged
def unit_for(
    sizes: Any, ops: Any, pipes: Any, units: Any, results: Any, memory: int, op: int, pipe: int, scheduler: int,
    looks: int, cycle: int,
) -> int:  # fmt: skip
    """Where in `units` the first one stands, from number `looks` of the pipe on, that can take the operation, -1: none
    can. `memory`: the load/store unit is free then."""
    if ops[op + KIND] >= KIND_LOAD and memory > cycle:
        return int64(-1)
    taken, end = int64(0), cycle + ops[op + PASSAGE]
    at = (end & (FAR_RESULT - 1)) * RESULT_WORDS
    if end > cycle and results[at + RESULT_CYCLE] == end:
        if sizes[BUSES] != 0 and results[at + RESULT_COUNT] >= sizes[BUSES]:
            return int64(-1)
        taken = results[at + RESULT_UNITS]
    first = first_unit(sizes, pipes, pipe, scheduler)
    for unit in range(first + looks, first + pipes[pipe * PIPE_WORDS + UNITS]):
        if units[unit] <= cycle and (taken == 0 or (taken >> unit) & 1 == 0):
            return int64(unit)
    return int64(-1)


@merged
def next_to_start(
    sizes: Any, ops: Any, pipes: Any, gates: Any, records: Any, units: Any, results: Any, memory: int, pipe: int,
    looks: int, cycle: int,
) -> tuple[int, int]:  # fmt: skip
    """(lane, unit) of the instruction that starts next, the oldest that can; where all share the units only the oldest,
    at which those from number `looks` on have not looked yet. The lane is -1 if none can."""
    shared = pipes[pipe * PIPE_WORDS + SHARED]
    best, least, where = int64(-1), int64(NEVER), int64(-1)
    for lane in range(pipes[pipe * PIPE_WORDS + LANES]):
        held = gates[(lane * sizes[PIPES] + pipe) * GATE_WORDS + PAST]
        if held != 0 and records[(held - 1) * RECORD_WORDS + AGE] < least:
            op = records[(held - 1) * RECORD_WORDS + OP] * OP_WORDS
            unit = unit_for(sizes, ops, pipes, units, results, memory, op, pipe, lane, looks, cycle)
            if unit >= 0 or shared != 0:
                best, where = int64(lane if unit >= 0 else -1), unit
                least = records[(held - 1) * RECORD_WORDS + AGE]
    return best, where


@merged
def take_one(
    sizes: Any, ops: Any, pipes: Any, gates: Any, records: Any, free_records: Any, units: Any, results: Any, now: Any,
    memory: int, pipe: int, looks: int, cycle: int,
) -> tuple[int, int]:  # fmt: skip
    """A unit of the pipe takes what waits for it: (its record, kept until another issues, -1 if none can; the first of
    the units, where they stand in the SM, that has not looked at what waits: each does once a cycle)."""
    lane, unit = next_to_start(sizes, ops, pipes, gates, records, units, results, memory, pipe, looks, cycle)
    if lane < 0:
        return int64(-1), looks
    gate = (lane * sizes[PIPES] + pipe) * GATE_WORDS
    held = gates[gate + PAST]
    at = (held - 1) * RECORD_WORDS
    op = records[at + OP] * OP_WORDS
    units[unit] = cycle + ops[op + II]
    if ops[op + PASSAGE] != 0:
        result_at(sizes, results, unit, cycle + ops[op + PASSAGE])
    gates[gate + PAST] = 0
    pipes[pipe * PIPE_WORDS + BEHIND] -= 1
    if pipes[pipe * PIPE_WORDS + BEHIND] == 0:
        now[WAITING_PAST] &= ~(int64(1) << pipe)
    now[RECORDS] -= 1
    free_records[sizes[STAGED] - 1 - now[RECORDS]] = held - 1
    now[MOVED] = 1
    if pipes[pipe * PIPE_WORDS + SHARED]:
        looks = unit + 1 - first_unit(sizes, pipes, pipe, int64(0))
    return at, looks


@merged
def result_at(sizes: Any, results: Any, unit: int, end: int) -> None:
    """A unit has a result in cycle `end`."""
    at = (end & (FAR_RESULT - 1)) * RESULT_WORDS
    if results[at + RESULT_CYCLE] != end:
        results[at + RESULT_CYCLE], results[at + RESULT_COUNT], results[at + RESULT_UNITS] = end, 0, 0
    results[at + RESULT_COUNT] += 1
    if sizes[ONE_RESULT] != 0:
        results[at + RESULT_UNITS] |= int64(1) << unit


@merged
def announce(
    sizes: Any, warps: Any, slots: Any, owner: Any, ops: Any, scheds: Any, gates: Any, writes: Any,
    wheel: Any, wants: Any, now: Any, op_stall: Any, waits: Any, entry_op: Any, entry_slot: Any, place: int, entry: int,
    began: int, done: int, cycle: int,
) -> None:  # fmt: skip
    """In `cycle` it becomes known that the result of what the warp in slot `place` issued as `entry`, and started in
    cycle `began`, is there at `done`."""
    me, op = place * WARP_WORDS, int64(entry_op[entry]) * OP_WORDS
    bank = ops[op + OPERANDS] >> RESULT_AT
    if bank != 0 and done - began < LATE_RESULT:
        bank = (bank - 1 + place) % sizes[BANKS]
        row = (done & (LATE_RESULT - 1)) * sizes[SCHEDULERS] + (int64(0) if sizes[IN_SM] else warps[me + SCHED])
        before = writes[row] & BANKS_MASK if writes[row] >> BANK_BITS == done else int64(0)
        writes[row] = done << BANK_BITS | before | int64(1) << bank
    warps[me + FLYING] -= 1
    warps[me + OVER] = max(warps[me + OVER], done)
    if warps[me + FLYING] == 0 and warps[me + POS] == warps[me + END]:
        ends(sizes, warps, wants, now, place)
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
def completion(ops: Any, op: int, access: int, accesses: Any, tx: Any, mem: Any, issued: int) -> int:
    """When an instruction is done that starts as if it had been issued in that cycle."""
    kind = ops[op + KIND]
    if kind < KIND_LOAD:
        return issued + ops[op + DONE]
    if kind == KIND_CONSTANT:
        return constant(mem, issued)[0]
    if kind == KIND_SHARED:
        return issue_shared(mem, issued, (accesses[access] >> CYCLES_AT) & CYCLES_MASK)[0]
    last = accesses[access + 1] & FIRST_MASK
    return issue_global(kind, ops[op + USES_L1], issued, accesses[access], last, tx, mem)[0]


@merged
def collect(
    sizes: Any, pipes: Any, order: Any, scheds: Any, gates: Any, collecting: Any, records: Any, ops: Any, writes: Any,
    now: Any, cycle: int, first: bool,
) -> None:  # fmt: skip
    """A step: units whose operands are there hand over, the others read, free ones take in."""
    in_sm = sizes[IN_SM] != 0
    if in_sm and scheds[COMPLETE] != 0:
        hand_over_by_pipe(sizes, pipes, order, scheds, gates, collecting, now)
    for scheduler in range(int64(1) if in_sm else sizes[SCHEDULERS]):
        sched = scheduler * SCHED_WORDS
        if scheds[sched + HOLDING] == 0:
            continue
        if scheds[sched + COMPLETE] != 0 and not in_sm:
            hand_over(sizes, pipes, scheds, gates, collecting, records, ops, now, scheduler)
        if scheds[sched + HOLDING] & ~scheds[sched + COMPLETE] != 0:
            row = (cycle & (LATE_RESULT - 1)) * sizes[SCHEDULERS] + scheduler
            written = writes[row] & BANKS_MASK if first and writes[row] >> BANK_BITS == cycle else int64(0)
            read(sizes, scheds, collecting, records, now, scheduler, written)
    if in_sm:
        take_in_by_pipe(sizes, pipes, order, scheds, gates, collecting, records, now, cycle)
        return
    wanted = now[WAITING_AHEAD]
    for _ in range(sizes[SCHEDULERS]):
        left = wanted
        if left == 0:
            break
        while left:
            turn = ctz(left)
            left &= left - 1
            if not take_in(sizes, pipes, scheds, gates, collecting, records, now, order[turn], cycle):
                wanted &= ~(int64(1) << turn)
        wanted &= now[WAITING_AHEAD]


@merged
def past(pipes: Any, gates: Any, now: Any, gate: int, pipe: int, held: int) -> None:
    """What a collector unit of the pipe held gets to the place behind."""
    gates[gate + PAST] = held
    pipes[pipe * PIPE_WORDS + BEHIND] += 1
    now[WAITING_PAST] |= int64(1) << pipe
    now[MOVED] = 1


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
            past(pipes, gates, now, gate, pipe, held)
            collecting[number] = 0
            scheds[sched + COMPLETE] ^= bit
            scheds[sched + HOLDING] ^= bit


@merged
def own_units(pipes: Any, pipe: int) -> int:
    """Mask of the collector units of a pipe."""
    return ((int64(1) << pipes[pipe * PIPE_WORDS + SET]) - 1) << pipes[pipe * PIPE_WORDS + FIRST_UNIT]


@called
def hand_over_by_pipe(sizes: Any, pipes: Any, order: Any, scheds: Any, gates: Any, collecting: Any, now: Any) -> None:
    """Each place of a pipe asks its units for the next instruction, and the first that is empty gets it."""
    for turn in range(sizes[PIPES]):
        pipe = order[turn]
        mask, lanes = own_units(pipes, pipe), pipes[pipe * PIPE_WORDS + LANES]
        for place in range(lanes):
            complete = scheds[COMPLETE] & mask
            if complete == 0 or pipes[pipe * PIPE_WORDS + BEHIND] == lanes:
                break
            asks, lane = (place * sizes[PIPES] + pipe) * GATE_WORDS, int64(0)
            while gates[(lane * sizes[PIPES] + pipe) * GATE_WORDS + PAST] != 0:
                lane += 1
            later = complete & (int64(-1) << (gates[asks + HANDED] + 1)) if gates[asks + HANDED] < 63 else int64(0)
            number = ctz(later if later else complete)
            gates[asks + HANDED] = number
            past(pipes, gates, now, (lane * sizes[PIPES] + pipe) * GATE_WORDS, pipe, collecting[number])
            collecting[number] = 0
            scheds[COMPLETE] ^= int64(1) << number
            scheds[HOLDING] ^= int64(1) << number


@called
def read(sizes: Any, scheds: Any, collecting: Any, records: Any, now: Any, scheduler: int, written: int) -> None:
    """Each bank of the registers that is not written is read for the instruction that waited longest."""
    first, sched = scheduler * sizes[COLLECTORS], scheduler * SCHED_WORDS
    bits = sizes[BITS]
    most = (int64(1) << bits) - 1
    reading = scheds[sched + HOLDING] & ~scheds[sched + COMPLETE]
    wanted, left = int64(0), reading
    while left:
        wanted |= records[(collecting[first + ctz(left)] - 1) * RECORD_WORDS + READS]
        left &= left - 1
    at, bank = int64(0), int64(0)
    now[MOVED] = 1  # what a write keeps from being read now is read in the next step
    while wanted:
        if wanted & most and (written >> bank) & 1 == 0:
            best, least, unit, left = int64(-1), int64(NEVER), int64(0), reading
            while left:
                number = ctz(left)
                left &= left - 1
                record = (collecting[first + number] - 1) * RECORD_WORDS
                if (records[record + READS] >> at) & most and records[record + TAKEN] < least:
                    best, least, unit = record, records[record + TAKEN], number
            records[best + READS] -= int64(1) << at
            if records[best + READS] == 0:
                scheds[sched + COMPLETE] |= int64(1) << unit
        wanted >>= bits
        at += bits
        bank += 1


@merged
def oldest_ahead(sizes: Any, pipes: Any, gates: Any, records: Any, pipe: int) -> int:
    """The lane before the collectors with the oldest instruction for the pipe."""
    best, least = int64(0), int64(NEVER)
    for lane in range(pipes[pipe * PIPE_WORDS + LANES]):
        held = gates[(lane * sizes[PIPES] + pipe) * GATE_WORDS + AHEAD]
        if held != 0 and records[(held - 1) * RECORD_WORDS + AGE] < least:
            best, least = int64(lane), records[(held - 1) * RECORD_WORDS + AGE]
    return best


@merged
def hold(
    pipes: Any, scheds: Any, gates: Any, collecting: Any, records: Any, now: Any, gate: int, pipe: int, sched: int,
    number: int, unit: int,
) -> None:  # fmt: skip
    """What waits at the gate for the pipe goes to a collector unit: number `number`, bit `unit` of its scheduler."""
    held = gates[gate + AHEAD]
    collecting[number] = held
    scheds[sched + HOLDING] |= int64(1) << unit
    scheds[sched + COMPLETE] |= int64(records[(held - 1) * RECORD_WORDS + READS] == 0) << unit
    now[TAKEN_IN] += 1
    records[(held - 1) * RECORD_WORDS + TAKEN] = now[TAKEN_IN]
    gates[gate + AHEAD] = 0
    pipes[pipe * PIPE_WORDS + BEFORE] -= 1
    if pipes[pipe * PIPE_WORDS + BEFORE] == 0:
        now[WAITING_AHEAD] &= ~(int64(1) << pipes[pipe * PIPE_WORDS + TURN])
    now[MOVED] = 1


@merged
def close(scheds: Any, gates: Any, gate: int, sched: int, cycle: int) -> None:
    """From the next cycle on the warps of a scheduler find the place before the collectors taken."""
    gates[gate + CLOSED] = 1
    gates[gate + FROM] = cycle + 1
    scheds[sched + OPEN] &= ~gates[gate + NEED]


@merged
def reopen(scheds: Any, gates: Any, gate: int, sched: int, cycle: int) -> None:
    """They do not any more."""
    gates[gate + CLOSED] = 0
    gates[gate + BLOCKED] += cycle - gates[gate + FROM]
    scheds[sched + OPEN] |= gates[gate + NEED]


@merged
def take_in(
    sizes: Any, pipes: Any, scheds: Any, gates: Any, collecting: Any, records: Any, now: Any, pipe: int, cycle: int
) -> bool:
    """The oldest of all schedulers goes to the first free unit of its own; while it has none the others wait."""
    best = oldest_ahead(sizes, pipes, gates, records, pipe)
    sched, gate = best * SCHED_WORDS, (best * sizes[PIPES] + pipe) * GATE_WORDS
    unit = ctz(~scheds[sched + HOLDING])
    if unit >= sizes[COLLECTORS]:
        return False
    hold(
        pipes, scheds, gates, collecting, records, now, gate, pipe, sched, best * sizes[COLLECTORS] + unit, unit
    )  # fmt: skip
    reopen(scheds, gates, gate, sched, cycle)
    return True


@called
def take_in_by_pipe(
    sizes: Any, pipes: Any, order: Any, scheds: Any, gates: Any, collecting: Any, records: Any, now: Any, cycle: int
) -> None:
    """As many of each pipe as it has places, the oldest first, go to its units, the first free one first."""
    left = now[WAITING_AHEAD]
    while left:
        pipe = order[ctz(left)]
        left &= left - 1
        mask, waiting = own_units(pipes, pipe), pipes[pipe * PIPE_WORDS + BEFORE]
        for _ in range(waiting):
            free = ~scheds[HOLDING] & mask
            if free == 0:
                break
            lane, unit = oldest_ahead(sizes, pipes, gates, records, pipe), ctz(free)
            gate = (lane * sizes[PIPES] + pipe) * GATE_WORDS
            hold(pipes, scheds, gates, collecting, records, now, gate, pipe, int64(0), unit, unit)
        if pipes[pipe * PIPE_WORDS + BEFORE] < waiting and gates[pipe * GATE_WORDS + CLOSED] != 0:
            for scheduler in range(sizes[SCHEDULERS]):
                gate = (scheduler * sizes[PIPES] + pipe) * GATE_WORDS
                reopen(scheds, gates, gate, scheduler * SCHED_WORDS, cycle)


@called
def start_wakes(
    sizes: Any, ops: Any, pipes: Any, gates: Any, records: Any, units: Any, now: Any, memory: int, cycle: int
) -> int:
    """Nothing has moved: the next cycle in which a unit may be free for what waits for it."""
    then, left = int64(NEVER), now[WAITING_PAST]
    while left:
        pipe = ctz(left)
        left &= left - 1
        for lane in range(pipes[pipe * PIPE_WORDS + LANES]):
            held = gates[(lane * sizes[PIPES] + pipe) * GATE_WORDS + PAST]
            if held != 0:
                first, free = first_unit(sizes, pipes, pipe, int64(lane)), int64(NEVER)
                for unit in range(first, first + pipes[pipe * PIPE_WORDS + UNITS]):
                    free = min(free, units[unit])
                if ops[records[(held - 1) * RECORD_WORDS + OP] * OP_WORDS + KIND] >= KIND_LOAD:
                    free = max(free, memory)
                then = min(then, max(free, cycle + 1))
    return then
