"""Blocks enter, leave and meet at barriers, in the compiled loop."""

from __future__ import annotations

from typing import Any

from ppt_gpu.common.bits import int64
from ppt_gpu.common.compiled import called, merged
from ppt_gpu.sm.loop.code import line_there
from ppt_gpu.sm.loop.memory import P_TURNED, P_WARP_LAUNCH
from ppt_gpu.sm.loop.pack import (
    ANNOUNCE,
    BARRIER,
    DRAIN,
    FETCH_AT,
    NO_INSTRUCTION,
    OP_AT,
    OP_MASK,
    OP_ROW,
    PORT_AT,
    PORT_MASK,
)
from ppt_gpu.sm.loop.state import (
    ACCESS,
    ALIVE,
    ARRIVED,
    ARRIVED_AT,
    BARRIER_LATENCY,
    BLOCK,
    BLOCK_KEY,
    BLOCK_RESULTS,
    BLOCK_SHIFT,
    BLOCK_SLOT,
    ENTERS,
    EVENT_AT,
    EVENT_MISSING,
    EVENT_OF,
    EVENT_TIME,
    EXIT_AT,
    FETCHED,
    GATE,
    GATE_SHIFT,
    KEY_SHIFT,
    LAST_OP,
    LAUNCH_AT,
    LIVE,
    POS,
    READY,
    REASON_BITS,
    REASON_MASK,
    RESULTS,
    SCHED_SHIFT,
    STALL_SHIFT,
    WAITING,
    WARP_SHIFT,
    WARPS,
    WORD,
)
from ppt_gpu.sm.loop.wheel import dependence, is_bound, plan_wake, schedule
from ppt_gpu.sm.program.machine import GTO_BLOCK, GTO_LAUNCH, NEVER
from ppt_gpu.sm.program.slot_rotation import seat, seated


@merged
def _go_on(
    K: int, wheel: Any, occupied: Any, scheds: Any, warps: Any, slots: Any, slot_shift: int,
    op_stall: Any, op_table: Any, code: Any, waits: Any, place: int, low: int, column: int, now: int,
) -> None:  # fmt: skip
    """The warp at `place` has what it waited for, and goes on in cycle `low`."""
    k, bit, me = place % K, place // K, place << WARP_SHIFT
    warps[me + WAITING] = 0
    position = warps[me + POS]
    word = code[position]
    stalls = ((word >> OP_AT) & OP_MASK) << STALL_SHIFT
    op_stall[stalls + column] += low - warps[me + ARRIVED_AT] - 1
    if warps[me + FETCHED] > low:
        op_stall[stalls + NO_INSTRUCTION] += warps[me + FETCHED] - low
        low = warps[me + FETCHED]
    warps[me + FETCHED] = 0
    until = dependence(slots, place << slot_shift, word, waits, position)
    plan_wake(
        K, wheel, occupied, scheds, warps, op_stall, op_table, k, bit, word, until, low, now,
    )  # fmt: skip


@called
def release_barrier(
    K: int, wheel: Any, occupied: Any, scheds: Any, warps: Any, slots: Any, slot_shift: int, blocks: Any,
    op_stall: Any, op_table: Any, code: Any, waits: Any, index: int, per_block: int, now: int,
) -> None:  # fmt: skip
    """All live warps of block slot `index` have arrived: let them go."""
    this = index << BLOCK_SHIFT
    blocks[this + ARRIVED] = 0
    for place in range(index * per_block, index * per_block + blocks[this + WARPS]):
        if warps[(place << WARP_SHIFT) + WAITING] == 1:
            low = now + warps[(place << WARP_SHIFT) + BARRIER_LATENCY]
            _go_on(
                K, wheel, occupied, scheds, warps, slots, slot_shift, op_stall, op_table, code, waits, place,
                low, int64(BARRIER), now,
            )  # fmt: skip


@called
def warp_at(K: int, warps: Any, blocks: Any, block_warp: Any, mem: Any, place: int, per_block: int) -> int:
    """The number in the program of the warp at `place`."""
    index = warps[(place << WARP_SHIFT) + BLOCK_SLOT]
    number = place - index * per_block
    if blocks[(index << BLOCK_SHIFT) + WARPS] == per_block:
        number = seated(K, mem[P_TURNED], index, number)
    return block_warp[blocks[(index << BLOCK_SHIFT) + BLOCK]] + number


@called
def next_event(
    K: int, warps: Any, blocks: Any, block_warp: Any, mem: Any, sync: Any, place: int, per_block: int
) -> int:
    """The event of the operation that the warp at `place` issues, -1: none."""
    cursor = sync[EVENT_AT] + warp_at(K, warps, blocks, block_warp, mem, place, per_block)
    event = sync[sync[EVENT_OF] + sync[cursor]]
    sync[cursor] += 1
    return event


@called
def count_event(
    K: int, wheel: Any, occupied: Any, scheds: Any, warps: Any, slots: Any, slot_shift: int, blocks: Any,
    op_stall: Any, op_table: Any, code: Any, waits: Any, index: int, per_block: int, sync: Any, event: int, when: int,
    now: int,
) -> None:  # fmt: skip
    """Who counts for an event of the block in slot `index` is there at cycle `when`. The last one lets the warps go."""
    if event < 0:
        return
    sync[sync[EVENT_TIME] + event] = max(sync[sync[EVENT_TIME] + event], when)
    sync[sync[EVENT_MISSING] + event] -= 1
    if sync[sync[EVENT_MISSING] + event] != 0:
        return
    for place in range(index * per_block, index * per_block + blocks[(index << BLOCK_SHIFT) + WARPS]):
        waiting = warps[(place << WARP_SHIFT) + WAITING]
        if waiting >> REASON_BITS == event + 1:
            low = sync[sync[EVENT_TIME] + event] + warps[(place << WARP_SHIFT) + BARRIER_LATENCY]
            _go_on(
                K, wheel, occupied, scheds, warps, slots, slot_shift, op_stall, op_table, code, waits, place,
                low, waiting & REASON_MASK, now,
            )  # fmt: skip


@called
def wait_for_event(
    K: int, wheel: Any, occupied: Any, scheds: Any, warps: Any, slots: Any, slot_shift: int,
    op_stall: Any, op_table: Any, code: Any, waits: Any, place: int, sync: Any, event: int, column: int, now: int,
) -> None:  # fmt: skip
    """The warp at `place` waits for an event, which may be complete."""
    me = place << WARP_SHIFT
    if event >= 0 and sync[sync[EVENT_MISSING] + event] > 0:
        warps[me + WAITING] = (event + 1) << REASON_BITS | column
        return
    over = sync[sync[EVENT_TIME] + event] if event >= 0 else int64(0)
    _go_on(
        K, wheel, occupied, scheds, warps, slots, slot_shift, op_stall, op_table, code, waits, place,
        max(now, over) + warps[me + BARRIER_LATENCY], column, now,
    )  # fmt: skip


@called
def finish_block(
    K: int, warps: Any, blocks: Any, op_stall: Any, block_start: Any, block_end: Any, index: int, per_block: int,
    delay: int,
) -> int:  # fmt: skip
    """The last warp of block slot `index` has exited: charge the drain. Returns the cycles of warps without entries."""
    this = index << BLOCK_SHIFT
    number = blocks[this + BLOCK]
    end = max(blocks[this + BLOCK_RESULTS], block_start[number] + 1)
    idle = 0
    block_end[number] = end
    for place in range(index * per_block, index * per_block + blocks[this + WARPS]):
        me = place << WARP_SHIFT
        drained = end - warps[me + EXIT_AT] - 1
        if warps[me + LAST_OP] >= 0:
            op_stall[(warps[me + LAST_OP] << STALL_SHIFT) + DRAIN] += drained
        else:
            idle += drained
    blocks[this + LAUNCH_AT] = end + delay
    return idle


@called
def launch_block(
    K: int, POLICY: int, wheel: Any, occupied: Any, scheds: Any, warps: Any, keys: Any, slots: Any, slot_shift: int,
    blocks: Any, op_table: Any, code: Any, path_start: Any, warp_path: Any, warp_access: Any, block_warp: Any,
    mem: Any, op_stall: Any, number: int, index: int, per_block: int, now: int,
) -> None:  # fmt: skip
    """Put block `number` into block slot `index`; its warps are ready when their first instruction is there."""
    this, first, last = index << BLOCK_SHIFT, block_warp[number], block_warp[number + 1]
    blocks[this + BLOCK] = number
    blocks[this + LIVE] = last - first
    blocks[this + WARPS] = last - first
    blocks[this + ARRIVED] = 0
    blocks[this + BLOCK_RESULTS] = 0
    blocks[this + LAUNCH_AT] = NEVER
    for warp in range(first, last):
        place = index * per_block + warp - first
        if last - first == per_block:
            place = index * per_block + seat(K, mem[P_TURNED], index, warp - first)
        k, bit, me = place % K, place // K, place << WARP_SHIFT
        begin, end = path_start[warp_path[warp]], path_start[warp_path[warp] + 1]
        for slot in range(place << slot_shift, (place + 1) << slot_shift):
            slots[slot] = 0
        warps[me + POS] = begin
        warps[me + READY] = now
        age = int64(warp if POLICY == GTO_LAUNCH else now)
        if POLICY == GTO_BLOCK:
            age |= int64(number) << BLOCK_KEY
        keys[(k << 6) | bit] = (age << KEY_SHIFT) | bit
        warps[me + RESULTS] = 0
        warps[me + ACCESS] = warp_access[warp]
        warps[me + BLOCK_SLOT] = index
        warps[me + WAITING] = 0
        warps[me + FETCHED] = 0
        warps[me + LAST_OP] = -1
        warps[me + EXIT_AT] = now - 1
        if begin == end:
            blocks[this + LIVE] -= 1
            continue
        operation = (code[begin] >> OP_AT) & OP_MASK
        there = now + (warp - first) * mem[P_WARP_LAUNCH]
        if (code[begin] >> FETCH_AT) & 1 != 0:
            there = line_there(mem, operation, int64(0), int64(0), there)
        op_stall[(operation << STALL_SHIFT) + NO_INSTRUCTION] += there - now
        warps[me + READY] = there
        warps[me + WORD] = code[begin]
        warps[me + ENTERS] = op_table[operation * OP_ROW + ANNOUNCE]
        warps[me + GATE] = (((code[begin] >> PORT_AT) & PORT_MASK) * K + k) << GATE_SHIFT
        scheds[(k << SCHED_SHIFT) + ALIVE] |= int64(1) << bit
        schedule(K, wheel, occupied, scheds, k, bit, is_bound(K, warps[me + GATE]), there, now)
