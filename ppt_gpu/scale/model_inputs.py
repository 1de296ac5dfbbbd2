"""From a simulated launch to what the analytical models read: the same blocks, trace, occupancy and GPU."""

from __future__ import annotations

from ppt_gpu.models.base.model_inputs import ModelInputs
from ppt_gpu.scale.blocks.distribution import SmPlan
from ppt_gpu.scale.history.footprint import dirty_share
from ppt_gpu.scale.history.heap import Heap
from ppt_gpu.scale.simulated_sm import SimulatedSm, TraceSm


def model_inputs(sm: SimulatedSm, plan: SmPlan) -> ModelInputs:
    """The blocks of `plan`, lowered: of PTX instruction by instruction, which is what models are of.

    Raises PptError as a simulation does.
    """
    blocks = list(plan.blocks)
    trace, kernel = None, None
    if isinstance(sm, TraceSm):
        run, kernel = sm.traces.run(blocks), sm.kernel
        program, _ = sm.lower_run(run, blocks, as_ptx=True)
        trace = Heap.of(run.ranges, sm.gpu).trace(run)
    else:
        program, _ = sm.lower(blocks)
    return ModelInputs(
        gpu=sm.gpu,
        launch=sm.launch,
        program=program,
        blocks=tuple(blocks),
        resident_blocks=plan.resident,
        active_sms=plan.active_sms,
        sm_blocks=plan.sm_blocks,
        grid_blocks=plan.grid_blocks,
        registers=sm.registers,
        shared_bytes=sm.shared,
        l1_bytes=sm.occupancy.l1_bytes,
        l2_dirty=dirty_share(program, sm.gpu, sm.launch.blocks / len(blocks), sm.spread.active_sms),
        kernel=kernel,
        trace=trace,
    )
