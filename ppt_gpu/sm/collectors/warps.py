"""When the warps of an SM with collector units can issue, and what they are charged with until then: compiled.

No cycle looks at all warps. What holds a warp up ends at a known cycle, in which the wheel brings it up, or when
something happens to it: its buffer is filled, a result or a barrier becomes known. Until then its reasons follow from
its record, so that they are charged in whole stretches.
"""

from __future__ import annotations

from typing import Any

from ppt_gpu.common.bits import ctz, int64, rotated
from ppt_gpu.common.compiled import called, merged
from ppt_gpu.sm.collectors.state import (
    BASE,
    BLOCKED,
    BORN,
    BUFFER,
    CLOSED,
    DEFERRED,
    DUE,
    END,
    FROM,
    GATE_WORDS,
    HELD,
    LAST_OP,
    NEED,
    OP_WORDS,
    OPEN,
    OVER,
    PIPE,
    PIPES,
    POS,
    ROW,
    SCHED,
    SCHED_WORDS,
    SCHEDULERS,
    SINCE,
    SLOTS,
    STRAY,
    STRAYS,
    UNTIL,
    WAKING,
    WARP_WORDS,
    WHEEL,
    WORDS,
)
from ppt_gpu.sm.program.machine import NEVER, UNKNOWN
from ppt_gpu.sm.program.program import KIND_ATOMIC, KIND_CONSTANT, KIND_LOAD, KIND_SHARED
from ppt_gpu.sm.program.result import STALL_REASONS

(
    SELECTED, NOT_SELECTED, WAIT, MATH, LONG, SHORT, LG, MIO, BARRIER, BRANCH, NO_INSTRUCTION, DRAIN,
) = range(len(STALL_REASONS))  # fmt: skip
REASONS = len(STALL_REASONS)


@merged
def settle(warps: Any, entry_op: Any, op_stall: Any, me: int, upto: int) -> None:
    """Charge the warp at `me`, which waits for something else than its gate, up to cycle `upto`."""
    at, row = warps[me + SINCE], int64(entry_op[warps[me + POS]]) * REASONS
    if warps[me + HELD] > at and at < upto:
        end = min(warps[me + HELD], upto)
        op_stall[row + BARRIER] += end - at
        at = end
    if at < upto:
        if warps[me + BUFFER] == 0:
            op_stall[row + NO_INSTRUCTION] += upto - at
        elif warps[me + STRAY] != 0:
            op_stall[row + BRANCH] += upto - at
        elif warps[me + UNTIL] >> 2 == UNKNOWN:
            warps[me + DEFERRED] += upto - at
        else:
            op_stall[row + waiting_for(warps[me + UNTIL])] += upto - at
    warps[me + SINCE] = upto


@merged
def waiting_for(until: int) -> int:
    """The reason of who waits for what UNTIL says."""
    kind = until & 3
    return int64(LONG if kind == 2 else (SHORT if kind == 1 else WAIT))


@merged
def wait_until(
    warps: Any, slots: Any, waits: Any, entry_op: Any, op_stall: Any, place: int, cycle: int
) -> bool:  # fmt: skip
    """A result of the warp in slot `place` has become known: is it ready at another time than was known before?"""
    me, until = place * WARP_WORDS, until_of(warps, slots, waits, place)
    if until == warps[me + UNTIL]:
        return False
    settle(warps, entry_op, op_stall, me, cycle)
    warps[me + UNTIL] = until
    if warps[me + DEFERRED] != 0 and until >> 2 != UNKNOWN:
        op_stall[int64(entry_op[warps[me + POS]]) * REASONS + waiting_for(until)] += warps[me + DEFERRED]
        warps[me + DEFERRED] = 0
    return True


@merged
def charge_ready(warps: Any, gates: Any, op_stall: Any, me: int, row: int, kind: int, gate: int, cycle: int) -> None:
    """The warp at `me` issues: charge it with the cycles since it became ready; `row`: that of its operation."""
    throttled, reason = gates[gate + BLOCKED] - warps[me + BASE], int64(MATH)
    if kind >= KIND_LOAD and kind <= KIND_ATOMIC:
        reason = int64(LG)
    elif kind in (KIND_SHARED, KIND_CONSTANT):
        reason = int64(MIO)
    op_stall[row + reason] += throttled
    op_stall[row + NOT_SELECTED] += cycle - warps[me + SINCE] - throttled
    op_stall[row + SELECTED] += 1
    warps[me + SINCE] = cycle + 1


@merged
def charge_drain(warps: Any, op_stall: Any, me: int, cycle: int) -> int:
    """The block of the warp at `me`, which has exited, leaves: cycles of a warp that had no entries."""
    waited = cycle - warps[me + SINCE]
    if warps[me + LAST_OP] < 0:
        return waited
    op_stall[warps[me + LAST_OP] * REASONS + DRAIN] += waited
    return int64(0)


@merged
def wake_at(sizes: Any, wheel: Any, now: Any, scheduler: int, row: int, then: int, cycle: int) -> None:
    """Look at the warp in cycle `then`, after `cycle`; again and again if that is far away."""
    turn = (then if then - cycle < WHEEL else cycle + WHEEL - 1) & (WHEEL - 1)
    wheel[turn * sizes[SCHEDULERS] + scheduler] |= int64(1) << row
    now[WAKING] |= int64(1) << turn


@called
def look_at(
    sizes: Any, warps: Any, ops: Any, scheds: Any, gates: Any, wheel: Any, wants: Any, now: Any, entry_op: Any,
    op_stall: Any, place: int, cycle: int,
) -> None:  # fmt: skip
    """Something may have changed for a warp, from `cycle` on: can it issue, or when is it to be looked at again?"""
    me = place * WARP_WORDS
    if warps[me + POS] == warps[me + END]:
        return
    scheduler, row = warps[me + SCHED], warps[me + ROW]
    bit, sched = int64(1) << row, scheduler * SCHED_WORDS
    if warps[me + BUFFER] == 0:
        born = abs(warps[me + BORN])
        if born <= cycle:
            word = place >> 6 if warps[me + BORN] >= 0 else sizes[WORDS] + (place >> 6)
            wants[word] |= int64(1) << (place & 63)
        else:
            wake_at(sizes, wheel, now, scheduler, row, born, cycle)
        return
    until = warps[me + HELD]
    if warps[me + STRAY] == 0:
        until = max(until, warps[me + UNTIL] >> 2)
    if until > cycle:
        if until < UNKNOWN:
            wake_at(sizes, wheel, now, scheduler, row, until, cycle)
        return
    if warps[me + STRAY] != 0:
        scheds[sched + STRAYS] |= bit
        return
    gate = (scheduler * sizes[PIPES] + ops[int64(entry_op[warps[me + POS]]) * OP_WORDS + PIPE]) * GATE_WORDS
    if gates[gate + NEED] & bit:
        return
    settle(warps, entry_op, op_stall, me, cycle)
    gates[gate + NEED] |= bit
    warps[me + BASE] = gates[gate + BLOCKED]
    if gates[gate + CLOSED] == 0:
        scheds[sched + OPEN] |= bit
    else:
        warps[me + BASE] += max(cycle - gates[gate + FROM], 0)


@merged
def wake(
    sizes: Any, warps: Any, ops: Any, scheds: Any, gates: Any, wheel: Any, wants: Any, now: Any, entry_op: Any,
    op_stall: Any, cycle: int,
) -> None:  # fmt: skip
    """Look at the warps of this cycle's row of the wheel."""
    turn, k = cycle & (WHEEL - 1), sizes[SCHEDULERS]
    if (now[WAKING] >> turn) & 1 == 0:
        return
    now[WAKING] &= ~(int64(1) << turn)
    for scheduler in range(k):
        left = wheel[turn * k + scheduler]
        wheel[turn * k + scheduler] = 0
        while left:
            place = ctz(left) * k + scheduler
            left &= left - 1
            look_at(sizes, warps, ops, scheds, gates, wheel, wants, now, entry_op, op_stall, place, cycle)


@merged
def next_wake(now: Any, cycle: int) -> int:
    """The next cycle after `cycle` in which the wheel has somebody."""
    rows = rotated(now[WAKING], cycle + 1)
    return cycle + 1 + ctz(rows) if rows else int64(NEVER)


@merged
def until_of(warps: Any, slots: Any, waits: Any, place: int) -> int:
    """UNTIL of the warp's next entry."""
    position, until = warps[place * WARP_WORDS + POS], int64(0)
    if position < warps[place * WARP_WORDS + END]:
        left = int64(waits[position])
        while left:
            until = max(until, slots[place * SLOTS + ctz(left)])
            left &= left - 1
    return until


@merged
def ends(sizes: Any, warps: Any, wants: Any, now: Any, place: int) -> None:
    """It is known when the warp is over: then the SM has to look."""
    wants[2 * sizes[WORDS] + (place >> 6)] |= int64(1) << (place & 63)
    now[DUE] = min(now[DUE], warps[place * WARP_WORDS + OVER])
