"""How the blocks of a grid spread over the SMs, and which of them one simulated SM runs.

The block scheduler fills the SMs breadth first: block i of the first waves goes to SM i mod S, until each SM holds as
many as its occupancy allows; afterwards each next block goes to the SM that frees a slot first. When all SMs progress
alike that is SM i mod S again. SM 0 is therefore the busiest, with ceil(grid / S) blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ppt_gpu.errors import PptError, did_you_mean
from ppt_gpu.exec.workload import Dim3
from ppt_gpu.scale.occupancy import Occupancy
from ppt_gpu.spec.gpu import Gpu

LEVELS = ("workload", "steady", "grid")


@dataclass(frozen=True)
class GridSpread:
    """A grid on a chip, when all SMs progress alike."""

    grid_blocks: int
    sms: int  # SMs of the chip, S
    active_sms: int  # SMs that get a block
    resident: int  # blocks that the busiest SM holds at once
    max_blocks: int  # blocks of the busiest SM over the whole launch
    mean_blocks: float  # grid / S

    @property
    def waves(self) -> float:
        """Blocks of the busiest SM over the blocks that it holds at once."""
        return self.max_blocks / self.resident

    def sm_blocks(self, sm: int, count: int | None = None) -> list[int]:
        """Ids of the blocks that SM `sm` runs, in launch order; the first `count` of them."""
        ids = range(sm, self.grid_blocks, self.sms)
        return list(ids if count is None else ids[:count])


@dataclass(frozen=True)
class SmPlan:
    """The blocks that the simulated SM runs, for a level of fidelity."""

    spread: GridSpread
    level: str
    sm: int
    blocks: tuple[int, ...]  # block ids in the order in which they start
    resident: int
    active_sms: int
    total_blocks_of_this_sm: int
    waves: int  # full waves among `blocks`
    exact: bool  # `blocks` are all blocks of this SM
    mean_work: float | None = None  # of a mix of different blocks: mean work of the grid's over the simulated blocks'

    @property
    def grid_blocks(self) -> float:
        """Blocks like the simulated ones that do the work of the whole grid."""
        return self.spread.grid_blocks * (1.0 if self.mean_work is None else self.mean_work)

    @property
    def sm_blocks(self) -> float:
        """Blocks like the simulated ones that do the work of the busiest SM; of a mix, and of all SMs, at least."""
        if self.mean_work is None and self.simulated_sms == 1:
            return self.total_blocks_of_this_sm
        return self.grid_blocks / self.active_sms

    @property
    def simulated_sms(self) -> int:
        """SMs whose cycles and counts are summed in the result."""
        return self.active_sms if self.level == "grid" else 1

    @property
    def factor(self) -> float:
        """Work of the simulated SMs over the simulated work; blocks, when all are alike."""
        return self.sm_blocks * self.simulated_sms / len(self.blocks)

    @property
    def chip_factor(self) -> float:
        """Work of the grid over the simulated work: what multiplies counts to those of the whole launch."""
        return self.grid_blocks / len(self.blocks)


def spread_grid(grid_blocks: int, blocks_per_sm: int, sms: int) -> GridSpread:
    """Spread `grid_blocks` blocks over `sms` SMs that hold at most `blocks_per_sm` each.

    Small grids are spread evenly: an SM holds min(occupancy, ceil(grid / S)) blocks. PptError for an empty grid.
    """
    if grid_blocks < 1:
        raise PptError(f"a grid of {grid_blocks} blocks", hint="a grid has at least 1 block")
    most = -(-grid_blocks // sms)
    return GridSpread(
        grid_blocks=grid_blocks,
        sms=sms,
        active_sms=min(grid_blocks, sms),
        resident=min(blocks_per_sm, most),
        max_blocks=most,
        mean_blocks=grid_blocks / sms,
    )


def plan(
    grid_blocks: int, occupancy: Occupancy, gpu: Gpu, level: str = "steady", waves: int = 3, sm: int = 0
) -> SmPlan:
    """Which blocks SM `sm` of `gpu` simulates.

    `workload`: the blocks of its first wave. `grid`: those of all SMs. `steady`: `waves` successive full waves from the
    middle of the launch, so that each finds in the L2 what its predecessor left, and the true last, partial wave, so
    that the tail of the launch is simulated rather than guessed. PptError for an unknown level or an SM without blocks.
    """
    if level not in LEVELS:
        raise PptError(f"unknown level '{level}'", hint=did_you_mean(level, LEVELS))
    if waves < 1:
        raise PptError(f"{waves} waves to simulate", hint="at least 1")
    spread = spread_grid(grid_blocks, occupancy.blocks_per_sm, gpu.sm.count)
    own = list(range(grid_blocks)) if level == "grid" else spread.sm_blocks(sm)
    if not own:
        raise PptError(f"SM {sm} runs no block of a grid of {grid_blocks} on {gpu.sm.count} SMs")
    full, rest = divmod(len(own), spread.resident)
    if level == "workload":
        positions = list(range(min(spread.resident, len(own))))
    elif level == "grid" or waves >= full:
        positions = list(range(len(own)))
    else:
        positions = _middle(full, waves, spread.resident) + list(range(len(own) - rest, len(own)))
    blocks = tuple(own[position] for position in positions)
    return SmPlan(
        spread=spread,
        level=level,
        sm=sm,
        blocks=blocks,
        resident=spread.resident,
        active_sms=spread.active_sms,
        total_blocks_of_this_sm=len(own),
        waves=len(blocks) // spread.resident,
        exact=len(blocks) == len(own),
    )


def inner_sm(spread: GridSpread, grid: Dim3) -> int:
    """Of the SMs that run the most blocks, the first of those whose blocks lie least at the edges of the grid."""
    busiest = (spread.grid_blocks - 1) % spread.sms + 1
    blocks = np.arange(spread.grid_blocks)
    at_edge = np.zeros(len(blocks), np.int64)
    for place, extent in zip(np.unravel_index(blocks, grid, order="F"), grid, strict=True):
        if extent > 2:
            at_edge += (place == 0) | (place == extent - 1)
    return int(np.bincount(blocks % spread.sms, at_edge, spread.sms)[:busiest].argmin())


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
    near = adjacent_sms(spread.active_sms, grid)[: max(samples - FAR_SMS, samples // 2, 1)]
    rest = [offset for offset in range(1, spread.active_sms) if offset not in near]
    around = _around(spread.active_sms, grid)
    apart = [offset for offset in rest if offset not in around]
    every = not apart or samples >= spread.active_sms - 1
    far = _spaced(rest if every else apart, samples - len(near))
    stands_for = dict.fromkeys(near, 1.0) | dict.fromkeys(far, len(rest) / max(len(far), 1))
    if near and not far:
        stands_for = dict.fromkeys(near, (spread.active_sms - 1) / len(near))
    found = {
        Neighbour(block - block % spread.sms + (block % spread.sms + offset) % spread.active_sms, offset, weight)
        for offset, weight in stands_for.items()
        for block in blocks
    }
    return sorted(neighbour for neighbour in found if neighbour.block < spread.grid_blocks)


def adjacent_sms(active_sms: int, grid: Dim3) -> list[int]:
    """Offsets of the SMs that run the next and the previous block along x, y, z."""
    steps = [step for step, extent in zip((1, grid[0], grid[0] * grid[1]), grid, strict=True) if extent > 1]
    offsets = dict.fromkeys(sign * step % active_sms for step in steps for sign in (1, -1))
    return [offset for offset in offsets if offset]


def _around(active_sms: int, grid: Dim3) -> set[int]:
    """Offsets of the SMs that run a block next to a block, also across edges and corners: these are like no others."""
    offsets = {0}
    for step, extent in zip((1, grid[0], grid[0] * grid[1]), grid, strict=True):
        if extent > 1:
            offsets |= {(offset + sign * step) % active_sms for offset in offsets for sign in (1, -1)}
    return offsets


def _spaced(others: list[int], samples: int) -> list[int]:
    """`samples` of `others`, from the middles of equal parts."""
    count = min(len(others), samples)
    return [others[int((index + 0.5) * len(others) / count)] for index in range(count)]


def _middle(full: int, waves: int, resident: int) -> list[int]:
    """Positions of `waves` successive waves from the middle of the `full` whole ones."""
    first = (full - waves) // 2 * resident
    return list(range(first, first + waves * resident))
