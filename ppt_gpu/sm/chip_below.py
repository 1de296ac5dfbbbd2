"""What all SMs of a chip share, in the compiled loop: a window's requests in order, L2 slices, DRAM channels."""

from __future__ import annotations

from typing import Any

from numba import njit

from ppt_gpu.sm import chip_memory as q
from ppt_gpu.sm import core_memory as c
from ppt_gpu.sm.chip_machine import ATOMIC, READ
from ppt_gpu.sm.core_bits import compiled, int64, popcount
from ppt_gpu.sm.core_chip import l2_read, l2_write
from ppt_gpu.sm.core_machine import FRACTION
from ppt_gpu.sm.core_tags import claim, line_place

SM_AT = 40  # in the list of requests: place in the SM's `mem`, then the SM


@compiled
def bring_in(below: Any, lines: Any) -> None:
    """Lines that are in the L2 when the launch begins, the one used last at the end: each takes a way of its set."""
    for line in lines:
        place = line_place(below, line)
        at = below[place + c.L2_SET] & c.PLACE
        below[place + c.L2_SET] = at
        node = below[at + c.VICTIM]
        claim(below, c.L2_NODE, at, node, place)
        below[node + c.VALID] = (1 << c.SECTORS) - 1


@njit(_nrt=False)
def serve_window(mems: Any, below: Any, slices: Any, channels: Any, slice_of: Any, conflict: Any, first: int,
                 count: Any, order: Any) -> None:  # fmt: skip
    """Answer the requests of all SMs of the window that begins in cycle `first`, by (time, SM, order of the SM).

    count [window + 1], order [requests of all SMs]: room.
    """
    total = _sorted(mems, first, count, order)
    for index in range(total):
        sm, at = order[index] >> SM_AT, order[index] & ((int64(1) << SM_AT) - 1)
        _answer(mems[sm], at, sm, below, slices, channels, slice_of, conflict)


@njit(_nrt=False)
def _sorted(mems: Any, first: int, count: Any, order: Any) -> int:
    """The requests in `order`; how many. Counted by cycle, then put in order within each, where most are already."""
    for cycle in range(len(count)):
        count[cycle] = 0
    for sm in range(len(mems)):
        for number in range(mems[sm, q.N_REQS]):
            at = mems[sm, q.REQS] + (number << q.REQ_SHIFT)
            count[(mems[sm, at + q.R_TIME] >> FRACTION) - first + 1] += 1
    for cycle in range(1, len(count)):
        count[cycle] += count[cycle - 1]
    for sm in range(len(mems)):
        for number in range(mems[sm, q.N_REQS]):
            at = mems[sm, q.REQS] + (number << q.REQ_SHIFT)
            cycle = (mems[sm, at + q.R_TIME] >> FRACTION) - first
            order[count[cycle]] = (int64(sm) << SM_AT) | at
            count[cycle] += 1
    begin = int64(0)
    for cycle in range(len(count) - 1):
        end = count[cycle]
        for index in range(begin + 1, end):
            this = order[index]
            time, to = _time(mems, this), index
            while to > begin and _time(mems, order[to - 1]) > time:
                order[to] = order[to - 1]
                to -= 1
            order[to] = this
        begin = end
    return begin


@njit(forceinline=True, _nrt=False)
def _time(mems: Any, word: int) -> int:
    return mems[word >> SM_AT, (word & ((int64(1) << SM_AT) - 1)) + q.R_TIME]


@njit(_nrt=False)
def _answer(mem: Any, at: int, sm: int, below: Any, slices: Any, channels: Any, slice_of: Any, conflict: Any) -> None:
    """One request, on the way to the L2, at the slice of its line, and at the DRAM channel of that."""
    time, line, sectors, kind = mem[at + q.R_TIME], mem[at + q.R_LINE], mem[at + q.R_SECTORS], mem[at + q.R_KIND]
    number = len(slices) - 2
    if line >= 0:
        this = slice_of[line]
    else:  # has no address: one slice after another
        this = slices[number, 0] % number
        slices[number, 0] += 1
    channel = this * len(channels) // number
    below[c.L2_SERVER] = slices[this, 0]
    below[c.DRAM] = channels[channel]
    across = max(slices[number, 1] - time, 0)
    slices[number, 1] = max(slices[number, 1], time) + popcount(sectors) * slices[number + 1, 1]
    if kind in (READ, ATOMIC):
        wait = max(mem[at + q.R_WAIT], across)
        if kind == ATOMIC:
            updates, start = mem[at + q.R_UPDATES], mem[at + q.R_START]
            if updates > 0:
                conflict[sm] = max(0, slices[this, 1] - start) + (updates - 1) * below[c.P_ATOMIC]
                slices[this, 1] = max(slices[this, 1], start) + updates * below[c.P_ATOMIC]
            wait = max(wait, conflict[sm])
        mem[at + q.R_ANSWER] = l2_read(below, time, line, sectors, wait, int64(kind == ATOMIC))
    else:
        accepted = l2_write(below, time, line_place(below, line), line, sectors)
        mem[at + q.R_ANSWER] = max(accepted, slices[number, 1])
    slices[this, 0] = below[c.L2_SERVER]
    channels[channel] = below[c.DRAM]
