"""Loop skipping: is the SM in the same state as before, but for the time and the place of the warps in their loops?

The comparison is exact. Times count from now, and those that have passed count as one; positions differ by whole loop
rounds, seen from the entries themselves, which must repeat word for word. A warp that did not move in between must not
have changed at all, and wait for a scheduler or at a barrier, not for a time. What is behind the load/store unit is not
compared: loop.replay sees to that.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from ppt_gpu.common.bits import int64
from ppt_gpu.common.compiled import called, entry, merged
from ppt_gpu.sm.loop.pack import MORE_AT
from ppt_gpu.sm.loop.state import (
    ALIVE,
    ARRIVED,
    ARRIVED_AT,
    AT_BLOCKS,
    AT_GATES,
    AT_KEYS,
    AT_SCHEDS,
    AT_SLOTS,
    AT_STALL,
    AT_UNITS,
    AT_WARPS,
    BARRIER_LATENCY,
    BASE,
    BLOCK_SHIFT,
    BLOCKED,
    BUSY,
    CYCLES,
    DOOR,
    FETCHED,
    GATE,
    GATE_SHIFT,
    GREEDY,
    HEAD,
    KEY_SHIFT,
    LAST,
    MAIN,
    NEED,
    NEXT_OPEN,
    OFFSET,
    OPEN,
    PLACES,
    POS,
    READY,
    READY_MASK,
    RESULTS,
    SCHED_SHIFT,
    SLOT_SHIFT,
    UNTIL,
    WAITING,
    WARP_SHIFT,
)
from ppt_gpu.sm.loop.wheel import is_bound
from ppt_gpu.sm.program.machine import GTO, GTO_BLOCK, NEVER

#: entries of a warp that are compared at most
FAR_ENOUGH = 1 << 14
# `run`: the last stretch of entries found to repeat, and by how many entries they are apart
RUN_FROM, RUN_TO, RUN_LAG = range(3)


@cache
def make_rounds_left() -> Any:
    """_rounds_left, compiled."""

    def rounds_left(
        K: int, POLICY: int, core: Any, snap: Any, layout: Any, run: Any, code: Any, waits: Any, before: int, now: int
    ) -> int:
        return _rounds_left(K, POLICY, core, snap, layout, run, code, waits, before, now)

    return entry(rounds_left)


@called
def _rounds_left(
    K: int, POLICY: int, core: Any, snap: Any, layout: Any, run: Any, code: Any, waits: Any, before: int, now: int
) -> int:
    """How often what happened from `snap`, of cycle `before`, to now can happen again; 0: the state is another."""
    if not (_same_schedulers(K, core, snap, layout, before, now) and _same_ports(core, snap, layout, before, now)):
        return int64(0)
    rounds = int64(NEVER)
    for k in range(K):
        newest_at_rest, oldest_moved = int64(-1), int64(NEVER)
        ready = core[layout[AT_SCHEDS] + (k << SCHED_SHIFT) + READY_MASK]
        alive = core[layout[AT_SCHEDS] + (k << SCHED_SHIFT) + ALIVE]
        for place in range(k, layout[PLACES], K):
            bit = place // K
            if (alive >> bit) & 1 == 0:
                continue
            at, key = layout[AT_WARPS] + (place << WARP_SHIFT), layout[AT_KEYS] + ((k << 6) | bit)
            lag = core[at + POS] - snap[at + POS]
            if lag == 0:
                if not _at_rest(core, snap, at, (ready >> bit) & 1):
                    return int64(0)
                newest_at_rest = max(newest_at_rest, core[key])
                continue
            if lag < 0 or not _same_warp(K, core, snap, layout, place, (ready >> bit) & 1, before, now):
                return int64(0)
            if POLICY in (GTO, GTO_BLOCK) and core[key] - snap[key] != (now - before) << KEY_SHIFT:
                return int64(0)
            oldest_moved = min(oldest_moved, snap[key])
            rounds = min(rounds, (repeating(code, waits, run, snap[at + POS], lag) - 1) // lag)
            if rounds <= 0:
                return int64(0)
        if POLICY in (GTO, GTO_BLOCK) and newest_at_rest >= oldest_moved:
            return int64(0)
    return rounds if rounds < NEVER else int64(0)


@merged
def _later(time: int, now: int) -> int:
    """Cycles until `time`; 0 when it has passed, NEVER stays."""
    return time if time >= NEVER else max(0, time - now)


@called
def _same_schedulers(K: int, core: Any, snap: Any, layout: Any, before: int, now: int) -> bool:
    if (now - before) % K != 0:
        return False
    for k in range(K):
        at = layout[AT_SCHEDS] + (k << SCHED_SHIFT)
        for word in (READY_MASK, OPEN, BLOCKED, LAST, GREEDY, ALIVE):
            if core[at + word] != snap[at + word]:
                return False
        for word in (NEXT_OPEN, BUSY, DOOR):
            if _later(core[at + word], now) != _later(snap[at + word], before):
                return False
    for at in range(layout[AT_BLOCKS], layout[AT_STALL], 1 << BLOCK_SHIFT):
        if core[at + ARRIVED] != snap[at + ARRIVED]:
            return False
    return True


@called
def _same_ports(core: Any, snap: Any, layout: Any, before: int, now: int) -> bool:
    for at in range(layout[AT_GATES], layout[AT_UNITS], 1 << GATE_SHIFT):
        if core[at + NEED] != snap[at + NEED] or core[at + HEAD] != snap[at + HEAD]:
            return False
        if _later(core[at + UNTIL], now) != _later(snap[at + UNTIL], before):
            return False
    same = True
    for at in range(layout[AT_UNITS], layout[AT_BLOCKS]):
        same = same and _later(core[at], now) == _later(snap[at], before)
    return same


@merged
def _at_rest(core: Any, snap: Any, at: int, ready: int) -> bool:
    """A warp that has not moved: nothing of it has changed, and no time will wake it."""
    same = ready != 0 or core[at + WAITING] != 0
    for word in range(1 << WARP_SHIFT):
        same = same and core[at + word] == snap[at + word]
    return same


@called
def _same_warp(K: int, core: Any, snap: Any, layout: Any, place: int, ready: int, before: int, now: int) -> bool:
    at, passed = layout[AT_WARPS] + (place << WARP_SHIFT), now - before
    same = core[at + GATE] == snap[at + GATE] and core[at + WAITING] == snap[at + WAITING]
    if core[at + WAITING]:
        same = same and core[at + ARRIVED_AT] - snap[at + ARRIVED_AT] == passed
        same = same and _later(core[at + FETCHED], now) == _later(snap[at + FETCHED], before)
        same = same and core[at + BARRIER_LATENCY] == snap[at + BARRIER_LATENCY]
    else:
        same = same and core[at + READY] - snap[at + READY] == passed
    if ready != 0 and is_bound(K, core[at + GATE]) != 0:
        cycles = layout[AT_GATES] + (core[layout[AT_GATES] + (core[at + GATE] & OFFSET) + MAIN] & OFFSET) + CYCLES
        same = same and core[cycles] - core[at + BASE] == snap[cycles] - snap[at + BASE]
    if not same or _later(core[at + RESULTS], now) != _later(snap[at + RESULTS], before):
        return False
    for slot in range(place << layout[SLOT_SHIFT], (place + 1) << layout[SLOT_SHIFT]):
        one, other = core[layout[AT_SLOTS] + slot], snap[layout[AT_SLOTS] + slot]
        if (one >> 2 > now or other >> 2 > before) and one - other != passed << 2:
            return False
    return True


@called
def repeating(code: Any, waits: Any, run: Any, first: int, lag: int) -> int:
    """How many entries from `first` on are the same as those `lag` further on."""
    if not (run[RUN_LAG] == lag and run[RUN_FROM] <= first <= run[RUN_TO]):
        at = first
        end = min(len(code) - lag, first + max(FAR_ENOUGH, 4 * lag))
        while at < end and code[at] == code[at + lag]:
            if (code[at] >> MORE_AT) & 1 and waits[at] != waits[at + lag]:
                break
            at += 1
        run[RUN_FROM], run[RUN_TO], run[RUN_LAG] = first, at, lag
    return int64(run[RUN_TO] - first)
