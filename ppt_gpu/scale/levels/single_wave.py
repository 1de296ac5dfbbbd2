"""Level "steady" for kernels whose blocks differ and are all resident at once: some SMs, with the blocks that they get.

Which blocks an SM runs is known then, and nothing is extrapolated. The launch ends with the slowest SM: one that has
the most to do, asks for the most memory, holds the longest block, or the most blocks of some kind: a block at the
edge of the grid does less, but may wait for DRAM twice in each round, as what it shares with nobody is in no cache.
These are simulated, each with its share of L2 and DRAM (`ppt_gpu.scale.levels.tail`); the slowest of them counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.scale.blocks.distribution import GridSpread, SmPlan, plan
from ppt_gpu.scale.blocks.survey import ALIKE, Survey
from ppt_gpu.scale.levels.steady import AFFORDABLE, spread_assumptions
from ppt_gpu.scale.prediction import KernelPrediction
from ppt_gpu.scale.simulated_sm import SimulatedSm

#: SMs simulated: warps that are not evenly shared out among the schedulers make others slow than those with most work
SIMULATED = 6
#: and at most where they do little: of two SMs whose longest warps are alike one may wait for memory half as long again
MOST = 32


def single_wave_prediction(sm: SimulatedSm, survey: Survey) -> KernelPrediction:
    """Cycles of a launch of one wave whose blocks differ."""
    sm = replace(sm, one_wave=True)
    resident, features = sm.spread.resident, survey.features
    work = _by_sm(survey, features.warp_instructions, sm.spread)
    sectors = _by_sm(survey, features.sectors, sm.spread)
    longest = _by_sm(survey, features.longest, sm.spread, np.maximum)
    telling = [amount for amount in (work, sectors, longest) if amount.min() < (1.0 - ALIKE) * amount.max()]
    member, kinds = survey.clusters.member, len(survey.clusters)
    alike = [_by_sm(survey, (member == kind).astype(np.int64), sm.spread) for kind in range(kinds)]
    ranked = np.stack([np.lexsort((-work, -amount)) for amount in (*(telling or (work,)), *alike)], axis=1)
    numbers = dict.fromkeys(ranked.ravel().tolist())
    most = max(SIMULATED, len(set(ranked[0].tolist())), _affordable(work[list(numbers)]))
    plans = [plan(sm.launch.blocks, sm.occupancy, sm.gpu, "steady", sm=number) for number in list(numbers)[:most]]
    each = [replace(sm, share=_share(sectors, made.sm)) for made in plans]
    timings = [one.slots(list(made.blocks)).timing(resident) for one, made in zip(each, plans, strict=True)]
    slowest = int(np.argmax([timing.result.cycles for timing in timings]))
    made, timing = plans[slowest], timings[slowest]
    result = timing.result
    text = f"blocks differ, and all are resident at once: {_listed(plans, made)}"
    ratio = survey.warp_instructions / float(timing.feed.features.warp_instructions.mean())
    return KernelPrediction(
        cycles=float(result.cycles),
        plan=replace(made, mean_work=ratio),
        result=result,
        timing=timing,
        sm=each[slowest],
        error=survey.error,
        assumptions=(text, *spread_assumptions(made)[:1]),
    )


def _affordable(work: NDArray[np.float64]) -> int:
    """How many SMs of that `work`, in warp instructions, in this order, may be simulated; at most MOST."""
    return min(int(np.searchsorted(np.cumsum(work), AFFORDABLE, side="right")), MOST)


def _by_sm(
    survey: Survey, amount: NDArray[np.int64], spread: GridSpread, join: np.ufunc = np.add
) -> NDArray[np.float64]:
    """[active SMs] the sum, or what `join` makes, of the `amount` [n] of each SM's blocks."""
    total = np.zeros(spread.active_sms)
    join.at(total, np.arange(survey.grid_blocks) % spread.sms, survey.of_every_block(amount))
    return total


def _share(sectors: NDArray[np.float64], sm: int) -> float:
    """Of L2 and DRAM, that of an SM: as that of the sectors that it asks for, and no less than an even one."""
    return max(float(sectors[sm] / max(sectors.sum(), 1.0)), 1.0 / len(sectors))


def _listed(plans: Sequence[SmPlan], slowest: SmPlan) -> str:
    """Which SMs were simulated, by number."""
    *others, last = [str(made.sm) for made in plans]
    if not others:
        return f"SM {last}, which has the most to do, was simulated with its blocks"
    if len(plans) > SIMULATED:
        others, last = others[: SIMULATED - 1], f"{len(plans) - SIMULATED + 1} others"
    every = f"SMs {', '.join(others)} and {last}, which have the most to do, were simulated, each with its blocks"
    return f"{every}; SM {slowest.sm} is the slowest"
