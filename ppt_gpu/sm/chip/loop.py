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

from ppt_gpu.common.bits import int64, pointer, prefetch
from ppt_gpu.common.compiled import called, entry
from ppt_gpu.sm.chip import memory as q
from ppt_gpu.sm.chip.lsu import issue_later, operation, passes_unit, serve_queue
from ppt_gpu.sm.chip.requests import settle
from ppt_gpu.sm.chip.round import END
from ppt_gpu.sm.loop import memory as c
from ppt_gpu.sm.loop.blocks import count_event, finish_block
from ppt_gpu.sm.loop.line_hash import tag
from ppt_gpu.sm.loop.loop import make_loop
from ppt_gpu.sm.loop.pack import OP_AT, OP_MASK, POSITION
from ppt_gpu.sm.loop.ports import block
from ppt_gpu.sm.loop.run_end import DONE
from ppt_gpu.sm.loop.skip import ENDED, IDLE, LOOK_AT, NEXT_LAUNCH, NOTHING_DUE, NOW
from ppt_gpu.sm.loop.state import (
    ACCESS,
    AT_SCHEDS,
    BLOCK_RESULTS,
    BLOCK_SHIFT,
    BLOCK_SLOT,
    FAR,
    GATE_SHIFT,
    GIVEN,
    HELD,
    LAUNCH_AT,
    LIVE,
    OFFSET,
    PENDING,
    PLACES,
    POS,
    READY,
    RESULTS,
    SCHED_SHIFT,
    SLOT_SHIFT,
    STALL_SHIFT,
    WARP_SHIFT,
    WORD,
)
from ppt_gpu.sm.loop.wheel import dependence, plan_wake
from ppt_gpu.sm.program.machine import NEVER

#: accesses of a warp that are looked ahead, its next ones; words of four schedulers
NEXT, SCHEDULERS = 3, 4 << SCHED_SHIFT


@called
def ask_for_next_sm(mem: Any, core: Any, scheds_at: int, track: Any, occupied: Any, slots: int) -> None:
    """Of the SM whose turn is next: what its turn begins with. `core` begins with its warps; `slots`: of warps."""
    for at in range(0, q.FIXED, q.ALIGNED):
        prefetch(mem, at)
    for place in range(slots):
        prefetch(core, place << WARP_SHIFT)
    for at in range(scheds_at, scheds_at + SCHEDULERS, q.ALIGNED):
        prefetch(core, at)
    prefetch(track, 0)
    prefetch(occupied, 0)


@called
def ask_for_answers(mem: Any) -> None:
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
def ask_for_accesses(mem: Any, accesses: Any, warps: Any, slots: int, end: int) -> int:
    """Of warps that go on before cycle `end`: the next accesses. How many; which stands from SOON on."""
    soon, found = mem[q.SOON], int64(0)
    for place in range(slots):
        me = place << WARP_SHIFT
        if warps[me + READY] < end:
            access = warps[me + ACCESS] & POSITION
            prefetch(accesses, access)
            mem[soon + found] = access
            found += 1
    return found


@called
def ask_for_transactions(mem: Any, accesses: Any, tx: Any, found: int, last: int) -> None:
    """The first transactions of these accesses, of which `last` is the last; they stand from SOON on then."""
    for at in range(mem[q.SOON], mem[q.SOON] + found):
        first = accesses[min(mem[at], last)] & c.FIRST_MASK
        prefetch(tx, first)
        mem[at] = first


@called
def ask_for_tags(mem: Any, tx: Any, found: int, total: int) -> None:
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
def _tell(
    K: int, mem: Any, number: int, op: int, wheel: Any, occupied: Any, scheds: Any, warps: Any, slots: Any,
    slot_shift: int, blocks: Any, op_stall: Any, op_table: Any, code: Any, waits: Any, sync: Any, per_block: int,
    now: int,
) -> int:  # fmt: skip
    """The result of operation `number`, at place `op`, is known: tell its warp, and those who wait for its event. The
    block slot that ends so, or -1."""
    me, done = mem[op + q.O_ME], mem[op + q.O_DONE]
    slot, reason = mem[op + q.O_TELLS] >> 2, mem[op + q.O_TELLS] & 3
    mem[op + q.O_STATE] = 0
    if slots[slot] >> 2 == NEVER + number:
        slots[slot] = (done << 2) | reason
    warps[me + RESULTS] = max(warps[me + RESULTS], done)
    index = warps[me + BLOCK_SLOT] & OFFSET
    mine = index << BLOCK_SHIFT
    blocks[mine + BLOCK_RESULTS] = max(blocks[mine + BLOCK_RESULTS], done)
    blocks[mine + PENDING] -= 1
    if warps[me + READY] >= NEVER:
        place, position, word = me >> WARP_SHIFT, warps[me + POS], warps[me + WORD]
        until = dependence(slots, place << slot_shift, word, waits, position)
        if until >> 2 < NEVER:
            k, bit, held = place % K, place // K, warps[me + HELD]
            op_stall[(((word >> OP_AT) & OP_MASK) << STALL_SHIFT) + (held & 3)] -= warps[me + READY] - (held >> 2)
            scheds[(k << SCHED_SHIFT) + FAR] &= ~(int64(1) << bit)
            plan_wake(
                K, wheel, occupied, scheds, warps, op_stall, op_table, k, bit, word, until, held >> 2,
                now,
            )  # fmt: skip
    count_event(
        K, wheel, occupied, scheds, warps, slots, slot_shift, blocks, op_stall, op_table, code, waits, index,
        per_block, sync, mem[op + q.O_EVENT], done, now,
    )  # fmt: skip
    return index if blocks[mine + LIVE] == 0 and blocks[mine + PENDING] == 0 else int64(-1)


@called
def _open_window(
    K: int, mem: Any, tx: Any, total: int, accesses: Any, last: int, places: int, wheel: Any,
    occupied: Any, scheds: Any, warps: Any, slots: Any, slot_shift: int, blocks: Any, gates: Any, queued: Any,
    op_stall: Any, op_table: Any, code: Any, waits: Any, sync: Any, block_start: Any, block_end: Any, per_block: int,
    block_launch: int, track: Any, now: int,
) -> None:  # fmt: skip
    """What the answers to the last window's requests change, and how far the load/store unit comes in this one."""
    ask_for_answers(mem)
    found = ask_for_accesses(mem, accesses, warps, places, mem[q.WINDOW_END])
    settle(mem)
    ask_for_transactions(mem, accesses, tx, found, last)
    serve_queue(mem, tx)
    for ring in (int64(q.OF_UNIT), int64(q.OF_COPIES)):
        for number in range(mem[q.OP_SETTLED + ring], mem[q.OP_FIRST + ring]):
            op = operation(mem, ring, number)
            if mem[op + q.O_STATE] == q.ANNOUNCED:
                index = _tell(
                    K, mem, number, op, wheel, occupied, scheds, warps, slots, slot_shift, blocks, op_stall,
                    op_table, code, waits, sync, per_block, now,
                )  # fmt: skip
                if index >= 0:
                    track[IDLE] += finish_block(
                        K, warps, blocks, op_stall, block_start, block_end, index, per_block, block_launch
                    )
                    track[ENDED] += 1
        settled = mem[q.OP_SETTLED + ring]
        while settled < mem[q.OP_FIRST + ring] and mem[operation(mem, ring, settled) + q.O_STATE] == 0:
            settled += 1
        mem[q.OP_SETTLED + ring] = settled
    if mem[q.QUEUE_BLOCKED] != 0:
        place = mem[mem[c.QUEUE] + mem[c.QUEUE_HEAD]]
        if place >= NEVER:
            place = mem[q.WINDOW_END]
        else:
            mem[q.QUEUE_BLOCKED] = 0
        if place > now:
            for other in queued:
                block(K, scheds, gates, other, (other >> GATE_SHIFT) % K, now - 1, place)
    ask_for_tags(mem, tx, found, total)


@cache
def make_advance_sms(SCHEDULERS: int, FIXED_POLICY: int, FIXED_WIDTH: int) -> Any:
    """The function that brings some SMs to the end of the window, or to where they need to know a block."""
    sm_loop = make_loop(SCHEDULERS, FIXED_POLICY, FIXED_WIDTH, issue_later, passes_unit)

    def advance_sms(
        first: int, last: int, chip: Any,
        code: Any, waits: Any, op_table: Any, path_start: Any, warp_path: Any, warp_access: Any,
        block_warp: Any, accesses: Any, tx: Any, mems: Any,
        layout: Any, snap: Any, tracks: Any, log: Any,
        cores: Any, queued: Any, wheels: Any, occupied_of: Any, block_start: Any, block_end: Any, sync: Any,
        schedulers: int, policy: int, width: int, memory_gate: int, per_block: int, block_launch: int,
    ) -> None:  # fmt: skip
        end = chip[END]
        for sm in range(first, last):
            mem, track, core, wheel, occupied = mems[sm], tracks[sm], cores[sm], wheels[sm], occupied_of[sm]
            if track[NOW] >= end:
                continue
            warps, slots, keys = core[layout[0] : layout[1]], core[layout[1] : layout[2]], core[layout[2] : layout[3]]
            scheds, gates, units = core[layout[3] : layout[4]], core[layout[4] : layout[5]], core[layout[5] : layout[6]]
            blocks, op_stall = core[layout[6] : layout[7]], core[layout[7] : layout[8]]
            doubled = core[layout[8] : layout[9]]
            if sm + 1 < last:
                ask_for_next_sm(
                    pointer(mems[sm + 1]), pointer(cores[sm + 1]), layout[AT_SCHEDS], pointer(tracks[sm + 1]),
                    pointer(occupied_of[sm + 1]), layout[PLACES],
                )  # fmt: skip
            if mem[q.WINDOW_END] != end:
                mem[q.WINDOW_END] = end
                _open_window(
                    schedulers, pointer(mem), pointer(tx), len(tx), pointer(accesses), len(accesses) - 1,
                    layout[PLACES], pointer(wheel), pointer(occupied), pointer(scheds),
                    pointer(warps), pointer(slots), layout[SLOT_SHIFT], pointer(blocks), pointer(gates), queued,
                    pointer(op_stall), pointer(op_table), pointer(code), pointer(waits), pointer(sync),
                    pointer(block_start), pointer(block_end), per_block, block_launch, pointer(track), track[NOW],
                )  # fmt: skip
            track[NOTHING_DUE] = 0
            look_at, next_launch = end, int64(NEVER)
            for at in range(0, len(blocks), 1 << BLOCK_SHIFT):
                if blocks[at + GIVEN] >= 0:
                    next_launch = min(next_launch, blocks[at + LAUNCH_AT])
                else:
                    look_at = min(look_at, blocks[at + LAUNCH_AT])
            track[LOOK_AT], track[NEXT_LAUNCH] = look_at, next_launch
            if track[NOW] >= look_at:
                continue
            # `log` is empty: no skipping
            status, idle = sm_loop(
                code, waits, op_table, path_start, warp_path, warp_access, block_warp, accesses, tx, mem,
                layout, snap, track, log, warps, keys, slots, scheds, blocks, gates, units, queued, wheel, occupied,
                op_stall, doubled, sync, block_start, block_end, schedulers, policy, width, memory_gate, per_block,
                block_launch, int64(NEVER),
            )  # fmt: skip
            if status == DONE:
                track[NOW], track[ENDED], track[IDLE] = end, len(block_start), idle

    return entry(advance_sms)
