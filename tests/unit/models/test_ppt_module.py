"""The PPT GPU module and its successors on launches: parts by hand, what they print, what they lack."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from model_kernels import bare_kernel_text, inputs_of, kernel_text, sample_inputs

from ppt_gpu.models.base.model import Options
from ppt_gpu.models.ppt.loop import ppt_run
from ppt_gpu.models.ppt.memory import LoadedMemory
from ppt_gpu.models.ppt.module import PptModule, ppt_sm, workload_tasks
from ppt_gpu.models.ppt.successors import PptGpu2019, PptGpu2021, launch_traffic
from ppt_gpu.models.registry import find_model
from ppt_gpu.spec import load_gpu

LOADS = ("ld.global.f32 %f1, [%rd2];", "ld.global.f32 %f2, [%rd2+4096];", "add.f32 %f3, %f1, %f2;", "ret;")


def test_units_of_an_sm() -> None:
    gpu = load_gpu("k40", ())
    sm = ppt_sm(gpu, LoadedMemory(1, 1, 0, 1), 0)
    units = dict(zip(sorted(gpu.pipes), sm.units.tolist(), strict=True))
    assert (units["fp32"], units["fp64"], units["sfu"], units["lsu"]) == (6, 2, 1, 32)
    assert (sm.schedulers, sm.issue_width) == (4, 2)


def test_the_workload_is_what_an_sm_holds() -> None:
    inputs = sample_inputs("vecadd", "k40")
    tasks = workload_tasks(inputs)
    assert len(tasks.block_warp) - 1 == inputs.resident_blocks < len(inputs.blocks)
    assert len(tasks.warp_path) == inputs.resident_warps


def test_latency_grows_with_pending_accesses_and_too_many_wait() -> None:
    inputs = inputs_of(kernel_text(*LOADS), "k40", grid=1, block=1024)  # 32 warps, 64 loads
    tasks = workload_tasks(inputs)
    free = ppt_run(tasks, ppt_sm(inputs.gpu, LoadedMemory(230, 230, 1 << 20, 1 << 20), 0)).last
    loaded = ppt_run(tasks, ppt_sm(inputs.gpu, LoadedMemory(230, 1000, 10, 100), 0)).last
    refused = ppt_run(tasks, ppt_sm(inputs.gpu, LoadedMemory(230, 230, 1, 1), 0)).last
    assert free < loaded < refused
    assert refused > 64 * 230  # one after another


def test_overlap_of_workloads() -> None:
    found = PptModule().analyze(sample_inputs("vecadd", "k40"))
    assert found.value("cap1") == 40 and found.value("start") >= 230
    assert found.value("overlap") == pytest.approx(1 - found.value("E") / found.value("C"))
    rounds = found.value("L") // found.value("S")
    rest = found.value("E") if found.value("L") % found.value("S") else 0
    assert found.cycles == pytest.approx(rounds * found.value("w_mean") + rest + found.value("trailing"))
    assert not found.notes


def test_gpus_without_published_constants_say_so() -> None:
    assert any("inferred" in note for note in PptModule().analyze(sample_inputs("vecadd", "v100")).notes)


def test_traffic_is_that_of_the_program() -> None:
    inputs = sample_inputs("transpose_naive", "gtx480")
    traffic = launch_traffic(inputs)
    assert traffic.requests == len(inputs.program.access_start) - 1
    assert traffic.loads + traffic.stores == inputs.program.access_start[-1]
    assert traffic.divergence == pytest.approx(16.5)  # a line for a load, 32 for a store


def test_2021_counts_its_first_workload() -> None:
    """The released code leaves it out (SPEC section 5.5): kept as printed, beside the corrected form."""
    inputs = sample_inputs("vecadd", "k40")
    rounds = -(-round(inputs.sm_blocks) // inputs.resident_blocks)
    corrected, literal = (PptGpu2021().analyze(inputs, Options(literal=literal)) for literal in (False, True))
    assert corrected.value("T") == corrected.value("C") * rounds <= corrected.cycles
    assert any("raised" in note for note in corrected.notes)  # by the DRAM's bandwidth, which AMAT does not see
    assert literal.cycles == literal.value("C") * (rounds - 1)
    assert any("channels" in note for note in corrected.notes)


def test_a_faster_memory_is_not_slower() -> None:
    inputs = sample_inputs("stencil7", "k40")
    fast = replace(inputs, gpu=replace(inputs.gpu, dram=replace(inputs.gpu.dram, latency=200)))
    for model in (PptGpu2019(), PptGpu2021()):
        assert model.analyze(fast).cycles <= model.analyze(inputs).cycles


def test_kernels_without_memory_take_what_they_compute() -> None:
    text = bare_kernel_text("mov.f32 %f1, 0f3F800000;", *["add.f32 %f1, %f1, %f1;"] * 20, "ret;")
    inputs = inputs_of(text, "k40")
    spans = {model.name: model.analyze(inputs).value("C") for model in (PptGpu2019(), PptGpu2021())}
    assert set(spans.values()) == {9 * 20.0}  # the move costs nothing
    assert np.isfinite(find_model("ppt").analyze(inputs).cycles)
