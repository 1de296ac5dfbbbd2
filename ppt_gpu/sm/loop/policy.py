"""Which of the eligible warps issues."""

from __future__ import annotations

from typing import Any

from ppt_gpu.common.bits import LANES, NO_KEY, ctz, int64, least_of
from ppt_gpu.common.compiled import called, merged, popcount
from ppt_gpu.sm.loop.pack import DISPATCH, OP_AT, OP_MASK, THROTTLE_AT
from ppt_gpu.sm.loop.ports import blocked_so_far
from ppt_gpu.sm.loop.state import (
    ACTIVE,
    ALIVE,
    BASE,
    GATE,
    OFFSET,
    PARKED,
    POS,
    PROMOTED,
    READY,
    READY_MASK,
    REASON_MASK,
    SCHED_SHIFT,
    STALL_SHIFT,
    WARP_SHIFT,
)
from ppt_gpu.sm.loop.wheel import is_bound


@merged
def next_in_turn(mask: int, places: int) -> int:
    """The first set bit, first of all at `places` (see after). `mask` is not 0."""
    later = mask & places
    return ctz(later) if later else ctz(mask)


@merged
def after(bit: int) -> int:
    """The places whose turn comes after that of `bit`, before it starts again: as a mask."""
    return (int64(-1) << bit) << 1


@merged
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


@called
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
            scheds[sched + PROMOTED] = after(bit)
            if (scheds[sched + READY_MASK] >> bit) & 1:
                _charge_outside(K, warps, gates, code, op_stall, (bit * K + k) << WARP_SHIFT, now)
        scheds[sched + ACTIVE] = active


@called
def _charge_outside(K: int, warps: Any, gates: Any, code: Any, op_stall: Any, me: int, now: int) -> None:
    """The warp was ready outside the active set until now; it goes on as if it became ready now."""
    word = code[warps[me + POS]]
    base = warps[me + BASE]
    blocked = blocked_so_far(gates, warps[me + GATE] & OFFSET, now) if is_bound(K, warps[me + GATE]) else base
    throttled = blocked - base
    stall = ((word >> OP_AT) & OP_MASK) << STALL_SHIFT
    op_stall[stall + ((word >> THROTTLE_AT) & REASON_MASK)] += throttled
    op_stall[stall + DISPATCH] += now - warps[me + READY] - throttled
    warps[me + READY] = now
    warps[me + BASE] = blocked
