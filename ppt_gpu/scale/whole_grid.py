"""Level "grid": every block of the launch on every SM, with shared L2 and DRAM. Nothing is extrapolated."""

from __future__ import annotations

from copy import copy

import numpy as np

from ppt_gpu.analytic.work import work_of
from ppt_gpu.errors import PptError
from ppt_gpu.scale.grid import plan
from ppt_gpu.scale.prediction import KernelPrediction
from ppt_gpu.scale.simulated_sm import SimulatedSm
from ppt_gpu.scale.tasklist_sm import TaskListSm
from ppt_gpu.sm.program import Program
from ppt_gpu.sm.simulate import simulate_chip
from ppt_gpu.spec.gpu import Gpu

#: levels that differ by more than this are worth a warning
AGREEMENT = 0.10


def grid_prediction(sm: SimulatedSm, gpu: Gpu) -> KernelPrediction:
    """Cycles of a launch, all of whose blocks are run. Leaves their work on `sm`.

    BudgetError, which names the budget, when the functional run of all blocks exceeds it; PptError for a task list that
    gives hit rates instead of addresses.
    """
    chosen = plan(sm.launch.blocks, sm.occupancy, gpu, "grid")
    every = copy(sm)
    every.whole = True
    program, feed = every.lower(list(chosen.blocks))
    _check_addresses(sm, program)
    result = simulate_chip(
        program,
        gpu,
        resident_blocks=chosen.resident,
        policy=sm.policy,
        l1_bytes=sm.occupancy.l1_bytes,
        code_at=sm.code_at,
        constants_at=sm.constants_at,
    )
    sm.loop_seconds.append(result.wall)
    sm.work, sm.feed, sm.warnings = work_of(program, gpu), feed, list(feed.warnings)
    text = f"all {len(chosen.blocks)} blocks were simulated, each on the SM that freed a slot first"
    return KernelPrediction(float(result.cycles), chosen, result, (text,), result.cycles * 1.0)


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
