"""When warps wake: the timing wheels of the compiled loop."""

from __future__ import annotations

from typing import Any

from ppt_gpu.common.bits import ctz, int64, rotated
from ppt_gpu.common.compiled import called, merged
from ppt_gpu.sm.loop.pack import (
    ANNOUNCE,
    FIRST_SLOT,
    FREE_PORT,
    MORE_AT,
    OP_AT,
    OP_MASK,
    OP_ROW,
    PORT_AT,
    PORT_MASK,
    W1_AT,
)
from ppt_gpu.sm.loop.state import (
    ENTERS,
    FAR,
    FAR_AWAY,
    GATE,
    GATE_SHIFT,
    HELD,
    LATER,
    NEAR,
    READY,
    ROWS,
    SCHED_SHIFT,
    STALL_SHIFT,
    WAKES,
    WARP_SHIFT,
    WHEEL,
    WHEEL_SHIFT,
    WORD,
)
from ppt_gpu.sm.program.machine import NEVER


@merged
def schedule(
    K: int, wheel: Any, occupied: Any, scheds: Any, k: int, bit: int, bound: int, ready: int, now: int
) -> None:
    """Wake the warp in cycle `ready`, now or later. `bound`: 0 if its port is the free one, else 1."""
    if ready - now < WHEEL:
        row = ready & (WHEEL - 1)
        wheel[(row * 2 + bound) * K + k] |= int64(1) << bit
        occupied[NEAR] |= int64(1) << row
        occupied[ROWS + row] |= int64(1) << k
        scheds[(k << SCHED_SHIFT) + WAKES] |= int64(1) << row
    elif (ready >> WHEEL_SHIFT) - (now >> WHEEL_SHIFT) < WHEEL:  # else it may come too late, see bring_near
        row = (ready >> WHEEL_SHIFT) & (WHEEL - 1)
        wheel[((WHEEL + row) * 2 + bound) * K + k] |= int64(1) << bit
        occupied[LATER] |= int64(1) << row
        occupied[ROWS + WHEEL + row] |= int64(1) << k
    else:
        scheds[(k << SCHED_SHIFT) + FAR] |= int64(1) << bit
        occupied[FAR_AWAY] = 1


@merged
def is_bound(K: int, gate: int) -> int:
    """0: nobody ever waits for this gate, that of FREE_PORT; 1: the others."""
    return int64(gate >= int64(FREE_PORT + 1) * K << GATE_SHIFT)


@called
def bring_near(K: int, wheel: Any, occupied: Any, scheds: Any, warps: Any, now: int) -> None:
    """When the near wheel has turned: what wakes in its next turn; when the later one has, who is far away."""
    row = (now >> WHEEL_SHIFT) & (WHEEL - 1)
    if (occupied[LATER] >> row) & 1:
        occupied[LATER] &= ~(int64(1) << row)
        turns = occupied[ROWS + WHEEL + row]
        occupied[ROWS + WHEEL + row] = 0
        while turns:
            k = ctz(turns)
            turns &= turns - 1
            free, bound = (WHEEL + row) * 2 * K + k, ((WHEEL + row) * 2 + 1) * K + k
            left = wheel[free] | wheel[bound]
            wheel[free] = 0
            wheel[bound] = 0
            _schedule_all(K, wheel, occupied, scheds, warps, k, left, now)
    if row == 0 and occupied[FAR_AWAY]:
        occupied[FAR_AWAY] = 0
        for k in range(K):
            left = scheds[(k << SCHED_SHIFT) + FAR]
            scheds[(k << SCHED_SHIFT) + FAR] = 0
            _schedule_all(K, wheel, occupied, scheds, warps, k, left, now)


@called
def _schedule_all(K: int, wheel: Any, occupied: Any, scheds: Any, warps: Any, k: int, left: int, now: int) -> None:
    while left:
        bit = ctz(left)
        left &= left - 1
        me = (bit * K + k) << WARP_SHIFT
        schedule(K, wheel, occupied, scheds, k, bit, is_bound(K, warps[me + GATE]), warps[me + READY], now)


@merged
def wakes_at(occupied: Any, cycle: int) -> bool:
    """Somebody in the near wheel wakes in `cycle`."""
    return (occupied[NEAR] >> (cycle & (WHEEL - 1))) & 1 != 0


@merged
def next_wake(rows: int, occupied: Any, now: int) -> int:
    """The next cycle after `now` that `rows` of the near wheel stand for, or in which others must be brought near."""
    near, later = rotated(rows, now + 1), rotated(occupied[LATER], (now >> WHEEL_SHIFT) + 1)
    found = now + 1 + ctz(near) if near else NEVER
    if later:
        found = min(found, ((now >> WHEEL_SHIFT) + 1 + ctz(later)) << WHEEL_SHIFT)
    if occupied[FAR_AWAY]:
        found = min(found, (now | (WHEEL * WHEEL - 1)) + 1)
    return found


@merged
def first_wake(rows: int, now: int) -> int:
    """The next cycle after `now` that `rows` of the near wheel stand for, NEVER without any."""
    near = rotated(rows, now + 1)
    return now + 1 + ctz(near) if near else int64(NEVER)


@merged
def dependence(slots: Any, base: int, word: int, waits: Any, position: int) -> int:
    """Completion * 4 + WAIT_* of the slot that the entry waits for longest, 0 for none; its row is at `base`."""
    until = max(slots[base + (word & 127)], slots[base + ((word >> W1_AT) & 127)])
    if (word >> MORE_AT) & 1:
        left = int64(waits[position])
        while left:
            until = max(until, slots[base + ctz(left) + FIRST_SLOT])
            left &= left - 1
    return until


@merged
def plan_wake(
    K: int, wheel: Any, occupied: Any, scheds: Any, warps: Any, op_stall: Any, op_table: Any, k: int, bit: int,
    word: int, until: int, low: int, now: int,
) -> None:  # fmt: skip
    """As `plan`, and the warp wakes when it is ready."""
    ready = plan(K, warps, op_stall, op_table, k, bit, word, until, low)
    schedule(K, wheel, occupied, scheds, k, bit, int64((word >> PORT_AT) & PORT_MASK != FREE_PORT), ready, now)


@merged
def plan(
    K: int, warps: Any, op_stall: Any, op_table: Any, k: int, bit: int, word: int, until: int, low: int
) -> int:  # fmt: skip
    """The warp's next entry is `word`, its slots complete with `until`, nothing else holds it from cycle `low` on.

    Returns the cycle in which it is ready.
    """
    me = (bit * K + k) << WARP_SHIFT
    ready, cause = until >> 2, until & 3
    warps[me + HELD] = low << 2 | cause
    start = max(ready, low)
    op_stall[(((word >> OP_AT) & OP_MASK) << STALL_SHIFT) + cause] += start - low
    low = start
    warps[me + READY] = low
    warps[me + WORD] = word
    warps[me + ENTERS] = op_table[((word >> OP_AT) & OP_MASK) * OP_ROW + ANNOUNCE]
    port = (word >> PORT_AT) & PORT_MASK
    warps[me + GATE] = (port * K + k) << GATE_SHIFT
    return low
