"""Loop skipping: is the SM in the same state as before, but for the time and the place of the warps in their loops?

The comparison is exact. Times count from now, and those that have passed count as one; positions differ by whole loop
rounds, seen from the entries themselves, which must repeat word for word. A warp that did not move in between must not
have changed at all, and wait for a scheduler or at a barrier, not for a time. What is behind the load/store unit is not
compared: loop.replay sees to that.
"""

from __future__ import annotations

from ppt_gpu.common.bits import int64
from ppt_gpu.common.compiled import called, entry, merged
from ppt_gpu.common.records import Words
from ppt_gpu.sm.loop.pack import MORE_AT, has
from ppt_gpu.sm.loop.state import KEY_SHIFT, LET_IN, Sm, Warp, sm_at
from ppt_gpu.sm.loop.wheel import is_bound
from ppt_gpu.sm.program.machine import GTO, GTO_BLOCK, NEVER

#: entries of a warp that are compared at most
FAR_ENOUGH = 1 << 14
# `run`: the last stretch of entries found to repeat, and by how many entries they are apart
RUN_FROM, RUN_TO, RUN_LAG = range(3)


@entry
def rounds_left(words: Words, copy: Words, run: Words, entries: int, before: int, now: int) -> int:
    """How often what happened from the copy, of cycle `before`, to now can happen again; 0: the state is another.

    `entries`: of the program.
    """
    sm, then = sm_at(words), sm_at(copy)
    if not (_same_schedulers(sm, then, before, now) and _same_ports(sm, then, before, now)):
        return int64(0)
    K, rounds, by_age = sm.schedulers, int64(NEVER), sm.policy in (GTO, GTO_BLOCK)
    for k in range(K):
        newest_at_rest, oldest_moved, sched = int64(-1), int64(NEVER), sm.scheds[k]
        for place in range(k, sm.places, K):
            bit, key = place // K, (k << 6) | (place // K)
            if (sched.alive >> bit) & 1 == 0:
                continue
            warp, was, ready = sm.warps[place], then.warps[place], (sched.ready >> bit) & 1
            lag = warp.pos - was.pos
            if lag == 0:
                if not _at_rest(warp, was, ready):
                    return int64(0)
                newest_at_rest = max(newest_at_rest, sm.keys[key])
                continue
            if lag < 0 or not _same_warp(sm, then, place, ready, before, now):
                return int64(0)
            if by_age and sm.keys[key] - then.keys[key] != (now - before) << KEY_SHIFT:
                return int64(0)
            oldest_moved = min(oldest_moved, then.keys[key])
            rounds = min(rounds, (repeating(sm, run, entries, was.pos, lag) - 1) // lag)
            if rounds <= 0:
                return int64(0)
        if by_age and newest_at_rest >= oldest_moved:
            return int64(0)
    return rounds if rounds < NEVER else int64(0)


@merged
def _later(time: int, now: int) -> int:
    """Cycles until `time`; 0 when it has passed, NEVER stays."""
    return time if time >= NEVER else max(0, time - now)


@called
def _same_schedulers(sm: Sm, then: Sm, before: int, now: int) -> bool:
    if (now - before) % sm.schedulers != 0:
        return False
    same = True
    for k in range(sm.schedulers):
        sched, was = sm.scheds[k], then.scheds[k]
        same = same and sched.ready == was.ready and sched.open == was.open and sched.blocked == was.blocked
        same = same and sched.after == was.after and sched.greedy == was.greedy and sched.alive == was.alive
        same = same and _later(sched.next_open, now) == _later(was.next_open, before)
        same = same and _later(sched.busy, now) == _later(was.busy, before)
        same = same and _later(sched.door, now) == _later(was.door, before)
    for index in range(sm.resident):
        same = same and sm.blocks[index].arrived == then.blocks[index].arrived
    return same


@called
def _same_ports(sm: Sm, then: Sm, before: int, now: int) -> bool:
    same = True
    for number in range(sm.all_gates):
        gate, was = sm.gates[number], then.gates[number]
        same = same and gate.need == was.need and gate.head == was.head
        same = same and _later(gate.until, now) == _later(was.until, before)
    for unit in range(sm.all_units):
        same = same and _later(sm.units[unit], now) == _later(then.units[unit], before)
    return same


@merged
def _at_rest(warp: Warp, was: Warp, ready: int) -> bool:
    """A warp that has not moved: nothing of it has changed, and no time will wake it."""
    same = ready != 0 or warp.waiting != 0
    same = same and warp.pos == was.pos and warp.ready == was.ready and warp.base == was.base
    same = same and warp.results == was.results and warp.access == was.access and warp.gate == was.gate
    same = same and warp.block_slot == was.block_slot and warp.waiting == was.waiting
    same = same and warp.arrived_at == was.arrived_at and warp.barrier_latency == was.barrier_latency
    same = same and warp.last_op == was.last_op and warp.exit_at == was.exit_at and warp.word == was.word
    return same and warp.enters == was.enters and warp.fetched == was.fetched and warp.held == was.held


@called
def _same_warp(sm: Sm, then: Sm, place: int, ready: int, before: int, now: int) -> bool:
    warp, was, passed = sm.warps[place], then.warps[place], now - before
    same = warp.gate == was.gate and warp.waiting == was.waiting
    if warp.waiting:
        same = same and warp.arrived_at - was.arrived_at == passed
        same = same and _later(warp.fetched, now) == _later(was.fetched, before)
        same = same and warp.barrier_latency == was.barrier_latency
    else:
        same = same and warp.ready - was.ready == passed
    if ready != 0 and is_bound(sm, warp.gate) != 0:
        main = sm.gates[warp.gate & (LET_IN - 1)].main
        same = same and sm.gates[main].cycles - warp.base == then.gates[main].cycles - was.base
    if not same or _later(warp.results, now) != _later(was.results, before):
        return False
    for slot in range(place << sm.slot_shift, (place + 1) << sm.slot_shift):
        one, other = sm.slots[slot], then.slots[slot]
        if (one >> 2 > now or other >> 2 > before) and one - other != passed << 2:
            return False
    return True


@called
def repeating(sm: Sm, run: Words, entries: int, first: int, lag: int) -> int:
    """How many entries from `first` on, of all `entries`, are the same as those `lag` further on."""
    code, waits = sm.code, sm.waits
    if not (run[RUN_LAG] == lag and run[RUN_FROM] <= first <= run[RUN_TO]):
        at = first
        end = min(entries - lag, first + max(FAR_ENOUGH, 4 * lag))
        while at < end and code[at] == code[at + lag]:
            if has(code[at], MORE_AT) and waits[at] != waits[at + lag]:
                break
            at += 1
        run[RUN_FROM], run[RUN_TO], run[RUN_LAG] = first, at, lag
    return int64(run[RUN_TO] - first)
