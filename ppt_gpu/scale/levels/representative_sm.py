"""The blocks of one SM that stand for a launch, for what looks at one SM only: timelines, analytical models."""

from __future__ import annotations

from ppt_gpu.scale.blocks.distribution import SmPlan
from ppt_gpu.scale.blocks.representative_blocks import mixed_blocks
from ppt_gpu.scale.levels.irregular import mix_plan
from ppt_gpu.scale.levels.steady import AFFORDABLE
from ppt_gpu.scale.prediction import KernelPrediction


def one_sm(prediction: KernelPrediction) -> SmPlan:
    """The plan of `prediction`, or where that is of all SMs of a launch at level steady, of a mix of its blocks."""
    made, survey, sm = prediction.plan, prediction.survey, prediction.simulated_sm
    if not made.whole or made.level == "grid" or survey is None:
        return made
    blocks = mixed_blocks(sm.spread, survey, AFFORDABLE)
    return mix_plan(sm, survey, sm.slots(blocks).feed(sm.spread.resident).features)
