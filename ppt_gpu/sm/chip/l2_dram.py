"""What all SMs of a chip share, in the compiled loop: a window's requests in order, L2 slices, DRAM channels.

The tables are larger than the host's caches: what a request needs is asked for while those before it are answered.
"""

from __future__ import annotations

from ppt_gpu.common.bits import int64, prefetch
from ppt_gpu.common.compiled import called, entry, merged, popcount
from ppt_gpu.common.records import Words
from ppt_gpu.sm.chip import memory as q
from ppt_gpu.sm.chip.machine import ATOMIC, COPY, COPY_BIT, READ
from ppt_gpu.sm.chip.passing import KEY_SM, KEY_TIME, pass_crossbars, request_place, sm_of
from ppt_gpu.sm.chip.slices import Shared, at_slice
from ppt_gpu.sm.loop import memory as c
from ppt_gpu.sm.loop.tags import claim, line_place
from ppt_gpu.sm.program.machine import FRACTION

#: requests between the steps in which what the next ones need is asked for
STEP = 6


@entry
def bring_in(below: Words, lines: Words, dirty: Words) -> None:
    """Lines that are in the L2 when the launch begins, the one used last at the end: each takes a way of its set.
    dirty: masks of their sectors that have to be written back."""
    for index in range(len(lines)):
        place = line_place(below, lines[index])
        at = below[place + c.L2_SET] & c.PLACE
        node = below[at + c.VICTIM]
        claim(below, c.L2_NODE, at, node, place)
        below[node + c.VALID] = (1 << 2 * c.SECTORS) - 1
        below[node + c.DIRTY] = dirty[index]


@called
def serve_window(chip: Shared, first: int) -> None:
    """Answer the requests of all SMs of the window that begins in cycle `first`, by (time, SM, order of the SM)."""
    mems, below, order = chip.mems, chip.below, chip.order
    total = _sorted(chip, first)
    if chip.slices[chip.number * 2 + 3] == q.BY_CROSSBAR:
        pass_crossbars(chip, first, total)
        return
    for index in range(total + 4 * STEP):
        if index < total:
            prefetch(mems, request_place(chip, order[index]))
        if index >= STEP and index < total + STEP:
            prefetch(below, line_place(below, mems[request_place(chip, order[index - STEP]) + q.R_LINE]))
        if index >= 2 * STEP and index < total + 2 * STEP:
            prefetch(below, _node(below, mems[request_place(chip, order[index - 2 * STEP]) + q.R_LINE]))
        if index >= 3 * STEP and index < total + 3 * STEP:
            node = _node(below, mems[request_place(chip, order[index - 3 * STEP]) + q.R_LINE])
            prefetch(below, below[node + c.HOLDS] & c.PLACE)
        if index >= 4 * STEP:
            key = order[index - 4 * STEP]
            _answer(chip, request_place(chip, key), sm_of(key))


@merged
def _node(below: Words, line: int) -> int:
    """The node that a line has in the L2, or will take if nothing else comes between; 0 for a FORCED_* one."""
    place = line_place(below, line)
    if place == 0:
        return int64(0)
    node = below[place + c.L2_NODE] & c.PLACE
    if node == 0:
        node = below[(below[place + c.L2_SET] & c.PLACE) + c.VICTIM] & c.PLACE
    return node


@called
def _sorted(chip: Shared, first: int) -> int:
    """The requests in `order`; how many. Counted by cycle, then put in order within each, where most are already."""
    mems, count, keys, order = chip.mems, chip.count, chip.keys, chip.order
    total = int64(0)
    for cycle in range(chip.window + 1):
        count[cycle] = 0
    begin = int64(first) << FRACTION
    for sm in range(chip.sms):
        at = sm * chip.stride + mems[q.REQS]
        for number in range(mems[sm * chip.stride + q.N_REQS]):
            request = at + (number << q.REQ_SHIFT)
            time, last = mems[request + q.R_TIME] - begin, int64(mems[request + q.R_KIND] == COPY) * COPY_BIT
            keys[total] = (time << KEY_TIME) | (sm << KEY_SM) | last | number
            count[(time >> FRACTION) + 1] += 1
            total += 1
    for cycle in range(1, chip.window + 1):
        count[cycle] += count[cycle - 1]
    for index in range(total):
        cycle = keys[index] >> (KEY_TIME + FRACTION)
        order[count[cycle]] = keys[index]
        count[cycle] += 1
    for index in range(1, total):
        this, to = order[index], index
        while to > 0 and order[to - 1] > this:
            order[to] = order[to - 1]
            to -= 1
        order[to] = this
    return total


@called
def _answer(chip: Shared, at: int, sm: int) -> None:
    """One request, on the way to the L2, at the slice of its line, and at the DRAM channel of that."""
    mems, below, slices, of_sm = chip.mems, chip.below, chip.slices, chip.of_sm
    time, line, count = mems[at + q.R_TIME], mems[at + q.R_LINE], popcount(mems[at + q.R_SECTORS])
    across_at = chip.number * 2 + 1
    if line >= 0:
        this = below[line_place(below, line) + q.SLICE]
    else:  # has no address: one slice after another
        this = slices[chip.number * 2] % chip.number
        slices[chip.number * 2] += 1
    wait = max(slices[across_at] - time, 0)
    there = slices[across_at] = max(slices[across_at], time) + count * slices[across_at + 2]
    if mems[at + q.R_KIND] in (READ, COPY, ATOMIC):
        link = sm * 2 + q.LINK
        wait = max(mems[at + q.R_WAIT], wait, of_sm[link] - time)
        of_sm[link] = max(of_sm[link], time) + count * slices[across_at + 1]
    at_slice(chip, mems, at, sm, this, time, mems[at + q.R_START], wait, there)
