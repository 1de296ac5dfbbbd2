"""The requests of a window through the crossbars to the slices of the L2 and back, in the compiled loop.

Requests pass in the order in which they come, whatever the windows: what is not through when one ends goes on in the
next. An answer that comes back later than the end of a window is not wanted by its SM before the end of the next.
"""

from __future__ import annotations

from ppt_gpu.common.bits import int64, quotient
from ppt_gpu.common.compiled import called, merged, popcount
from ppt_gpu.sm.chip import memory as q
from ppt_gpu.sm.chip.crossbar import (
    FIRST,
    HEAD,
    LATE,
    MOST,
    R_SM,
    R_STEP,
    RECORD_WORDS,
    SENDER_WORDS,
    STEPS,
    STOPS,
    cross,
    enqueue,
    free_record,
    new_record,
)
from ppt_gpu.sm.chip.machine import COPY_BIT, NUMBER_BITS, SM_BITS, STORE
from ppt_gpu.sm.chip.requests import flits
from ppt_gpu.sm.chip.slices import Shared, at_slice
from ppt_gpu.sm.loop import memory as c
from ppt_gpu.sm.loop.tags import line_place, whole
from ppt_gpu.sm.program.machine import FRACTION, NEVER

# a request as a number that orders it: time in the window, SM, its number there
KEY_SM, KEY_TIME = NUMBER_BITS, NUMBER_BITS + SM_BITS


@merged
def request_place(chip: Shared, key: int) -> int:
    """Of a request, in the tables of all SMs."""
    return sm_of(key) * chip.stride + chip.mems[q.REQS] + ((key & (COPY_BIT - 1)) << q.REQ_SHIFT)


@merged
def sm_of(key: int) -> int:
    return (key >> KEY_SM) & ((int64(1) << SM_BITS) - 1)


@merged
def place_of(chip: Shared, what: int) -> int:
    """Where in `slices` WAY_THERE, WAY_BACK, IN_FLIGHT or WAY_AHEAD begins."""
    return chip.slices[chip.number * 4 + 4 + what]


@called
def pass_crossbars(chip: Shared, first: int, total: int) -> None:
    """Take the `total` requests of the window that begins in cycle `first`, as they stand in `order`, and leave
    in their place the answers of each SM."""
    mems, slices, order = chip.mems, chip.slices, chip.order
    there = place_of(chip, q.WAY_THERE)
    steps = slices[there + STEPS]
    begin, end = first * steps, (first + chip.window) * steps
    for index in range(total):
        _enter(chip, request_place(chip, order[index]), sm_of(order[index]), there)
    for sm in range(chip.sms):
        mems[sm * chip.stride + q.N_REQS] = 0
    while begin < end:
        until = min(begin + max(slices[there + LATE], 1), end) if slices[there + MOST] != 0 else end
        _go_on(chip, begin, until)
        begin = until
    if mems[q.PORT_SIZE] != 0:
        _look_ahead(chip, there, place_of(chip, q.WAY_AHEAD), end, steps)


@called
def _go_on(chip: Shared, begin: int, end: int) -> None:
    """Steps `begin` to `end` - 1: so few that what waits in a slice then stops it only in later ones."""
    slices = chip.slices
    there, back = place_of(chip, q.WAY_THERE), place_of(chip, q.WAY_BACK)
    steps = slices[there + STEPS]
    at = cross(slices, there, int64(q.R_ACROSS), begin, end, True, int64(0))
    while at:
        then, sm = slices[at + q.R_NEXT], slices[at + R_SM]
        came = slices[at + R_STEP] + slices[at + q.R_ACROSS]
        time = slices[at + q.R_TIME] + _cycles(slices[at + q.R_ACROSS], steps)
        this, packets = slices[at + q.R_TO], popcount(slices[at + q.R_SECTORS])
        _leave_port(chip, sm * chip.stride, at, time)
        at_slice(chip, slices, at, sm, this, time, time, int64(0), time)
        enqueue(slices, back, this, sm, at, max(came, _answered(chip, at) * steps), packets, steps)
        at = then
    at = cross(slices, back, int64(q.R_BACK), begin, end, True, there if slices[there + MOST] != 0 else int64(0))
    while at:
        then = slices[at + q.R_NEXT]
        own = ((slices[at + q.R_SIZE] >> q.HOLD_BITS) - 1) * steps
        slices[at + q.R_BACK] = _cycles(slices[at + q.R_BACK] - own, steps)
        if slices[at + q.R_KIND] != STORE:
            slices[at + q.R_ANSWER] += slices[at + q.R_BACK] >> FRACTION
        _deliver(chip, slices[at + R_SM] * chip.stride, at)
        free_record(slices, place_of(chip, q.IN_FLIGHT), at)
        at = then


@called
def _enter(chip: Shared, at: int, sm: int, there: int) -> None:
    """The request at place `at` comes to the crossbar; one without an address to one slice after another."""
    mems, below, slices = chip.mems, chip.below, chip.slices
    record = new_record(slices, place_of(chip, q.IN_FLIGHT))
    for word in range(RECORD_WORDS):
        slices[record + word] = mems[at + word]
    slices[record + R_SM] = sm
    line = mems[at + q.R_LINE]
    if line >= 0:
        to = below[line_place(below, line) + q.SLICE]
    else:
        to = slices[chip.number * 2] % chip.number
        slices[chip.number * 2] += 1
    packets, hold = popcount(mems[at + q.R_SECTORS]), int64(1)
    if slices[there + STEPS] == 2:
        packets, hold = int64(1), 1 + flits(mems, at)
    step = whole(mems[at + q.R_TIME]) * slices[there + STEPS]
    enqueue(slices, there, sm, to, record, step, packets, hold)


@merged
def _answered(chip: Shared, at: int) -> int:
    """The cycle in which its slice sends the answer to a request, as if that took no time where it is in the L2."""
    slices = chip.slices
    if slices[at + q.R_KIND] == STORE:
        return whole(slices[at + q.R_ANSWER])
    return slices[at + q.R_ANSWER] - chip.below[c.P_L2_LATENCY]


@merged
def _cycles(waited: int, steps: int) -> int:
    """Server time of so many steps, in whole cycles."""
    return quotient(waited + steps - 1, steps) << FRACTION


@called
def _deliver(chip: Shared, base: int, at: int) -> None:
    """The SM whose words begin at `base` gets its request back, answered."""
    mems = chip.mems
    to = base + mems[base + q.REQS] + (mems[base + q.N_REQS] << q.REQ_SHIFT)
    for word in range(RECORD_WORDS):
        mems[to + word] = chip.slices[at + word]
    mems[base + q.N_REQS] += 1


@called
def _leave_port(chip: Shared, base: int, at: int, time: int) -> None:
    """All flits of a request have left the port of its SM at that time."""
    mems = chip.mems
    if mems[base + q.PORT_SIZE] != 0:
        for _ in range(flits(chip.slices, at)):
            mems[base + mems[base + q.PORT] + mems[base + q.PORT_TAKEN] % mems[base + q.PORT_SIZE]] = time
            mems[base + q.PORT_TAKEN] += 1


@called
def _look_ahead(chip: Shared, there: int, ahead: int, end: int, steps: int) -> None:
    """When what waits in the ports will leave them, if nothing more comes."""
    mems, slices = chip.mems, chip.slices
    for word in range(slices[there + STOPS]):
        slices[ahead + word] = slices[there + word]
    slices[ahead + STOPS] += there - ahead  # no steps are added, so both have one table of them
    cross(slices, ahead, int64(q.R_ACROSS), end, int64(NEVER), False, int64(0))
    for sm in range(chip.sms):
        base, at = sm * chip.stride, slices[there + HEAD + sm * SENDER_WORDS + FIRST]
        taken = mems[base + q.PORT_TAKEN]
        while at:
            time = slices[at + q.R_TIME] + _cycles(slices[at + q.R_ACROSS], steps)
            _leave_port(chip, base, at, time)
            at = slices[at + q.R_NEXT]
        mems[base + q.PORT_KNOWN] = mems[base + q.PORT_TAKEN]
        mems[base + q.PORT_TAKEN] = taken
