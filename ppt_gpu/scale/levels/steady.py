"""Level "steady": from a few simulated waves of one SM to all its blocks.

An SM holds R blocks and runs N; n of them are simulated, with n = kR + (N mod R), a finished block being replaced by
the next. Let c_1 <= ... <= c_n be the block completions and m_w = c_(wR) the end of wave w. Up to c_(n-R+1) the SM is
full, so d_w = m_w - m_(w-1) for w < k are durations of whole waves at full residency (a wave by count: blocks of
neighbouring waves may overlap, and blocks in lock-step finish together; both give the same m_w). Then

    T(N) = T(n) + (N - n) / R * D,        D = (m_(k-1) - m_h) / (k - 1 - h)

T(n) contains the start-up, the drain and the true last, partial wave, since N - n is a multiple of R. D is the mean of
the latter half of the waves, h = (k - 1) // 2, which drops the transient. When the standard error of that mean is above
1 %, more waves are simulated, and at the limit h = 1: the mean of all waves but the first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from ppt_gpu.common.errors import PptError
from ppt_gpu.scale.blocks.distribution import SmPlan, plan
from ppt_gpu.scale.cache.block_timing import BlockTiming
from ppt_gpu.scale.occupancy.occupancy import Occupancy
from ppt_gpu.scale.prediction import KernelPrediction
from ppt_gpu.sm.program.result import SmResult
from ppt_gpu.spec.gpu import Gpu

#: full waves simulated, in turn, until the rate is steady; half of them are averaged, so that the spread can be seen
WAVES = (9, 17, 33, 65, 129)
#: as many as two successive waves and a transient need
FEWEST = 3
#: relative standard error of the mean wave below which the rate is steady
TOLERANCE = 0.01
#: warp instructions that one try may simulate; long blocks must do with fewer waves
AFFORDABLE = 4_000_000
#: warp instructions so few that nobody waits for them, and waves that are tried at once if they have no more: blocks
#: may keep a distance for some dozens of waves before they leave it, and so look steady at a rate that does not last
CHEAP, SURE = 200_000, 65


def extrapolate_steady(result: SmResult, plan: SmPlan, tolerance: float = TOLERANCE) -> KernelPrediction:
    """Cycles of all blocks of the planned SM, from the simulation of `plan.blocks`.

    PptError when `result` has another number of blocks than `plan`, or too few waves to see a rate.
    """
    blocks = len(result.block_end)
    if blocks != len(plan.blocks):
        raise PptError(f"{blocks} blocks were simulated; the plan has {len(plan.blocks)}")
    resident = plan.resident
    if plan.exact:
        wave = result.cycles * resident / blocks
        all_of_them = f"all {blocks} blocks of the busiest SM were simulated"
        text = all_of_them if blocks > 1 else "no SM has more than one block"
        return KernelPrediction(float(result.cycles), plan, result, (text, *spread_assumptions(plan)), wave)
    durations = wave_durations(result, resident)
    if len(durations) < 2:
        raise PptError(f"{blocks} blocks in waves of {resident} are too few to see a steady rate", hint="3 waves")
    half = max(len(durations) // 2, 1) if len(durations) > 2 else 0
    convergence = standard_error(durations[half:])
    steady = convergence <= tolerance
    kept = durations[half:] if steady else durations[1:]
    wave = float(np.mean(kept))
    more = (plan.total_blocks_of_this_sm - blocks) / resident
    cycles = result.cycles + more * wave
    return KernelPrediction(
        cycles=cycles,
        plan=plan,
        result=result,
        wave_cycles=wave,
        convergence=convergence,
        error=standard_error(kept) * more * wave / cycles,
        assumptions=(_rate_text(plan, wave, convergence, steady), *spread_assumptions(plan)),
    )


def standard_error(durations: Sequence[float]) -> float:
    """Relative standard error of the mean; of a single wave, which shows no spread, 0."""
    mean = float(np.mean(durations))
    if len(durations) < 2 or mean <= 0:
        return 0.0
    return float(np.std(durations, ddof=1)) / len(durations) ** 0.5 / mean


def wave_durations(result: SmResult, resident: int) -> list[float]:
    """d_1 ... d_(k-1) in cycles: times between the ends of whole waves while the SM was full."""
    ends = np.sort(result.block_end)
    full = (len(ends) - resident) // resident
    marks = np.concatenate(([0], ends[resident - 1 : full * resident : resident]))
    return [float(duration) for duration in np.diff(marks)]


def steady_prediction(
    run_blocks: Callable[[list[int]], BlockTiming],
    grid_blocks: int,
    occupancy: Occupancy,
    gpu: Gpu,
    waves: Sequence[int] = WAVES,
    tolerance: float = TOLERANCE,
    sm: int = 0,
    bunched: bool = False,
) -> KernelPrediction:
    """Simulate more and more waves (`waves`, ascending, at least 3) until their mean is known to `tolerance`.

    `run_blocks` simulates the given block ids on one SM, with `plan(...).resident` slots. It is called once for each
    number of waves tried; `sm` is the SM, one of those with the most blocks, `bunched` as in `spread_grid`. Returns the
    first steady prediction, or the one of the most waves.
    """
    if not waves or min(waves) < 3 or list(waves) != sorted(waves):
        raise PptError(f"waves to simulate: {list(waves)}", hint="ascending numbers, at least 3")
    for count in waves:
        chosen = plan(grid_blocks, occupancy, gpu, "steady", count, sm, bunched)
        timing = run_blocks(list(chosen.blocks))
        found = replace(extrapolate_steady(timing.result, chosen, tolerance), timing=timing)
        if chosen.exact or found.convergence <= tolerance:
            break
    return found


def in_bunches(found: KernelPrediction) -> bool:
    """Whether the blocks that the simulated SM holds ended together, so that it got the next ones in a row.

    So they did when between the starts of its blocks, from the second wave on, at most one time in R was as long as
    half an even one, that of SMs whose blocks end one by one, and few others got blocks meanwhile: SMs are out of step
    by then, so that each of the other S - 1 frees a slot in an even time. Where all R blocks are within S of the grid,
    nearer to each other than two of an SM that gets every S-th, they are taken to be in a row. Two whole waves of them
    have to be seen: the blocks of the first wave started together on all SMs, so that they end together says nothing
    of one SM.
    """
    resident, sms = found.plan.resident, found.plan.spread.sms
    starts = np.sort(found.result.block_start)[resident:]
    if resident < 2 or len(starts) < 2 * resident:
        return False
    between = np.diff(starts)
    even = float(np.mean(starts[resident:] - starts[:-resident])) / resident
    short = between[between < even / 2.0]
    if len(between) - len(short) > -(-len(between) // resident):
        return False
    return resident * (1.0 + (sms - 1) * float(short.mean()) / even) <= sms


def affordable_waves(resident: int, instructions_per_block: float) -> tuple[int, ...]:
    """Those of WAVES that simulate at most AFFORDABLE warp instructions, or as many as that allows, at least 3.

    The first is the last one up to SURE that simulates at most CHEAP.
    """
    wave = max(resident * instructions_per_block, 1.0)
    within = [count for count in WAVES if count * wave <= AFFORDABLE]
    cheap = [count for count in within if count <= SURE and count * wave <= CHEAP]
    return tuple(within[max(len(cheap) - 1, 0) :]) or (max(FEWEST, min(int(AFFORDABLE / wave), WAVES[0])),)


def _rate_text(plan: SmPlan, wave: float, convergence: float, steady: bool) -> str:
    text = (
        f"{len(plan.blocks)} of the {plan.total_blocks_of_this_sm} blocks of the busiest SM were simulated; "
        f"the others take {wave:.0f} cycles a wave of {plan.resident}"
    )
    if steady:
        return f"{text} (standard error {convergence:.2%})"
    return f"{text} (not steady: standard error {convergence:.1%}; the mean of all waves but the first is used)"


def spread_assumptions(plan: SmPlan) -> tuple[str, ...]:
    """How the grid fills the chip, where that is not evenly."""
    spread = plan.spread
    texts = []
    if spread.active_sms < spread.sms:
        texts.append(f"{spread.active_sms} of {spread.sms} SMs get a block")
    if spread.bunched:
        texts.append(
            f"the {spread.resident} blocks that an SM holds end together: it gets the next {spread.resident} in a row"
        )
    if spread.later_blocks:
        texts.append("the blocks that an SM holds end close to each other: whose slots are free first gets most")
    if spread.max_blocks > max(spread.mean_blocks, 1.0):
        texts.append(
            f"the busiest SM runs {spread.max_blocks} blocks, the mean is {spread.mean_blocks:.1f}: "
            "the launch ends with the busiest"
        )
    return tuple(texts)
