"""How the blocks of a grid spread over the SMs, and which of them one simulated SM runs.

The block scheduler fills the SMs breadth first: block i of the first wave goes to SM i mod S, until each SM holds as
many as its occupancy allows, R; afterwards each next block goes to the SM that frees a slot first. When an SM's blocks
end one by one, and all SMs progress alike, that is SM i mod S again. When they end together it gets the next R blocks,
in a row: they share what neighbours share, in its L1. SM 0 is the busiest both ways. In a launch of few waves an SM
that frees its slots a little earlier than the others may get more than its even share
(ppt_gpu.scale.levels.long_launch).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.errors import PptError, did_you_mean
from ppt_gpu.scale.occupancy.occupancy import Occupancy
from ppt_gpu.spec.gpu import Gpu
from ppt_gpu.workload.workload import Dim3

LEVELS = ("workload", "steady", "grid")
#: by how much the edges at which a block of an SM lies in the mean may differ from those of all blocks
TYPICAL = 0.05


@dataclass(frozen=True)
class GridSpread:
    """A grid on a chip, when all SMs progress alike.

    Positions of an SM's blocks are numbers from 0 in the order in which they start.
    """

    grid_blocks: int
    sms: int  # SMs of the chip, S
    active_sms: int  # SMs that get a block
    resident: int  # blocks that the busiest SM holds at once
    max_blocks: int  # blocks of the busiest SM over the whole launch
    mean_blocks: float  # grid / S
    bunched: bool = False  # the blocks that an SM holds end together: it then gets as many in a row
    #: ids of the blocks that the simulated SM gets after its first wave where that is more than an even share
    later_blocks: tuple[int, ...] = ()

    @property
    def waves(self) -> float:
        """Blocks of the busiest SM over the blocks that it holds at once."""
        return self.max_blocks / self.resident

    @property
    def busiest_share(self) -> float:
        """The share of L2 and DRAM that the busiest SM has: as that of the blocks."""
        return self.max_blocks / self.grid_blocks

    def sm_blocks(self, sm: int, count: int | None = None) -> list[int]:
        """Ids of the blocks that SM `sm` runs, in launch order; the first `count` of them."""
        if self.later_blocks:
            return [*range(sm, self.resident * self.sms, self.sms), *self.later_blocks][:count]
        if not self.bunched:
            return list(range(sm, self.grid_blocks, self.sms)[:count])
        ids = (self.block(sm, position) for position in range(self.max_blocks))
        return [block for block in ids if block < self.grid_blocks][:count]

    def block(self, sm: int, position: int) -> int:
        """Id of the block at `position` of SM `sm`; beyond the grid when it has none there."""
        wave, slot = divmod(position, self.resident)
        if wave == 0 or not self.bunched:
            return position * self.sms + sm
        return (wave * self.sms + sm) * self.resident + slot

    def place(self, blocks: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """[B] the SM of each block, and its position there: `block` of these is the block."""
        sm, position = blocks % self.sms, blocks // self.sms
        if not self.bunched:
            return sm, position
        wave, rest = np.divmod(blocks, self.resident * self.sms)
        in_row, slot = np.divmod(rest, self.resident)
        return np.where(wave > 0, in_row, sm), np.where(wave > 0, wave * self.resident + slot, position)

    def turns(self, blocks: NDArray[np.int64], sm: int) -> NDArray[np.int64]:
        """[B] the position of that block of SM `sm` with which each block begins.

        The blocks of the first wave begin all at once. Later ones follow one another, so the one that starts nearest is
        at most half as many blocks before or after as there are SMs: by numbers alone, all that SM 0 has on one side
        would be a turn earlier.
        """
        if self.bunched or self.later_blocks:
            return self.place(blocks)[1]
        later = np.maximum((blocks - sm + self.sms // 2) // self.sms, self.resident)
        return np.where(blocks < self.resident * self.sms, blocks // self.sms, later)


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
    mean_traffic: float | None = None  # the same of what they ask of memory, where that is not as the work
    whole: bool = False  # `blocks` are those of all SMs, which were simulated together

    @property
    def grid_blocks(self) -> float:
        """Blocks like the simulated ones that do the work of the whole grid."""
        return self.spread.grid_blocks * (1.0 if self.mean_work is None else self.mean_work)

    @property
    def sm_blocks(self) -> float:
        """Blocks like the simulated ones that do the work of the busiest SM; of a mix, and of all SMs, at least."""
        mean = self.grid_blocks / self.active_sms
        if self.simulated_sms > 1:
            return mean
        if self.mean_work is None:
            return self.total_blocks_of_this_sm
        return max(mean, self.total_blocks_of_this_sm) if self.exact else mean

    @property
    def simulated_sms(self) -> int:
        """SMs whose cycles and counts are summed in the result."""
        return self.active_sms if self.whole else 1

    @property
    def factor(self) -> float:
        """Work of the simulated SMs over the simulated work; blocks, when all are alike."""
        return self.sm_blocks * self.simulated_sms / len(self.blocks)

    @property
    def chip_factor(self) -> float:
        """Work of the grid over the simulated work: what multiplies counts to those of the whole launch."""
        return self.grid_blocks / len(self.blocks)

    @property
    def traffic(self) -> float:
        """What the grid asks of memory over the simulated blocks, as `chip_factor` is of its work."""
        return self.chip_factor * self.traffic_of_work

    @property
    def traffic_of_work(self) -> float:
        """By how much a mix has to be scaled more to the grid's traffic than to its work."""
        return 1.0 if self.mean_traffic is None or not self.mean_work else self.mean_traffic / self.mean_work


def spread_grid(grid_blocks: int, blocks_per_sm: int, sms: int, bunched: bool = False) -> GridSpread:
    """Spread `grid_blocks` blocks over `sms` SMs that hold at most `blocks_per_sm` each.

    Small grids are spread evenly: an SM holds min(occupancy, ceil(grid / S)) blocks. `bunched`: those that it holds end
    together. PptError for an empty grid.
    """
    if grid_blocks < 1:
        raise PptError(f"a grid of {grid_blocks} blocks", hint="a grid has at least 1 block")
    most = -(-grid_blocks // sms)
    resident = min(blocks_per_sm, most)
    if bunched:
        waves, rest = divmod(grid_blocks, resident * sms)
        most = waves * resident + min(rest, resident) if waves else most
    return GridSpread(
        grid_blocks=grid_blocks,
        sms=sms,
        active_sms=min(grid_blocks, sms),
        resident=resident,
        max_blocks=most,
        mean_blocks=grid_blocks / sms,
        bunched=bunched,
    )


def plan(
    grid_blocks: int,
    occupancy: Occupancy,
    gpu: Gpu,
    level: str = "steady",
    waves: int = 3,
    sm: int = 0,
    bunched: bool = False,
) -> SmPlan:
    """Which blocks SM `sm` of `gpu` simulates; `bunched` as in `spread_grid`. PptError as from `plan_of`."""
    return plan_of(spread_grid(grid_blocks, occupancy.blocks_per_sm, gpu.sm.count, bunched), level, waves, sm)


def plan_of(spread: GridSpread, level: str = "steady", waves: int = 3, sm: int = 0) -> SmPlan:
    """Which blocks SM `sm` simulates, of a grid that spreads like this.

    `workload`: the blocks of its first wave. `grid`: those of all SMs. `steady`: `waves` successive full waves from the
    middle of the launch, so that each finds in the L2 what its predecessor left, and the true last, partial wave, so
    that the tail of the launch is simulated rather than guessed. PptError for an unknown level or an SM without blocks.
    """
    if level not in LEVELS:
        raise PptError(f"unknown level '{level}'", hint=did_you_mean(level, LEVELS))
    if waves < 1:
        raise PptError(f"{waves} waves to simulate", hint="at least 1")
    own = list(range(spread.grid_blocks)) if level == "grid" else spread.sm_blocks(sm)
    if not own:
        raise PptError(f"SM {sm} runs no block of a grid of {spread.grid_blocks} on {spread.sms} SMs")
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
        whole=level == "grid",
    )


def inner_sm(spread: GridSpread, grid: Dim3) -> int:
    """Of the SMs that run the most blocks, the first of those whose blocks lie least at the edges of the grid."""
    runs, edges = _edges_of_sms(spread, grid)
    return int(np.where(runs == runs.max(), edges, np.inf).argmin())


def typical_sm(spread: GridSpread, grid: Dim3, sm: int) -> int:
    """`sm`, if its blocks lie at the edges of the grid about as often as all do; else the SM that is nearest to that.

    Where a row of the grid has as many blocks as the chip has SMs, or a part of that, every S-th block is of the same
    columns. But SMs that all progress alike get out of step, and then each gets blocks of all columns, in launches of
    many waves. The SM is one of those that run the most blocks.
    """
    mean = sum(2.0 / extent for extent in grid if extent > 2)
    own = np.array(spread.sm_blocks(sm), np.int64)
    if abs(_at_edges(own, grid).sum() / len(own) - mean) <= TYPICAL:
        return sm
    runs, edges = _edges_of_sms(spread, grid)
    apart = np.abs(edges / np.maximum(runs, 1) - mean)
    nearest = int(np.where(runs == runs.max(), apart, np.inf).argmin())
    return nearest if apart[nearest] < apart[sm] else sm


def away_from_edges(spread: GridSpread, grid: Dim3, sms: NDArray[np.intp]) -> int:
    """The first of these SMs that has a block away from the edges of the grid, if one has."""
    runs, edges = _edges_of_sms(spread, grid)
    return int(sms[np.argmax(edges[sms] < runs[sms])])


def _edges_of_sms(spread: GridSpread, grid: Dim3) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Of each SM its blocks, and at how many edges of the grid these lie."""
    blocks = np.arange(spread.grid_blocks)
    sm = spread.place(blocks)[0]
    edges = np.bincount(sm, _at_edges(blocks, grid), spread.sms)
    return np.bincount(sm, minlength=spread.sms), np.asarray(edges, np.float64)


def _at_edges(blocks: NDArray[np.int64], grid: Dim3) -> NDArray[np.int64]:
    """[B] at how many edges of the grid each of these blocks lies; an axis of two blocks or one has none."""
    at_edge = np.zeros(len(blocks), np.int64)
    for place, extent in zip(np.unravel_index(blocks, grid, order="F"), grid, strict=True):
        if extent > 2:
            at_edge += (place == 0) | (place == extent - 1)
    return at_edge


def _middle(full: int, waves: int, resident: int) -> list[int]:
    """Positions of `waves` successive waves from the middle of the `full` whole ones."""
    first = (full - waves) // 2 * resident
    return list(range(first, first + waves * resident))
