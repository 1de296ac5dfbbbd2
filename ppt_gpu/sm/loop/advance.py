"""Loop skipping: move the state of the SM by whole rounds of what has just happened."""

from __future__ import annotations

from functools import cache
from typing import Any

from ppt_gpu.common.bits import int64
from ppt_gpu.common.compiled import called, entry, merged
from ppt_gpu.sm.loop.state import (
    ACCESS,
    ALIVE,
    ARRIVED_AT,
    AT_BLOCKS,
    AT_END,
    AT_GATES,
    AT_KEYS,
    AT_SCHEDS,
    AT_SLOTS,
    AT_STALL,
    AT_UNITS,
    AT_WARPS,
    BASE,
    BUSY,
    CYCLES,
    DOOR,
    FAR,
    FAR_AWAY,
    FETCHED,
    GATE,
    GATE_SHIFT,
    KEY_SHIFT,
    LATER,
    MAIN,
    NEAR,
    NEXT_OPEN,
    OFFSET,
    PLACES,
    POS,
    READY,
    READY_MASK,
    RESULTS,
    ROWS,
    SCHED_SHIFT,
    SLOT_SHIFT,
    UNTIL,
    WAITING,
    WAKES,
    WARP_SHIFT,
)
from ppt_gpu.sm.loop.wheel import is_bound, schedule
from ppt_gpu.sm.program.machine import GTO, GTO_BLOCK, NEVER


@cache
def make_advance() -> Any:
    """_advance, compiled."""

    def advance(
        K: int, POLICY: int, core: Any, snap: Any, layout: Any, wheel: Any, occupied: Any, scheds: Any, rounds: int,
        before: int, now: int,
    ) -> None:  # fmt: skip
        _advance(K, POLICY, core, snap, layout, wheel, occupied, scheds, rounds, before, now)

    return entry(advance)


@called
def _advance(
    K: int, POLICY: int, core: Any, snap: Any, layout: Any, wheel: Any, occupied: Any, scheds: Any, rounds: int,
    before: int, now: int,
) -> None:  # fmt: skip
    """The state of cycle `now`, `rounds` times (now - before) cycles later. `snap` is the state of cycle `before`."""
    time = rounds * (now - before)
    for place in range(layout[PLACES]):
        at, alive = layout[AT_WARPS] + (place << WARP_SHIFT), layout[AT_SCHEDS] + ((place % K) << SCHED_SHIFT) + ALIVE
        lag = core[at + POS] - snap[at + POS]
        if lag != 0 and (core[alive] >> (place // K)) & 1:
            gate = layout[AT_GATES] + (core[at + GATE] & OFFSET) + MAIN
            cycles = layout[AT_GATES] + (core[gate] & OFFSET) + CYCLES
            core[at + BASE] += rounds * (core[cycles] - snap[cycles])
            for word in (POS, ACCESS):
                core[at + word] += rounds * (core[at + word] - snap[at + word])
            move_warp(K, POLICY, core, layout, place, time, now)
    for at in range(layout[AT_GATES], layout[AT_UNITS], 1 << GATE_SHIFT):
        core[at + CYCLES] += rounds * (core[at + CYCLES] - snap[at + CYCLES])
    for at in range(layout[AT_STALL], layout[AT_END]):
        core[at] += rounds * (core[at] - snap[at])
    move_ports(K, core, layout, time, now)
    wind(K, core, layout, wheel, occupied, scheds, now + time)


@merged
def _moved(value: int, time: int, now: int) -> int:
    """A time to come, `time` later; one that has passed stays."""
    return value + time if now < value < NEVER else value


@called
def move_warp(K: int, POLICY: int, core: Any, layout: Any, place: int, time: int, now: int) -> None:
    """The times of the warp in slot `place`, `time` later, also the cycle of its last issue, which its key holds."""
    at = layout[AT_WARPS] + (place << WARP_SHIFT)
    for word in (READY, RESULTS, ARRIVED_AT):
        core[at + word] += time
    core[at + FETCHED] = _moved(core[at + FETCHED], time, now)
    for slot in range(place << layout[SLOT_SHIFT], (place + 1) << layout[SLOT_SHIFT]):
        if core[layout[AT_SLOTS] + slot] >> 2 > now:
            core[layout[AT_SLOTS] + slot] += time << 2
    if POLICY in (GTO, GTO_BLOCK):
        core[layout[AT_KEYS] + (((place % K) << 6) | (place // K))] += time << KEY_SHIFT


@called
def move_ports(K: int, core: Any, layout: Any, time: int, now: int) -> None:
    """What is taken at `now` is free `time` later."""
    for k in range(K):
        at = layout[AT_SCHEDS] + (k << SCHED_SHIFT)
        for word in (NEXT_OPEN, BUSY, DOOR):
            core[at + word] = _moved(core[at + word], time, now)
    for at in range(layout[AT_GATES], layout[AT_UNITS], 1 << GATE_SHIFT):
        core[at + UNTIL] = _moved(core[at + UNTIL], time, now)
    for at in range(layout[AT_UNITS], layout[AT_BLOCKS]):
        core[at] = _moved(core[at], time, now)


@called
def wind(K: int, core: Any, layout: Any, wheel: Any, occupied: Any, scheds: Any, now: int) -> None:
    """The timing wheel as of cycle `now`: all warps that wait for a time."""
    for row in range(len(wheel)):
        wheel[row] = 0
    occupied[NEAR] = occupied[LATER] = occupied[FAR_AWAY] = int64(0)
    for row in range(ROWS, len(occupied)):
        occupied[row] = 0
    for k in range(K):
        scheds[(k << SCHED_SHIFT) + FAR] = 0
        scheds[(k << SCHED_SHIFT) + WAKES] = 0
    for place in range(layout[PLACES]):
        k, bit, at = place % K, place // K, layout[AT_WARPS] + (place << WARP_SHIFT)
        waiting = scheds[(k << SCHED_SHIFT) + ALIVE] & ~scheds[(k << SCHED_SHIFT) + READY_MASK]
        if (waiting >> bit) & 1 and core[at + WAITING] == 0:
            schedule(K, wheel, occupied, scheds, k, bit, is_bound(K, core[at + GATE]), core[at + READY], now)
