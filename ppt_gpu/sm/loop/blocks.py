"""Blocks enter, leave and meet at barriers, in the compiled loop."""

from __future__ import annotations

from ppt_gpu.common.bits import int64
from ppt_gpu.common.compiled import called, merged
from ppt_gpu.sm.loop.code import line_there
from ppt_gpu.sm.loop.memory import P_TURNED, P_WARP_LAUNCH
from ppt_gpu.sm.loop.pack import BARRIER, DRAIN, FETCH_AT, NO_INSTRUCTION, has, operation_in, port_in
from ppt_gpu.sm.loop.state import (
    BLOCK_KEY,
    EVENT_AT,
    EVENT_MISSING,
    EVENT_OF,
    EVENT_TIME,
    KEY_SHIFT,
    REASON_BITS,
    REASON_MASK,
    STALL_SHIFT,
    Sm,
    Track,
)
from ppt_gpu.sm.loop.wheel import dependence, is_bound, plan_wake, schedule
from ppt_gpu.sm.program.machine import GTO_BLOCK, GTO_LAUNCH, NEVER
from ppt_gpu.sm.program.slot_rotation import seat, seated


@merged
def note_due(track: Track) -> None:
    """Blocks are due, or the loop pauses, at another time."""
    track.due = min(track.next_launch, track.look_at)


@merged
def launch_due(sm: Sm, now: int) -> None:
    """Blocks that are due in cycle `now` enter."""
    track, on_chip = sm.track[0], sm.on_chip != 0
    next_launch, next_block = int64(NEVER), track.next_block
    for index in range(sm.resident):
        slot = sm.blocks[index]
        due = slot.launch_at == now
        if on_chip:
            next_block = slot.given
        if due and next_block < sm.total:
            sm.block_start[next_block] = now
            _launch(sm, next_block, index, now)
            next_block += 1
            if slot.live == 0:  # no warp has an entry
                _finish(sm, index)
            if on_chip:
                slot.given = -1
                track.look_at = min(track.look_at, slot.launch_at)
        next_launch = min(next_launch, slot.launch_at)
    track.next_block = next_block
    track.next_launch = int64(NEVER) if next_block == sm.total and not on_chip else next_launch
    note_due(track)


@called
def _launch(sm: Sm, number: int, index: int, now: int) -> None:
    """Put block `number` into block slot `index`; its warps are ready when their first instruction is there."""
    K, policy = sm.schedulers, sm.policy
    block, first, last = sm.blocks[index], sm.block_warp[number], sm.block_warp[number + 1]
    block.block = number
    block.live = last - first
    block.warps = last - first
    block.arrived = 0
    block.results = 0
    block.launch_at = NEVER
    for in_program in range(first, last):
        place = index * sm.per_block + in_program - first
        if last - first == sm.per_block:
            place = index * sm.per_block + seat(K, sm.mem[P_TURNED], index, in_program - first)
        k, bit, warp = place % K, place // K, sm.warps[place]
        path = sm.warp_path[in_program]
        begin, end = sm.path_start[path], sm.path_start[path + 1]
        for slot in range(place << sm.slot_shift, (place + 1) << sm.slot_shift):
            sm.slots[slot] = 0
        warp.pos = begin
        warp.ready = now
        age = int64(in_program if policy == GTO_LAUNCH else now)
        if policy == GTO_BLOCK:
            age |= int64(number) << BLOCK_KEY
        sm.keys[(k << 6) | bit] = (age << KEY_SHIFT) | bit
        warp.results = 0
        warp.access = sm.warp_access[in_program]
        warp.block_slot = index
        warp.waiting = 0
        warp.fetched = 0
        warp.last_op = -1
        warp.exit_at = now - 1
        if begin == end:
            block.live -= 1
            continue
        word = sm.code[begin]
        operation = operation_in(word)
        there = now + (in_program - first) * sm.mem[P_WARP_LAUNCH]
        if has(word, FETCH_AT):
            there = line_there(sm.mem, operation, int64(0), int64(0), there)
        sm.op_stall[(operation << STALL_SHIFT) + NO_INSTRUCTION] += there - now
        warp.ready = there
        warp.word = word
        warp.enters = sm.operations[operation].announce
        warp.gate = port_in(word) * K + k
        sm.scheds[k].alive |= int64(1) << bit
        schedule(sm, k, bit, is_bound(sm, warp.gate), there, now)


@merged
def exit_warp(sm: Sm, k: int, bit: int, operation: int, at: int) -> None:
    """The warp issued its last entry, of `operation`, in cycle `at`."""
    warp = sm.warps[bit * sm.schedulers + k]
    index = warp.block_slot
    block = sm.blocks[index]
    warp.last_op = operation
    warp.exit_at = at
    sm.scheds[k].alive &= ~(int64(1) << bit)
    block.live -= 1
    block.results = max(block.results, warp.results, at + 1)
    if block.live == 0 and not (sm.on_chip != 0 and block.pending != 0):
        finish_block(sm, index)
    elif block.arrived == block.live:
        release_barrier(sm, index, at)


@merged
def finish_block(sm: Sm, index: int) -> None:
    """The last warp of block slot `index` has exited, and all its results are known."""
    track, launch_at = sm.track[0], _finish(sm, index)
    if sm.on_chip != 0:
        track.look_at = min(track.look_at, launch_at)
    elif track.next_block < sm.total:
        track.next_launch = min(track.next_launch, launch_at)
    note_due(track)


@called
def _finish(sm: Sm, index: int) -> int:
    """Charge the drain, and free the slot; returns the cycle in which it can have its next block."""
    block, idle = sm.blocks[index], int64(0)
    end = max(block.results, sm.block_start[block.block] + 1)
    sm.block_end[block.block] = end
    for place in range(index * sm.per_block, index * sm.per_block + block.warps):
        warp = sm.warps[place]
        drained = end - warp.exit_at - 1
        if warp.last_op >= 0:
            sm.op_stall[(warp.last_op << STALL_SHIFT) + DRAIN] += drained
        else:
            idle += drained
    block.launch_at = end + sm.block_launch
    sm.track[0].ended += 1
    sm.track[0].idle += idle
    return block.launch_at


@merged
def arrive(sm: Sm, place: int, position: int, latency: int, at: int) -> None:
    """The warp issued a barrier in cycle `at`, and waits; its next entry is at `position`."""
    warp, word = sm.warps[place], sm.code[position]
    warp.pos = position
    warp.waiting = 1
    warp.arrived_at = at
    warp.barrier_latency = max(1, latency)
    if has(word, FETCH_AT):
        there = line_there(sm.mem, operation_in(word), int64(0), int64(0), at + 1)
        warp.fetched = there if there > at + 1 else int64(0)


@merged
def meet(sm: Sm, index: int, at: int) -> None:
    """One more warp of block slot `index` is at its barrier."""
    block = sm.blocks[index]
    block.arrived += 1
    if block.arrived == block.live:
        release_barrier(sm, index, at)


@called
def release_barrier(sm: Sm, index: int, now: int) -> None:
    """All live warps of block slot `index` have arrived: let them go."""
    block = sm.blocks[index]
    block.arrived = 0
    for place in range(index * sm.per_block, index * sm.per_block + block.warps):
        if sm.warps[place].waiting == 1:
            _go_on(sm, place, now + sm.warps[place].barrier_latency, int64(BARRIER), now)


@merged
def _go_on(sm: Sm, place: int, low: int, column: int, now: int) -> None:
    """The warp at `place` has what it waited for, and goes on in cycle `low`."""
    warp = sm.warps[place]
    word = sm.code[warp.pos]
    stalls = operation_in(word) << STALL_SHIFT
    warp.waiting = 0
    sm.op_stall[stalls + column] += low - warp.arrived_at - 1
    if warp.fetched > low:
        sm.op_stall[stalls + NO_INSTRUCTION] += warp.fetched - low
        low = warp.fetched
    warp.fetched = 0
    until = dependence(sm, place, word, warp.pos)
    plan_wake(sm, place % sm.schedulers, place // sm.schedulers, word, until, low, now)


@called
def warp_at(sm: Sm, place: int) -> int:
    """The number in the program of the warp at `place`."""
    index = sm.warps[place].block_slot
    block, number = sm.blocks[index], place - index * sm.per_block
    if block.warps == sm.per_block:
        number = seated(sm.schedulers, sm.mem[P_TURNED], index, number)
    return sm.block_warp[block.block] + number


@called
def next_event(sm: Sm, place: int) -> int:
    """The event of the operation that the warp at `place` issues, -1: none."""
    sync, cursor = sm.sync, sm.sync[EVENT_AT] + warp_at(sm, place)
    event = sync[sync[EVENT_OF] + sync[cursor]]
    sync[cursor] += 1
    return event


@called
def count_event(sm: Sm, index: int, event: int, when: int, now: int) -> None:
    """Who counts for an event of the block in slot `index` is there at cycle `when`. The last one lets the warps go."""
    if event < 0:
        return
    sync = sm.sync
    missing, time = sync[EVENT_MISSING] + event, sync[EVENT_TIME] + event
    sync[time] = max(sync[time], when)
    sync[missing] -= 1
    if sync[missing] != 0:
        return
    for place in range(index * sm.per_block, index * sm.per_block + sm.blocks[index].warps):
        warp = sm.warps[place]
        if warp.waiting >> REASON_BITS == event + 1:
            _go_on(sm, place, sync[time] + warp.barrier_latency, warp.waiting & REASON_MASK, now)


@called
def wait_for_event(sm: Sm, place: int, event: int, column: int, now: int) -> None:
    """The warp at `place` waits for an event, which may be complete."""
    sync, warp = sm.sync, sm.warps[place]
    if event >= 0 and sync[sync[EVENT_MISSING] + event] > 0:
        warp.waiting = (event + 1) << REASON_BITS | column
        return
    over = sync[sync[EVENT_TIME] + event] if event >= 0 else int64(0)
    _go_on(sm, place, max(now, over) + warp.barrier_latency, column, now)
