"""When warps wake: the timing wheels of the compiled loop."""

from __future__ import annotations

from ppt_gpu.common.bits import ctz, int64, rotated
from ppt_gpu.common.compiled import called, merged
from ppt_gpu.common.records import Words
from ppt_gpu.sm.loop.pack import FIRST_SLOT, FREE_PORT, MORE_AT, W1_AT, has, operation_in, port_in
from ppt_gpu.sm.loop.state import FAR_AWAY, LATER, NEAR, ROWS, STALL_SHIFT, WHEEL, WHEEL_SHIFT, Sm
from ppt_gpu.sm.program.machine import NEVER


@merged
def schedule(sm: Sm, k: int, bit: int, bound: int, ready: int, now: int) -> None:
    """Wake the warp in cycle `ready`, now or later. `bound`: 0 if its port is the free one, else 1."""
    K, occupied, sched = sm.schedulers, sm.occupied, sm.scheds[k]
    if ready - now < WHEEL:
        row = ready & (WHEEL - 1)
        sm.wheel[(row * 2 + bound) * K + k] |= int64(1) << bit
        occupied[NEAR] |= int64(1) << row
        occupied[ROWS + row] |= int64(1) << k
        sched.wakes |= int64(1) << row
    elif (ready >> WHEEL_SHIFT) - (now >> WHEEL_SHIFT) < WHEEL:  # else it may come too late, see bring_near
        row = (ready >> WHEEL_SHIFT) & (WHEEL - 1)
        sm.wheel[((WHEEL + row) * 2 + bound) * K + k] |= int64(1) << bit
        occupied[LATER] |= int64(1) << row
        occupied[ROWS + WHEEL + row] |= int64(1) << k
    else:
        sched.far |= int64(1) << bit
        occupied[FAR_AWAY] = 1


@merged
def is_bound(sm: Sm, gate: int) -> int:
    """0: nobody ever waits for this gate, that of FREE_PORT; 1: the others."""
    return int64(gate >= (FREE_PORT + 1) * sm.schedulers)


@called
def bring_near(sm: Sm, now: int) -> None:
    """When the near wheel has turned: what wakes in its next turn; when the later one has, who is far away."""
    K, wheel, occupied = sm.schedulers, sm.wheel, sm.occupied
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
            _schedule_all(sm, k, left, now)
    if row == 0 and occupied[FAR_AWAY]:
        occupied[FAR_AWAY] = 0
        for k in range(K):
            left = sm.scheds[k].far
            sm.scheds[k].far = 0
            _schedule_all(sm, k, left, now)


@merged
def _schedule_all(sm: Sm, k: int, left: int, now: int) -> None:
    while left:
        bit = ctz(left)
        left &= left - 1
        warp = sm.warps[bit * sm.schedulers + k]
        schedule(sm, k, bit, is_bound(sm, warp.gate), warp.ready, now)


@merged
def wakes_at(occupied: Words, cycle: int) -> bool:
    """Somebody in the near wheel wakes in `cycle`."""
    return (occupied[NEAR] >> (cycle & (WHEEL - 1))) & 1 != 0


@merged
def next_wake(rows: int, occupied: Words, now: int) -> int:
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
def dependence(sm: Sm, place: int, word: int, position: int) -> int:
    """Completion * 4 + WAIT_* of the slot for which entry `word`, at `position`, of a warp waits longest; 0: none."""
    slots, base = sm.slots, place << sm.slot_shift
    until = max(slots[base + (word & 127)], slots[base + ((word >> W1_AT) & 127)])
    if has(word, MORE_AT):
        left = int64(sm.waits[position])
        while left:
            until = max(until, slots[base + ctz(left) + FIRST_SLOT])
            left &= left - 1
    return until


@merged
def plan_wake(sm: Sm, k: int, bit: int, word: int, until: int, low: int, now: int) -> None:
    """As `plan`, and the warp wakes when it is ready."""
    ready = plan(sm, k, bit, word, until, low)
    schedule(sm, k, bit, int64(port_in(word) != FREE_PORT), ready, now)


@merged
def plan(sm: Sm, k: int, bit: int, word: int, until: int, low: int) -> int:
    """The warp's next entry is `word`, its slots complete with `until`, nothing else holds it from cycle `low` on.

    Returns the cycle in which it is ready.
    """
    warp = sm.warps[bit * sm.schedulers + k]
    ready, cause = until >> 2, until & 3
    warp.held = low << 2 | cause
    start = max(ready, low)
    sm.op_stall[(operation_in(word) << STALL_SHIFT) + cause] += start - low
    warp.ready = start
    warp.word = word
    warp.enters = sm.operations[operation_in(word)].announce
    warp.gate = port_in(word) * sm.schedulers + k
    return start
