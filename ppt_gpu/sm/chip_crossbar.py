"""The crossbar from the SMs of a chip to the slices of its L2, in the compiled loop. As `crossbar_reference`.

Its words stand behind `slices`, from `router` on: how far the rings are clear; of each SM SM_WORDS; of each slice
SLICE_WORDS. Of an SM: the cycle from which its next packet may leave, its first and last request of the window that are
not through, the packets left of the first and the slice that they are for (the place of its words), and the SM that
waits beside it for the same slice. Of a slice: the SM whose turn it is, the first one that waits, and a ring of bits,
one for each of the AHEAD cycles from the window on, set where it takes a packet.
"""

from __future__ import annotations

from typing import Any

from ppt_gpu.compiled import called, merged, popcount
from ppt_gpu.sm import chip_memory as q
from ppt_gpu.sm.chip_machine import AHEAD, SKEW, SKEW_HASH, SKEW_SHIFT
from ppt_gpu.sm.core_bits import int64
from ppt_gpu.sm.core_machine import FRACTION, NEVER
from ppt_gpu.sm.core_tags import whole

RING = AHEAD >> 6
GONE, FIRST, LAST, LEFT, TO, BESIDE = range(6)
SM_WORDS = 6
TURN, WAITS, BITS = range(3)
SLICE_WORDS = BITS + RING


def router_words(sms: int, slices: int) -> int:
    """How many words a crossbar has."""
    return 1 + sms * SM_WORDS + slices * SLICE_WORDS


@merged
def _ring_word(of_slice: int, cycle: int) -> int:
    return of_slice + BITS + ((cycle >> 6) & (RING - 1))


@merged
def _skew(sm: int) -> int:
    return (sm * SKEW_HASH >> SKEW_SHIFT) % SKEW


@called
def open_router(slices: Any, router: int, sms: int, number: int, cycle: int) -> None:
    """A window begins: what was booked before `cycle` is over."""
    word, to = cycle >> 6, router + 1 + sms * SM_WORDS
    for over in range(max(slices[router], word - RING), word):
        for of_slice in range(number):
            slices[_ring_word(to + of_slice * SLICE_WORDS, over << 6)] = 0
    slices[router] = max(slices[router], word)
    for sm in range(sms):
        slices[router + 1 + sm * SM_WORDS + FIRST] = 0


@called
def enqueue(mems: Any, slices: Any, router: int, sms: int, sm: int, request: int, to: int) -> None:
    """The request at place `request`, for slice `to`, is behind those of its SM."""
    at = router + 1 + sm * SM_WORDS
    mems[request + q.R_SLICE] = router + 1 + sms * SM_WORDS + to * SLICE_WORDS
    mems[request + q.R_NEXT] = 0
    if slices[at + FIRST] == 0:
        slices[at + FIRST] = request
        _first(mems, slices, at, sm)
    else:
        mems[slices[at + LAST] + q.R_NEXT] = request
    slices[at + LAST] = request


@called
def _first(mems: Any, slices: Any, at: int, sm: int) -> None:
    """The SM, at place `at`, begins with its first request, if there is one."""
    request = slices[at + FIRST]
    if request:
        slices[at + LEFT] = popcount(mems[request + q.R_SECTORS])
        slices[at + TO] = mems[request + q.R_SLICE]
        slices[at + GONE] = max(slices[at + GONE], whole(mems[request + q.R_TIME]) + _skew(sm))


@called
def _line_up(slices: Any, router: int, sms: int, now: int) -> int:
    """SMs that have a packet wait for its slice; the cycle of the next one that will have one."""
    soon = int64(NEVER)
    for sm in range(sms):
        at = router + 1 + sm * SM_WORDS
        if slices[at + FIRST] != 0:
            if slices[at + GONE] <= now:
                slices[at + BESIDE] = slices[slices[at + TO] + WAITS]
                slices[slices[at + TO] + WAITS] = sm + 1
                soon = now + 1
            else:
                soon = min(soon, slices[at + GONE])
    return soon


@called
def _grant(mems: Any, slices: Any, router: int, sms: int, of_slice: int, now: int, first: int) -> None:
    """The slice takes the packet of the next SM in turn among those that wait, unless it has one in this cycle."""
    waits, best = slices[of_slice + WAITS] - 1, int64(NEVER)
    slices[of_slice + WAITS] = 0
    bit, word = int64(1) << (now & 63), _ring_word(of_slice, now)
    booked = now - first < AHEAD - 64
    if booked and slices[word] & bit != 0:
        return
    while waits >= 0:
        turn = waits - slices[of_slice + TURN]
        turn += sms if turn < 0 else int64(0)
        best = min(best, turn)
        waits = slices[router + 1 + waits * SM_WORDS + BESIDE] - 1
    if booked:
        slices[word] |= bit
    sm = best + slices[of_slice + TURN]
    sm -= sms if sm >= sms else int64(0)
    slices[of_slice + TURN] = sm + 2 if sm + 2 < sms else int64(0)
    place = router + 1 + sm * SM_WORDS
    slices[place + GONE] = now + 1
    slices[place + LEFT] -= 1
    if slices[place + LEFT] == 0:
        request = slices[place + FIRST]
        mems[request + q.R_ACROSS] = (now - whole(mems[request + q.R_TIME]) - _skew(sm)) << FRACTION
        slices[place + FIRST] = mems[request + q.R_NEXT]
        _first(mems, slices, place, sm)


@called
def cross(mems: Any, slices: Any, router: int, sms: int, number: int, first: int) -> None:
    """Take all requests of the window that begins in cycle `first` to their slices. R_ACROSS: how much later each is
    there, with its last packet."""
    now, to = int64(first), router + 1 + sms * SM_WORDS
    while now < NEVER:
        soon = _line_up(slices, router, sms, now)
        for of_slice in range(to, to + number * SLICE_WORDS, SLICE_WORDS):
            if slices[of_slice + WAITS] != 0:
                _grant(mems, slices, router, sms, of_slice, now, first)
        now = soon
