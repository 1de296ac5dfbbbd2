"""GATSim and the PPT GPU module beside GPUMech and the simulation where all must agree (SPEC section 14)."""

from __future__ import annotations

import pytest
from model_kernels import bare_kernel_text, inputs_of, simulated

from ppt_gpu.models.base.model import Options
from ppt_gpu.models.base.model_inputs import ModelInputs
from ppt_gpu.models.gatsim.gatsim import Gatsim, characterised, gatsim_machine, gatsim_work, path_delays
from ppt_gpu.models.gatsim.loop import gatsim_time
from ppt_gpu.models.gpumech.gpumech_core import profiles_of
from ppt_gpu.models.ppt.loop import ppt_run
from ppt_gpu.models.ppt.memory import LoadedMemory
from ppt_gpu.models.ppt.module import PptModule, ppt_sm, workload_tasks
from ppt_gpu.models.ppt.successors import PptGpu2019, PptGpu2021

ONE = "mov.f32 %f1, 0f3F800000;"
CHAIN = (ONE, *["fma.rn.f32 %f1, %f1, %f1, %f1;"] * 12, "ret;")
FREE = (ONE, *[f"add.f32 %f{2 + i % 8}, %f1, %f1;" for i in range(64)], "ret;")
MIXED = (
    ONE,
    "add.f32 %f2, %f1, %f1;",
    "mul.f32 %f3, %f1, %f1;",
    "fma.rn.f32 %f4, %f2, %f3, %f3;",
    "add.f32 %f5, %f1, %f1;",
)
LOOP = ("mov.u32 %r4, 0;", "L:", "add.s32 %r4, %r4, 1;", "setp.lt.s32 %p1, %r4, 9;", "@%p1 bra L;", "ret;")
SPLIT = ("mov.u32 %r4, %laneid;", "setp.lt.u32 %p1, %r4, 7;", "@%p1 bra A;", *FREE[:9], "A:", *CHAIN[:5], "ret;")
KERNELS = {"chain": CHAIN, "free": FREE, "mixed": MIXED, "loop": LOOP, "split": SPLIT}
MEMORY = LoadedMemory(1, 1, 1 << 20, 1 << 20)


def in_ppt(inputs: ModelInputs) -> int:
    return ppt_run(workload_tasks(inputs), ppt_sm(inputs.gpu, MEMORY, 0)).last


@pytest.mark.parametrize("name", KERNELS)
def test_one_warp_without_memory(name: str) -> None:
    """(a) GPUMech (gap 0, drain), GATSim, PPT and the simulation, to the cycle."""
    text = bare_kernel_text(*KERNELS[name])
    sm, _ = simulated(text, "gpumech_table1", grid=1, block=32)
    cycles = sm([0]).result.cycles
    inputs = inputs_of(text)
    assert profiles_of(inputs, gap=0, drain=True)[0].cycles() == cycles
    assert gatsim_time(gatsim_work(inputs, path_delays(inputs)), gatsim_machine(inputs, "lrr", 1)).cycles == cycles
    assert in_ppt(inputs) == cycles
    if name != "split":  # its else part ends where the text goes on elsewhere
        assert (
            gatsim_time(gatsim_work(inputs, characterised(inputs)), gatsim_machine(inputs, "lrr", 1)).cycles == cycles
        )


@pytest.mark.parametrize("policy", ["lrr", "gto"])
def test_arithmetic_alone_takes_its_issue(policy: str) -> None:
    """(b) 32 warps of 66 instructions on one scheduler, and what it takes to end."""
    inputs = inputs_of(bare_kernel_text(*FREE), block=1024)
    least = inputs.instructions
    assert least == 32 * 66
    assert least <= Gatsim().analyze(inputs, Options(policy)).cycles <= least * 1.05
    assert least <= in_ppt(inputs) <= least * 1.05


def test_several_schedulers_issue_as_many_times_as_fast() -> None:
    """(b) Four schedulers of one instruction each."""
    inputs = inputs_of(bare_kernel_text(*FREE), "v100", block=1024)
    least = inputs.instructions / 4
    assert least <= Gatsim().analyze(inputs).cycles <= least * 1.1


@pytest.mark.parametrize("model", [Gatsim(), PptModule(), PptGpu2019(), PptGpu2021()], ids=lambda model: model.name)
def test_no_model_is_faster_than_issue(model: Gatsim) -> None:
    """(e)"""
    for name, body in KERNELS.items():
        inputs = inputs_of(bare_kernel_text(*body), grid=64, block=256)
        assert model.analyze(inputs).cycles >= inputs.sm_instructions / inputs.issue_rate, name
