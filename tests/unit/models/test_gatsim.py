"""GATSim on launches: the simulation with perfect memory, as the paper compares; what it prints; and its parts."""

from __future__ import annotations

from dataclasses import replace

import pytest
from model_kernels import bare_kernel_text, inputs_of, kernel_text, sample_inputs, sample_sm

from ppt_gpu.models.base.model import Options
from ppt_gpu.models.gatsim.gatsim import Gatsim
from ppt_gpu.models.registry import find_model
from ppt_gpu.spec import load_gpu


@pytest.mark.parametrize("name", ["vecadd", "saxpy", "jacobi", "mandelbrot", "reduction", "transpose_tiled"])
def test_perfect_memory_as_in_the_paper(name: str) -> None:
    """The paper's experiment: a GTX 480 with two schedulers and perfect memory, held against a simulation of it.

    Both run the PTX as it is.
    """
    gpu = load_gpu("gtx480", ("perfect_memory=true",))
    gpu = replace(gpu, isa=replace(gpu.isa, scheduled=False))
    inputs, sm = sample_inputs(name, gpu), sample_sm(name, gpu)
    simulated = sm(list(inputs.blocks)).result.cycles * inputs.sm_blocks / len(inputs.blocks)
    found = Gatsim().analyze(inputs, Options(policy=inputs.gpu.sm.policy))
    assert found.cycles == pytest.approx(simulated, rel=0.11)
    assert sum(share for _, share in found.stack) == pytest.approx(found.cpi)
    assert found.value("T") == found.cycles


def test_memory_slows_down() -> None:
    """With lines spread evenly over the sets: with Fermi's own, what issues and what waits take as long as memory."""
    even = 'l1.index="hash"'
    perfect = Gatsim().analyze(sample_inputs("stencil7", "gtx480", ("perfect_memory=true", even)))
    real = Gatsim().analyze(sample_inputs("stencil7", "gtx480", (even,)))
    assert real.cycles > 1.3 * perfect.cycles
    assert real.limiter == "the latency of memory" and real.value("misses") > 0
    assert perfect.value("misses") == 0


def test_one_warp_by_hand() -> None:
    """25 cycles to the load's address, then an L1 hit of 25 (the second load), a miss of 420, and the store's miss."""
    text = kernel_text("ld.global.f32 %f1, [%rd2];", "ld.global.f32 %f2, [%rd2];", "st.global.f32 [%rd1], %f2;", "ret;")
    inputs = inputs_of(text)
    found = Gatsim().analyze(inputs)
    assert found.value("m_L2") == 1.0 and found.value("miss") == 420
    assert (found.value("lines"), found.value("misses")) == (3, 2)
    parameters = 2 * 25  # loads from the constant cache
    regular = found.value("issued") - 2 - 3 - 1  # all but parameters, accesses and the last
    assert parameters + 25 + 2 * 420 + regular < found.cycles <= parameters + 25 + 2 * 420 + 25 * (regular + 1)


def test_the_report_shows_equation_numbers_and_result() -> None:
    model = find_model("gatsim")
    lines = model.report(model.analyze(sample_inputs("vecadd", "gtx480")))
    assert lines[0].startswith("GATSim") and "Algorithm 1" in lines[0]
    assert any(line.startswith("Alg 1 T_s = busy + idle[dependence]") for line in lines)
    assert lines[-1].startswith("note: ") is False  # nothing was assumed
    assert f"limited by {model.analyze(sample_inputs('vecadd', 'gtx480')).limiter}" in lines[-1]


def test_more_schedulers_are_not_slower_and_policies_differ() -> None:
    inputs = sample_inputs("jacobi", "gtx480")
    one = replace(inputs, gpu=replace(inputs.gpu, sm=replace(inputs.gpu.sm, schedulers=1)))
    assert Gatsim().analyze(inputs).cycles < Gatsim().analyze(one).cycles
    cycles = {policy: Gatsim().analyze(inputs, Options(policy=policy)).cycles for policy in ("lrr", "gto")}
    assert cycles["lrr"] != cycles["gto"]


def test_what_the_paper_does_not_model_is_said() -> None:
    text = kernel_text("atom.global.add.u32 %r4, [%rd1], %r1;", "ret;")
    assert any("atomics" in note for note in Gatsim().analyze(inputs_of(text)).notes)
    assert any("constants" in note for note in Gatsim().analyze(inputs_of(text)).notes)  # the parameter
    bare = inputs_of(bare_kernel_text("ret;"))
    assert any("task list" in note for note in Gatsim().analyze(replace(bare, kernel=None, trace=None)).notes)


def test_a_scheduler_that_it_does_not_know() -> None:
    found = Gatsim().analyze(inputs_of(bare_kernel_text("ret;")), Options("gto_block"))
    assert found.reason == "it schedules warps by lrr, gto, gto_launch, not by gto_block"
