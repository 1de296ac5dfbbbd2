"""Blocks that other SMs run at the same time: what they touch says what this SM finds in the L2."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ppt_gpu.exec.workload import Dim3
from ppt_gpu.scale.grid import GridSpread

#: SMs sampled beside the adjacent ones, where as many can be
FAR_SMS = 4


class Neighbour(NamedTuple):
    """A block that runs on another SM at the same time."""

    block: int
    offset: int  # how many SMs further, 1 ... active SMs - 1
    stands_for: float  # how many of the other SMs its SM stands for


def neighbour_blocks(spread: GridSpread, blocks: Sequence[int], grid: Dim3, samples: int = 8) -> list[Neighbour]:
    """Blocks that run on other SMs at the same time as `blocks` of one SM, by block.

    From up to `samples` other SMs: those that run the neighbours of `blocks` along the axes of the grid, which share
    most with them and stand for themselves; and others, evenly spaced over the chip and, where not all are sampled,
    next to none of the blocks, which stand for all the rest. They serve to estimate how much of what this SM fetches
    another SM has fetched into the L2 already.
    """
    near = adjacent_sms(spread, grid)[: max(samples - FAR_SMS, samples // 2, 1)]
    rest = [offset for offset in range(1, spread.active_sms) if offset not in near]
    around = _around(spread, grid)
    apart = [offset for offset in rest if offset not in around]
    every = not apart or samples >= spread.active_sms - 1
    far = _spaced(rest if every else apart, samples - len(near))
    stands_for = dict.fromkeys(near, 1.0) | dict.fromkeys(far, len(rest) / max(len(far), 1))
    if near and not far:
        stands_for = dict.fromkeys(near, (spread.active_sms - 1) / len(near))
    places = list(zip(*(part.tolist() for part in spread.place(np.array(blocks, np.int64))), strict=True))
    found = {
        Neighbour(spread.block((sm + offset) % spread.active_sms, position), offset, weight)
        for offset, weight in stands_for.items()
        for sm, position in places
    }
    return sorted(neighbour for neighbour in found if neighbour.block < spread.grid_blocks)


def adjacent_sms(spread: GridSpread, grid: Dim3) -> list[int]:
    """Offsets of the SMs that run the next and the previous block along x, y, z."""
    offsets = dict.fromkeys(sign * step % spread.active_sms for step in _steps(spread, grid) for sign in (1, -1))
    return [offset for offset in offsets if offset]


def _around(spread: GridSpread, grid: Dim3) -> set[int]:
    """Offsets of the SMs that run a block next to a block, also across edges and corners: these are like no others."""
    offsets = {0}
    for step in _steps(spread, grid):
        offsets |= {(offset + sign * step) % spread.active_sms for offset in offsets for sign in (1, -1)}
    return offsets


def _steps(spread: GridSpread, grid: Dim3) -> list[int]:
    """How many SMs further the next block along each axis of the grid runs; one of as many in a row, at least one."""
    row = spread.resident if spread.bunched else 1
    steps = zip((1, grid[0], grid[0] * grid[1]), grid, strict=True)
    return [max(step // row, 1) for step, extent in steps if extent > 1]


def _spaced(others: list[int], samples: int) -> list[int]:
    """`samples` of `others`, from the middles of equal parts."""
    count = min(len(others), samples)
    return [others[int((index + 0.5) * len(others) / count)] for index in range(count)]
