"""When the warps of an SM with collector units can issue, and what they are charged with until then: compiled.

No cycle looks at all warps. What holds a warp up ends at a known cycle, in which the wheel brings it up, or when
something happens to it: its buffer is filled, a result or a barrier becomes known. Until then its reasons follow from
its record, so that they are charged in whole stretches.
"""

from __future__ import annotations

from ppt_gpu.common.bits import ctz, int64, rotated
from ppt_gpu.common.compiled import called, merged
from ppt_gpu.sm.collectors.state import SLOTS, WHEEL, Lane, StagedSm, StagedWarp
from ppt_gpu.sm.program.machine import NEVER, UNKNOWN
from ppt_gpu.sm.program.program import KIND_ATOMIC, KIND_CONSTANT, KIND_LOAD, KIND_SHARED
from ppt_gpu.sm.program.result import STALL_REASONS

(
    SELECTED, NOT_SELECTED, WAIT, MATH, LONG, SHORT, LG, MIO, BARRIER, BRANCH, NO_INSTRUCTION, DRAIN,
) = range(len(STALL_REASONS))  # fmt: skip
REASONS = len(STALL_REASONS)


@merged
def lane_of(sm: StagedSm, number: int, pipe: int) -> Lane:
    """The lane of the pipe that has this number: that of a scheduler, or one of those that all share."""
    return sm.lanes[number * sm.pipe_count + pipe]


@merged
def settle(sm: StagedSm, warp: StagedWarp, upto: int) -> None:
    """Charge the warp, which waits for something else than its gate, up to cycle `upto`."""
    at, row = warp.since, sm.entry_op[warp.pos] * REASONS
    if warp.held > at and at < upto:
        end = min(warp.held, upto)
        sm.op_stall[row + BARRIER] += end - at
        at = end
    if at < upto:
        if warp.buffer == 0:
            sm.op_stall[row + NO_INSTRUCTION] += upto - at
        elif warp.stray != 0:
            sm.op_stall[row + BRANCH] += upto - at
        elif warp.until >> 2 == UNKNOWN:
            warp.deferred += upto - at
        else:
            sm.op_stall[row + waiting_for(warp.until)] += upto - at
    warp.since = upto


@merged
def waiting_for(until: int) -> int:
    """The reason of who waits for what `until` of a warp says."""
    kind = until & 3
    return int64(LONG if kind == 2 else (SHORT if kind == 1 else WAIT))


@merged
def wait_until(sm: StagedSm, place: int, cycle: int) -> bool:
    """A result of the warp in slot `place` has become known: is it ready at another time than was known before?"""
    warp, until = sm.warps[place], until_of(sm, place)
    if until == warp.until:
        return False
    settle(sm, warp, cycle)
    warp.until = until
    if warp.deferred != 0 and until >> 2 != UNKNOWN:
        sm.op_stall[sm.entry_op[warp.pos] * REASONS + waiting_for(until)] += warp.deferred
        warp.deferred = 0
    return True


@merged
def charge_ready(sm: StagedSm, warp: StagedWarp, row: int, kind: int, lane: Lane, cycle: int) -> None:
    """The warp issues through `lane`: charge it with the cycles since it became ready; `row`: that of its operation."""
    throttled, reason = lane.blocked - warp.base, int64(MATH)
    if kind >= KIND_LOAD and kind <= KIND_ATOMIC:
        reason = int64(LG)
    elif kind in (KIND_SHARED, KIND_CONSTANT):
        reason = int64(MIO)
    sm.op_stall[row + reason] += throttled
    sm.op_stall[row + NOT_SELECTED] += cycle - warp.since - throttled
    sm.op_stall[row + SELECTED] += 1
    warp.since = cycle + 1


@merged
def charge_drain(sm: StagedSm, warp: StagedWarp, cycle: int) -> int:
    """The block of the warp, which has exited, leaves: cycles of a warp that had no entries."""
    waited = cycle - warp.since
    if warp.last_op < 0:
        return waited
    sm.op_stall[warp.last_op * REASONS + DRAIN] += waited
    return int64(0)


@merged
def wake_at(sm: StagedSm, scheduler: int, row: int, then: int, cycle: int) -> None:
    """Look at the warp in cycle `then`, after `cycle`; again and again if that is far away."""
    now = sm.now[0]
    turn = (then if then - cycle < WHEEL else cycle + WHEEL - 1) & (WHEEL - 1)
    sm.wheel[turn * sm.schedulers + scheduler] |= int64(1) << row
    now.waking |= int64(1) << turn


@called
def look_at(sm: StagedSm, place: int, cycle: int) -> None:
    """Something may have changed for a warp, from `cycle` on: can it issue, or when is it to be looked at again?"""
    warp = sm.warps[place]
    if warp.pos == warp.end:
        return
    scheduler, row = warp.sched, warp.row
    bit, sched = int64(1) << row, sm.scheds[scheduler]
    if warp.buffer == 0:
        born = abs(warp.born)
        if born <= cycle:
            word = place >> 6 if warp.born >= 0 else sm.words + (place >> 6)
            sm.wants[word] |= int64(1) << (place & 63)
        else:
            wake_at(sm, scheduler, row, born, cycle)
        return
    until = warp.held
    if warp.stray == 0:
        until = max(until, warp.until >> 2)
    if until > cycle:
        if until < UNKNOWN:
            wake_at(sm, scheduler, row, until, cycle)
        return
    if warp.stray != 0:
        sched.strays |= bit
        return
    lane = lane_of(sm, scheduler, sm.ops[sm.entry_op[warp.pos]].pipe)
    if lane.need & bit:
        return
    settle(sm, warp, cycle)
    lane.need |= bit
    warp.base = lane.blocked
    if lane.closed == 0:
        sched.open |= bit
    else:
        warp.base += max(cycle - lane.closed_from, 0)


@merged
def wake(sm: StagedSm, cycle: int) -> None:
    """Look at the warps of this cycle's row of the wheel."""
    now = sm.now[0]
    turn, k = cycle & (WHEEL - 1), sm.schedulers
    if (now.waking >> turn) & 1 == 0:
        return
    now.waking &= ~(int64(1) << turn)
    for scheduler in range(k):
        left = sm.wheel[turn * k + scheduler]
        sm.wheel[turn * k + scheduler] = 0
        while left:
            place = ctz(left) * k + scheduler
            left &= left - 1
            look_at(sm, place, cycle)


@merged
def next_wake(sm: StagedSm, cycle: int) -> int:
    """The next cycle after `cycle` in which the wheel has somebody."""
    now = sm.now[0]
    rows = rotated(now.waking, cycle + 1)
    return cycle + 1 + ctz(rows) if rows else int64(NEVER)


@merged
def until_of(sm: StagedSm, place: int) -> int:
    """UNTIL of the warp's next entry."""
    position, until = sm.warps[place].pos, int64(0)
    if position < sm.warps[place].end:
        left = int64(sm.waits[position])
        while left:
            until = max(until, sm.slots[place * SLOTS + ctz(left)])
            left &= left - 1
    return until


@merged
def ends(sm: StagedSm, place: int) -> None:
    """It is known when the warp is over: then the SM has to look."""
    now = sm.now[0]
    sm.wants[2 * sm.words + (place >> 6)] |= int64(1) << (place & 63)
    now.due = min(now.due, sm.warps[place].over)
