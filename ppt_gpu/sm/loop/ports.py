"""Which ready warps find a port: units, blocked ports, the masks `open` and `need` of the compiled loop."""

from __future__ import annotations

from ppt_gpu.common.bits import ctz, int64
from ppt_gpu.common.compiled import called, merged
from ppt_gpu.sm.loop.pack import operation_in, throttle_in
from ppt_gpu.sm.loop.state import LET_IN, NEAR, READY_OTHERS, ROWS, STALL_SHIFT, WHEEL, Gate, Sm, Warp
from ppt_gpu.sm.loop.wheel import first_wake, schedule
from ppt_gpu.sm.program.machine import NEVER


@merged
def wake(sm: Sm, row: int, now: int) -> None:
    """The warps of a wheel row are ready: note how long their port, unless it is free, has been blocked up to here.

    Those that do not pass what is in their scheduler's queue wake again when that has started.
    """
    K, wheel, occupied = sm.schedulers, sm.wheel, sm.occupied
    first, turns = row * 2 * K, occupied[ROWS + row]
    occupied[ROWS + row] = 0
    while turns:
        k = ctz(turns)
        turns &= turns - 1
        bounded, sched = wheel[first + K + k], sm.scheds[k]
        woken = wheel[first + k] | bounded
        sched.wakes &= ~(int64(1) << row)
        wheel[first + k] = 0
        wheel[first + K + k] = 0
        opened, soon, door = woken, sched.next_open, sm.scheds[0].door
        while bounded:
            bit = ctz(bounded)
            bounded &= bounded - 1
            warp = sm.warps[bit * K + k]
            gate = sm.gates[warp.gate & (LET_IN - 1)]
            if door > now and gate.behind != 0 and warp.gate < LET_IN:
                stall = operation_in(warp.word) << STALL_SHIFT
                sm.op_stall[stall + throttle_in(warp.word)] += door - now
                warp.ready = door
                warp.gate |= LET_IN
                schedule(sm, k, bit, int64(1), door, now)
                woken ^= int64(1) << bit
                opened ^= int64(1) << bit
                continue
            until = need_port(sm, warp, gate, bit, now)
            opened ^= (int64(1) << bit) if until > now else int64(0)
            soon = min(soon, until if until > now else int64(NEVER))
        sched.open |= opened
        sched.next_open = soon
        sched.ready |= woken
        need = sm.gates[sm.memory_gate + k].need
        occupied[READY_OTHERS] |= int64(woken & ~need != 0) << k


@merged
def closed_until(sm: Sm, gate: Gate, k: int, cycle: int) -> int:
    """Warps of scheduler k that need `gate` or the memory port, of those two that are blocked up to `cycle`."""
    closed, memory = gate.need if gate.until >= cycle else int64(0), sm.gates[sm.memory_gate]
    return closed | (sm.gates[sm.memory_gate + k].need if memory.until >= cycle else int64(0))


@called
def pass_wakes(sm: Sm, gate: int, k: int, ready: int, at: int, opens: int, now: int) -> tuple[bool, int]:
    """Whether a warp that issued in cycle `at` can go on through `gate` in cycle `opens`, whoever wakes up to then.

    It cannot if somebody who wakes can issue in between. If it can, those who wake and need a port of the scheduler are
    made ready now, as of their cycle: up to there it is known how long their port has been blocked, and nobody looks at
    them as long as the scheduler is busy. Returns the ready warps with them.
    """
    K, wheel, occupied, sched = sm.schedulers, sm.wheel, sm.occupied, sm.scheds[k]
    rows = sched.wakes
    if opens - now >= WHEEL:  # some may not be in the near wheel yet
        return False, ready
    cycle = first_wake(rows, now)
    while cycle < opens and opens > at + 1:
        first = (cycle & (WHEEL - 1)) * 2 * K + k
        if wheel[first] != 0:
            return False, ready
        left = wheel[first + K]
        while left:
            if sm.warps[ctz(left) * K + k].gate != gate or sm.gates[gate].until < opens:
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
            warp = sm.warps[bit * K + k]
            its_gate = sm.gates[warp.gate & (LET_IN - 1)]
            if its_gate.private == 0:
                continue
            until = need_port(sm, warp, its_gate, bit, cycle)
            ready |= int64(1) << bit
            if until > cycle:
                sched.next_open = min(sched.next_open, until)
            else:
                sched.open |= int64(1) << bit
            wheel[(row * 2 + 1) * K + k] &= ~(int64(1) << bit)
        if wheel[row * 2 * K + k] | wheel[(row * 2 + 1) * K + k] == 0:
            sched.wakes &= ~(int64(1) << row)
            occupied[ROWS + row] &= ~(int64(1) << k)
            if occupied[ROWS + row] == 0:
                occupied[NEAR] &= ~(int64(1) << row)
        cycle = first_wake(rows, cycle)
    return True, ready


@merged
def need_port(sm: Sm, warp: Warp, gate: Gate, bit: int, now: int) -> int:
    """A warp that is ready in cycle `now` needs `gate`: the cycle until which that keeps it out of `open`.

    What other warps that issue in the cycle before do to the port changes nothing of what is noted here.
    """
    main = sm.gates[gate.main]
    until = main.until
    gate.need |= int64(1) << bit
    warp.base = main.cycles - max(0, until - now)
    return until & gate.closes


@merged
def somebody_needs(sm: Sm, gate: int) -> bool:
    """A ready warp of any scheduler needs the port of which this is the gate of scheduler 0."""
    need = int64(0)
    for k in range(sm.schedulers):
        need |= sm.gates[gate + k].need
    return need != 0


@merged
def block(sm: Sm, gate: Gate, k: int, now: int, until: int) -> None:
    """Nothing may pass `gate` from here to cycle `until`. Blocked cycles count from the next on."""
    shut(sm, gate, k, until)
    main = sm.gates[gate.main]
    before = main.until
    main.cycles += max(0, until - max(now + 1, before))
    main.until = max(before, until)


@merged
def block_queued(sm: Sm, now: int, until: int) -> None:
    """The load/store queue is full until then, for every port that leads to it."""
    for number in range(sm.queues):
        gate = sm.queued[number]
        block(sm, sm.gates[gate], gate % sm.schedulers, now, until)


@merged
def shut(sm: Sm, gate: Gate, k: int, until: int) -> None:
    """Take those who need `gate` out of `open` up to cycle `until`, where they stand there only while it is open."""
    if gate.closes != 0:
        if gate.shared != 0:
            _shut_all(sm, gate.main, until)
        else:
            _shut(sm, k, sm.gates[gate.main], until)


@called
def _shut_all(sm: Sm, main: int, until: int) -> None:
    for k in range(sm.schedulers):
        _shut(sm, k, sm.gates[main + k], until)


@merged
def _shut(sm: Sm, k: int, gate: Gate, until: int) -> None:
    """Take the warps of scheduler k that need `gate` out of `open`, until `next_open` at least."""
    sched, need = sm.scheds[k], gate.need
    sched.blocked |= gate.mark
    sched.open &= ~need
    sched.next_open = min(sched.next_open, until if need else NEVER)


@merged
def look_again(sm: Sm, k: int, now: int) -> int:
    """At `next_open`: `open` of scheduler k from its ready warps and what blocks them."""
    K, sched, soon = sm.schedulers, sm.scheds[k], int64(NEVER)
    left, mask = sched.blocked, sched.ready
    blocked = left
    if left & (left - 1) == 0:  # one port, mostly, and mostly that is why we look: a branch that can be foreseen
        gate = sm.gates[(ctz(left) if left else 0) * K + k]
        if sm.gates[gate.main].until <= now:
            sched.blocked = 0
            sched.open = mask
            sched.next_open = NEVER
            return mask
    while left:  # conditional values, no branches: which ports are open is as good as random
        gate = sm.gates[ctz(left) * K + k]
        until = sm.gates[gate.main].until
        waiting = gate.need if until > now else int64(0)
        blocked ^= (left & -left) if until <= now else int64(0)
        mask &= ~waiting
        soon = min(soon, until if waiting else int64(NEVER))
        left &= left - 1
    sched.blocked = blocked
    sched.open = mask
    sched.next_open = soon
    return mask


@merged
def pass_port(sm: Sm, gate: Gate, k: int, now: int, interval: int) -> int:
    """Pass the gate in cycle `now`, for a unit that is taken for `interval` cycles; returns when that starts."""
    served = gate.served
    if served == 0:
        take_unit(sm, gate, k, now, interval)
        return now
    start, first = max(now, sm.units[served]), sm.scheds[0]
    first.door = max(first.door, start)
    sm.units[served] = start + interval
    take_unit(sm, gate, k, now, start - now)
    return start


@merged
def take_unit(sm: Sm, gate: Gate, k: int, now: int, interval: int) -> None:
    """Hold a unit of the gate's pipe for `interval` cycles; block the gate, and its twin, when it was the last free."""
    count = gate.units
    free = now + interval if count == 1 else _take_one_of(sm, gate, count, now + interval)
    if free > now:
        shut(sm, gate, k, free)
        main = sm.gates[gate.main]
        main.cycles += free - (now + 1)  # it was open, or nobody could have issued
        main.until = free
        if gate.twin >= 0:
            _block_twin(sm, gate.twin, k, now, free)


@called
def _block_twin(sm: Sm, gate: int, k: int, now: int, until: int) -> None:
    block(sm, sm.gates[gate], k, now, until)


@merged
def _take_one_of(sm: Sm, gate: Gate, count: int, until: int) -> int:
    """Take the unit that is free first until `until`; returns when one is free then."""
    units, first = sm.units, gate.first_unit
    if gate.ring:  # equal intervals: units become free in the order they were taken
        owner = gate.main
        if gate.twin >= 0:
            owner = min(owner, sm.gates[gate.twin].main)
        head = sm.gates[owner].head
        units[first + head] = until
        head = head + 1 if head + 1 < count else 0
        sm.gates[owner].head = head
        return units[first + head]
    best = first
    for unit in range(first + 1, first + count):
        if units[unit] < units[best]:
            best = unit
    units[best] = until
    for unit in range(first, first + count):
        until = min(until, units[unit])
    return until
