"""The schedulers and the fetch of an SM with collector units, compiled: who issues, and what that changes."""

from __future__ import annotations

from ppt_gpu.common.bits import ctz, int64
from ppt_gpu.common.compiled import called, merged
from ppt_gpu.sm.collectors.blocks import release_barrier
from ppt_gpu.sm.collectors.l1_tags import code_there
from ppt_gpu.sm.collectors.pipes import close
from ppt_gpu.sm.collectors.state import SLOTS, StagedSm, StagedWarp
from ppt_gpu.sm.collectors.warps import REASONS, charge_ready, lane_of, look_at, settle, until_of
from ppt_gpu.sm.loop.memory import P_CODE_SETS
from ppt_gpu.sm.loop.policy import after, greedy_or_least, next_in_turn
from ppt_gpu.sm.loop.state import KEY_SHIFT
from ppt_gpu.sm.program.machine import FETCHED, GTO, LRR, NEVER
from ppt_gpu.sm.program.program import KIND_BARRIER, RECORDED, RESULT_AT


@merged
def in_banks(operands: int, place: int, banks: int, bits: int) -> int:
    """As `program.machine.in_banks`."""
    found, bank, most = int64(0), place % banks, (int64(1) << bits) - 1
    while operands:
        found |= (operands & most) << (bank * bits)
        operands >>= bits
        bank = bank + 1 if bank + 1 < banks else int64(0)
    return found


@merged
def wait_ahead(sm: StagedSm, number: int, pipe: int, scheduler: int, cycle: int) -> None:
    """A record takes the place before the collectors that its scheduler has for the pipe, or the first of the pipe."""
    sm.pipes[pipe].before += 1
    if sm.in_sm == 0:
        lane_of(sm, scheduler, pipe).ahead = number + 1
        close(sm, scheduler, pipe, cycle)
        return
    place = int64(0)
    while lane_of(sm, place, pipe).ahead != 0:
        place += 1
    lane_of(sm, place, pipe).ahead = number + 1
    if sm.pipes[pipe].before == sm.pipes[pipe].lanes:
        for other in range(sm.schedulers):
            close(sm, other, pipe, cycle)


@called
def issue(sm: StagedSm, scheduler: int, place: int, cycle: int) -> None:
    """The warp in slot `place` issues its next entry."""
    now = sm.now[0]
    warp = sm.warps[place]
    entry, block = warp.pos, sm.blocks[warp.block - 1]
    operation, slot = int64(sm.entry_op[entry]), int64(sm.entry_slot[entry])
    op = sm.ops[operation]
    kind, pipe = op.kind, op.pipe
    number = sm.free_records[sm.most_staged - 1 - now.staged]
    now.staged += 1
    record = sm.records[number]
    record.warp, record.position, record.op = place, entry, operation
    record.access, record.age = warp.access, now.next_age
    operands = op.operands & ((int64(1) << RESULT_AT) - 1)
    record.reads, record.issued = in_banks(operands, place, sm.banks, sm.bank_bits), cycle
    now.next_age += 1
    wait_ahead(sm, number, pipe, scheduler, cycle)
    now.waiting_ahead |= int64(1) << sm.pipes[pipe].turn
    warp.flying += 1
    warp.over = max(warp.over, cycle)
    warp.buffer -= 1
    warp.access += int64(kind >= RECORDED[0] and kind <= RECORDED[3])
    warp.pos = entry + 1
    warp.last_op = operation
    warp.held_for = 0
    if slot >= 0:
        sm.slots[place * SLOTS + slot] = int64(NEVER) << 2 | op.wait_class
        sm.owner[place * SLOTS + slot] = entry
    warp.until = until_of(sm, place)
    exited = entry + 1 == warp.end
    if exited:
        block.live -= 1
    else:
        jump = sm.ops[sm.entry_op[entry + 1]].pc - op.pc
        if jump != 0 and jump != 1:
            warp.stray = 1
        if kind == KIND_BARRIER:
            warp.held_for = max(op.latency, 1)
            warp.held = NEVER
            block.arrived += 1
    if exited or kind == KIND_BARRIER:
        release_barrier(sm, warp.block - 1, scheduler, cycle)


@merged
def schedule(sm: StagedSm, scheduler: int, cycle: int) -> None:
    """A scheduler's turn: it looks at its warps in the order of its policy until one issues."""
    now = sm.now[0]
    sched, chosen = sm.scheds[scheduler], int64(-1)
    ready, strays = sched.open, sched.strays
    if ready | strays == 0:
        return
    if ready != 0:
        if sm.policy == LRR:
            chosen = next_in_turn(ready, sched.after)
        else:
            chosen = greedy_or_least(ready, sched.greedy, sm.keys, scheduler)
    if strays != 0:
        look_at_strays(sm, scheduler, chosen, cycle)
    if chosen < 0:
        return
    now.moved = 1
    place = chosen * sm.schedulers + scheduler
    warp = sm.warps[place]
    operation = sm.entry_op[warp.pos]
    op = sm.ops[operation]
    lane = lane_of(sm, scheduler, op.pipe)
    charge_ready(sm, warp, operation * REASONS, op.kind, lane, cycle)
    lane.need &= ~(int64(1) << chosen)
    sched.open &= ~(int64(1) << chosen)
    for more in range(sm.width):
        if more > 0 and not goes_on(sm, scheduler, warp, cycle):
            break
        issue(sm, scheduler, place, cycle)
    sched.after = after(chosen)
    sched.greedy = chosen
    if sm.policy == GTO:
        sm.keys[scheduler << 6 | chosen] = cycle << KEY_SHIFT | chosen
    look_at(sm, place, cycle + 1)


@called
def look_at_strays(sm: StagedSm, scheduler: int, chosen: int, cycle: int) -> None:
    """Warps that are looked at before the chosen one, and whose buffers hold the wrong instructions, lose them."""
    now, sched = sm.now[0], sm.scheds[scheduler]
    left, greedy, later = sched.strays, sched.greedy, sched.after
    while left:
        row = ctz(left)
        left &= left - 1
        if chosen >= 0:
            if sm.policy == LRR:
                turns = (int64(1) << row) | (int64(1) << chosen)
                before = next_in_turn(turns, later) == row
            else:
                before = row == greedy or (
                    chosen != greedy and sm.keys[scheduler << 6 | row] < sm.keys[scheduler << 6 | chosen]
                )
            if not before:
                continue
        place = row * sm.schedulers + scheduler
        warp = sm.warps[place]
        settle(sm, warp, cycle + 1)
        warp.stray = 0
        warp.buffer = 0
        sched.strays &= ~(int64(1) << row)
        now.moved = 1
        look_at(sm, place, cycle + 1)


@called
def goes_on(sm: StagedSm, scheduler: int, warp: StagedWarp, cycle: int) -> bool:
    """Whether a warp that has issued may issue another entry in the same cycle."""
    if warp.pos == warp.end or warp.held > cycle or warp.buffer == 0:
        return False
    if warp.stray != 0:
        warp.stray = 0
        warp.buffer = 0
        return False
    lane = lane_of(sm, scheduler, sm.ops[sm.entry_op[warp.pos]].pipe)
    return warp.until >> 2 <= cycle and lane.closed == 0


@merged
def fetch(sm: StagedSm, cycle: int) -> None:
    """What was fetched goes to its warp. Then a line of the code that has come is for the warp that asked for it first;
    else the next warp in turn whose buffer is empty looks its line up. On the way to it the SM sees which warps are
    over."""
    now, mem = sm.now[0], sm.mem
    place = now.fetching
    if place >= 0:
        settle(sm, sm.warps[place], cycle + 1)
        sm.warps[place].buffer = FETCHED
        sm.wants[place >> 6] &= ~(int64(1) << (place & 63))
        now.fetching = -1
        now.moved = 1
        look_at(sm, place, cycle + 1)
    if mem[P_CODE_SETS] != 0:
        found = first_come(sm)
        if found >= 0:
            bit = int64(1) << (found & 63)
            sm.wants[sm.words + (found >> 6)] &= ~bit
            sm.warps[found].born = cycle
            now.fetching = found
            now.moved = 1
            return
    last = now.fetched_last
    found = next_wanted(sm, last)
    see_over(sm, last, found, cycle)
    if found < 0:
        return
    now.fetched_last = found
    now.moved = 1
    warp = sm.warps[found]
    if mem[P_CODE_SETS] != 0:
        stray = warp.stray
        operation = warp.last_op if stray else sm.entry_op[warp.pos]
        there = code_there(mem, operation, stray, cycle)
        if there > cycle:
            warp.born = -there
            warp.asked = now.asking
            now.asking += 1
            sm.wants[found >> 6] &= ~(int64(1) << (found & 63))
            look_at(sm, found, cycle)
            return
    warp.born = cycle
    now.fetching = found


@merged
def first_come(sm: StagedSm) -> int:
    """Of the warps whose lines have come that whose line came first, and which asked first; -1: there is none."""
    best = int64(-1)
    for word in range(sm.words):
        left = sm.wants[sm.words + word]
        while left:
            place = word << 6 | ctz(left)
            left &= left - 1
            warp, other = sm.warps[place], sm.warps[max(best, 0)]
            sooner = warp.born > other.born or (warp.born == other.born and warp.asked < other.asked)
            if best < 0 or sooner:
                best = int64(place)
    return best


@merged
def see_over(sm: StagedSm, last: int, found: int, cycle: int) -> None:
    """The SM sees which warps are over of those that it passes between two slots, or of all when it finds none."""
    now = sm.now[0]
    places, first = sm.places, 2 * sm.words
    upto = (found - last - 1 + places) % places if found >= 0 else places
    for word in range(sm.words):
        left = sm.wants[first + word]
        while left:
            bit = left & -left
            place = word << 6 | ctz(left)
            left ^= bit
            warp = sm.warps[place]
            if warp.over > cycle or (place - last - 1 + places) % places >= upto:
                continue
            sm.wants[first + word] &= ~bit
            block = sm.blocks[warp.block - 1]
            block.pending -= 1
            now.moved = 1
            if block.pending == 0:
                now.due = min(now.due, cycle + 1)


@merged
def next_wanted(sm: StagedSm, last: int) -> int:
    """The next warp slot after `last` in `wants`, in turn; -1: none."""
    begin = last + 1 if last + 1 < sm.places else int64(0)
    word, mask = begin >> 6, int64(-1) << (begin & 63)
    for _ in range(sm.words + 1):
        left = sm.wants[word] & mask
        if left:
            return word << 6 | ctz(left)
        word, mask = word + 1 if word + 1 < sm.words else int64(0), int64(-1)
    return int64(-1)
