"""The survey of a launch: some of its blocks run functionally, more where they differ, to say what the grid does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.errors import PptError
from ppt_gpu.emulator.trace.block_features import BlockFeatures, join
from ppt_gpu.scale.blocks.block_kinds import Clusters, cluster_blocks
from ppt_gpu.scale.blocks.distribution import GridSpread, away_from_edges, typical_sm
from ppt_gpu.scale.blocks.strata import landmarks, stand_ins, standard_error, stratified, variation
from ppt_gpu.workload.workload import Dim3, Launch

#: blocks whose warp instructions, or whose memory sectors, vary by more than this are irregular
ALIKE = 0.05
#: relative standard error of the mean work at which a survey of differing blocks ends
TOLERANCE = 0.01
#: share of a grid's blocks that may do less than the others, such as the last one, without making it irregular
RARE = 0.02
#: thread instructions of the first look; a grid of fewer runs whole
FIRST_LOOK = 30_000_000
#: thread instructions of the whole survey of an irregular kernel
MOST = 1_000_000_000
#: an irregular grid of at most so many runs whole: few blocks may do far more than all others, and no sample has them
WHOLE = MOST // 4
#: times as much as all others that a block does, of which too few may be for a sample to have one
FAR_MORE = 2
#: waves from which on SMs are out of step
LONG = 3
#: strata of the first look: at least, unless the grid has fewer blocks, and at most
FEWEST_STRATA, FIRST_STRATA = 4, 32


@dataclass(frozen=True)
class Survey:
    """What some blocks say of the grid."""

    grid_blocks: int
    features: BlockFeatures  # [n] of all blocks that were run, by ascending id
    strata: NDArray[np.int64]  # [m] positions in `features` of the blocks that stand for their strata, ascending
    variation: float  # coefficient of variation of the blocks' warp instructions
    sector_variation: float  # of the sectors that they ask for
    error: float  # relative standard error of the mean warp instructions

    @cached_property
    def clusters(self) -> Clusters:
        """Of all n blocks."""
        weight = np.zeros(len(self.features))
        weight[self.strata] = self.grid_blocks / len(self.strata)
        return cluster_blocks(self.features, weight)

    @property
    def irregular(self) -> bool:
        """The blocks differ too much for any of them to stand for all. A few that do less hold nobody up."""
        return max(self.variation, self.sector_variation) > ALIKE and not self._few_do_less

    @property
    def _few_do_less(self) -> bool:
        less = np.zeros(len(self.strata), np.bool_)
        for amount in (self.features.warp_instructions, self.features.sectors):
            relative = amount[self.strata] / max(float(np.median(amount[self.strata])), 1.0)
            if relative.max() > 1 + ALIKE:
                return False
            less |= relative < 1 - ALIKE
        return float(less.mean()) <= RARE

    @property
    def outdone(self) -> bool:
        """A block was looked at that does FAR_MORE than any that stands for a stratum: there may be others like it."""
        amounts = (self.features.longest, self.features.sectors)
        return any(int(amount.max()) > FAR_MORE * int(amount[self.strata].max()) for amount in amounts)

    @property
    def whole(self) -> bool:
        """Every block was run."""
        return len(self.features) == self.grid_blocks

    @property
    def warp_instructions(self) -> float:
        """Mean warp instructions of a block of the grid, before the expansion to machine operations."""
        return float(self.features.warp_instructions[self.strata].mean())

    @property
    def sectors(self) -> float:
        """Mean sectors of memory that a block of the grid asks for."""
        return float(self.features.sectors[self.strata].mean())

    @property
    def thread_instructions(self) -> float:
        """Mean thread instructions of a block of the grid."""
        return float(self.features.thread_instructions[self.strata].mean())

    def of_every_block(self, amount: NDArray, first: int = 0) -> NDArray:
        """The `amount` [n] of blocks `first` to the last of the grid; for one that was not looked at stands another."""
        return amount[self.stand_ins(first)]

    def stand_ins(self, first: int = 0) -> NDArray[np.int64]:
        """Which of the n blocks stands for each block from `first` to the last of the grid: itself where it can."""
        return self._stand_ins if first == 0 else self._stand_ins_from(first)

    @cached_property
    def _stand_ins(self) -> NDArray[np.int64]:
        return self._stand_ins_from(0)

    def _stand_ins_from(self, first: int) -> NDArray[np.int64]:
        if self.whole:
            return np.arange(first, self.grid_blocks)
        blocks = self.features.blocks
        found = self.strata[stand_ins(np.arange(first, self.grid_blocks), blocks[self.strata])]
        inside = np.flatnonzero(blocks >= first)
        found[blocks[inside] - first] = inside
        return found


def standing_sm(survey: Survey, spread: GridSpread, grid: Dim3) -> int:
    """The SM that stands for the chip, of blocks that do about the same: one of those that run the most blocks.

    In a launch of few waves the one whose blocks do most; where few blocks do less than the others, the SM that has one
    of them would not do. Of those within TOLERANCE of it the first that has blocks away from the edges of the grid:
    those at edges touch less memory than their accesses tell. In longer launches a typical one.
    """
    sm = np.arange(spread.grid_blocks) % spread.sms
    runs = np.bincount(sm, minlength=spread.active_sms)
    full = np.flatnonzero(runs == runs.max())
    enough = np.ones(len(full), np.bool_)
    amounts = (survey.features.warp_instructions, survey.features.sectors)
    differing = [amount for amount in amounts if amount.min() != amount.max()]
    block = survey.stand_ins() if differing else np.zeros(0, np.int64)
    for amount in differing:
        of_sm = np.bincount(sm, weights=amount[block], minlength=spread.active_sms)
        enough &= of_sm[full] >= (1.0 - TOLERANCE) * float(of_sm[full].max())
    if not differing or not enough.any():
        return int(full[0])
    most = full[enough]
    fullest = int(most[0])
    return typical_sm(spread, grid, fullest) if spread.waves >= LONG else away_from_edges(spread, grid, most)


#: runs blocks and says what each does
Look = Callable[[Sequence[int]], BlockFeatures]


def survey_grid(look: Look, launch: Launch, wanted: str | int) -> Survey:
    """Run some blocks of `launch`: `look` runs block ids and returns their features.

    `wanted`: "sample" looks at landmarks of the grid and one block a stratum, then doubles the strata while the blocks
    differ, until the mean work is known to TOLERANCE or MOST thread instructions are used; a small grid runs whole.
    A number takes so many strata, "all" every block. PptError for anything else.
    """
    if wanted == "sample":
        return _adaptive(look, launch)
    if wanted == "all":
        wanted = launch.blocks
    if not isinstance(wanted, int) or wanted < 1:
        raise PptError(f"blocks to look at: '{wanted}'", hint="expected 'sample', 'all' or a positive number")
    chosen = stratified(launch.blocks, wanted)
    return _survey(launch.blocks, look(chosen.tolist()), chosen)


def uniform_survey(grid_blocks: int, warps: int, instructions: int) -> Survey:
    """Of a grid whose blocks are all the same: `warps` a block, of so many instructions each."""
    work = np.array([warps * instructions], np.int64)
    one = BlockFeatures(np.zeros(1, np.int64), work, 32 * work, work // warps, np.zeros(1, np.int64))
    return replace(_survey(grid_blocks, one, one.blocks), error=0.0)


def _adaptive(look: Look, launch: Launch) -> Survey:
    total = launch.blocks
    known = look([total // 2])
    used = int(known.thread_instructions.sum())
    affordable = int(FIRST_LOOK / max(used, 1))
    count = max(FEWEST_STRATA, min(affordable, FIRST_STRATA))
    marks = landmarks(launch.grid) if affordable > FIRST_STRATA else np.zeros(0, np.int64)
    while True:
        mean = used / len(known)
        if total * mean <= (FIRST_LOOK if len(known) == 1 else WHOLE):
            count = total
        chosen = stratified(total, count)
        new = sorted({*chosen.tolist(), *marks.tolist()}.difference(known.blocks.tolist()))
        if new:
            more = look(new)
            known = join((known, more))
            used += int(more.thread_instructions.sum())
        found = _survey(total, known, chosen)
        if found.outdone and count < total and total * mean <= WHOLE:
            count = total
            continue
        grown = 2 * count * used / len(known)
        if not found.irregular or found.error <= TOLERANCE or count >= total or used + grown > MOST:
            return found
        count *= 2


def _survey(total: int, known: BlockFeatures, chosen: NDArray[np.int64]) -> Survey:
    strata = np.searchsorted(known.blocks, chosen)
    work = known.warp_instructions[strata]
    return Survey(
        grid_blocks=total,
        features=known,
        strata=strata,
        variation=variation(work),
        sector_variation=variation(known.sectors[strata]),
        error=standard_error(work, total),
    )
