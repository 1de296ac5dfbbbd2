"""The compiled loop over the SMs of a chip: each goes through the window, after what the last one's answers change.

In a window, no longer than the smallest latency below the SMs, nothing that one SM asks for can be answered, so the SMs
go through it one after another, or in threads. A window has rounds: an SM stops
early when a slot is due that was freed in this window, as which block it gets depends on what the others freed before.

The host's caches are asked early for what an SM is about to read: while other SMs went through the window, it has left
them. These are only hints; they change no result.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from ppt_gpu.common.bits import int64, prefetch
from ppt_gpu.common.compiled import called, entry
from ppt_gpu.common.records import Words
from ppt_gpu.sm.chip import memory as q
from ppt_gpu.sm.chip.lsu import issue_later, operation, pass_settled, passes_unit, serve_queue
from ppt_gpu.sm.chip.requests import settle
from ppt_gpu.sm.chip.round import END
from ppt_gpu.sm.loop import memory as c
from ppt_gpu.sm.loop.blocks import count_event, finish_block
from ppt_gpu.sm.loop.loop import make_run
from ppt_gpu.sm.loop.pack import operation_in
from ppt_gpu.sm.loop.ports import block_queued
from ppt_gpu.sm.loop.run_end import DONE
from ppt_gpu.sm.loop.state import STALL_SHIFT, Sm, sm_at
from ppt_gpu.sm.loop.tags import tag
from ppt_gpu.sm.loop.wheel import dependence, plan_wake
from ppt_gpu.sm.program.machine import NEVER

#: accesses of a warp that are looked ahead, its next ones
NEXT = 3


@called
def ask_for_next_sm(sm: Sm) -> None:
    """Of the SM whose turn is next: what its turn begins with."""
    for at in range(0, q.FIXED, q.ALIGNED):
        prefetch(sm.mem, at)
    for place in range(sm.places):
        prefetch(sm.warps, place)
    for k in range(sm.schedulers):
        prefetch(sm.scheds, k)
    prefetch(sm.track, int64(0))
    prefetch(sm.occupied, int64(0))


@called
def ask_for_answers(mem: Words) -> None:
    """The requests that have been answered, who waits for them, and the operations that have not been served."""
    for number in range(mem[q.N_REQS]):
        at = mem[q.REQS] + (number << q.REQ_SHIFT)
        prefetch(mem, at)
        prefetch(mem, at + q.ALIGNED)
    for number in range(mem[q.OP_SETTLED], mem[q.OP_LAST] + NEXT):
        at = mem[q.OPS] + ((number & mem[q.OP_MASK]) << q.OP_SHIFT)
        prefetch(mem, at)
        prefetch(mem, at + q.ALIGNED)
    for at in range(mem[q.DEPS], mem[q.DEPS] + (mem[q.N_DEPS] << q.DEP_SHIFT), q.ALIGNED):
        prefetch(mem, at)


@called
def ask_for_accesses(sm: Sm, end: int) -> int:
    """Of warps that go on before cycle `end`: the next accesses. How many; which stands from SOON on."""
    soon, found = sm.mem[q.SOON], int64(0)
    for place in range(sm.places):
        warp = sm.warps[place]
        if warp.ready < end:
            prefetch(sm.accesses, warp.access)
            sm.mem[soon + found] = warp.access
            found += 1
    return found


@called
def ask_for_transactions(mem: Words, accesses: Words, tx: Words, found: int, last: int) -> None:
    """The first transactions of these accesses, of which `last` is the last; they stand from SOON on then."""
    for at in range(mem[q.SOON], mem[q.SOON] + found):
        first = accesses[min(mem[at], last)] & c.FIRST_MASK
        prefetch(tx, first)
        mem[at] = first


@called
def ask_for_tags(mem: Words, tx: Words, found: int, total: int) -> None:
    """Where the L1 looks for the lines of these and the next ones, and what it replaces where it does not find them.

    `total`: transactions.
    """
    for at in range(mem[q.SOON], mem[q.SOON] + found):
        for number in range(mem[at], min(mem[at] + NEXT, total)):
            word = tx[number]
            if word >= 0:
                prefetch(mem, mem[q.TAGS] + tag((word >> c.SECTORS) & q.LINE_MASK, mem[q.TAG_MASK]))
                prefetch(mem, mem[mem[q.L1_SETS] + (word >> q.SET_AT) * c.SET_WORDS + c.VICTIM])


@called
def _tell(sm: Sm, number: int, op: int, now: int) -> None:
    """The result of operation `number`, at place `op`, is known: tell its warp, and those who wait for its event."""
    mem = sm.mem
    place, done = mem[op + q.O_ME], mem[op + q.O_DONE]
    slot, reason = mem[op + q.O_TELLS] >> 2, mem[op + q.O_TELLS] & 3
    mem[op + q.O_STATE] = 0
    if sm.slots[slot] >> 2 == NEVER + number:
        sm.slots[slot] = (done << 2) | reason
    warp = sm.warps[place]
    block = sm.blocks[warp.block_slot]
    warp.results = max(warp.results, done)
    block.results = max(block.results, done)
    block.pending -= 1
    if warp.ready >= NEVER:
        until = dependence(sm, place, warp.word, warp.pos)
        if until >> 2 < NEVER:
            k, bit, since = place % sm.schedulers, place // sm.schedulers, warp.held >> 2
            sm.op_stall[(operation_in(warp.word) << STALL_SHIFT) + (warp.held & 3)] -= warp.ready - since
            sm.scheds[k].far &= ~(int64(1) << bit)
            plan_wake(sm, k, bit, warp.word, until, since, now)
    count_event(sm, warp.block_slot, mem[op + q.O_EVENT], done, now)
    if block.live == 0 and block.pending == 0:
        finish_block(sm, warp.block_slot)


@called
def _open_window(sm: Sm, last: int, total: int, now: int) -> None:
    """What the answers to the last window's requests change, and how far the load/store unit comes in this one.

    `last`: of the accesses. `total`: transactions.
    """
    mem = sm.mem
    ask_for_answers(mem)
    found = ask_for_accesses(sm, mem[q.WINDOW_END])
    settle(mem)
    ask_for_transactions(mem, sm.accesses, sm.tx, found, last)
    serve_queue(mem, sm.tx)
    for ring in (int64(q.OF_UNIT), int64(q.OF_COPIES)):
        for number in range(mem[q.OP_SETTLED + ring], mem[q.OP_FIRST + ring]):
            op = operation(mem, ring, number)
            if mem[op + q.O_STATE] == q.ANNOUNCED:
                _tell(sm, number, op, now)
        pass_settled(mem, ring)
    if mem[q.QUEUE_BLOCKED] != 0:
        place = mem[mem[c.QUEUE] + mem[c.QUEUE_HEAD]]
        if place >= NEVER:
            place = mem[q.WINDOW_END]
        else:
            mem[q.QUEUE_BLOCKED] = 0
        if place > now:
            block_queued(sm, now - 1, place)
    ask_for_tags(mem, sm.tx, found, total)


@called
def _next_dispatch(sm: Sm, end: int) -> None:
    """When the SM gets its next block, and when it needs to know which one; the window ends in cycle `end`."""
    track = sm.track[0]
    track.look_at, track.next_launch = end, int64(NEVER)
    for index in range(sm.resident):
        slot = sm.blocks[index]
        if slot.given >= 0:
            track.next_launch = min(track.next_launch, slot.launch_at)
        else:
            track.look_at = min(track.look_at, slot.launch_at)


@cache
def make_advance_sms(schedulers: int, policy: int, width: int) -> Any:
    """The function that brings some SMs to the end of the window, or to where they need to know a block."""
    run = make_run(schedulers, policy, width, passes_unit, issue_later)

    def advance_sms(first: int, last: int, chip: Words, sms: Words, accesses: int, transactions: int) -> None:
        end = chip[END]
        for number in range(first, last):
            sm = sm_at(sms[number])
            track = sm.track[0]
            if track.now >= end:
                continue
            if number + 1 < last:
                ask_for_next_sm(sm_at(sms[number + 1]))
            if sm.mem[q.WINDOW_END] != end:
                sm.mem[q.WINDOW_END] = end
                _open_window(sm, accesses - 1, transactions, track.now)
            track.nothing_due = 0
            _next_dispatch(sm, end)
            if track.now >= track.look_at:
                continue
            if run(sm, int64(NEVER)) == DONE:
                track.now = end

    return entry(advance_sms)
