"""Level "workload": the extrapolation of the PPT GPU module, one max-block workload on one SM scaled to the grid.

The rule and its source: `ppt_gpu.models.ppt.extrapolation`.
"""

from __future__ import annotations

import numpy as np

from ppt_gpu.common.errors import PptError
from ppt_gpu.models.ppt.extrapolation import extrapolate_workload
from ppt_gpu.scale.blocks.distribution import SmPlan
from ppt_gpu.scale.prediction import KernelPrediction
from ppt_gpu.sm.program.result import SmResult


def workload_prediction(result: SmResult, plan: SmPlan) -> KernelPrediction:
    """Scale the first wave of one SM (`plan` of level "workload") to the grid.

    The rule credits the overlap of successive workloads whether or not the hardware has room for it, so it can fall
    below what the busiest resource needs: see KernelPrediction.raised_to.
    """
    blocks = len(plan.blocks)
    if len(result.block_end) != blocks:
        raise PptError(f"{len(result.block_end)} blocks were simulated; the plan has {blocks}")
    last = float(np.max(result.block_end))
    terms = extrapolate_workload(
        workload=last,
        block_average=float(np.mean(result.block_end)),
        workloads=-(-plan.spread.grid_blocks // blocks),
        sms=plan.spread.sms,
        trailing=result.cycles - last,
    )
    if plan.exact:
        text = f"all {blocks} blocks of the busiest SM fit in one workload, which was simulated"
        return KernelPrediction(float(result.cycles), plan, result, (text,), terms.workload, ppt=terms)
    text = (
        f"one workload of {blocks} blocks was simulated on one SM and extrapolated to {terms.workloads} workloads "
        f"with the PPT overlap rule (overlap {terms.overlap:.1%})"
    )
    return KernelPrediction(terms.cycles, plan, result, (text,), terms.mean_workload, ppt=terms)
