"""Blocks enter, leave and meet at barriers, in the compiled loop of an SM with collector units."""

from __future__ import annotations

from ppt_gpu.common.bits import ctz, int64
from ppt_gpu.common.compiled import called
from ppt_gpu.sm.collectors.state import SLOTS, StagedSm
from ppt_gpu.sm.collectors.warps import charge_drain, ends, look_at, wake_at
from ppt_gpu.sm.loop.state import KEY_SHIFT
from ppt_gpu.sm.program.machine import GTO, NEVER
from ppt_gpu.sm.program.slot_rotation import seat


@called
def leave_blocks(sm: StagedSm, cycle: int) -> None:
    """Blocks that ended leave."""
    now = sm.now[0]
    for index in range(sm.resident):
        block = sm.blocks[index]
        number = block.block
        if number < 0 or block.pending != 0:
            continue
        if cycle > sm.block_start[number]:
            sm.block_end[number] = cycle
            block.block = -1
            block.launch_at = cycle + sm.block_launch
            sm.track[0].ended += 1
            now.moved = 1
            for place in range(index * sm.per_block, (index + 1) * sm.per_block):
                warp = sm.warps[place]
                if warp.block != 0:
                    sm.track[0].idle += charge_drain(sm, warp, cycle)
                    warp.block = 0


@called
def launch_blocks(sm: StagedSm, cycle: int) -> None:
    """Due blocks start: those that the chip has given, or one after another."""
    now = sm.now[0]
    for index in range(sm.resident):
        block = sm.blocks[index]
        number = block.given if sm.on_chip != 0 else sm.track[0].next_block
        if block.block >= 0 or block.launch_at > cycle or number < 0 or number >= sm.total:
            continue
        sm.track[0].next_block += 1
        now.moved = 1
        first, last = sm.block_warp[number], sm.block_warp[number + 1]
        sm.block_start[number] = cycle
        block.block = number
        block.arrived = 0
        block.launch_at, block.given = NEVER, -1
        block.live = block.pending = last - first
        for in_program in range(first, last):
            place = index * sm.per_block + in_program - first
            if last - first == sm.per_block:
                place = index * sm.per_block + seat(sm.schedulers, sm.together, index, in_program - first)
            warp, path = sm.warps[place], sm.warp_path[in_program]
            for slot in range(place * SLOTS, (place + 1) * SLOTS):
                sm.slots[slot] = 0
                sm.owner[slot] = -1
            warp.pos, warp.end = sm.path_start[path], sm.path_start[path + 1]
            warp.access = sm.warp_access[in_program]
            warp.buffer = warp.stray = 0
            warp.held = warp.held_for = warp.until = 0
            warp.base = warp.deferred = 0
            warp.flying = warp.over = warp.asked = 0
            warp.born = cycle + (in_program - first) * sm.warp_launch
            warp.sched, warp.row = place % sm.schedulers, place // sm.schedulers
            warp.block = index + 1
            warp.last_op = -1
            warp.since = cycle
            key = cycle if sm.policy == GTO else int64(in_program)
            sm.keys[warp.sched << 6 | warp.row] = key << KEY_SHIFT | warp.row
            if warp.pos == warp.end:
                block.live -= 1
                ends(sm, place)
            look_at(sm, place, cycle)


@called
def undecided(sm: StagedSm, cycle: int) -> bool:
    """Is a slot due of which the chip has not said which block it gets?"""
    for index in range(sm.resident):
        block = sm.blocks[index]
        if block.block < 0 and block.given < 0 and block.launch_at <= cycle:
            return True
    return False


@called
def next_due(sm: StagedSm, cycle: int) -> int:
    """The next cycle after `cycle` in which a block may leave or enter, or a warp is over, of what is known."""
    due = int64(NEVER)
    for word in range(sm.words):
        left = sm.wants[2 * sm.words + word]
        while left:
            due = min(due, max(sm.warps[word << 6 | ctz(left)].over, cycle + 1))
            left &= left - 1
    for index in range(sm.resident):
        block = sm.blocks[index]
        if block.block < 0:
            if sm.on_chip != 0 or sm.track[0].next_block < sm.total:
                due = min(due, max(block.launch_at, cycle + 1))
        elif block.pending == 0:
            due = min(due, cycle + 1)
    return due


@called
def release_barrier(sm: StagedSm, index: int, scheduler: int, cycle: int) -> None:
    """In the turn of a scheduler: let the waiting warps of a block go when no live warp of it is missing. Schedulers
    whose turn comes later in this cycle find the barrier open a cycle earlier."""
    now, block = sm.now[0], sm.blocks[index]
    if block.arrived != block.live:
        return
    block.arrived = 0
    first, k = index * sm.per_block, sm.schedulers
    begins = (cycle + now.first_turn) % k
    turn = (scheduler - begins + k) % k
    for place in range(first, first + sm.per_block):
        warp = sm.warps[place]
        if warp.block != 0 and warp.pos < warp.end:
            later = (warp.sched - begins + k) % k > turn
            warp.held = cycle + warp.held_for - int64(later)
            if warp.held > cycle:
                wake_at(sm, warp.sched, warp.row, warp.held, cycle)
            else:
                look_at(sm, place, cycle)
