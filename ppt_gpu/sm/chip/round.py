"""The end of a round of a chip's SMs: blocks for free slots and, when the window is over, answers for all requests."""

from __future__ import annotations

from functools import cache
from typing import Any

from ppt_gpu.common.bits import int64, pointer
from ppt_gpu.common.compiled import called, entry
from ppt_gpu.common.records import Rows, Words
from ppt_gpu.sm.chip import memory as q
from ppt_gpu.sm.chip.crossbar import USED
from ppt_gpu.sm.chip.l2_dram import serve_window
from ppt_gpu.sm.chip.passing import place_of
from ppt_gpu.sm.loop.run_end import DEADLOCK, DONE, OVER_BUDGET
from ppt_gpu.sm.loop.state import BlockSlot, Track
from ppt_gpu.sm.program.machine import NEVER

# `chip`: the cycle at which the window began, and ends; its length; the next block; the largest cycle; STATUS; LAG:
# cycles by which the memory of the SMs is behind
BEGIN, END, WINDOW, NEXT, LIMIT, STATUS, LAG = range(7)
CHIP_WORDS = 7


@called
def _dispatch(blocks: Rows[BlockSlot], tracks: Rows[Track], chip: Words, total: int, delay: int) -> None:
    """Give blocks to slots that are free, the one first that was freed first, then by SM and slot; as far as all SMs
    have come. Then, when there are no more, to none."""
    sms, resident = blocks.shape
    least = int64(NEVER)
    for sm in range(sms):
        least = min(least, tracks[sm, 0].now)
    while chip[NEXT] < total:
        earliest, best, which = int64(NEVER), int64(-1), int64(0)
        for sm in range(sms):
            for index in range(resident):
                due = blocks[sm, index].launch_at
                if blocks[sm, index].given < 0 and due - delay <= least and due < earliest:
                    earliest, best, which = due, int64(sm), int64(index)
        if best < 0:
            return
        blocks[best, which].given = chip[NEXT]
        chip[NEXT] += 1
    for sm in range(sms):
        for index in range(resident):
            if blocks[sm, index].given < 0:
                blocks[sm, index].launch_at = NEVER


@called
def _drained(mems: Words, stride: int, tracks: Rows[Track], total: int) -> bool:
    """All blocks have ended, and nothing is left in the load/store units."""
    ended = 0
    for sm in range(len(tracks)):
        ended += tracks[sm, 0].ended
        at = sm * stride
        unserved = mems[at + q.OP_LAST] - mems[at + q.OP_FIRST] + mems[at + q.COPY_LAST] - mems[at + q.COPY_FIRST]
        if unserved + mems[at + q.N_REQS] != 0:
            return False
    return ended == total


@called
def _all_back(slices: Words, number: int) -> bool:
    """Nothing is in a crossbar."""
    return slices[number * 2 + 3] != q.BY_CROSSBAR or slices[place_of(slices, number, q.IN_FLIGHT) + USED] == 0


@called
def _stuck(blocks: Rows[BlockSlot], mems: Words, stride: int, tracks: Rows[Track]) -> bool:
    """No SM has anything due: no warp, no block, no result that it does not know yet."""
    for sm in range(len(tracks)):
        at = sm * stride
        untold = mems[at + q.OP_LAST] - mems[at + q.OP_SETTLED] + mems[at + q.COPY_LAST] - mems[at + q.COPY_SETTLED]
        if tracks[sm, 0].nothing_due == 0 or untold + mems[at + q.N_REQS] != 0:
            return False
        for index in range(blocks.shape[1]):
            if blocks[sm, index].launch_at < NEVER:
                return False
    return True


@called
def _ended(tracks: Rows[Track]) -> int:
    ended = 0
    for sm in range(len(tracks)):
        ended += tracks[sm, 0].ended
    return ended


@cache
def make_close_round() -> Any:
    """_close_round, compiled."""

    def close_round(
        blocks: Rows[BlockSlot], mems: Words, stride: int, tracks: Rows[Track], chip: Words, total: int, delay: int,
        below: Words, slices: Words, channels: Words, slice_number: int, of_sm: Words, count: Words, keys: Words,
        order: Words,
    ) -> None:  # fmt: skip
        _close_round(
            blocks, mems, stride, tracks, chip, total, delay, below, slices, channels, slice_number, of_sm, count,
            keys, order,
        )  # fmt: skip

    return entry(close_round)


@called
def _close_round(
    blocks: Rows[BlockSlot], mems: Words, stride: int, tracks: Rows[Track], chip: Words, total: int, delay: int,
    below: Words, slices: Words, channels: Words, slice_number: int, of_sm: Words, count: Words, keys: Words,
    order: Words,
) -> None:  # fmt: skip
    """After all SMs went as far as they could: dispatch blocks and, at the end of the window, answer and open the next.

    chip[STATUS]: PAUSED to go on, DONE, DEADLOCK or OVER_BUDGET.
    """
    _dispatch(blocks, tracks, chip, total, delay)
    for sm in range(len(tracks)):
        if tracks[sm, 0].now < chip[END]:
            return
    serve_window(
        pointer(mems), stride, len(tracks), pointer(below), pointer(slices), pointer(channels),
        slice_number, pointer(of_sm), chip[BEGIN] - chip[LAG], len(count) - 1, pointer(count), pointer(keys),
        pointer(order),
    )  # fmt: skip
    all_back = _all_back(pointer(slices), slice_number)
    if all_back and _drained(mems, stride, tracks, total):
        chip[STATUS] = DONE
    elif all_back and _stuck(blocks, mems, stride, tracks):
        chip[STATUS] = DEADLOCK
    elif chip[END] >= chip[LIMIT] and _ended(tracks) < total:
        chip[STATUS] = OVER_BUDGET
    chip[BEGIN] = chip[END]
    chip[END] = chip[BEGIN] + chip[WINDOW]
