"""Which ready warps find a port: units, blocked ports, the masks OPEN and NEED of the compiled loop."""

from __future__ import annotations

from typing import Any

from numba import njit

from ppt_gpu.sm.core_bits import ctz, int64
from ppt_gpu.sm.core_machine import NEVER, TWO_LEVEL
from ppt_gpu.sm.core_state import (
    BASE,
    BLOCKED,
    CLOSES,
    CYCLES,
    FIRST_UNIT,
    GATE,
    GATE_SHIFT,
    HEAD,
    MAIN,
    MARK,
    NEED,
    NEXT_OPEN,
    OFFSET,
    OPEN,
    PARKED,
    READY_MASK,
    RING,
    SCHED_SHIFT,
    SHARED,
    TWIN,
    UNITS,
    UNTIL,
    WARP_SHIFT,
)


@njit(forceinline=True, _nrt=False)
def wake(K: int, POLICY: int, wheel: Any, scheds: Any, warps: Any, gates: Any, row: int, now: int) -> None:
    """The warps of a wheel row are ready: note how long their port has been blocked up to here."""
    for k in range(K):
        woken = wheel[row * K + k]
        if woken:
            sched = k << SCHED_SHIFT
            wheel[row * K + k] = 0
            scheds[sched + READY_MASK] |= woken
            if POLICY == TWO_LEVEL:
                scheds[sched + PARKED] &= ~woken
            opened, soon = woken, scheds[sched + NEXT_OPEN]
            while woken:
                bit = ctz(woken)
                woken &= woken - 1
                me = (bit * K + k) << WARP_SHIFT
                gate = warps[me + GATE] & OFFSET
                main = gates[gate + MAIN] & OFFSET
                until = gates[main + UNTIL]
                gates[gate + NEED] |= int64(1) << bit
                warps[me + BASE] = gates[main + CYCLES] - max(0, until - now)
                until &= gates[gate + CLOSES]
                opened ^= (int64(1) << bit) if until > now else int64(0)
                soon = min(soon, until if until > now else int64(NEVER))
            scheds[sched + OPEN] |= opened
            scheds[sched + NEXT_OPEN] = soon


@njit(forceinline=True, _nrt=False)
def blocked_so_far(gates: Any, gate: int, now: int) -> int:
    """Cycles before `now`, whose issues are still to come, in which the gate has been blocked."""
    main = gates[gate + MAIN] & OFFSET
    return gates[main + CYCLES] - max(0, gates[main + UNTIL] - now)


@njit(forceinline=True, _nrt=False)
def block(K: int, scheds: Any, gates: Any, gate: int, k: int, now: int, until: int) -> None:
    """Nothing may pass `gate` from here to cycle `until`. Blocked cycles count from the next on."""
    main = gates[gate + MAIN] & OFFSET
    if gates[gate + CLOSES] != 0:
        first, last = (int64(0), K) if gates[gate + SHARED] else (k, k + 1)
        for other in range(first, last):
            _shut(scheds, gates, other, main + ((other - first) << GATE_SHIFT), until)
    before = gates[main + UNTIL]
    gates[main + CYCLES] += max(0, until - max(now + 1, before))
    gates[main + UNTIL] = max(before, until)


@njit(forceinline=True, _nrt=False)
def _shut(scheds: Any, gates: Any, k: int, gate: int, until: int) -> None:
    """Take the warps of scheduler k that need `gate` out of OPEN, until NEXT_OPEN at least."""
    sched, need = k << SCHED_SHIFT, gates[gate + NEED]
    scheds[sched + BLOCKED] |= gates[gate + MARK]
    scheds[sched + OPEN] &= ~need
    scheds[sched + NEXT_OPEN] = min(scheds[sched + NEXT_OPEN], until if need else NEVER)


@njit(forceinline=True, _nrt=False)
def look_again(K: int, scheds: Any, gates: Any, k: int, now: int) -> int:
    """At NEXT_OPEN: OPEN of scheduler k from its ready warps and what blocks them."""
    sched, soon = k << SCHED_SHIFT, int64(NEVER)
    left, mask = scheds[sched + BLOCKED], scheds[sched + READY_MASK]
    blocked = left
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


@njit(forceinline=True, _nrt=False)
def take_unit(K: int, scheds: Any, gates: Any, units: Any, gate: int, k: int, now: int, interval: int) -> None:
    """Hold a unit of the gate's pipe for `interval` cycles; block the gate, and its twin, when it was the last free."""
    count = gates[gate + UNITS]
    if count == 1:
        free = now + interval
    else:
        free = take_one_of(gates, units, gate, count, now + interval)
    closed = gate if free > now else int64(-1)
    while closed >= 0:
        block(K, scheds, gates, closed, k, now, free)
        closed = gates[gate + TWIN] if closed == gate else int64(-1)


@njit(forceinline=True, _nrt=False)
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
