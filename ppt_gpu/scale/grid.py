"""How the blocks of a grid spread over the SMs, and which of them one simulated SM runs.

The block scheduler fills the SMs breadth first: block i of the first waves goes to SM i mod S, until each SM holds as
many as its occupancy allows; afterwards each next block goes to the SM that frees a slot first. When all SMs progress
alike that is SM i mod S again. SM 0 is therefore the busiest, with ceil(grid / S) blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ppt_gpu.errors import PptError, did_you_mean
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
        """Blocks like the simulated ones that do the work of the busiest SM; of a mix, at least."""
        if self.mean_work is None:
            return self.total_blocks_of_this_sm
        return self.grid_blocks / self.active_sms

    @property
    def factor(self) -> float:
        """Work of this SM over the simulated work; blocks, when all are alike."""
        return self.sm_blocks / len(self.blocks)

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

    `workload`: the blocks of its first wave. `grid`: all of them. `steady`: `waves` successive full waves from the
    middle of the launch, so that each finds in the L2 what its predecessor left, and the true last, partial wave, so
    that the tail of the launch is simulated rather than guessed. PptError for an unknown level or an SM without blocks.
    """
    if level not in LEVELS:
        raise PptError(f"unknown level '{level}'", hint=did_you_mean(level, LEVELS))
    if waves < 1:
        raise PptError(f"{waves} waves to simulate", hint="at least 1")
    spread = spread_grid(grid_blocks, occupancy.blocks_per_sm, gpu.sm.count)
    own = spread.sm_blocks(sm)
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


def neighbour_blocks(spread: GridSpread, blocks: Sequence[int], samples: int = 8) -> list[tuple[int, int]]:
    """(block, offset) of blocks that run on other SMs at the same time as `blocks` of one SM, by block.

    offset: how many SMs further, 1 ... active SMs - 1. From up to `samples` other SMs: the adjacent one, the rest
    evenly spaced over the chip. They serve to estimate how much of what this SM fetches another SM has fetched into
    the L2 already.
    """
    offsets = _spaced(list(range(1, spread.active_sms)), samples)
    found = {
        (block - block % spread.sms + (block % spread.sms + offset) % spread.active_sms, offset)
        for offset in offsets
        for block in blocks
    }
    return sorted(pair for pair in found if pair[0] < spread.grid_blocks)


def _spaced(others: list[int], samples: int) -> list[int]:
    if len(others) <= samples:
        return others
    chosen = dict.fromkeys(others[:1])
    step = len(others) / samples
    for index in range(samples):
        chosen.setdefault(others[int((index + 0.5) * step)])
    return sorted(list(chosen)[:samples])


def _middle(full: int, waves: int, resident: int) -> list[int]:
    """Positions of `waves` successive waves from the middle of the `full` whole ones."""
    first = (full - waves) // 2 * resident
    return list(range(first, first + waves * resident))
