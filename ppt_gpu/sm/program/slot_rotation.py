"""Which of a block's warp slots each of its warps takes, where block slots begin at other schedulers in turn.

The first of W warps in block slot j stands in warp slot j W, so that of every block would go to the same scheduler of K
where K divides W. Where W and K have a common divisor G > 1, warps of which only some have work would leave schedulers
idle. So the warps of each G consecutive slots are turned by one slot more after every K / G block slots, from when on
the schedulers would repeat. G = 1 turns nothing.
"""

from __future__ import annotations

import math

from ppt_gpu.common.compiled import merged
from ppt_gpu.sm.program.machine import Machine


def turned_together(machine: Machine, per_block: int) -> int:
    """G of blocks of `per_block` warps."""
    return math.gcd(per_block, machine.schedulers) if machine.turned and per_block else 1


@merged
def seat(K: int, together: int, index: int, warp: int) -> int:
    """The slot, of those of block slot `index`, in which warp `warp` of a block stands."""
    low = warp % together
    return warp - low + (low + index // (K // together)) % together


@merged
def seated(K: int, together: int, index: int, slot: int) -> int:
    """The warp of the block that stands in slot `slot` of those of block slot `index`."""
    low = slot % together
    return slot - low + (low - index // (K // together)) % together
