"""The end of a round of a chip's SMs: blocks for free slots and, when the window is over, answers for all requests."""

from __future__ import annotations

from ppt_gpu.common.bits import int64
from ppt_gpu.common.compiled import called, entry
from ppt_gpu.common.records import Rows, Words
from ppt_gpu.sm.chip import memory as q
from ppt_gpu.sm.chip.crossbar import USED
from ppt_gpu.sm.chip.l2_dram import serve_window
from ppt_gpu.sm.chip.passing import place_of
from ppt_gpu.sm.chip.slices import Shared, shared_at
from ppt_gpu.sm.loop.run_end import DEADLOCK, DONE, OVER_BUDGET
from ppt_gpu.sm.loop.state import BlockSlot, Track
from ppt_gpu.sm.program.machine import NEVER

# `words`: the cycle at which the window began, and ends; its length; the next block; the largest cycle; STATUS; LAG:
# cycles by which the memory of the SMs is behind
BEGIN, END, WINDOW, NEXT, LIMIT, STATUS, LAG = range(7)
CHIP_WORDS = 7


@called
def _dispatch(blocks: Rows[BlockSlot], tracks: Rows[Track], words: Words, total: int, delay: int) -> None:
    """Give blocks to slots that are free, the one first that was freed first, then by SM and slot; as far as all SMs
    have come. Then, when there are no more, to none."""
    sms, resident = blocks.shape
    least = int64(NEVER)
    for sm in range(sms):
        least = min(least, tracks[sm, 0].now)
    while words[NEXT] < total:
        earliest, best, which = int64(NEVER), int64(-1), int64(0)
        for sm in range(sms):
            for index in range(resident):
                due = blocks[sm, index].launch_at
                if blocks[sm, index].given < 0 and due - delay <= least and due < earliest:
                    earliest, best, which = due, int64(sm), int64(index)
        if best < 0:
            return
        blocks[best, which].given = words[NEXT]
        words[NEXT] += 1
    for sm in range(sms):
        for index in range(resident):
            if blocks[sm, index].given < 0:
                blocks[sm, index].launch_at = NEVER


@called
def _drained(chip: Shared, tracks: Rows[Track], total: int) -> bool:
    """All blocks have ended, and nothing is left in the load/store units."""
    ended = 0
    for sm in range(len(tracks)):
        ended += tracks[sm, 0].ended
        mems, at = chip.mems, sm * chip.stride
        unserved = mems[at + q.OP_LAST] - mems[at + q.OP_FIRST] + mems[at + q.COPY_LAST] - mems[at + q.COPY_FIRST]
        if unserved + mems[at + q.N_REQS] != 0:
            return False
    return ended == total


@called
def _all_back(chip: Shared) -> bool:
    """Nothing is in a crossbar."""
    return chip.slices[chip.number * 2 + 3] != q.BY_CROSSBAR or chip.slices[place_of(chip, q.IN_FLIGHT) + USED] == 0


@called
def _stuck(chip: Shared, blocks: Rows[BlockSlot], tracks: Rows[Track]) -> bool:
    """No SM has anything due: no warp, no block, no result that it does not know yet."""
    for sm in range(len(tracks)):
        mems, at = chip.mems, sm * chip.stride
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


@entry
def close_round(
    shared: Words, blocks: Rows[BlockSlot], tracks: Rows[Track], words: Words, total: int, delay: int
) -> None:
    """After all SMs went as far as they could: dispatch blocks and, at the end of the window, answer and open the next.

    words[STATUS]: PAUSED to go on, DONE, DEADLOCK or OVER_BUDGET. `total`: blocks. `delay`: cycles to launch one.
    """
    chip = shared_at(shared)
    _dispatch(blocks, tracks, words, total, delay)
    for sm in range(len(tracks)):
        if tracks[sm, 0].now < words[END]:
            return
    serve_window(chip, words[BEGIN] - words[LAG])
    all_back = _all_back(chip)
    if all_back and _drained(chip, tracks, total):
        words[STATUS] = DONE
    elif all_back and _stuck(chip, blocks, tracks):
        words[STATUS] = DEADLOCK
    elif words[END] >= words[LIMIT] and _ended(tracks) < total:
        words[STATUS] = OVER_BUDGET
    words[BEGIN] = words[END]
    words[END] = words[BEGIN] + words[WINDOW]
