"""Which ready warps find a port: units, blocked ports, the masks OPEN and NEED of the compiled loop."""

from __future__ import annotations

from typing import Any

from ppt_gpu.common.bits import ctz, int64
from ppt_gpu.common.compiled import called, merged
from ppt_gpu.sm.loop.pack import OP_AT, OP_MASK, THROTTLE_AT
from ppt_gpu.sm.loop.state import (
    BASE,
    BEHIND,
    BLOCKED,
    CLOSES,
    CYCLES,
    DOOR,
    FIRST_UNIT,
    GATE,
    GATE_SHIFT,
    HEAD,
    LET_IN,
    MAIN,
    MARK,
    NEAR,
    NEED,
    NEXT_OPEN,
    OFFSET,
    OPEN,
    PRIVATE,
    READY,
    READY_MASK,
    READY_OTHERS,
    REASON_MASK,
    RING,
    ROWS,
    SCHED_SHIFT,
    SERVED,
    SHARED,
    STALL_SHIFT,
    TWIN,
    UNITS,
    UNTIL,
    WAKES,
    WARP_SHIFT,
    WHEEL,
    WORD,
)
from ppt_gpu.sm.loop.wheel import first_wake, schedule
from ppt_gpu.sm.program.machine import NEVER


@merged
def wake(
    K: int, wheel: Any, occupied: Any, scheds: Any, warps: Any, gates: Any, op_stall: Any,
    memory_gate: int, row: int, now: int,
) -> None:  # fmt: skip
    """The warps of a wheel row are ready: note how long their port, unless it is free, has been blocked up to here.

    Those that do not pass what is in their scheduler's queue wake again when that has started.
    """
    first, turns = row * 2 * K, occupied[ROWS + row]
    occupied[ROWS + row] = 0
    while turns:
        k = ctz(turns)
        turns &= turns - 1
        bounded, sched = wheel[first + K + k], k << SCHED_SHIFT
        woken = wheel[first + k] | bounded
        scheds[sched + WAKES] &= ~(int64(1) << row)
        wheel[first + k] = 0
        wheel[first + K + k] = 0
        opened, soon, door = woken, scheds[sched + NEXT_OPEN], scheds[DOOR]
        while bounded:
            bit = ctz(bounded)
            bounded &= bounded - 1
            me = (bit * K + k) << WARP_SHIFT
            if door > now and gates[(warps[me + GATE] & OFFSET) + BEHIND] != 0 and warps[me + GATE] < LET_IN:
                word = warps[me + WORD]
                stall = ((word >> OP_AT) & OP_MASK) << STALL_SHIFT
                op_stall[stall + ((word >> THROTTLE_AT) & REASON_MASK)] += door - now
                warps[me + READY] = door
                warps[me + GATE] |= LET_IN
                schedule(K, wheel, occupied, scheds, k, bit, int64(1), door, now)
                woken ^= int64(1) << bit
                opened ^= int64(1) << bit
                continue
            until = need_port(warps, gates, me, warps[me + GATE] & OFFSET, bit, now)
            opened ^= (int64(1) << bit) if until > now else int64(0)
            soon = min(soon, until if until > now else int64(NEVER))
        scheds[sched + OPEN] |= opened
        scheds[sched + NEXT_OPEN] = soon
        scheds[sched + READY_MASK] |= woken
        need = gates[memory_gate + (k << GATE_SHIFT) + NEED]
        occupied[READY_OTHERS] |= int64(woken & ~need != 0) << k


@merged
def closed_until(gates: Any, gate: int, memory_gate: int, k: int, cycle: int) -> int:
    """Warps of scheduler k that need `gate` or the memory port, of those two that are blocked up to `cycle`."""
    closed = gates[gate + NEED] if gates[gate + UNTIL] >= cycle else int64(0)
    return closed | (gates[memory_gate + (k << GATE_SHIFT) + NEED] if gates[memory_gate + UNTIL] >= cycle else int64(0))


@called
def pass_wakes(
    K: int, wheel: Any, occupied: Any, scheds: Any, warps: Any, gates: Any, gate: int, k: int, ready: int, at: int,
    opens: int, now: int,
) -> tuple[bool, int]:  # fmt: skip
    """Whether a warp that issued in cycle `at` can go on through `gate` in cycle `opens`, whoever wakes up to then.

    It cannot if somebody who wakes can issue in between. If it can, those who wake and need a port of the scheduler are
    made ready now, as of their cycle: up to there it is known how long their port has been blocked, and nobody looks at
    them as long as the scheduler is busy. Returns the ready warps with them.
    """
    sched, rows = k << SCHED_SHIFT, scheds[(k << SCHED_SHIFT) + WAKES]
    if opens - now >= WHEEL:  # some may not be in the near wheel yet
        return False, ready
    cycle = first_wake(rows, now)
    while cycle < opens and opens > at + 1:
        first = (cycle & (WHEEL - 1)) * 2 * K + k
        if wheel[first] != 0:
            return False, ready
        left = wheel[first + K]
        while left:
            if warps[((ctz(left) * K + k) << WARP_SHIFT) + GATE] != gate or gates[gate + UNTIL] < opens:
                return False, ready
            left &= left - 1
        cycle = first_wake(rows, cycle)
    cycle = first_wake(rows, now)
    while cycle <= opens:
        row = cycle & (WHEEL - 1)
        left = wheel[(row * 2 + 1) * K + k]
        while left:
            bit = ctz(left)
            left &= left - 1
            me = (bit * K + k) << WARP_SHIFT
            if gates[(warps[me + GATE] & OFFSET) + PRIVATE] == 0:
                continue
            until = need_port(warps, gates, me, warps[me + GATE] & OFFSET, bit, cycle)
            ready |= int64(1) << bit
            if until > cycle:
                scheds[sched + NEXT_OPEN] = min(scheds[sched + NEXT_OPEN], until)
            else:
                scheds[sched + OPEN] |= int64(1) << bit
            wheel[(row * 2 + 1) * K + k] &= ~(int64(1) << bit)
        if wheel[row * 2 * K + k] | wheel[(row * 2 + 1) * K + k] == 0:
            scheds[sched + WAKES] &= ~(int64(1) << row)
            occupied[ROWS + row] &= ~(int64(1) << k)
            if occupied[ROWS + row] == 0:
                occupied[NEAR] &= ~(int64(1) << row)
        cycle = first_wake(rows, cycle)
    return True, ready


@merged
def need_port(warps: Any, gates: Any, me: int, gate: int, bit: int, now: int) -> int:
    """A warp that is ready in cycle `now` needs `gate`: the cycle until which that keeps it out of OPEN.

    What other warps that issue in the cycle before do to the port changes nothing of what is noted here.
    """
    main = gates[gate + MAIN] & OFFSET
    until = gates[main + UNTIL]
    gates[gate + NEED] |= int64(1) << bit
    warps[me + BASE] = gates[main + CYCLES] - max(0, until - now)
    return until & gates[gate + CLOSES]


@merged
def somebody_needs(K: int, gates: Any, gate: int) -> bool:
    """A ready warp of any scheduler needs the port whose record for scheduler 0 this is."""
    need = int64(0)
    for k in range(K):
        need |= gates[gate + (k << GATE_SHIFT) + NEED]
    return need != 0


@merged
def block(K: int, scheds: Any, gates: Any, gate: int, k: int, now: int, until: int) -> None:
    """Nothing may pass `gate` from here to cycle `until`. Blocked cycles count from the next on."""
    shut(K, scheds, gates, gate, k, until)
    main = gates[gate + MAIN] & OFFSET
    before = gates[main + UNTIL]
    gates[main + CYCLES] += max(0, until - max(now + 1, before))
    gates[main + UNTIL] = max(before, until)


@merged
def shut(K: int, scheds: Any, gates: Any, gate: int, k: int, until: int) -> None:
    """Take those who need `gate` out of OPEN up to cycle `until`, where they stand there only while it is open."""
    if gates[gate + CLOSES] != 0:
        main = gates[gate + MAIN] & OFFSET
        if gates[gate + SHARED] != 0:
            _shut_all(K, scheds, gates, main, until)
        else:
            _shut(scheds, gates, k, main, until)


@called
def _shut_all(K: int, scheds: Any, gates: Any, main: int, until: int) -> None:
    for k in range(K):
        _shut(scheds, gates, k, main + (k << GATE_SHIFT), until)


@merged
def _shut(scheds: Any, gates: Any, k: int, gate: int, until: int) -> None:
    """Take the warps of scheduler k that need `gate` out of OPEN, until NEXT_OPEN at least."""
    sched, need = k << SCHED_SHIFT, gates[gate + NEED]
    scheds[sched + BLOCKED] |= gates[gate + MARK]
    scheds[sched + OPEN] &= ~need
    scheds[sched + NEXT_OPEN] = min(scheds[sched + NEXT_OPEN], until if need else NEVER)


@merged
def look_again(K: int, scheds: Any, gates: Any, k: int, now: int) -> int:
    """At NEXT_OPEN: OPEN of scheduler k from its ready warps and what blocks them."""
    sched, soon = k << SCHED_SHIFT, int64(NEVER)
    left, mask = scheds[sched + BLOCKED], scheds[sched + READY_MASK]
    blocked = left
    if left & (left - 1) == 0:  # one port, mostly, and mostly that is why we look: a branch that can be foreseen
        gate = ((ctz(left) if left else 0) * K + k) << GATE_SHIFT
        if gates[(gates[gate + MAIN] & OFFSET) + UNTIL] <= now:
            scheds[sched + BLOCKED] = 0
            scheds[sched + OPEN] = mask
            scheds[sched + NEXT_OPEN] = NEVER
            return mask
    while left:  # conditional values, no branches: which ports are open is as good as random
        gate = (ctz(left) * K + k) << GATE_SHIFT
        until = gates[(gates[gate + MAIN] & OFFSET) + UNTIL]
        waiting = gates[gate + NEED] if until > now else int64(0)
        blocked ^= (left & -left) if until <= now else int64(0)
        mask &= ~waiting
        soon = min(soon, until if waiting else int64(NEVER))
        left &= left - 1
    scheds[sched + BLOCKED] = blocked
    scheds[sched + OPEN] = mask
    scheds[sched + NEXT_OPEN] = soon
    return mask


@merged
def pass_port(K: int, scheds: Any, gates: Any, units: Any, gate: int, k: int, now: int, interval: int) -> int:
    """Pass the gate in cycle `now`, for a unit that is taken for `interval` cycles; returns when that starts."""
    served = gates[gate + SERVED]
    if served == 0:
        take_unit(K, scheds, gates, units, gate, k, now, interval)
        return now
    start = max(now, units[served])
    scheds[DOOR] = max(scheds[DOOR], start)
    units[served] = start + interval
    take_unit(K, scheds, gates, units, gate, k, now, start - now)
    return start


@merged
def take_unit(K: int, scheds: Any, gates: Any, units: Any, gate: int, k: int, now: int, interval: int) -> None:
    """Hold a unit of the gate's pipe for `interval` cycles; block the gate, and its twin, when it was the last free."""
    count = gates[gate + UNITS]
    if count == 1:
        free = now + interval
    else:
        free = take_one_of(gates, units, gate, count, now + interval)
    if free > now:
        shut(K, scheds, gates, gate, k, free)
        main = gates[gate + MAIN] & OFFSET
        gates[main + CYCLES] += free - (now + 1)  # it was open, or nobody could have issued
        gates[main + UNTIL] = free
        twin = gates[gate + TWIN]
        if twin >= 0:
            _block_twin(K, scheds, gates, twin, k, now, free)


@called
def _block_twin(K: int, scheds: Any, gates: Any, gate: int, k: int, now: int, until: int) -> None:
    block(K, scheds, gates, gate & OFFSET, k, now, until)


@merged
def take_one_of(gates: Any, units: Any, gate: int, count: int, until: int) -> int:
    """Take the unit that is free first until `until`; returns when one is free then."""
    first = gates[gate + FIRST_UNIT]
    if gates[gate + RING]:  # equal intervals: units become free in the order they were taken
        owner = gates[gate + MAIN]
        if gates[gate + TWIN] >= 0:
            owner = min(owner, gates[gates[gate + TWIN] + MAIN])
        head = gates[owner + HEAD]
        units[first + head] = until
        head = head + 1 if head + 1 < count else 0
        gates[owner + HEAD] = head
        return units[first + head]
    best = first
    for unit in range(first + 1, first + count):
        if units[unit] < units[best]:
            best = unit
    units[best] = until
    for unit in range(first, first + count):
        until = min(until, units[unit])
    return until
