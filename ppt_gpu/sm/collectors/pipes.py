"""From the collector units to the units, in the compiled loop: as `_start` and `_collect` of `reference/staged.py`."""

from __future__ import annotations

from ppt_gpu.common.bits import ctz, int64
from ppt_gpu.common.compiled import called, merged
from ppt_gpu.common.records import Words
from ppt_gpu.sm.chip.staged_l1_state import UNIT
from ppt_gpu.sm.collectors.state import BANK_BITS, SLOTS, Lane, StagedOperation, StagedScheduler, StagedSm
from ppt_gpu.sm.collectors.warps import ends, lane_of, look_at, wait_until
from ppt_gpu.sm.loop.code import constant
from ppt_gpu.sm.loop.lsu import issue_global, issue_shared
from ppt_gpu.sm.loop.memory import CYCLES_AT, CYCLES_MASK, FIRST_MASK, L1_PIPE, LSU
from ppt_gpu.sm.loop.tags import whole
from ppt_gpu.sm.program.machine import FAR_RESULT, LATE_RESULT, NEVER
from ppt_gpu.sm.program.program import KIND_CONSTANT, KIND_LOAD, KIND_SHARED, RESULT_AT

BANKS_MASK = (1 << BANK_BITS) - 1


@merged
def first_unit(sm: StagedSm, pipe: int, scheduler: int) -> int:
    """Where in `units` those begin that an instruction of the scheduler can start in."""
    shared = sm.pipes[pipe].shared
    return (pipe * sm.schedulers + (int64(0) if shared else scheduler)) * sm.most_units


@merged
def memory_free(mem: Words, to_unit: int) -> int:
    """The cycle from which the load/store unit takes an instruction; NEVER while one is in it and nobody knows."""
    if mem[L1_PIPE] != 0 and mem[mem[L1_PIPE] + UNIT] != 0:
        return int64(NEVER)
    return whole(mem[LSU]) + to_unit


@merged
def unit_for(sm: StagedSm, memory: int, op: StagedOperation, pipe: int, scheduler: int, looks: int, cycle: int) -> int:
    """Where in `units` the first one stands, from number `looks` of the pipe on, that can take the operation, -1: none
    can. `memory`: the load/store unit is free then."""
    if op.kind >= KIND_LOAD and memory > cycle:
        return int64(-1)
    taken, end = int64(0), cycle + op.passage
    result = sm.results[end & (FAR_RESULT - 1)]
    if end > cycle and result.cycle == end:
        if sm.buses != 0 and result.count >= sm.buses:
            return int64(-1)
        taken = result.units
    first = first_unit(sm, pipe, scheduler)
    for unit in range(first + looks, first + sm.pipes[pipe].units):
        if sm.units[unit] <= cycle and (taken == 0 or (taken >> unit) & 1 == 0):
            return int64(unit)
    return int64(-1)


@merged
def next_to_start(sm: StagedSm, memory: int, pipe: int, looks: int, cycle: int) -> tuple[int, int]:
    """(lane, unit) of the instruction that starts next, the oldest that can; where all share the units only the oldest,
    at which those from number `looks` on have not looked yet. The lane is -1 if none can."""
    shared = sm.pipes[pipe].shared
    best, least, where = int64(-1), int64(NEVER), int64(-1)
    for lane in range(sm.pipes[pipe].lanes):
        held = lane_of(sm, lane, pipe).past
        if held != 0 and sm.records[held - 1].age < least:
            op = sm.ops[sm.records[held - 1].op]
            unit = unit_for(sm, memory, op, pipe, lane, looks, cycle)
            if unit >= 0 or shared != 0:
                best, where = int64(lane if unit >= 0 else -1), unit
                least = sm.records[held - 1].age
    return best, where


@merged
def take_one(sm: StagedSm, memory: int, pipe: int, looks: int, cycle: int) -> tuple[int, int]:
    """A unit of the pipe takes what waits for it: (the number of its record, kept until another issues, -1 if none can;
    the first of the units, where they stand in the SM, that has not looked at what waits: each does once a cycle)."""
    now = sm.now[0]
    place, unit = next_to_start(sm, memory, pipe, looks, cycle)
    if place < 0:
        return int64(-1), looks
    lane = lane_of(sm, place, pipe)
    number = lane.past - 1
    op = sm.ops[sm.records[number].op]
    sm.units[unit] = cycle + op.interval
    if op.passage != 0:
        result_at(sm, unit, cycle + op.passage)
    lane.past = 0
    sm.pipes[pipe].behind -= 1
    if sm.pipes[pipe].behind == 0:
        now.waiting_past &= ~(int64(1) << pipe)
    now.staged -= 1
    sm.free_records[sm.most_staged - 1 - now.staged] = number
    now.moved = 1
    if sm.pipes[pipe].shared:
        looks = unit + 1 - first_unit(sm, pipe, int64(0))
    return number, looks


@merged
def result_at(sm: StagedSm, unit: int, end: int) -> None:
    """A unit has a result in cycle `end`."""
    result = sm.results[end & (FAR_RESULT - 1)]
    if result.cycle != end:
        result.cycle, result.count, result.units = end, int64(0), int64(0)
    result.count += 1
    if sm.one_result != 0:
        result.units |= int64(1) << unit


@merged
def announce(sm: StagedSm, place: int, entry: int, began: int, done: int, cycle: int) -> None:
    """In `cycle` it becomes known that the result of what the warp in slot `place` issued as `entry`, and started in
    cycle `began`, is there at `done`."""
    warp, op = sm.warps[place], sm.ops[sm.entry_op[entry]]
    bank = op.operands >> RESULT_AT
    if bank != 0 and done - began < LATE_RESULT:
        bank = (bank - 1 + place) % sm.banks
        row = (done & (LATE_RESULT - 1)) * sm.schedulers + (int64(0) if sm.in_sm else warp.sched)
        before = sm.writes[row] & BANKS_MASK if sm.writes[row] >> BANK_BITS == done else int64(0)
        sm.writes[row] = done << BANK_BITS | before | int64(1) << bank
    warp.flying -= 1
    warp.over = max(warp.over, done)
    if warp.flying == 0 and warp.pos == warp.end:
        ends(sm, place)
    tell_waiting(sm, place, entry, done, cycle)


@merged
def tell_waiting(sm: StagedSm, place: int, entry: int, done: int, cycle: int) -> None:
    """The scoreboard, where no later entry announces in the same slot, and with it the warp, if it waits for that."""
    slot = int64(sm.entry_slot[entry])
    if slot >= 0 and sm.owner[place * SLOTS + slot] == entry:
        sm.slots[place * SLOTS + slot] = done << 2 | (sm.slots[place * SLOTS + slot] & 3)
        if wait_until(sm, place, cycle):
            look_at(sm, place, cycle)


@called
def completion(sm: StagedSm, number: int, issued: int) -> int:
    """When the instruction of record `number` is done, which starts as if it had been issued in that cycle."""
    record, mem = sm.records[number], sm.mem
    op, access = sm.ops[record.op], record.access
    kind = op.kind
    if kind < KIND_LOAD:
        return issued + op.done
    if kind == KIND_CONSTANT:
        return constant(mem, issued)[0]
    if kind == KIND_SHARED:
        return issue_shared(mem, issued, (sm.accesses[access] >> CYCLES_AT) & CYCLES_MASK)[0]
    last = sm.accesses[access + 1] & FIRST_MASK
    return issue_global(kind, op.way, issued, sm.accesses[access], last, sm.tx, mem)[0]


@merged
def collect(sm: StagedSm, cycle: int, first: bool) -> None:
    """A step: units whose operands are there hand over, the others read, free ones take in."""
    now = sm.now[0]
    in_sm = sm.in_sm != 0
    if in_sm and sm.scheds[0].complete != 0:
        hand_over_by_pipe(sm)
    for scheduler in range(int64(1) if in_sm else sm.schedulers):
        sched = sm.scheds[scheduler]
        if sched.holding == 0:
            continue
        if sched.complete != 0 and not in_sm:
            hand_over(sm, scheduler)
        if sched.holding & ~sched.complete != 0:
            row = (cycle & (LATE_RESULT - 1)) * sm.schedulers + scheduler
            written = sm.writes[row] & BANKS_MASK if first and sm.writes[row] >> BANK_BITS == cycle else int64(0)
            read(sm, scheduler, written)
    if in_sm:
        take_in_by_pipe(sm, cycle)
        return
    wanted = now.waiting_ahead
    for _ in range(sm.schedulers):
        left = wanted
        if left == 0:
            break
        while left:
            turn = ctz(left)
            left &= left - 1
            if not take_in(sm, sm.order[turn], cycle):
                wanted &= ~(int64(1) << turn)
        wanted &= now.waiting_ahead


@merged
def past(sm: StagedSm, lane: Lane, pipe: int, held: int) -> None:
    """What a collector unit of the pipe held gets to the place behind."""
    now = sm.now[0]
    lane.past = held
    sm.pipes[pipe].behind += 1
    now.waiting_past |= int64(1) << pipe
    now.moved = 1


@called
def hand_over(sm: StagedSm, scheduler: int) -> None:
    """Units of a scheduler whose operands are there hand over, where the place behind is empty."""
    sched = sm.scheds[scheduler]
    left = sched.complete
    while left:
        bit = left & -left
        number = scheduler * sm.collectors + ctz(left)
        left ^= bit
        held = sm.collecting[number]
        pipe = sm.ops[sm.records[held - 1].op].pipe
        lane = lane_of(sm, scheduler, pipe)
        if lane.past == 0:
            past(sm, lane, pipe, held)
            sm.collecting[number] = 0
            sched.complete ^= bit
            sched.holding ^= bit


@merged
def own_units(sm: StagedSm, pipe: int) -> int:
    """Mask of the collector units of a pipe."""
    return ((int64(1) << sm.pipes[pipe].own) - 1) << sm.pipes[pipe].first_unit


@called
def hand_over_by_pipe(sm: StagedSm) -> None:
    """Each place of a pipe asks its units for the next instruction, and the first that is empty gets it."""
    for turn in range(sm.pipe_count):
        pipe = sm.order[turn]
        mask, lanes = own_units(sm, pipe), sm.pipes[pipe].lanes
        for place in range(lanes):
            complete = sm.scheds[0].complete & mask
            if complete == 0 or sm.pipes[pipe].behind == lanes:
                break
            asks, empty = lane_of(sm, place, pipe), int64(0)
            while lane_of(sm, empty, pipe).past != 0:
                empty += 1
            later = complete & (int64(-1) << (asks.handed + 1)) if asks.handed < 63 else int64(0)
            number = ctz(later if later else complete)
            asks.handed = number
            past(sm, lane_of(sm, empty, pipe), pipe, sm.collecting[number])
            sm.collecting[number] = 0
            sm.scheds[0].complete ^= int64(1) << number
            sm.scheds[0].holding ^= int64(1) << number


@called
def read(sm: StagedSm, scheduler: int, written: int) -> None:
    """Each bank of the registers that is not written is read for the instruction that waited longest."""
    now = sm.now[0]
    first, sched = scheduler * sm.collectors, sm.scheds[scheduler]
    bits = sm.bank_bits
    most = (int64(1) << bits) - 1
    reading = sched.holding & ~sched.complete
    wanted, left = int64(0), reading
    while left:
        wanted |= sm.records[sm.collecting[first + ctz(left)] - 1].reads
        left &= left - 1
    at, bank = int64(0), int64(0)
    now.moved = 1  # what a write keeps from being read now is read in the next step
    while wanted:
        if wanted & most and (written >> bank) & 1 == 0:
            best, least, unit, left = int64(-1), int64(NEVER), int64(0), reading
            while left:
                number = ctz(left)
                left &= left - 1
                place = sm.collecting[first + number] - 1
                record = sm.records[place]
                if (record.reads >> at) & most and record.taken < least:
                    best, least, unit = place, record.taken, number
            sm.records[best].reads -= int64(1) << at
            if sm.records[best].reads == 0:
                sched.complete |= int64(1) << unit
        wanted >>= bits
        at += bits
        bank += 1


@merged
def oldest_ahead(sm: StagedSm, pipe: int) -> int:
    """The lane before the collectors with the oldest instruction for the pipe."""
    best, least = int64(0), int64(NEVER)
    for lane in range(sm.pipes[pipe].lanes):
        held = lane_of(sm, lane, pipe).ahead
        if held != 0 and sm.records[held - 1].age < least:
            best, least = int64(lane), sm.records[held - 1].age
    return best


@merged
def hold(sm: StagedSm, lane: Lane, pipe: int, sched: StagedScheduler, number: int, unit: int) -> None:
    """What waits in the lane for the pipe goes to a collector unit: number `number`, bit `unit` of its scheduler."""
    now = sm.now[0]
    held = lane.ahead
    sm.collecting[number] = held
    sched.holding |= int64(1) << unit
    sched.complete |= int64(sm.records[held - 1].reads == 0) << unit
    now.taken_in += 1
    sm.records[held - 1].taken = now.taken_in
    lane.ahead = 0
    sm.pipes[pipe].before -= 1
    if sm.pipes[pipe].before == 0:
        now.waiting_ahead &= ~(int64(1) << sm.pipes[pipe].turn)
    now.moved = 1


@merged
def close(sm: StagedSm, scheduler: int, pipe: int, cycle: int) -> None:
    """From the next cycle on the warps of a scheduler find the place before the collectors taken."""
    lane = lane_of(sm, scheduler, pipe)
    lane.closed = 1
    lane.closed_from = cycle + 1
    sm.scheds[scheduler].open &= ~lane.need


@merged
def reopen(sm: StagedSm, scheduler: int, pipe: int, cycle: int) -> None:
    """They do not any more."""
    lane = lane_of(sm, scheduler, pipe)
    lane.closed = 0
    lane.blocked += cycle - lane.closed_from
    sm.scheds[scheduler].open |= lane.need


@merged
def take_in(sm: StagedSm, pipe: int, cycle: int) -> bool:
    """The oldest of all schedulers goes to the first free unit of its own; while it has none the others wait."""
    best = oldest_ahead(sm, pipe)
    sched = sm.scheds[best]
    unit = ctz(~sched.holding)
    if unit >= sm.collectors:
        return False
    hold(sm, lane_of(sm, best, pipe), pipe, sched, best * sm.collectors + unit, unit)
    reopen(sm, best, pipe, cycle)
    return True


@called
def take_in_by_pipe(sm: StagedSm, cycle: int) -> None:
    """As many of each pipe as it has places, the oldest first, go to its units, the first free one first."""
    now = sm.now[0]
    left = now.waiting_ahead
    while left:
        pipe = sm.order[ctz(left)]
        left &= left - 1
        mask, waiting = own_units(sm, pipe), sm.pipes[pipe].before
        for _ in range(waiting):
            free = ~sm.scheds[0].holding & mask
            if free == 0:
                break
            lane, unit = lane_of(sm, oldest_ahead(sm, pipe), pipe), ctz(free)
            hold(sm, lane, pipe, sm.scheds[0], unit, unit)
        if sm.pipes[pipe].before < waiting and lane_of(sm, int64(0), pipe).closed != 0:
            for scheduler in range(sm.schedulers):
                reopen(sm, scheduler, pipe, cycle)


@called
def start_wakes(sm: StagedSm, memory: int, cycle: int) -> int:
    """Nothing has moved: the next cycle in which a unit may be free for what waits for it."""
    now = sm.now[0]
    then, left = int64(NEVER), now.waiting_past
    while left:
        pipe = ctz(left)
        left &= left - 1
        for lane in range(sm.pipes[pipe].lanes):
            held = lane_of(sm, lane, pipe).past
            if held != 0:
                first, free = first_unit(sm, pipe, int64(lane)), int64(NEVER)
                for unit in range(first, first + sm.pipes[pipe].units):
                    free = min(free, sm.units[unit])
                if sm.ops[sm.records[held - 1].op].kind >= KIND_LOAD:
                    free = max(free, memory)
                then = min(then, max(free, cycle + 1))
    return then
