"""The load/store unit with pipelines before the banks of the L1 in the compiled loop. As `reference.l1`, on `mem`.

A cycle goes through what is there: rings, whose entries say when they came in, stand for the stages of a pipeline. In
between nothing happens until the cycle DUE. What leaves the SM, `collectors.loop` sends.
"""

from __future__ import annotations

from ppt_gpu.common.bits import int64
from ppt_gpu.common.compiled import called, merged
from ppt_gpu.common.records import Words
from ppt_gpu.sm.chip import staged_l1_state as s
from ppt_gpu.sm.collectors.l1_tags import (
    fill,
    free_request,
    look_up,
    new_request,
    part,
    parts_of,
    pop_answer,
    sectors_of,
)
from ppt_gpu.sm.collectors.pipes import BANKS_MASK, announce
from ppt_gpu.sm.collectors.state import BANK_BITS, StagedSm
from ppt_gpu.sm.loop import memory as c
from ppt_gpu.sm.program.machine import LATE_RESULT, NEVER, WRITE_EVICT
from ppt_gpu.sm.program.program import KIND_ATOMIC, KIND_LOAD, KIND_SHARED, KIND_STORE, RESULT_AT


@called
def take(sm: StagedSm, operation: int, place: int, entry: int, access: int, cycle: int) -> None:
    """The load/store unit takes an operation, number `operation`, of the warp in slot `place`."""
    mem = sm.mem
    base, issued = part(mem), sm.ops[operation]
    op = mem[base + s.FREE_OP] & c.PLACE
    if op:
        mem[base + s.FREE_OP] = mem[op + s.O_FREE]
    else:
        op = mem[base + s.NEW_OP] & c.PLACE
        mem[base + s.NEW_OP] = op + s.OP_WORDS
    kind, word = issued.kind, sm.accesses[access]
    passes = (word >> c.CYCLES_AT) & c.CYCLES_MASK
    mem[op + s.O_PLACE], mem[op + s.O_ENTRY], mem[op + s.O_OP], mem[op + s.O_KIND] = place, entry, operation, kind
    mem[op + s.O_NEXT], mem[op + s.O_LAST] = word & c.FIRST_MASK, sm.accesses[access + 1] & c.FIRST_MASK
    mem[op + s.O_MASK], mem[op + s.O_PENDING], mem[op + s.O_ENTERS] = 0, 0, cycle + max(passes, 1)
    mem[op + s.O_WAIT], mem[op + s.O_UPDATES] = -1, word >> c.UPDATES_AT
    way = issued.way & c.WAY
    mem[op + s.O_LOOKS] = int64(way != 0 and kind != KIND_ATOMIC)
    mem[op + s.O_GROUP] = mem[base + s.GROUP] if mem[op + s.O_LOOKS] else int64(1)
    mem[op + s.O_STAYS] = int64(kind == KIND_STORE and way == c.IN_LOCAL and mem[c.P_L1_WRITE] == WRITE_EVICT)
    if kind == KIND_SHARED:
        mem[c.C_PASSES] += passes
        mem[c.C_SHARED] += 1
        mem[op + s.O_NEXT] = mem[op + s.O_LAST]
        mem[op + s.O_LOOKS] = int64(int64(sm.entry_slot[entry]) >= 0 or issued.operands >> RESULT_AT != 0)
    for index in range(mem[op + s.O_NEXT], mem[op + s.O_LAST]):
        mem[op + s.O_PENDING] += parts_of(sm.tx[index] & c.ALL_SECTORS, mem[op + s.O_GROUP])
    mem[base + s.UNIT] = op
    mem[base + s.DUE] = min(mem[base + s.DUE], mem[op + s.O_ENTERS] if kind == KIND_SHARED else cycle + 1)


@called
def finish(sm: StagedSm, op: int, cycle: int) -> None:
    """A sector of an operation is there, and with the last one its result; its register bank knows already."""
    now, mem = sm.now[0], sm.mem
    mem[op + s.O_PENDING] -= 1
    if mem[op + s.O_PENDING] > 0:
        return
    base, place, entry = part(mem), mem[op + s.O_PLACE], mem[op + s.O_ENTRY]
    mem[op + s.O_FREE] = mem[base + s.FREE_OP]
    mem[base + s.FREE_OP] = op
    now.moved = 1
    announce(sm, place, entry, cycle - LATE_RESULT, cycle, cycle)


@merged
def _bank_is_free(sm: StagedSm, op: int, cycle: int) -> bool:
    """Whether nothing is written to the register bank of the operation's result; then that is."""
    mem = sm.mem
    bank = sm.ops[mem[op + s.O_OP]].operands >> RESULT_AT
    if bank == 0:
        return True
    place = mem[op + s.O_PLACE]
    bit = int64(1) << (bank - 1 + place) % sm.banks
    scheduler = int64(0) if sm.in_sm else sm.warps[place].sched
    row = (cycle & (LATE_RESULT - 1)) * sm.schedulers + scheduler
    before = sm.writes[row] & BANKS_MASK if sm.writes[row] >> BANK_BITS == cycle else int64(0)
    sm.writes[row] = cycle << BANK_BITS | before | bit
    return before & bit == 0


@called
def _returned(mem: Words, base: int, client: int, cycle: int) -> int:
    """What shared memory, requests that pass the L1 by, or the L1 have for the registers; 0: nothing."""
    if client == 0:
        out = mem[base + s.SHARED_OUT]
        item = mem[base + s.SHARED] + (out & mem[base + s.SHARED_MASK]) * 2
        if out == mem[base + s.SHARED_IN] or mem[item] + mem[base + s.SHARED_STAGES] > cycle:
            return int64(0)
        mem[base + s.SHARED_OUT] = out + 1
        return mem[item + 1] & c.PLACE
    if client == 1:
        request = mem[base + s.PASSING] & c.PLACE
        if request == 0:
            return int64(0)
        mem[base + s.PASSING] = 0
        free_request(mem, base, request)
        return mem[request + s.R_OPERATIONS] & c.PLACE
    out = mem[base + s.FILLED_OUT]
    if out == mem[base + s.FILLED_IN]:
        return int64(0)
    request = mem[mem[base + s.FILLED] + (out & s.FILLED_MASK)] & c.PLACE
    op = mem[request + s.R_OPERATIONS + mem[request + s.R_DRAINED]] & c.PLACE
    mem[request + s.R_DRAINED] += 1
    if mem[request + s.R_DRAINED] == mem[request + s.R_COUNT]:
        mem[base + s.FILLED_OUT] = out + 1
        mem[base + s.MSHRS_USED] -= 1
        free_request(mem, base, request)
    return op


@called
def _next_answer(mem: Words, base: int, cycle: int) -> int:
    """The request whose answer comes in, 0: none. A sector of the L1 is there then."""
    heap = mem[base + s.HEAP]
    if mem[base + s.HEAP_SIZE] == 0 or mem[heap] >> s.ORDER_BITS > cycle:
        return int64(0)
    request = mem[heap + 1] & c.PLACE
    if mem[request + s.R_KIND] == s.OF_CODE:
        free_request(mem, base, request)
        pop_answer(mem, base)
        return int64(0)
    if mem[request + s.R_KIND] == KIND_ATOMIC:
        if mem[base + s.PASSING] != 0:
            return int64(0)
        mem[base + s.PASSING] = request
    elif mem[request + s.R_KIND] == KIND_LOAD:
        fill(mem, request)
        mem[mem[base + s.FILLED] + (mem[base + s.FILLED_IN] & s.FILLED_MASK)] = request
        mem[base + s.FILLED_IN] += 1
    pop_answer(mem, base)
    return request


@merged
def _bank(mem: Words, base: int, number: int) -> int:
    return mem[base + s.BANKS] + number * (s.BANK_RING + (mem[base + s.BANK_MASK] + 1) * s.ITEM_WORDS)


@merged
def _item(mem: Words, base: int, bank: int, number: int) -> int:
    return bank + s.BANK_RING + (number & mem[base + s.BANK_MASK]) * s.ITEM_WORDS


@called
def _next_sector(mem: Words, op: int, tx: Words) -> int:
    """The number in its line of the next sector of an operation that has one, the highest first."""
    if mem[op + s.O_MASK] == 0:
        mem[op + s.O_MASK] = tx[mem[op + s.O_NEXT]] & c.ALL_SECTORS
    bit = int64(c.SECTORS - 1)
    while mem[op + s.O_MASK] >> bit & 1 == 0:
        bit -= 1
    return bit // mem[op + s.O_GROUP]


@merged
def _gone_on(mem: Words, op: int, bit: int) -> None:
    """The operation's next sector has left the load/store unit."""
    mem[op + s.O_MASK] &= ~sectors_of(bit, mem[op + s.O_GROUP])
    if mem[op + s.O_MASK] == 0:
        mem[op + s.O_NEXT] += 1


@called
def _serve(mem: Words, base: int, op: int, tx: Words, cycle: int) -> int:
    """What the unit holds goes on: 1 it has left it, 2 it is done as well, 0 it has not."""
    if mem[op + s.O_KIND] == KIND_SHARED:
        inside = mem[base + s.SHARED_IN] - mem[base + s.SHARED_OUT]
        if cycle < mem[op + s.O_ENTERS]:
            return int64(0)
        if mem[op + s.O_LOOKS] == 0:
            return int64(2)
        if inside == mem[base + s.SHARED_STAGES]:
            return int64(0)
        item = mem[base + s.SHARED] + (mem[base + s.SHARED_IN] & mem[base + s.SHARED_MASK]) * 2
        mem[item], mem[item + 1] = cycle, op
        mem[base + s.SHARED_IN] += 1
        return int64(1)
    if mem[op + s.O_NEXT] == mem[op + s.O_LAST]:
        return int64(2)
    if mem[op + s.O_LOOKS] == 0:
        if mem[base + s.IN_USE] < s.AT_ONCE and _room_on_way(mem, base):
            kind = int64(KIND_STORE if mem[op + s.O_KIND] == KIND_STORE else KIND_ATOMIC)
            line, bit = tx[mem[op + s.O_NEXT]] >> c.SECTORS, _next_sector(mem, op, tx)
            _to_way(mem, base, new_request(mem, base, kind, line, bit, int64(1) << bit, op))
            _gone_on(mem, op, bit)
        return int64(mem[op + s.O_NEXT] == mem[op + s.O_LAST])
    for _ in range(mem[base + s.BANK_NUMBER]):
        if mem[op + s.O_NEXT] < mem[op + s.O_LAST]:
            bit = _next_sector(mem, op, tx)
            bank = _bank(mem, base, bit % mem[base + s.BANK_NUMBER])
            came, inside = mem[bank + s.BANK_IN], mem[bank + s.BANK_IN] - mem[bank + s.BANK_OUT]
            if inside == mem[base + s.STAGES]:
                return int64(0)
            if inside != 0 and mem[_item(mem, base, bank, came - 1) + s.I_CYCLE] == cycle:
                return int64(0)
            item = _item(mem, base, bank, came)
            mem[item + s.I_CYCLE], mem[item + s.I_OP] = cycle, op
            mem[item + s.I_LINE], mem[item + s.I_BIT] = tx[mem[op + s.O_NEXT]] >> c.SECTORS, bit
            mem[item + s.I_PART] = mem[op + s.O_MASK] & sectors_of(bit, mem[op + s.O_GROUP])
            mem[bank + s.BANK_IN] = came + 1
            _gone_on(mem, op, bit)
    return int64(mem[op + s.O_NEXT] == mem[op + s.O_LAST])


@merged
def _room_on_way(mem: Words, base: int) -> bool:
    return mem[base + s.WAY_IN] - mem[base + s.WAY_GONE] < mem[base + s.WAY_PLACES]


@merged
def _to_way(mem: Words, base: int, request: int) -> None:
    mem[mem[base + s.WAY] + (mem[base + s.WAY_IN] & s.WAY_MASK)] = request
    mem[base + s.WAY_IN] += 1


@called
def l1_step(sm: StagedSm, cycle: int) -> None:
    """A cycle of all this, but for the requests that leave."""
    now, mem = sm.now[0], sm.mem
    base = part(mem)
    op = mem[base + s.WRITING] & c.PLACE
    if op != 0 and _bank_is_free(sm, op, cycle):
        mem[base + s.WRITING] = 0
        finish(sm, op, cycle)
    if mem[base + s.WRITING] == 0:
        client = mem[base + s.TURN]
        for _ in range(3):
            op = _returned(mem, base, client, cycle)
            client = client + 1 if client < 2 else int64(0)
            if op:
                mem[base + s.WRITING], mem[base + s.TURN] = op, client
                break
    request = _next_answer(mem, base, cycle)
    if request != 0 and mem[request + s.R_KIND] == KIND_STORE:
        free_request(mem, base, request)
        op = mem[request + s.R_OPERATIONS] & c.PLACE
        if op != 0:
            finish(sm, op, cycle)
    out = mem[base + s.MISS_OUT]
    if out != mem[base + s.MISS_IN] and _room_on_way(mem, base):
        _to_way(mem, base, mem[mem[base + s.MISSES] + (out & mem[base + s.MISS_MASK])])
        mem[base + s.MISS_OUT] = out + 1
    for number in range(mem[base + s.BANK_NUMBER]):
        bank = _bank(mem, base, number)
        if mem[bank + s.BANK_IN] != mem[bank + s.BANK_OUT]:
            item = _item(mem, base, bank, mem[bank + s.BANK_OUT])
            if mem[item + s.I_CYCLE] + mem[base + s.STAGES] <= cycle:
                op = mem[item + s.I_OP] & c.PLACE
                found = look_up(mem, base, op, mem[item + s.I_LINE], mem[item + s.I_BIT], mem[item + s.I_PART])
                mem[bank + s.BANK_OUT] += int64(found != 0)
                if found == 2:
                    finish(sm, op, cycle)
    op = mem[base + s.UNIT] & c.PLACE
    if op:
        left = _serve(mem, base, op, sm.tx, cycle)
        if left:
            mem[base + s.UNIT] = 0
            now.moved = 1
        if left == 2:
            finish(sm, op, cycle)


@called
def next_request(mem: Words) -> int:
    """The request that leaves the SM in this cycle, 0: none."""
    base = part(mem)
    gone = mem[base + s.WAY_GONE]
    if gone == mem[base + s.WAY_IN]:
        return int64(0)
    mem[base + s.WAY_GONE] = gone + 1
    return mem[mem[base + s.WAY] + (gone & s.WAY_MASK)] & c.PLACE


@called
def l1_due(mem: Words, cycle: int) -> None:
    """After a cycle of all this: DUE, the next one in which something may happen, of what is known."""
    base = part(mem)
    moving = mem[base + s.WRITING] | mem[base + s.PASSING] | (mem[base + s.MISS_IN] - mem[base + s.MISS_OUT])
    moving |= (mem[base + s.FILLED_IN] - mem[base + s.FILLED_OUT]) | (mem[base + s.WAY_IN] - mem[base + s.WAY_GONE])
    if moving:
        mem[base + s.DUE] = cycle + 1
        return
    due, op = int64(NEVER), mem[base + s.UNIT] & c.PLACE
    if op:
        due = max(mem[op + s.O_ENTERS], cycle + 1) if mem[op + s.O_KIND] == KIND_SHARED else cycle + 1
    if mem[base + s.SHARED_IN] != mem[base + s.SHARED_OUT]:
        item = mem[base + s.SHARED] + (mem[base + s.SHARED_OUT] & mem[base + s.SHARED_MASK]) * 2
        due = min(due, mem[item] + mem[base + s.SHARED_STAGES])
    if mem[base + s.HEAP_SIZE] != 0:
        due = min(due, mem[mem[base + s.HEAP]] >> s.ORDER_BITS)
    for number in range(mem[base + s.BANK_NUMBER]):
        bank = _bank(mem, base, number)
        if mem[bank + s.BANK_IN] != mem[bank + s.BANK_OUT]:
            due = min(due, mem[_item(mem, base, bank, mem[bank + s.BANK_OUT]) + s.I_CYCLE] + mem[base + s.STAGES])
    mem[base + s.DUE] = max(due, cycle + 1)
