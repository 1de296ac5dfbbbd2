"""Inputs of the analytical models from a few lines of PTX, from samples, and what the simulation says of the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ppt_gpu.emulator.launch.sequence import plan_sequence
from ppt_gpu.frontends.call import open_call
from ppt_gpu.models.base.model_inputs import ModelInputs
from ppt_gpu.pipeline import open_workload, simulated_sms, workload_traces
from ppt_gpu.scale.blocks.distribution import plan
from ppt_gpu.scale.model_inputs import model_inputs
from ppt_gpu.scale.simulated_sm import SimulatedSm
from ppt_gpu.spec import load_gpu
from ppt_gpu.spec.gpu import Gpu
from ppt_gpu.workload.budget import Budget

HEAD = ".version 6.0\n.target sm_20\n.address_size 64\n"
REGISTERS = (
    ".reg .pred %p<9>; .reg .b32 %r<32>; .reg .f32 %f<32>; .reg .b64 %rd<16>; .shared .align 4 .b8 shared_data[4096];"
)


def kernel_text(*body: str) -> str:
    """A kernel k(u64 out, u64 in). %rd1 and %rd2 are its pointers as global addresses, %r1 the thread's number."""
    start = (
        "ld.param.u64 %rd1, [out];",
        "cvta.to.global.u64 %rd1, %rd1;",
        "ld.param.u64 %rd2, [in];",
        "cvta.to.global.u64 %rd2, %rd2;",
        "mov.u32 %r1, %tid.x;",
        "mov.u32 %r2, %ctaid.x;",
        "mov.u32 %r3, %ntid.x;",
        "mad.lo.u32 %r1, %r2, %r3, %r1;",
    )
    return bare_kernel_text(*start, *body)


def bare_kernel_text(*body: str) -> str:
    """The same without any instruction of its own before `body`."""
    lines = "\n".join(body)
    return f"{HEAD}.visible .entry k(.param .u64 out, .param .u64 in)\n{{\n{REGISTERS}\n{lines}\n}}\n"


def inputs_of(text: str, gpu: Gpu | str = "gpumech_table1", *, grid: int = 1, block: int = 32) -> ModelInputs:
    """What models read of a kernel of `kernel_text`, launched on buffers of 64 Ki floats."""
    sm, target = simulated(text, gpu, grid=grid, block=block)
    return model_inputs(sm, plan(sm.launch.blocks, sm.occupancy, target))


def simulated(text: str, gpu: Gpu | str, *, grid: int, block: int) -> tuple[SimulatedSm, Gpu]:
    """Its simulated SM."""
    target = load_gpu(gpu, ()) if isinstance(gpu, str) else gpu
    arrays = [np.zeros(1 << 16, np.float32), np.ones(1 << 16, np.float32)]
    call = open_call(text, target.compute_capability, {"grid": grid, "block": block, "args": arrays})
    return _first_sm(call.workload, target, call.contents), target


def sample_sm(name: str, gpu: Gpu | str, overrides: Sequence[str] = ()) -> SimulatedSm:
    """The first launch of a shipped sample."""
    target = load_gpu(gpu, overrides) if isinstance(gpu, str) else gpu
    return _first_sm(open_workload(name), target, {})


def sample_inputs(name: str, gpu: Gpu | str, overrides: Sequence[str] = ()) -> ModelInputs:
    sm = sample_sm(name, gpu, overrides)
    return model_inputs(sm, plan(sm.launch.blocks, sm.occupancy, sm.gpu))


def _first_sm(workload: Any, gpu: Gpu, contents: Any) -> SimulatedSm:
    if workload.tasklist_path:
        return next(simulated_sms(workload, None, plan_sequence(workload, None), gpu, None, True))
    traces, sequence = workload_traces(workload, gpu, contents, Budget(), (), False, None)
    return next(simulated_sms(workload, traces, sequence, gpu, None, True))
