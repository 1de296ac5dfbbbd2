"""The schedulers and the fetch of an SM with collector units, compiled: who issues, and what that changes."""

from __future__ import annotations

from typing import Any

from ppt_gpu.common.bits import ctz, int64
from ppt_gpu.common.compiled import called, merged
from ppt_gpu.sm.collectors.blocks import release_barrier
from ppt_gpu.sm.collectors.l1_tags import code_there
from ppt_gpu.sm.collectors.pipes import close
from ppt_gpu.sm.collectors.state import (
    ACCESS,
    AFTER,
    AGE,
    AHEAD,
    ARRIVED,
    ASKED,
    ASKING,
    AT_ACCESS,
    BANKS,
    BEFORE,
    BITS,
    BLOCK,
    BLOCK_WORDS,
    BORN,
    BUFFER,
    CLASS,
    CLOSED,
    DUE,
    END,
    ENTRY,
    FETCHED_LAST,
    FETCHING,
    FLYING,
    GATE_WORDS,
    GREEDY,
    HELD,
    HELD_FOR,
    IN_SM,
    ISSUED,
    KIND,
    LANES,
    LAST_OP,
    LATENCY,
    LEFT,
    MOVED,
    NEED,
    NEXT_AGE,
    OP,
    OP_WORDS,
    OPEN,
    OPERANDS,
    OVER,
    PC,
    PIPE,
    PIPE_WORDS,
    PIPES,
    PLACES,
    POS,
    READS,
    RECORD_WORDS,
    RECORDS,
    SCHED_WORDS,
    SCHEDULERS,
    SLOTS,
    STAGED,
    STRAY,
    STRAYS,
    TURN,
    UNSEEN,
    UNTIL,
    WAITING_AHEAD,
    WARP,
    WARP_WORDS,
    WORDS,
)
from ppt_gpu.sm.collectors.warps import REASONS, charge_ready, look_at, settle, until_of
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
def wait_ahead(
    sizes: Any, pipes: Any, scheds: Any, gates: Any, number: int, pipe: int, scheduler: int, cycle: int
) -> None:
    """A record takes the place before the collectors that its scheduler has for the pipe, or the first of the pipe."""
    pipes[pipe * PIPE_WORDS + BEFORE] += 1
    gate = (scheduler * sizes[PIPES] + pipe) * GATE_WORDS
    if sizes[IN_SM] == 0:
        gates[gate + AHEAD] = number + 1
        close(scheds, gates, gate, scheduler * SCHED_WORDS, cycle)
        return
    lane = pipe * GATE_WORDS
    while gates[lane + AHEAD] != 0:
        lane += sizes[PIPES] * GATE_WORDS
    gates[lane + AHEAD] = number + 1
    if pipes[pipe * PIPE_WORDS + BEFORE] == pipes[pipe * PIPE_WORDS + LANES]:
        for other in range(sizes[SCHEDULERS]):
            gate = (other * sizes[PIPES] + pipe) * GATE_WORDS
            close(scheds, gates, gate, other * SCHED_WORDS, cycle)


@called
def issue(
    sizes: Any, warps: Any, slots: Any, owner: Any, ops: Any, pipes: Any, scheds: Any, gates: Any, records: Any,
    free_records: Any, blocks: Any, wheel: Any, wants: Any, now: Any, op_stall: Any, waits: Any, entry_op: Any,
    entry_slot: Any, scheduler: int, place: int, cycle: int,
) -> None:  # fmt: skip
    """The warp in slot `place` issues its next entry."""
    me, entry = place * WARP_WORDS, warps[place * WARP_WORDS + POS]
    operation, slot = int64(entry_op[entry]), int64(entry_slot[entry])
    op = operation * OP_WORDS
    kind, pipe = ops[op + KIND], ops[op + PIPE]
    number = free_records[sizes[STAGED] - 1 - now[RECORDS]]
    now[RECORDS] += 1
    at = number * RECORD_WORDS
    records[at + WARP], records[at + ENTRY], records[at + OP] = place, entry, operation
    records[at + ACCESS], records[at + AGE] = warps[me + AT_ACCESS], now[NEXT_AGE]
    operands = ops[op + OPERANDS] & ((int64(1) << RESULT_AT) - 1)
    records[at + READS], records[at + ISSUED] = in_banks(operands, place, sizes[BANKS], sizes[BITS]), cycle
    now[NEXT_AGE] += 1
    wait_ahead(sizes, pipes, scheds, gates, number, pipe, scheduler, cycle)
    now[WAITING_AHEAD] |= int64(1) << pipes[pipe * PIPE_WORDS + TURN]
    this = (warps[me + BLOCK] - 1) * BLOCK_WORDS
    warps[me + FLYING] += 1
    warps[me + OVER] = max(warps[me + OVER], cycle)
    warps[me + BUFFER] -= 1
    warps[me + AT_ACCESS] += int64(kind >= RECORDED[0] and kind <= RECORDED[3])
    warps[me + POS] = entry + 1
    warps[me + LAST_OP] = operation
    warps[me + HELD_FOR] = 0
    if slot >= 0:
        slots[place * SLOTS + slot] = int64(NEVER) << 2 | ops[op + CLASS]
        owner[place * SLOTS + slot] = entry
    warps[me + UNTIL] = until_of(warps, slots, waits, place)
    exited = entry + 1 == warps[me + END]
    if exited:
        blocks[this + LEFT] -= 1
    else:
        jump = ops[int64(entry_op[entry + 1]) * OP_WORDS + PC] - ops[op + PC]
        if jump != 0 and jump != 1:
            warps[me + STRAY] = 1
        if kind == KIND_BARRIER:
            warps[me + HELD_FOR] = max(ops[op + LATENCY], 1)
            warps[me + HELD] = NEVER
            blocks[this + ARRIVED] += 1
    if exited or kind == KIND_BARRIER:
        release_barrier(
            sizes, warps, ops, scheds, gates, blocks, wheel, wants, now, op_stall, entry_op, this, scheduler, cycle
        )  # fmt: skip


@merged
def schedule(
    sizes: Any, warps: Any, slots: Any, owner: Any, ops: Any, pipes: Any, scheds: Any, keys: Any, gates: Any,
    records: Any, free_records: Any, blocks: Any, wheel: Any, wants: Any, now: Any, op_stall: Any, waits: Any,
    entry_op: Any, entry_slot: Any, policy: int, width: int, scheduler: int, cycle: int,
) -> None:  # fmt: skip
    """A scheduler's turn: it looks at its warps in the order of its policy until one issues."""
    sched, chosen = scheduler * SCHED_WORDS, int64(-1)
    ready, strays = scheds[sched + OPEN], scheds[sched + STRAYS]
    if ready | strays == 0:
        return
    if ready != 0:
        if policy == LRR:
            chosen = next_in_turn(ready, scheds[sched + AFTER])
        else:
            chosen = greedy_or_least(ready, scheds[sched + GREEDY], keys, scheduler)
    if strays != 0:
        look_at_strays(
            sizes, warps, ops, scheds, keys, gates, wheel, wants, now, entry_op, op_stall, policy, scheduler, chosen,
            cycle,
        )  # fmt: skip
    if chosen < 0:
        return
    now[MOVED] = 1
    place = chosen * sizes[SCHEDULERS] + scheduler
    me = place * WARP_WORDS
    operation = int64(entry_op[warps[me + POS]])
    op = operation * OP_WORDS
    gate = (scheduler * sizes[PIPES] + ops[op + PIPE]) * GATE_WORDS
    charge_ready(warps, gates, op_stall, me, operation * REASONS, ops[op + KIND], gate, cycle)
    gates[gate + NEED] &= ~(int64(1) << chosen)
    scheds[sched + OPEN] &= ~(int64(1) << chosen)
    for more in range(width):
        if more > 0 and not goes_on(sizes, warps, ops, gates, entry_op, scheduler, me, cycle):
            break
        issue(
            sizes, warps, slots, owner, ops, pipes, scheds, gates, records, free_records, blocks, wheel, wants, now,
            op_stall, waits, entry_op, entry_slot, scheduler, place, cycle,
        )  # fmt: skip
    scheds[sched + AFTER] = after(chosen)
    scheds[sched + GREEDY] = chosen
    if policy == GTO:
        keys[scheduler << 6 | chosen] = cycle << KEY_SHIFT | chosen
    look_at(sizes, warps, ops, scheds, gates, wheel, wants, now, entry_op, op_stall, place, cycle + 1)


@called
def look_at_strays(
    sizes: Any, warps: Any, ops: Any, scheds: Any, keys: Any, gates: Any, wheel: Any, wants: Any, now: Any,
    entry_op: Any, op_stall: Any, policy: int, scheduler: int, chosen: int, cycle: int,
) -> None:  # fmt: skip
    """Warps that are looked at before the chosen one, and whose buffers hold the wrong instructions, lose them."""
    sched = scheduler * SCHED_WORDS
    left, greedy, later = scheds[sched + STRAYS], scheds[sched + GREEDY], scheds[sched + AFTER]
    while left:
        row = ctz(left)
        left &= left - 1
        if chosen >= 0:
            if policy == LRR:
                turns = (int64(1) << row) | (int64(1) << chosen)
                before = next_in_turn(turns, later) == row
            else:
                before = row == greedy or (
                    chosen != greedy and keys[scheduler << 6 | row] < keys[scheduler << 6 | chosen]
                )
            if not before:
                continue
        place = row * sizes[SCHEDULERS] + scheduler
        settle(warps, entry_op, op_stall, place * WARP_WORDS, cycle + 1)
        warps[place * WARP_WORDS + STRAY] = 0
        warps[place * WARP_WORDS + BUFFER] = 0
        scheds[sched + STRAYS] &= ~(int64(1) << row)
        now[MOVED] = 1
        look_at(sizes, warps, ops, scheds, gates, wheel, wants, now, entry_op, op_stall, place, cycle + 1)


@called
def goes_on(sizes: Any, warps: Any, ops: Any, gates: Any, entry_op: Any, scheduler: int, me: int, cycle: int) -> bool:
    """Whether a warp that has issued may issue another entry in the same cycle."""
    if warps[me + POS] == warps[me + END] or warps[me + HELD] > cycle or warps[me + BUFFER] == 0:
        return False
    if warps[me + STRAY] != 0:
        warps[me + STRAY] = 0
        warps[me + BUFFER] = 0
        return False
    pipe = ops[int64(entry_op[warps[me + POS]]) * OP_WORDS + PIPE]
    return warps[me + UNTIL] >> 2 <= cycle and gates[(scheduler * sizes[PIPES] + pipe) * GATE_WORDS + CLOSED] == 0


@merged
def fetch(
    sizes: Any, warps: Any, ops: Any, scheds: Any, gates: Any, wheel: Any, wants: Any, blocks: Any, now: Any,
    op_stall: Any, entry_op: Any, mem: Any, cycle: int,
) -> None:  # fmt: skip
    """What was fetched goes to its warp. Then a line of the code that has come is for the warp that asked for it first;
    else the next warp in turn whose buffer is empty looks its line up. On the way to it the SM sees which warps are
    over."""
    place = now[FETCHING]
    if place >= 0:
        settle(warps, entry_op, op_stall, place * WARP_WORDS, cycle + 1)
        warps[place * WARP_WORDS + BUFFER] = FETCHED
        wants[place >> 6] &= ~(int64(1) << (place & 63))
        now[FETCHING] = -1
        now[MOVED] = 1
        look_at(sizes, warps, ops, scheds, gates, wheel, wants, now, entry_op, op_stall, place, cycle + 1)
    if mem[P_CODE_SETS] != 0:
        found = first_come(sizes, warps, wants)
        if found >= 0:
            bit = int64(1) << (found & 63)
            wants[sizes[WORDS] + (found >> 6)] &= ~bit
            warps[found * WARP_WORDS + BORN] = cycle
            now[FETCHING] = found
            now[MOVED] = 1
            return
    last = now[FETCHED_LAST]
    found = next_wanted(sizes, wants, last)
    see_over(sizes, warps, blocks, wants, now, last, found, cycle)
    if found < 0:
        return
    now[FETCHED_LAST] = found
    now[MOVED] = 1
    me = found * WARP_WORDS
    if mem[P_CODE_SETS] != 0:
        stray = warps[me + STRAY]
        operation = warps[me + LAST_OP] if stray else int64(entry_op[warps[me + POS]])
        there = code_there(mem, operation, stray, cycle)
        if there > cycle:
            warps[me + BORN] = -there
            warps[me + ASKED] = now[ASKING]
            now[ASKING] += 1
            wants[found >> 6] &= ~(int64(1) << (found & 63))
            look_at(sizes, warps, ops, scheds, gates, wheel, wants, now, entry_op, op_stall, found, cycle)
            return
    warps[me + BORN] = cycle
    now[FETCHING] = found


@merged
def first_come(sizes: Any, warps: Any, wants: Any) -> int:
    """Of the warps whose lines have come that whose line came first, and which asked first; -1: there is none."""
    best = int64(-1)
    for word in range(sizes[WORDS]):
        left = wants[sizes[WORDS] + word]
        while left:
            place = word << 6 | ctz(left)
            left &= left - 1
            me, other = place * WARP_WORDS, best * WARP_WORDS
            if (
                best < 0
                or warps[me + BORN] > warps[other + BORN]
                or (warps[me + BORN] == warps[other + BORN] and warps[me + ASKED] < warps[other + ASKED])
            ):
                best = int64(place)
    return best


@merged
def see_over(sizes: Any, warps: Any, blocks: Any, wants: Any, now: Any, last: int, found: int, cycle: int) -> None:
    """The SM sees which warps are over of those that it passes between two slots, or of all when it finds none."""
    places, first = sizes[PLACES], 2 * sizes[WORDS]
    upto = (found - last - 1 + places) % places if found >= 0 else places
    for word in range(sizes[WORDS]):
        left = wants[first + word]
        while left:
            bit = left & -left
            place = word << 6 | ctz(left)
            left ^= bit
            me = place * WARP_WORDS
            if warps[me + OVER] > cycle or (place - last - 1 + places) % places >= upto:
                continue
            wants[first + word] &= ~bit
            this = (warps[me + BLOCK] - 1) * BLOCK_WORDS
            blocks[this + UNSEEN] -= 1
            now[MOVED] = 1
            if blocks[this + UNSEEN] == 0:
                now[DUE] = min(now[DUE], cycle + 1)


@merged
def next_wanted(sizes: Any, wants: Any, last: int) -> int:
    """The next warp slot after `last` in `wants`, in turn; -1: none."""
    begin = last + 1 if last + 1 < sizes[PLACES] else int64(0)
    word, mask = begin >> 6, int64(-1) << (begin & 63)
    for _ in range(sizes[WORDS] + 1):
        left = wants[word] & mask
        if left:
            return word << 6 | ctz(left)
        word, mask = word + 1 if word + 1 < sizes[WORDS] else int64(0), int64(-1)
    return int64(-1)
