"""Blocks enter, leave and meet at barriers, in the compiled loop of an SM with collector units."""

from __future__ import annotations

from typing import Any

from ppt_gpu.compiled import called
from ppt_gpu.sm.core_machine import NEVER
from ppt_gpu.sm.staged_state import (
    AT_ACCESS,
    BLOCK,
    BLOCK_NUMBER,
    BLOCK_WORDS,
    BORN,
    END,
    ENDED,
    FLYING,
    HELD,
    HELD_FOR,
    LAST_OP,
    LAUNCH_AT,
    LEFT,
    MOVED,
    NEXT_BLOCK,
    NUMBER,
    POS,
    RESULTS,
    SLOTS,
    STAMP,
    WARP_WORDS,
)


@called
def leave_blocks(
    sizes: Any, warps: Any, blocks: Any, now: Any, block_start: Any, block_end: Any, delay: int, cycle: int
) -> None:
    """Blocks that ended leave."""
    for index in range(sizes[6]):
        this = index * BLOCK_WORDS
        number = blocks[this + BLOCK_NUMBER]
        if number < 0 or blocks[this + LEFT] != 0 or blocks[this + FLYING] != 0 or blocks[this + RESULTS] > cycle:
            continue
        if cycle > block_start[number]:
            block_end[number] = cycle
            blocks[this + BLOCK_NUMBER] = -1
            blocks[this + LAUNCH_AT] = cycle + delay
            now[ENDED] += 1
            now[MOVED] = 1
            for place in range(index * sizes[5], (index + 1) * sizes[5]):
                warps[place * WARP_WORDS + BLOCK] = 0


@called
def launch_blocks(
    sizes: Any, warps: Any, slots: Any, owner: Any, blocks: Any, now: Any, waits: Any, path_start: Any, warp_path: Any,
    warp_access: Any, block_warp: Any, block_start: Any, warp_launch: int, total: int, cycle: int,
) -> None:  # fmt: skip
    """Due blocks start."""
    for index in range(sizes[6]):
        this = index * BLOCK_WORDS
        if blocks[this + BLOCK_NUMBER] >= 0 or blocks[this + LAUNCH_AT] > cycle or now[NEXT_BLOCK] >= total:
            continue
        number = now[NEXT_BLOCK]
        now[NEXT_BLOCK] += 1
        now[MOVED] = 1
        first, last = block_warp[number], block_warp[number + 1]
        block_start[number] = cycle
        blocks[this + BLOCK_NUMBER] = number
        blocks[this + LEFT] = last - first
        blocks[this + FLYING] = 0
        blocks[this + RESULTS] = 0
        for warp in range(first, last):
            place = index * sizes[5] + warp - first
            me = place * WARP_WORDS
            for slot in range(place * SLOTS, (place + 1) * SLOTS):
                slots[slot] = 0
                owner[slot] = -1
            for word in range(me, me + WARP_WORDS):
                warps[word] = 0
            warps[me + POS], warps[me + END] = path_start[warp_path[warp]], path_start[warp_path[warp] + 1]
            warps[me + AT_ACCESS] = warp_access[warp]
            warps[me + BORN] = cycle + (warp - first) * warp_launch
            warps[me + STAMP], warps[me + NUMBER] = cycle, warp
            warps[me + BLOCK] = index + 1
            warps[me + LAST_OP] = -1
            if warps[me + POS] == warps[me + END]:
                blocks[this + LEFT] -= 1


@called
def release_barrier(sizes: Any, warps: Any, blocks: Any, this: int, cycle: int) -> None:
    """Let the waiting warps of a block go when no live warp of it is missing."""
    first = this // BLOCK_WORDS * sizes[5]
    for place in range(first, first + sizes[5]):
        me = place * WARP_WORDS
        if warps[me + BLOCK] != 0 and warps[me + POS] < warps[me + END] and warps[me + HELD] != NEVER:
            return
    for place in range(first, first + sizes[5]):
        me = place * WARP_WORDS
        if warps[me + BLOCK] != 0 and warps[me + POS] < warps[me + END]:
            warps[me + HELD] = cycle + warps[me + HELD_FOR]
