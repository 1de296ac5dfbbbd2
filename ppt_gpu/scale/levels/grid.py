"""Level "grid": every block of the launch on every SM, with shared L2 and DRAM. Nothing is extrapolated.

Level "steady" does the same with small launches whose blocks differ, or whose SMs wait for one another in a crossbar.
What they do to each other no SM shows by itself: who gets the next block, what the last blocks wait for when the others
have left memory to them, whom a policy that favours the oldest block leaves waiting, who asks for the same slice of the
L2. One that is small enough takes about as long as a mix of its blocks on one SM.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ppt_gpu.common.errors import PptError
from ppt_gpu.scale.blocks.distribution import SmPlan, plan
from ppt_gpu.scale.blocks.survey import Survey
from ppt_gpu.scale.cache.block_timing import TIMING, BlockTiming
from ppt_gpu.scale.cache.launch_store import kept_or_made
from ppt_gpu.scale.levels.tail import l2_load
from ppt_gpu.scale.prediction import KernelPrediction
from ppt_gpu.scale.simulated_sm import SimulatedSm
from ppt_gpu.scale.tasklist_sm import TaskListSm
from ppt_gpu.sm.program.program import Program
from ppt_gpu.sm.whole_chip import simulate_chip

#: levels that differ by more than this are worth a warning
AGREEMENT = 0.10


#: what a launch may take to be simulated whole at level steady, in warp instructions
SMALL = 32_000_000
#: warp instructions that take as long as a sector of memory: it becomes a request, which is put in order and answered
SECTOR = 8
#: share of a launch in which the way to the L2 is busy from which on a crossbar is simulated; of the busiest slice,
#: where all SMs come to few lines: they come at once, and hold up what is behind
CROWDED, CAMPED = 0.5, 0.25


def grid_prediction(sm: SimulatedSm) -> KernelPrediction:
    """Cycles of a launch, all of whose blocks are run.

    BudgetError, which names the budget, when the functional run of all blocks exceeds it; PptError for a task list that
    gives hit rates instead of addresses.
    """
    chosen = plan(sm.launch.blocks, sm.occupancy, sm.gpu, "grid")
    return _prediction(sm, chosen)


def small(survey: Survey) -> bool:
    """Whether level steady may simulate the launch whole, by what that takes."""
    return survey.grid_blocks * (survey.warp_instructions + SECTOR * survey.sectors) <= SMALL


def through_crossbar(prediction: KernelPrediction, sm: SimulatedSm, survey: Survey) -> KernelPrediction:
    """The `prediction` from one SM; that of the whole chip where much passes a crossbar and the launch is `small`.

    One SM gets what SMs get that all ask for any slice alike (`Gpu.l2_way`); which slices they ask for at the same time
    decides whether that is right. So do the sets of the L2 where it has all of them to itself.
    """
    if sm.gpu.perfect_memory or not small(survey):
        return prediction
    if sm.spread.active_sms == 1:
        return small_prediction(sm, "its one SM finds lines in the sets of the L2") or prediction
    load, camping = l2_load(prediction.result, sm.gpu, sm.spread.active_sms), prediction.simulation.work.l2_camping
    if load * camping < (CAMPED if camping > 1.0 else CROWDED):
        return prediction
    return small_prediction(sm, "SMs wait for one another in the crossbar") or prediction


def small_prediction(sm: SimulatedSm, why: str = "blocks differ") -> KernelPrediction | None:
    """`grid_prediction` of a `small` launch at level steady, kept as simulations of one SM are; `why` for the reader.

    None where not all of its blocks can be run: a trace file does not have them, or a budget
    is used up.
    """
    chosen = replace(plan(sm.launch.blocks, sm.occupancy, sm.gpu, "grid"), level="steady")
    try:
        made = _prediction(sm, chosen)
    except PptError:
        return None
    return replace(made, assumptions=(f"{why}, and the launch is small: " + made.assumptions[0],))


def _prediction(sm: SimulatedSm, chosen: SmPlan) -> KernelPrediction:
    timing = kept_or_made(sm.kept, TIMING, lambda: sm.whole_name, lambda: _simulated(sm, chosen))
    result = timing.result
    text = f"all {len(chosen.blocks)} blocks were simulated, each on the SM that freed a slot first"
    return KernelPrediction(float(result.cycles), chosen, result, (text,), result.cycles * 1.0, timing=timing, sm=sm)


def _simulated(sm: SimulatedSm, chosen: SmPlan) -> BlockTiming:
    slots = replace(sm, whole=True).slots(list(chosen.blocks))
    program, feed, work = slots.lowered()
    _check_addresses(sm, program)
    result = simulate_chip(
        program,
        sm.gpu,
        resident_blocks=chosen.resident,
        policy=sm.policy,
        l1_bytes=sm.occupancy.l1_bytes,
        code_at=sm.code_at,
        constants_at=sm.constants_at,
    )
    return BlockTiming(result, work, feed)


def _check_addresses(sm: SimulatedSm, program: Program) -> None:
    """PptError when accesses have hit rates and no addresses, so that nobody can say which SMs share what."""
    if isinstance(sm, TaskListSm) and bool((np.asarray(program.tx_line) < 0).any()):
        raise PptError(
            "level grid needs addresses; this task list has memory tasks with hit rates or none",
            path=sm.flat.tasklist.path or None,
            hint="give the tasks addresses, or use level steady",
        )


def disagreement(asked: KernelPrediction, other: KernelPrediction) -> list[str]:
    """A warning where another level than the one asked for tells another story."""
    difference = other.cycles / max(asked.cycles, 1.0) - 1.0
    if abs(difference) <= AGREEMENT:
        return []
    return [
        f"levels differ: {other.plan.level} gives {other.cycles:.0f} cycles, {difference:+.0%} against the "
        f"{asked.cycles:.0f} of level {asked.plan.level}"
    ]
