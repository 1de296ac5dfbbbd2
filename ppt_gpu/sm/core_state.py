"""The tables of the compiled loop and the small steps on them.

Warp slot w is bit w // K of scheduler w mod K, so a scheduler's warps are one machine word, and row k * 64 + bit of `warps`.
All steps are inlined into the loop, where K is a constant.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from ppt_gpu.sm.core_bits import ctz, popcount
from ppt_gpu.sm.core_machine import NEVER, WAIT_LONG, Machine
from ppt_gpu.sm.core_pack import (
    KIND_AT,
    MORE_AT,
    OP_AT,
    PORT_AT,
    RING,
    ROW,
    SHARED,
    TWIN,
    UNITS,
    W1_AT,
)
from ppt_gpu.sm.program import Program
from ppt_gpu.sm.result import STALL_REASONS

# columns of `warps`
POS, READY, BASE, STAMP, RESULTS, ACCESS, PORT, NUMBER, BLOCK_SLOT, WAITING, ARRIVED_AT, BARRIER_LATENCY, LAST_OP, EXIT_AT = (
    range(14)
)
# columns of `scheds`: masks of warps (ready: nothing but a port may be missing) or of ports (blocked), and warp bits
READY_MASK, BLOCKED, LAST, GREEDY, BUSY, ACTIVE, PROMOTED, PARKED, ALIVE, FAR = range(10)
# columns of `blocks`, one row a block slot
BLOCK, LIVE, ARRIVED, LAUNCH_AT, BLOCK_RESULTS, FIRST_WARP, WARPS = range(7)
# columns of `gates`, one row a port of a scheduler (row 0 for all when it stands in the SM): blocked until this cycle;
# cycles blocked so far, up to `UNTIL`; mask of ready warps that need it; next unit of a ring
UNTIL, BLOCKED_CYCLES, NEED, HEAD = range(4)

WHEEL = 256  # cycles ahead that the timing wheel covers

_REASON = {name: index for index, name in enumerate(STALL_REASONS)}
SELECTED, NOT_SELECTED, BARRIER, BRANCH, DISPATCH, DRAIN = (
    _REASON[name] for name in ("selected", "not_selected", "barrier", "branch_resolving", "dispatch_stall", "drain")
)
_MATH, _LG, _MIO = (_REASON[name] for name in ("math_pipe_throttle", "lg_throttle", "mio_throttle"))
#: by kind: why a ready warp without a port waits
THROTTLE = np.array([_MATH, _MATH, _MATH, _LG, _LG, _LG, _MIO, _MIO], np.int64)
#: by WAIT_*
DEPENDENCE = np.array([_REASON[name] for name in ("wait", "short_scoreboard", "long_scoreboard")], np.int64)


class State:
    """Fresh tables for one run."""

    def __init__(self, program: Program, machine: Machine, resident: int) -> None:
        k = machine.schedulers
        self.warps = np.zeros((k * 64, 16), np.int64)
        self.slots = np.zeros(k * 64 * ROW, np.int64)  # completion * 4 + WAIT_*, by warp and scoreboard slot
        self.scheds = np.zeros((k, 16), np.int64)
        self.scheds[:, (LAST, GREEDY, PROMOTED)] = -1
        self.blocks = np.zeros((resident, 8), np.int64)
        self.gates = np.zeros((k * 64, 4), np.int64)
        self.units = np.zeros((k * 64, max(machine.pipe_units)), np.int64)
        self.wheel = np.zeros(WHEEL * k, np.int64)
        self.occupied = np.zeros(WHEEL // 64, np.int64)  # bit a row of the wheel
        self.op_stall = np.zeros((len(program.op_name), len(STALL_REASONS)), np.int64)
        self.doubled = np.zeros(len(program.op_name), np.int64)  # issues as the second entry of a cycle
        blocks = len(program.block_warp) - 1
        self.block_start = np.zeros(blocks, np.int64)
        self.block_end = np.zeros(blocks, np.int64)


# --- time --------------------------------------------------------------------------------------------------------


@njit(forceinline=True, _nrt=False)
def schedule(K: int, wheel: Any, occupied: Any, scheds: Any, k: int, bit: int, ready: int, now: int) -> None:
    """Wake the warp in cycle `ready`, now or later: by the wheel, or far away."""
    if ready - now < WHEEL:
        row = ready & (WHEEL - 1)
        wheel[row * K + k] |= 1 << bit
        occupied[row >> 6] |= 1 << (row & 63)
    else:
        scheds[k, FAR] |= 1 << bit


@njit(_nrt=False)
def bring_near(K: int, wheel: Any, occupied: Any, scheds: Any, warps: Any, now: int) -> None:
    """At a turn of the wheel: far warps that wake within it."""
    for k in range(K):
        left = scheds[k, FAR]
        scheds[k, FAR] = 0
        while left:
            bit = ctz(left)
            left &= left - 1
            schedule(K, wheel, occupied, scheds, k, bit, warps[k * 64 + bit, READY], now)


@njit(forceinline=True, _nrt=False)
def next_wake(occupied: Any, now: int) -> int:
    """The next cycle after `now` with a warp in the wheel."""
    start = (now + 1) & (WHEEL - 1)
    word = start >> 6
    left = occupied[word] & (np.int64(-1) << (start & 63))
    for _ in range(WHEEL // 64 + 1):
        if left:
            return now + 1 + (((word << 6) + ctz(left) - start) & (WHEEL - 1))
        word = (word + 1) & (WHEEL // 64 - 1)
        left = occupied[word]
    return NEVER


@njit(forceinline=True, _nrt=False)
def wake(K: int, wheel: Any, scheds: Any, warps: Any, gates: Any, ports: Any, row: int, now: int) -> None:
    """The warps of a wheel row are ready: note how long their port has been blocked up to here."""
    for k in range(K):
        woken = wheel[row * K + k]
        if woken:
            wheel[row * K + k] = 0
            scheds[k, READY_MASK] |= woken
            scheds[k, PARKED] &= ~woken
            while woken:
                bit = ctz(woken)
                woken &= woken - 1
                port = warps[k * 64 + bit, PORT]
                gates[k * 64 + port, NEED] |= np.int64(1) << bit
                gate = port if ports[port, SHARED] else k * 64 + port
                ahead = max(0, gates[gate, UNTIL] - now)
                warps[k * 64 + bit, BASE] = gates[gate, BLOCKED_CYCLES] - ahead


# --- ports -------------------------------------------------------------------------------------------------------


@njit(forceinline=True, _nrt=False)
def block(K: int, scheds: Any, gates: Any, ports: Any, port: int, k: int, now: int, until: int) -> None:
    """Nothing may use `port` of scheduler k from here to cycle `until`. Blocked cycles count from the next on."""
    gate = k * 64 + port
    if ports[port, SHARED]:
        gate = port
        for other in range(K):
            scheds[other, BLOCKED] |= np.int64(1) << port
    else:
        scheds[k, BLOCKED] |= np.int64(1) << port
    before = gates[gate, UNTIL]
    gates[gate, BLOCKED_CYCLES] += max(0, until - max(now + 1, before))
    gates[gate, UNTIL] = max(before, until)


@njit(forceinline=True, _nrt=False)
def take_unit(
    K: int, scheds: Any, gates: Any, ports: Any, units: Any, port: int, k: int, now: int, interval: int
) -> None:
    """Hold a unit of the port's pipe for `interval` cycles; block the port, and its twin, when it was the last free."""
    count, twin = ports[port, UNITS], ports[port, TWIN]
    if count == 1:
        free = now + interval
    else:
        owner = port if twin < 0 else min(port, twin)
        if ports[port, SHARED] == 0:
            owner += k * 64
        if ports[port, RING]:  # equal intervals: units become free in the order they were taken
            head = gates[owner, HEAD]
            units[owner, head] = now + interval
            head = head + 1 if head + 1 < count else 0
            gates[owner, HEAD] = head
            free = units[owner, head]
        else:
            first = 0
            for unit in range(1, count):
                if units[owner, unit] < units[owner, first]:
                    first = unit
            units[owner, first] = now + interval
            free = units[owner, 0]
            for unit in range(1, count):
                free = min(free, units[owner, unit])
    if free > now:
        block(K, scheds, gates, ports, port, k, now, free)
        if twin >= 0:
            block(K, scheds, gates, ports, twin, k, now, free)


@njit(forceinline=True, _nrt=False)
def eligible_mask(scheds: Any, gates: Any, ports: Any, k: int, now: int) -> tuple[int, int]:
    """(ready warps of scheduler k whose port is open, cycle at which the first of the others opens)."""
    mask, soon = scheds[k, READY_MASK], NEVER
    left = scheds[k, BLOCKED]
    while left:
        port = ctz(left)
        left &= left - 1
        until = gates[port if ports[port, SHARED] else k * 64 + port, UNTIL]
        if until <= now:
            scheds[k, BLOCKED] &= ~(np.int64(1) << port)
        elif mask & gates[k * 64 + port, NEED]:
            mask &= ~gates[k * 64 + port, NEED]
            soon = min(soon, until)
    return mask, soon


# --- choice ------------------------------------------------------------------------------------------------------


@njit(forceinline=True, _nrt=False)
def next_in_turn(mask: int, last: int) -> int:
    """The first set bit after `last`, cyclically. `mask` is not 0."""
    later = mask if last < 0 else mask & ((np.int64(-1) << last) << 1)
    return ctz(later) if later else ctz(mask)


@njit(forceinline=True, _nrt=False)
def greedy_or_least(mask: int, greedy: int, warps: Any, k: int, column: int) -> int:
    """The greedy warp if it is in `mask`, else the one with the least `warps[., column]`, the lower slot first."""
    if greedy >= 0 and (mask >> greedy) & 1:
        return greedy
    best = ctz(mask)
    mask &= mask - 1
    while mask:
        bit = ctz(mask)
        mask &= mask - 1
        if warps[k * 64 + bit, column] < warps[k * 64 + best, column]:
            best = bit
    return best


@njit(_nrt=False)
def refill_active(
    K: int, scheds: Any, warps: Any, gates: Any, ports: Any, code: Any, op_stall: Any, size: int, now: int
) -> None:
    """two_level, at the start of a cycle: dismiss finished and parked warps, let others join in turn."""
    for k in range(K):
        fit = scheds[k, ALIVE] & ~scheds[k, PARKED]
        active = scheds[k, ACTIVE] & fit
        left = fit & ~active
        while left and popcount(active) < size:
            bit = next_in_turn(left, scheds[k, PROMOTED])
            left &= ~(np.int64(1) << bit)
            active |= np.int64(1) << bit
            scheds[k, PROMOTED] = bit
            if (scheds[k, READY_MASK] >> bit) & 1:
                _charge_outside(warps, gates, ports, code, op_stall, k, bit, now)
        scheds[k, ACTIVE] = active


@njit(_nrt=False)
def _charge_outside(
    warps: Any, gates: Any, ports: Any, code: Any, op_stall: Any, k: int, bit: int, now: int
) -> None:
    """The warp was ready outside the active set until now; it goes on as if it became ready now."""
    row = k * 64 + bit
    port, word = warps[row, PORT], code[warps[row, POS]]
    gate = port if ports[port, SHARED] else k * 64 + port
    blocked = gates[gate, BLOCKED_CYCLES] - max(0, gates[gate, UNTIL] - now)
    throttled = blocked - warps[row, BASE]
    op_stall[word >> OP_AT, THROTTLE[(word >> KIND_AT) & 7]] += throttled
    op_stall[word >> OP_AT, DISPATCH] += now - warps[row, READY] - throttled
    warps[row, READY] = now
    warps[row, BASE] = blocked


# --- dependences -------------------------------------------------------------------------------------------------


@njit(forceinline=True, _nrt=False)
def dependence(slots: Any, row: int, word: int, waits: Any, position: int) -> int:
    """Completion * 4 + WAIT_* of the slot that the entry waits for longest; 0 when it waits for none."""
    base = row * ROW
    until = max(slots[base + (word & 127)], slots[base + ((word >> W1_AT) & 127)])
    if (word >> MORE_AT) & 1:
        left = np.int64(waits[position])
        while left:
            until = max(until, slots[base + ctz(left)])
            left &= left - 1
    return until


@njit(forceinline=True, _nrt=False)
def plan_wake(
    K: int, wheel: Any, occupied: Any, scheds: Any, warps: Any, op_stall: Any, k: int, bit: int, word: int,
    until: int, low: int, parked: bool, now: int,
) -> None:  # fmt: skip
    """The warp's next entry is `word`, its slots complete with `until`, nothing else holds it from cycle `low` on."""
    row = k * 64 + bit
    ready, cause = until >> 2, until & 3
    if ready > low:
        op_stall[word >> OP_AT, DEPENDENCE[cause]] += ready - low
        low = ready
    if parked or (ready == low and cause == WAIT_LONG):
        scheds[k, PARKED] |= np.int64(1) << bit
    warps[row, READY] = low
    warps[row, PORT] = (word >> PORT_AT) & 63
    schedule(K, wheel, occupied, scheds, k, bit, low, now)


# --- blocks ------------------------------------------------------------------------------------------------------


@njit(_nrt=False)
def release_barrier(
    K: int, wheel: Any, occupied: Any, scheds: Any, warps: Any, slots: Any, blocks: Any, op_stall: Any, code: Any,
    waits: Any, index: int, per_block: int, now: int,
) -> None:  # fmt: skip
    """All live warps of block slot `index` have arrived: let them go."""
    blocks[index, ARRIVED] = 0
    for place in range(index * per_block, index * per_block + blocks[index, WARPS]):
        k, bit = place % K, place // K
        row = k * 64 + bit
        if warps[row, WAITING]:
            warps[row, WAITING] = 0
            position = warps[row, POS]
            word = code[position]
            low = now + warps[row, BARRIER_LATENCY]
            op_stall[word >> OP_AT, BARRIER] += low - warps[row, ARRIVED_AT] - 1
            until = dependence(slots, row, word, waits, position)
            plan_wake(K, wheel, occupied, scheds, warps, op_stall, k, bit, word, until, low, True, now)


@njit(_nrt=False)
def finish_block(
    K: int, warps: Any, blocks: Any, op_stall: Any, block_start: Any, block_end: Any, index: int, per_block: int, delay: int
) -> int:
    """The last warp of block slot `index` has exited: charge the drain; returns idle cycles of warps without entries."""
    number = blocks[index, BLOCK]
    end = max(blocks[index, BLOCK_RESULTS], block_start[number] + 1)
    idle = 0
    block_end[number] = end
    for place in range(index * per_block, index * per_block + blocks[index, WARPS]):
        row = (place % K) * 64 + place // K
        drained = end - warps[row, EXIT_AT] - 1
        if warps[row, LAST_OP] >= 0:
            op_stall[warps[row, LAST_OP], DRAIN] += drained
        else:
            idle += drained
    blocks[index, LAUNCH_AT] = end + delay
    return idle


@njit(_nrt=False)
def launch_block(
    K: int, wheel: Any, occupied: Any, scheds: Any, warps: Any, slots: Any, blocks: Any, code: Any, path_start: Any,
    warp_path: Any, warp_access: Any, block_warp: Any, number: int, index: int, per_block: int, now: int,
) -> None:  # fmt: skip
    """Put block `number` into block slot `index`; its warps are ready at once."""
    first, last = block_warp[number], block_warp[number + 1]
    blocks[index, BLOCK] = number
    blocks[index, LIVE] = last - first
    blocks[index, WARPS] = last - first
    blocks[index, ARRIVED] = 0
    blocks[index, BLOCK_RESULTS] = 0
    blocks[index, LAUNCH_AT] = NEVER
    for warp in range(first, last):
        place = index * per_block + warp - first
        k, bit = place % K, place // K
        row = k * 64 + bit
        begin, end = path_start[warp_path[warp]], path_start[warp_path[warp] + 1]
        slots[row * ROW : (row + 1) * ROW] = 0
        warps[row, POS] = begin
        warps[row, READY] = now
        warps[row, STAMP] = now
        warps[row, RESULTS] = 0
        warps[row, ACCESS] = warp_access[warp]
        warps[row, NUMBER] = warp
        warps[row, BLOCK_SLOT] = index
        warps[row, WAITING] = 0
        warps[row, LAST_OP] = -1
        warps[row, EXIT_AT] = now - 1
        if begin == end:
            blocks[index, LIVE] -= 1
            continue
        warps[row, PORT] = (code[begin] >> PORT_AT) & 63
        scheds[k, ALIVE] |= np.int64(1) << bit
        schedule(K, wheel, occupied, scheds, k, bit, now, now)
