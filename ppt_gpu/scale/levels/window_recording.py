"""A recorded window of the very simulation that a prediction rests on: the same blocks, slots, caches and servers.

Of a launch all of whose SMs were simulated: of a mix of its blocks on one SM.
"""

from __future__ import annotations

from ppt_gpu.scale.levels.representative_sm import one_sm
from ppt_gpu.scale.prediction import KernelPrediction
from ppt_gpu.sm.one_sm import check
from ppt_gpu.sm.program.machine import machine_of
from ppt_gpu.sm.reference.recording import Recording, Window, record


def record_prediction(prediction: KernelPrediction, window: Window) -> Recording:
    """The window, simulated once more cycle by cycle: a second or so for 2,000 cycles.

    Memory must still be as the launch finds it. PptError where the simulation ends before the window.
    """
    sm, blocks = prediction.simulated_sm, one_sm(prediction).blocks
    program, _ = sm.lower(list(blocks))
    machine = machine_of(program, sm.gpu, **sm.conditions(program, len(blocks)))
    check(program, machine, sm.spread.resident)
    return record(program, machine, sm.spread.resident, window, tuple(blocks))
