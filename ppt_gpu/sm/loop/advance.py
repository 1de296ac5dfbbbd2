"""Loop skipping: move the state of the SM by whole rounds of what has just happened."""

from __future__ import annotations

from ppt_gpu.common.bits import int64
from ppt_gpu.common.compiled import called, entry, merged
from ppt_gpu.common.records import Words
from ppt_gpu.sm.loop.state import FAR_AWAY, KEY_SHIFT, LATER, LET_IN, NEAR, ROWS, STALL_SHIFT, WHEEL, Sm, sm_at
from ppt_gpu.sm.loop.wheel import is_bound, schedule
from ppt_gpu.sm.program.machine import GTO, GTO_BLOCK, NEVER


@entry
def advance(words: Words, copy: Words, rounds: int, before: int, now: int) -> None:
    """The state of cycle `now`, `rounds` times (now - before) cycles later; the copy is the state of cycle `before`."""
    sm, then = sm_at(words), sm_at(copy)
    K, time = sm.schedulers, rounds * (now - before)
    for place in range(sm.places):
        warp, was = sm.warps[place], then.warps[place]
        if warp.pos != was.pos and (sm.scheds[place % K].alive >> (place // K)) & 1:
            main = sm.gates[warp.gate & (LET_IN - 1)].main
            warp.base += rounds * (sm.gates[main].cycles - then.gates[main].cycles)
            warp.pos += rounds * (warp.pos - was.pos)
            warp.access += rounds * (warp.access - was.access)
            move_warp(sm, place, time, now)
    for number in range(sm.all_gates):
        sm.gates[number].cycles += rounds * (sm.gates[number].cycles - then.gates[number].cycles)
    for operation in range(sm.all_operations):
        sm.doubled[operation] += rounds * (sm.doubled[operation] - then.doubled[operation])
    for at in range(sm.all_operations << STALL_SHIFT):
        sm.op_stall[at] += rounds * (sm.op_stall[at] - then.op_stall[at])
    move_ports(sm, time, now)
    wind(sm, now + time)


@merged
def _moved(value: int, time: int, now: int) -> int:
    """A time to come, `time` later; one that has passed stays."""
    return value + time if now < value < NEVER else value


@called
def move_warp(sm: Sm, place: int, time: int, now: int) -> None:
    """The times of the warp in slot `place`, `time` later, also the cycle of its last issue, which its key holds."""
    warp = sm.warps[place]
    warp.ready += time
    warp.results += time
    warp.arrived_at += time
    warp.fetched = _moved(warp.fetched, time, now)
    for slot in range(place << sm.slot_shift, (place + 1) << sm.slot_shift):
        if sm.slots[slot] >> 2 > now:
            sm.slots[slot] += time << 2
    if sm.policy in (GTO, GTO_BLOCK):
        sm.keys[((place % sm.schedulers) << 6) | (place // sm.schedulers)] += time << KEY_SHIFT


@called
def move_ports(sm: Sm, time: int, now: int) -> None:
    """What is taken at `now` is free `time` later."""
    for k in range(sm.schedulers):
        sched = sm.scheds[k]
        sched.next_open = _moved(sched.next_open, time, now)
        sched.busy = _moved(sched.busy, time, now)
        sched.door = _moved(sched.door, time, now)
    for number in range(sm.all_gates):
        sm.gates[number].until = _moved(sm.gates[number].until, time, now)
    for unit in range(sm.all_units):
        sm.units[unit] = _moved(sm.units[unit], time, now)


@called
def wind(sm: Sm, now: int) -> None:
    """The timing wheel as of cycle `now`: all warps that wait for a time."""
    K, occupied = sm.schedulers, sm.occupied
    for row in range(2 * WHEEL * 2 * K):
        sm.wheel[row] = 0
    occupied[NEAR] = occupied[LATER] = occupied[FAR_AWAY] = int64(0)
    for row in range(ROWS, ROWS + 2 * WHEEL):
        occupied[row] = 0
    for k in range(K):
        sm.scheds[k].far = 0
        sm.scheds[k].wakes = 0
    for place in range(sm.places):
        k, bit, warp = place % K, place // K, sm.warps[place]
        waiting = sm.scheds[k].alive & ~sm.scheds[k].ready
        if (waiting >> bit) & 1 and warp.waiting == 0:
            schedule(sm, k, bit, is_bound(sm, warp.gate), warp.ready, now)
