"""Blocks enter, leave and meet at barriers, in the compiled loop of an SM with collector units."""

from __future__ import annotations

from typing import Any

from ppt_gpu.common.bits import ctz, int64
from ppt_gpu.common.compiled import called
from ppt_gpu.sm.collectors.state import (
    ARRIVED,
    AT_ACCESS,
    BLOCK,
    BLOCK_NUMBER,
    BLOCK_WORDS,
    BORN,
    END,
    ENDED,
    FIRST_TURN,
    GIVEN,
    HELD,
    HELD_FOR,
    IDLE,
    LAST_OP,
    LAUNCH_AT,
    LEFT,
    MOVED,
    NEXT_BLOCK,
    OVER,
    PER_BLOCK,
    POS,
    RESIDENT,
    ROW,
    SCHED,
    SCHEDULERS,
    SINCE,
    SLOTS,
    UNSEEN,
    WARP_WORDS,
    WORDS,
)
from ppt_gpu.sm.collectors.warps import charge_drain, ends, look_at, wake_at
from ppt_gpu.sm.loop.state import KEY_SHIFT
from ppt_gpu.sm.program.machine import GTO, NEVER
from ppt_gpu.sm.program.slot_rotation import seat


@called
def leave_blocks(
    sizes: Any, warps: Any, blocks: Any, now: Any, op_stall: Any, block_start: Any, block_end: Any, delay: int,
    cycle: int,
) -> None:  # fmt: skip
    """Blocks that ended leave."""
    for index in range(sizes[RESIDENT]):
        this = index * BLOCK_WORDS
        number = blocks[this + BLOCK_NUMBER]
        if number < 0 or blocks[this + UNSEEN] != 0:
            continue
        if cycle > block_start[number]:
            block_end[number] = cycle
            blocks[this + BLOCK_NUMBER] = -1
            blocks[this + LAUNCH_AT] = cycle + delay
            now[ENDED] += 1
            now[MOVED] = 1
            for place in range(index * sizes[PER_BLOCK], (index + 1) * sizes[PER_BLOCK]):
                if warps[place * WARP_WORDS + BLOCK] != 0:
                    now[IDLE] += charge_drain(warps, op_stall, place * WARP_WORDS, cycle)
                    warps[place * WARP_WORDS + BLOCK] = 0


@called
def launch_blocks(
    sizes: Any, warps: Any, slots: Any, owner: Any, ops: Any, scheds: Any, keys: Any, gates: Any, wheel: Any,
    wants: Any, blocks: Any, now: Any, op_stall: Any, entry_op: Any, path_start: Any, warp_path: Any, warp_access: Any,
    block_warp: Any, block_start: Any, policy: int, warp_launch: int, together: int, total: int, on_chip: bool,
    cycle: int,
) -> None:  # fmt: skip
    """Due blocks start: those that the chip has given, or one after another."""
    for index in range(sizes[RESIDENT]):
        this = index * BLOCK_WORDS
        number = blocks[this + GIVEN] if on_chip else now[NEXT_BLOCK]
        if blocks[this + BLOCK_NUMBER] >= 0 or blocks[this + LAUNCH_AT] > cycle or number < 0 or number >= total:
            continue
        now[NEXT_BLOCK] += 1
        now[MOVED] = 1
        first, last = block_warp[number], block_warp[number + 1]
        block_start[number] = cycle
        for word in range(this, this + BLOCK_WORDS):
            blocks[word] = 0
        blocks[this + BLOCK_NUMBER] = number
        blocks[this + LAUNCH_AT], blocks[this + GIVEN] = NEVER, -1
        blocks[this + LEFT] = blocks[this + UNSEEN] = last - first
        for warp in range(first, last):
            place = index * sizes[PER_BLOCK] + warp - first
            if last - first == sizes[PER_BLOCK]:
                place = index * sizes[PER_BLOCK] + seat(sizes[SCHEDULERS], together, index, warp - first)
            me = place * WARP_WORDS
            for slot in range(place * SLOTS, (place + 1) * SLOTS):
                slots[slot] = 0
                owner[slot] = -1
            for word in range(me, me + WARP_WORDS):
                warps[word] = 0
            warps[me + POS], warps[me + END] = path_start[warp_path[warp]], path_start[warp_path[warp] + 1]
            warps[me + AT_ACCESS] = warp_access[warp]
            warps[me + BORN] = cycle + (warp - first) * warp_launch
            warps[me + SCHED], warps[me + ROW] = place % sizes[SCHEDULERS], place // sizes[SCHEDULERS]
            warps[me + BLOCK] = index + 1
            warps[me + LAST_OP] = -1
            warps[me + SINCE] = cycle
            key = cycle if policy == GTO else int64(warp)
            keys[warps[me + SCHED] << 6 | warps[me + ROW]] = key << KEY_SHIFT | warps[me + ROW]
            if warps[me + POS] == warps[me + END]:
                blocks[this + LEFT] -= 1
                ends(sizes, warps, wants, now, place)
            look_at(sizes, warps, ops, scheds, gates, wheel, wants, now, entry_op, op_stall, place, cycle)


@called
def undecided(sizes: Any, blocks: Any, cycle: int) -> bool:
    """Is a slot due of which the chip has not said which block it gets?"""
    for this in range(0, sizes[RESIDENT] * BLOCK_WORDS, BLOCK_WORDS):
        if blocks[this + BLOCK_NUMBER] < 0 and blocks[this + GIVEN] < 0 and blocks[this + LAUNCH_AT] <= cycle:
            return True
    return False


@called
def next_due(
    sizes: Any, warps: Any, blocks: Any, wants: Any, now: Any, total: int, on_chip: bool, cycle: int
) -> int:  # fmt: skip
    """The next cycle after `cycle` in which a block may leave or enter, or a warp is over, of what is known."""
    due = int64(NEVER)
    for word in range(sizes[WORDS]):
        left = wants[2 * sizes[WORDS] + word]
        while left:
            due = min(due, max(warps[(word << 6 | ctz(left)) * WARP_WORDS + OVER], cycle + 1))
            left &= left - 1
    for index in range(sizes[RESIDENT]):
        this = index * BLOCK_WORDS
        if blocks[this + BLOCK_NUMBER] < 0:
            if on_chip or now[NEXT_BLOCK] < total:
                due = min(due, max(blocks[this + LAUNCH_AT], cycle + 1))
        elif blocks[this + UNSEEN] == 0:
            due = min(due, cycle + 1)
    return due


@called
def release_barrier(
    sizes: Any, warps: Any, ops: Any, scheds: Any, gates: Any, blocks: Any, wheel: Any, wants: Any, now: Any,
    op_stall: Any, entry_op: Any, this: int, scheduler: int, cycle: int,
) -> None:  # fmt: skip
    """In the turn of a scheduler: let the waiting warps of a block go when no live warp of it is missing. Schedulers
    whose turn comes later in this cycle find the barrier open a cycle earlier."""
    if blocks[this + ARRIVED] != blocks[this + LEFT]:
        return
    blocks[this + ARRIVED] = 0
    first, k = this // BLOCK_WORDS * sizes[PER_BLOCK], sizes[SCHEDULERS]
    begins = (cycle + now[FIRST_TURN]) % k
    turn = (scheduler - begins + k) % k
    for place in range(first, first + sizes[PER_BLOCK]):
        me = place * WARP_WORDS
        if warps[me + BLOCK] != 0 and warps[me + POS] < warps[me + END]:
            later = (warps[me + SCHED] - begins + k) % k > turn
            warps[me + HELD] = cycle + warps[me + HELD_FOR] - int64(later)
            if warps[me + HELD] > cycle:
                wake_at(sizes, wheel, now, warps[me + SCHED], warps[me + ROW], warps[me + HELD], cycle)
            else:
                look_at(sizes, warps, ops, scheds, gates, wheel, wants, now, entry_op, op_stall, place, cycle)
