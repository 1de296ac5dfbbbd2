"""What all models must agree on, and kernels that tempt them to divide by zero."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest

from ppt_gpu.comparison import compare, floor_cycles
from ppt_gpu.models.base.model import Estimate, Options
from ppt_gpu.models.base.model_inputs import ModelInputs
from ppt_gpu.models.gpumech.gcom import sub_core
from ppt_gpu.models.gpumech.gpumech import GpuMech
from ppt_gpu.models.gpumech.gpumech_core import multithreading, profiles_of
from ppt_gpu.models.gpumech.interval import Profile
from ppt_gpu.models.registry import models
from ppt_gpu.pipeline import open_any, open_gpu, simulated_sms, workload_traces
from ppt_gpu.scale.blocks.distribution import plan
from ppt_gpu.scale.model_inputs import model_inputs
from ppt_gpu.workload.budget import Budget

HEAD = """.version 7.0
.target sm_50
.address_size 64
.visible .entry k(.param .u64 p, .param .u32 n) {
    .reg .u32 %r<9>; .reg .f32 %f<9>; .reg .u64 %d<9>; .reg .pred %q<5>;
    ld.param.u64 %d1, [p]; ld.param.u32 %r1, [n]; mov.u32 %r2, %tid.x;
"""
ADDRESS = "mul.wide.u32 %d2, %r2, 4; add.u64 %d3, %d1, %d2;\n"
COMPUTE = "mov.f32 %f1, 0f3F800000;\n" + "fma.rn.f32 %f1, %f1, %f1, %f1;\n" * 40
FREE = "mov.f32 %f1, 0f3F800000;\n" + "".join(f"add.f32 %f{i % 6 + 2}, %f1, %f1;\n" for i in range(60))
LOOP = "mov.u32 %r3, 0;\nL: setp.ge.u32 %q1, %r3, %r1;\n@%q1 bra E;\nadd.u32 %r3, %r3, 1;\nbra L;\nE:\n"
DIVERGE = "".join(
    f"and.b32 %r3, %r2, {1 << i};\nsetp.eq.u32 %q1, %r3, 0;\n@%q1 bra D{i};\nadd.u32 %r4, %r4, {i};\nD{i}:\n"
    for i in range(5)
)
KERNELS = {
    "nothing": "",
    "without memory": COMPUTE,
    "without computation": ADDRESS + "ld.global.f32 %f1, [%d3];\nst.global.f32 [%d3], %f1;\n",
    "stores only": ADDRESS + "st.global.u32 [%d3], %r2;\n",
    "zero trips": LOOP,
    "divergence everywhere": "mov.u32 %r4, 0;\n" + DIVERGE + ADDRESS + "st.global.u32 [%d3], %r4;\n",
    "divergent loads": "mul.wide.u32 %d2, %r2, 128; add.u64 %d3, %d1, %d2;\nld.global.f32 %f1, [%d3];\n"
    "add.f32 %f2, %f1, %f1;\nst.global.f32 [%d3], %f2;\n",
    "atomics": "atom.global.add.u32 %r5, [%d1], 1;\nadd.u32 %r6, %r5, 1;\nst.global.u32 [%d1], %r6;\n",
}


@cache
def inputs(kernel: str, gpu: str = "gpumech_table1", grid: int = 32, block: int = 256, *over: str) -> ModelInputs:
    target = open_gpu(gpu, over)
    data = np.zeros(16384, np.float32)
    text = HEAD + kernel + "ret;\n}\n"
    opened, arrays = open_any(text, target.compute_capability, {"grid": grid, "block": block, "args": [data, 0]})
    traces, sequence = workload_traces(opened, target, arrays, Budget(), (), False, None)
    sm = next(simulated_sms(opened, traces, sequence, target, None, True))
    return model_inputs(sm, plan(sm.launch.blocks, sm.occupancy, target))


OPTIONS = [Options(policy, literal) for policy in ("lrr", "gto") for literal in (False, True)]


@pytest.mark.parametrize("gpu", ["gpumech_table1", "v100"])
@pytest.mark.parametrize("block", [32, 256])
@pytest.mark.parametrize("name", KERNELS)
def test_every_model_answers_or_says_why(name: str, block: int, gpu: str) -> None:
    given = inputs(KERNELS[name], gpu, 1 if block == 32 else 32, block)
    for model in models():
        for options in OPTIONS:
            found: Estimate = model.analyze(given, options)
            if not found.applies:
                assert found.reason and not found.cycles, model.name
                continue
            assert math.isfinite(found.cycles) and found.cycles > 0, model.name
            assert found.cycles == pytest.approx(found.cpi * given.sm_instructions), model.name
            assert found.limiter and found.steps, model.name
            if found.stack:
                assert sum(share for _, share in found.stack) == pytest.approx(found.cpi, rel=1e-12), model.name
            assert all(math.isfinite(step.value) for step in found.steps), model.name
            assert model.report(found)


def test_one_warp_without_memory_is_the_simulation() -> None:
    """(a) gap 0 and drain: the cycles of the simulator, to the cycle."""
    data = np.zeros(64, np.float32)
    for kernel in (COMPUTE, FREE, KERNELS["zero trips"], "mov.u32 %r4, 0;\n" + DIVERGE):
        text = HEAD + kernel + "ret;\n}\n"
        simulated = compare(text, "gpumech_table1", only=["mt"], grid=1, block=32, args=[data, 0], cache=False)
        given = inputs(kernel, "gpumech_table1", 1, 32)
        profile = profiles_of(given, gap=0, drain=True)[0]
        assert profile.cycles() == simulated.main.row("simulation").cycles
        assert multithreading(profile, 1).cycles == profile.cycles()


@pytest.mark.parametrize("options", OPTIONS)
def test_arithmetic_alone_takes_its_issue(options: Options) -> None:
    """(b) W warps of I independent instructions: W I / rate."""
    given = inputs(FREE, "gpumech_table1", 256)
    for name in ("gpumech", "gpumech_mdm", "mt_mshr", "mt", "naive_interval", "markov_chain", "gcom", "volkov"):
        found = next(model for model in models() if model.name == name).analyze(given, options)
        assert found.cpi == pytest.approx(1.0, rel=0.12), name


LOADS = KERNELS["divergent loads"]


def test_enough_of_everything_is_no_contention() -> None:
    """(c)"""
    plenty = inputs(LOADS, "gpumech_table1", 256, 256, "l1.mshrs=1000000", "dram.bandwidth=1e9 TB/s")
    stack = dict(GpuMech().analyze(plenty).stack)
    assert stack["MSHR"] == 0.0 and stack["QUEUE"] == pytest.approx(0.0, abs=1e-6)
    few = dict(GpuMech().analyze(inputs(LOADS, "gpumech_table1", 256)).stack)
    assert few["MSHR"] > 0.0 and few["QUEUE"] > 0.0


@pytest.mark.parametrize(
    "less, more",
    [
        ("dram.bandwidth=64 GB/s", "dram.bandwidth=256 GB/s"),
        ("l1.mshrs=16", "l1.mshrs=128"),
        ("dram.latency=800", "dram.latency=300"),
        ("l2.latency=200", "l2.latency=60"),
    ],
)
def test_more_hardware_is_not_slower(less: str, more: str) -> None:
    """(d)"""
    slow, fast = inputs(LOADS, "gpumech_table1", 256, 256, less), inputs(LOADS, "gpumech_table1", 256, 256, more)
    for model in models():
        for options in OPTIONS:
            before, after = model.analyze(slow, options), model.analyze(fast, options)
            assert before.applies == after.applies
            assert after.cycles <= before.cycles * (1 + 1e-9), model.name


@pytest.mark.parametrize("name", ["without memory", "without computation", "divergent loads"])
def test_nothing_beats_issue(name: str) -> None:
    """(e) Of models that know the memory's bandwidth, none beats the roofline either, once held against it."""
    given = inputs(KERNELS[name], "gpumech_table1", 256)
    least = given.sm_instructions / given.issue_rate
    for model in models():
        found = model.analyze(given)
        if found.applies and model.name != "roofline":
            assert found.cycles >= least * (1 - 1e-9), model.name
    assert floor_cycles(given) >= least


def test_fig8_repeated() -> None:
    """(g) The profile of Fig. 8, 200 times: GPUMech optimistic under round robin, GCoM pessimistic."""
    none = np.full(200, -1)
    profile = Profile(np.full(200, 3.0), np.full(200, 6.0), none, none)
    assert multithreading(profile, 4, "lrr").cpi == pytest.approx(11 / 12)
    assert multithreading(profile, 4, "gto").cpi == pytest.approx(1.0)
    assert sub_core(profile, 4, "lrr").cycles / 2400 == pytest.approx(17 / 12)
    assert sub_core(profile, 4, "gto").cycles / 2400 == pytest.approx(1.0)
