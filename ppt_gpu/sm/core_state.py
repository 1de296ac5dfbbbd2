"""The tables of the compiled loop and the small steps on them.

Warp slot w is bit w // K of scheduler w mod K, so the warps of a scheduler are one machine word. Tables are flat arrays
of records of a fixed number of words: `warps[me + READY]`, where `me` is the offset of a warp's record. (Rows of a
two-dimensional array would cost a multiplication by a stride that the compiler does not know.)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from ppt_gpu.sm.core_bits import LANES, NO_KEY, ctz, int64, least_of, popcount
from ppt_gpu.sm.core_machine import GTO_LAUNCH, NEVER, TWO_LEVEL, WAIT_LONG, Machine
from ppt_gpu.sm.core_pack import (
    KIND_AT,
    MORE_AT,
    OP_AT,
    OP_MASK,
    PORT_AT,
    PORT_MASK,
    SLOT_ROW,
    W1_AT,
    Packed,
)
from ppt_gpu.sm.program import Program, op_issues
from ppt_gpu.sm.result import STALL_REASONS

# `warps`: offset w << WARP_SHIFT
(
    POS, READY, BASE, RESULTS, ACCESS, GATE, BLOCK_SLOT, WAITING, ARRIVED_AT, BARRIER_LATENCY, LAST_OP, EXIT_AT,
) = range(12)  # fmt: skip
WARP_SHIFT = 4
# `scheds`: offset k << SCHED_SHIFT. Masks of warps: READY_MASK, only a port may be missing; OPEN, nor is that.
# Before cycle NEXT_OPEN no port opens that a ready warp needs. BLOCKED: mask of ports.
READY_MASK, OPEN, NEXT_OPEN, BLOCKED, LAST, GREEDY, BUSY, ACTIVE, PROMOTED, PARKED, ALIVE, FAR = range(12)
SCHED_SHIFT = 4
# `gates`, the port of a scheduler: offset (port * K + k) << GATE_SHIFT. NEED: its ready warps that need it;
# MARK: its bit in masks. A port of the SM has its times in the record of scheduler 0, where MAIN of all leads.
# UNTIL: blocked until this cycle; CYCLES: cycles it has been blocked, up to UNTIL; HEAD, FIRST_UNIT: its ring of units;
# TWIN: offset of a twin, -1 none.
UNTIL, CYCLES, NEED, MAIN, MARK, UNITS, TWIN, HEAD, SHARED, RING, FIRST_UNIT = range(11)
GATE_SHIFT = 4
# `blocks`, one record a block slot
BLOCK, LIVE, ARRIVED, LAUNCH_AT, BLOCK_RESULTS, WARPS = range(6)
BLOCK_SHIFT = 3
STALL_SHIFT = 4  # `op_stall`: offset operation << STALL_SHIFT
# Numbers read from a table are masked before they index another: the compiler then sees that they are not negative, and
# leaves out the test for an index from the end.
OFFSET = (1 << 24) - 1  # of `gates`
REASON_MASK = 15

KEY_SHIFT = 6  # a key: cycle of the last issue, or number in the program, above the warp's bit
# The timing wheels: 64 rows for the next 64 cycles, and 64 for the turns of that one that follow; a row is a mask of
# warps for each scheduler. `occupied`: a bit for each row of the near and of the later wheel; anybody beyond both?
WHEEL_SHIFT = 6
WHEEL = 1 << WHEEL_SHIFT
NEAR, LATER, FAR_AWAY = range(3)

_REASON = {name: index for index, name in enumerate(STALL_REASONS)}
SELECTED, NOT_SELECTED, BARRIER, BRANCH, DISPATCH, DRAIN = (
    _REASON[name] for name in ("selected", "not_selected", "barrier", "branch_resolving", "dispatch_stall", "drain")
)
_MATH, _LG, _MIO = (_REASON[name] for name in ("math_pipe_throttle", "lg_throttle", "mio_throttle"))
#: by kind: why a ready warp without a port waits
THROTTLE = np.array([_MATH, _MATH, _MATH, _LG, _LG, _LG, _MIO, _MIO], np.int64)
#: by WAIT_*
DEPENDENCE = np.array([_REASON[name] for name in ("wait", "short_scoreboard", "long_scoreboard", "wait")], np.int64)


class State:
    """Fresh tables for one run."""

    def __init__(self, program: Program, machine: Machine, packed: Packed, resident: int) -> None:
        k = machine.schedulers
        self.warps = np.zeros((k * 64) << WARP_SHIFT, np.int64)
        self.slots = np.zeros(k * 64 * SLOT_ROW, np.int64)  # completion * 4 + WAIT_*, by warp and scoreboard slot
        self.keys = np.zeros(k * 64, np.int64)  # by warp: order among those that are not greedy
        scheds = np.zeros((k, 1 << SCHED_SHIFT), np.int64)
        scheds[:, (LAST, GREEDY, PROMOTED)] = -1
        scheds[:, NEXT_OPEN] = NEVER
        self.scheds = scheds.ravel()
        self.blocks = np.zeros(resident << BLOCK_SHIFT, np.int64)
        self.gates, self.units, self.queued = _gates(machine, packed)
        self.wheel = np.zeros(2 * WHEEL * k, np.int64)
        self.occupied = np.zeros(3, np.int64)
        self.op_stall = np.zeros(max(1, len(program.op_name)) << STALL_SHIFT, np.int64)
        self.doubled = np.zeros(max(1, len(program.op_name)), np.int64)  # issues as a second entry of a cycle
        blocks = len(program.block_warp) - 1
        self.block_start = np.zeros(blocks, np.int64)
        self.block_end = np.zeros(blocks, np.int64)

    def charged(self, program: Program) -> np.ndarray:
        """op_stall [O, reasons] after a run; every entry that was not a second one was selected for a cycle."""
        stall = self.op_stall.reshape(-1, 1 << STALL_SHIFT)[: len(program.op_name), : len(STALL_REASONS)].copy()
        stall[:, SELECTED] = op_issues(program) - self.doubled[: len(stall)]
        return stall


def _gates(machine: Machine, packed: Packed) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(gates, times at which units become free, offsets of the main records of the queued ports)."""
    count = machine.schedulers
    gates = np.zeros((64, count, 1 << GATE_SHIFT), np.int64)
    width = max(machine.pipe_units)
    queued = []
    for index, port in enumerate(packed.ports):
        owner = index if port.twin < 0 else min(index, port.twin)
        for k in range(count):
            home = 0 if port.shared else k
            gate = gates[index, k]
            gate[MARK] = int64(1) << int64(index)
            gate[MAIN] = (index * count + home) << GATE_SHIFT
            gate[UNITS], gate[SHARED], gate[RING] = port.units, port.shared, port.ring
            gate[TWIN] = -1 if port.twin < 0 else (port.twin * count + k) << GATE_SHIFT
            gate[FIRST_UNIT] = (owner * count + home) * width
            if port.queued and home == k:
                queued.append((index * count + k) << GATE_SHIFT)
    return gates.ravel(), np.zeros(count * 64 * width, np.int64), np.array(queued, np.int64)


# --- time --------------------------------------------------------------------------------------------------------


@njit(forceinline=True, _nrt=False)
def schedule(K: int, wheel: Any, occupied: Any, scheds: Any, k: int, bit: int, ready: int, now: int) -> None:
    """Wake the warp in cycle `ready`, now or later."""
    if ready - now < WHEEL:
        row = ready & (WHEEL - 1)
        wheel[row * K + k] |= int64(1) << bit
        occupied[NEAR] |= int64(1) << row
    elif ready - now < WHEEL * (WHEEL - 1):
        row = (ready >> WHEEL_SHIFT) & (WHEEL - 1)
        wheel[(WHEEL + row) * K + k] |= int64(1) << bit
        occupied[LATER] |= int64(1) << row
    else:
        scheds[(k << SCHED_SHIFT) + FAR] |= int64(1) << bit
        occupied[FAR_AWAY] = 1


@njit(_nrt=False)
def bring_near(K: int, wheel: Any, occupied: Any, scheds: Any, warps: Any, now: int) -> None:
    """When the near wheel has turned: what wakes in its next turn; when the later one has, who is far away."""
    row = (now >> WHEEL_SHIFT) & (WHEEL - 1)
    if (occupied[LATER] >> row) & 1:
        occupied[LATER] &= ~(int64(1) << row)
        for k in range(K):
            left = wheel[(WHEEL + row) * K + k]
            wheel[(WHEEL + row) * K + k] = 0
            _schedule_all(K, wheel, occupied, scheds, warps, k, left, now)
    if row == 0 and occupied[FAR_AWAY]:
        occupied[FAR_AWAY] = 0
        for k in range(K):
            left = scheds[(k << SCHED_SHIFT) + FAR]
            scheds[(k << SCHED_SHIFT) + FAR] = 0
            _schedule_all(K, wheel, occupied, scheds, warps, k, left, now)


@njit(_nrt=False)
def _schedule_all(K: int, wheel: Any, occupied: Any, scheds: Any, warps: Any, k: int, left: int, now: int) -> None:
    while left:
        bit = ctz(left)
        left &= left - 1
        schedule(K, wheel, occupied, scheds, k, bit, warps[((bit * K + k) << WARP_SHIFT) + READY], now)


@njit(forceinline=True, _nrt=False)
def wakes_at(occupied: Any, cycle: int) -> bool:
    """Somebody in the near wheel wakes in `cycle`."""
    return (occupied[NEAR] >> (cycle & (WHEEL - 1))) & 1 != 0


@njit(forceinline=True, _nrt=False)
def next_wake(occupied: Any, now: int) -> int:
    """The next cycle after `now` with a warp in the near wheel, or in which others must be brought near."""
    near, later = turned(occupied[NEAR], now + 1), turned(occupied[LATER], (now >> WHEEL_SHIFT) + 1)
    found = now + 1 + ctz(near) if near else NEVER
    if later:
        found = min(found, ((now >> WHEEL_SHIFT) + 1 + ctz(later)) << WHEEL_SHIFT)
    if occupied[FAR_AWAY]:
        found = min(found, (now | (WHEEL * WHEEL - 1)) + 1)
    return found


@njit(forceinline=True, _nrt=False)
def turned(mask: int, places: int) -> int:
    """`mask` rotated to the right, so that bit `places` mod 64 becomes bit 0."""
    right = places & 63
    return ((mask >> right) & ((int64(2) << (63 - right)) - 1)) | ((mask << 1) << (63 - right))


@njit(forceinline=True, _nrt=False)
def wake(K: int, wheel: Any, scheds: Any, warps: Any, gates: Any, row: int, now: int) -> None:
    """The warps of a wheel row are ready: note how long their port has been blocked up to here."""
    for k in range(K):
        woken = wheel[row * K + k]
        if woken:
            sched = k << SCHED_SHIFT
            wheel[row * K + k] = 0
            scheds[sched + READY_MASK] |= woken
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
                opened ^= (int64(1) << bit) if until > now else int64(0)
                soon = min(soon, until if until > now else int64(NEVER))
            scheds[sched + OPEN] |= opened
            scheds[sched + NEXT_OPEN] = soon


@njit(forceinline=True, _nrt=False)
def blocked_so_far(gates: Any, gate: int, now: int) -> int:
    """Cycles before `now`, whose issues are still to come, in which the gate has been blocked."""
    main = gates[gate + MAIN] & OFFSET
    return gates[main + CYCLES] - max(0, gates[main + UNTIL] - now)


# --- ports -------------------------------------------------------------------------------------------------------


@njit(forceinline=True, _nrt=False)
def block(K: int, scheds: Any, gates: Any, gate: int, k: int, now: int, until: int) -> None:
    """Nothing may pass `gate` from here to cycle `until`. Blocked cycles count from the next on."""
    main = gates[gate + MAIN] & OFFSET
    if gates[gate + SHARED]:
        for other in range(K):
            _shut(scheds, gates, other, main + (other << GATE_SHIFT), until)
    else:
        _shut(scheds, gates, k, gate, until)
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
    if free > now:
        block(K, scheds, gates, gate, k, now, free)
        if gates[gate + TWIN] >= 0:
            block(K, scheds, gates, gates[gate + TWIN], k, now, free)


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


# --- choice ------------------------------------------------------------------------------------------------------


@njit(forceinline=True, _nrt=False)
def next_in_turn(mask: int, last: int) -> int:
    """The first set bit after `last`, cyclically. `mask` is not 0."""
    later = mask if last < 0 else mask & ((int64(-1) << last) << 1)
    return ctz(later) if later else ctz(mask)


@njit(forceinline=True, _nrt=False)
def greedy_or_least(mask: int, greedy: int, keys: Any, k: int) -> int:
    """The greedy warp if it is in `mask`, else the one with the least key; `mask` is not 0."""
    if greedy >= 0 and (mask >> greedy) & 1:
        return greedy
    if mask & (mask - 1) == 0:
        return ctz(mask)
    least = int64(NO_KEY)
    base = int64(0)
    while mask:
        if mask & ((1 << LANES) - 1):
            least = min(least, least_of(keys, (k << 6) + base, mask))
        mask = (mask >> LANES) & ((1 << (64 - LANES)) - 1)
        base += LANES
    return least & 63


@njit(_nrt=False)
def refill_active(K: int, scheds: Any, warps: Any, gates: Any, code: Any, op_stall: Any, size: int, now: int) -> None:
    """two_level, at the start of a cycle: dismiss finished and parked warps, let others join in turn."""
    for k in range(K):
        sched = k << SCHED_SHIFT
        fit = scheds[sched + ALIVE] & ~scheds[sched + PARKED]
        active = scheds[sched + ACTIVE] & fit
        left = fit & ~active
        while left and popcount(active) < size:
            bit = next_in_turn(left, scheds[sched + PROMOTED])
            left &= ~(int64(1) << bit)
            active |= int64(1) << bit
            scheds[sched + PROMOTED] = bit
            if (scheds[sched + READY_MASK] >> bit) & 1:
                _charge_outside(warps, gates, code, op_stall, (bit * K + k) << WARP_SHIFT, now)
        scheds[sched + ACTIVE] = active


@njit(_nrt=False)
def _charge_outside(warps: Any, gates: Any, code: Any, op_stall: Any, me: int, now: int) -> None:
    """The warp was ready outside the active set until now; it goes on as if it became ready now."""
    word = code[warps[me + POS]]
    blocked = blocked_so_far(gates, warps[me + GATE] & OFFSET, now)
    throttled = blocked - warps[me + BASE]
    stall = (word >> OP_AT) << STALL_SHIFT
    op_stall[stall + THROTTLE[(word >> KIND_AT) & 7]] += throttled
    op_stall[stall + DISPATCH] += now - warps[me + READY] - throttled
    warps[me + READY] = now
    warps[me + BASE] = blocked


# --- dependences -------------------------------------------------------------------------------------------------


@njit(forceinline=True, _nrt=False)
def dependence(slots: Any, row: int, word: int, waits: Any, position: int) -> int:
    """Completion * 4 + WAIT_* of the slot that the entry waits for longest; 0 when it waits for none."""
    base = row * SLOT_ROW
    until = max(slots[base + (word & 127)], slots[base + ((word >> W1_AT) & 127)])
    if (word >> MORE_AT) & 1:
        left = int64(waits[position])
        while left:
            until = max(until, slots[base + ctz(left)])
            left &= left - 1
    return until


@njit(forceinline=True, _nrt=False)
def plan_wake(
    K: int, POLICY: int, wheel: Any, occupied: Any, scheds: Any, warps: Any, op_stall: Any, k: int, bit: int, word: int,
    until: int, low: int, parked: int, now: int,
) -> None:  # fmt: skip
    """The warp's next entry is `word`, its slots complete with `until`, nothing else holds it from cycle `low` on."""
    me = (bit * K + k) << WARP_SHIFT
    ready, cause = until >> 2, until & 3
    dependent = max(0, ready - low)
    op_stall[(((word >> OP_AT) & OP_MASK) << STALL_SHIFT) + (DEPENDENCE[cause] & REASON_MASK)] += dependent
    low += dependent
    if POLICY == TWO_LEVEL and (parked != 0 or (ready == low and cause == WAIT_LONG)):
        scheds[(k << SCHED_SHIFT) + PARKED] |= int64(1) << bit
    warps[me + READY] = low
    warps[me + GATE] = (((word >> PORT_AT) & PORT_MASK) * K + k) << GATE_SHIFT
    schedule(K, wheel, occupied, scheds, k, bit, low, now)


# --- blocks ------------------------------------------------------------------------------------------------------


@njit(_nrt=False)
def release_barrier(
    K: int, POLICY: int, wheel: Any, occupied: Any, scheds: Any, warps: Any, slots: Any, blocks: Any, op_stall: Any,
    code: Any, waits: Any, index: int, per_block: int, now: int,
) -> None:  # fmt: skip
    """All live warps of block slot `index` have arrived: let them go."""
    this = index << BLOCK_SHIFT
    blocks[this + ARRIVED] = 0
    for place in range(index * per_block, index * per_block + blocks[this + WARPS]):
        k, bit, me = place % K, place // K, place << WARP_SHIFT
        if warps[me + WAITING]:
            warps[me + WAITING] = 0
            position = warps[me + POS]
            word = code[position]
            low = now + warps[me + BARRIER_LATENCY]
            op_stall[((word >> OP_AT) << STALL_SHIFT) + BARRIER] += low - warps[me + ARRIVED_AT] - 1
            until = dependence(slots, place, word, waits, position)
            plan_wake(K, POLICY, wheel, occupied, scheds, warps, op_stall, k, bit, word, until, low, int64(1), now)


@njit(_nrt=False)
def finish_block(
    K: int, warps: Any, blocks: Any, op_stall: Any, block_start: Any, block_end: Any, index: int, per_block: int,
    delay: int,
) -> int:  # fmt: skip
    """The last warp of block slot `index` has exited: charge the drain. Returns the cycles of warps without entries."""
    this = index << BLOCK_SHIFT
    number = blocks[this + BLOCK]
    end = max(blocks[this + BLOCK_RESULTS], block_start[number] + 1)
    idle = 0
    block_end[number] = end
    for place in range(index * per_block, index * per_block + blocks[this + WARPS]):
        me = place << WARP_SHIFT
        drained = end - warps[me + EXIT_AT] - 1
        if warps[me + LAST_OP] >= 0:
            op_stall[(warps[me + LAST_OP] << STALL_SHIFT) + DRAIN] += drained
        else:
            idle += drained
    blocks[this + LAUNCH_AT] = end + delay
    return idle


@njit(_nrt=False)
def launch_block(
    K: int, POLICY: int, wheel: Any, occupied: Any, scheds: Any, warps: Any, keys: Any, slots: Any, blocks: Any,
    code: Any, path_start: Any, warp_path: Any, warp_access: Any, block_warp: Any, number: int, index: int,
    per_block: int, now: int,
) -> None:  # fmt: skip
    """Put block `number` into block slot `index`; its warps are ready at once."""
    this, first, last = index << BLOCK_SHIFT, block_warp[number], block_warp[number + 1]
    blocks[this + BLOCK] = number
    blocks[this + LIVE] = last - first
    blocks[this + WARPS] = last - first
    blocks[this + ARRIVED] = 0
    blocks[this + BLOCK_RESULTS] = 0
    blocks[this + LAUNCH_AT] = NEVER
    for warp in range(first, last):
        place = index * per_block + warp - first
        k, bit, me = place % K, place // K, place << WARP_SHIFT
        begin, end = path_start[warp_path[warp]], path_start[warp_path[warp] + 1]
        for slot in range(place * SLOT_ROW, (place + 1) * SLOT_ROW):
            slots[slot] = 0
        warps[me + POS] = begin
        warps[me + READY] = now
        keys[(k << 6) | bit] = ((warp if POLICY == GTO_LAUNCH else now) << KEY_SHIFT) | bit
        warps[me + RESULTS] = 0
        warps[me + ACCESS] = warp_access[warp]
        warps[me + BLOCK_SLOT] = index
        warps[me + WAITING] = 0
        warps[me + LAST_OP] = -1
        warps[me + EXIT_AT] = now - 1
        if begin == end:
            blocks[this + LIVE] -= 1
            continue
        warps[me + GATE] = (((code[begin] >> PORT_AT) & PORT_MASK) * K + k) << GATE_SHIFT
        scheds[(k << SCHED_SHIFT) + ALIVE] |= int64(1) << bit
        schedule(K, wheel, occupied, scheds, k, bit, now, now)
