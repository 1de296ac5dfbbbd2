"""Which of the eligible warps issues."""

from __future__ import annotations

from ppt_gpu.common.bits import LANES, NO_KEY, ctz, int64, least_of
from ppt_gpu.common.compiled import merged
from ppt_gpu.common.records import Words


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
def greedy_or_least(mask: int, greedy: int, keys: Words, k: int) -> int:
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
