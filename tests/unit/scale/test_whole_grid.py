"""Level grid: every block on every SM, beside level steady."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from irregular_kernels import triangular

import ppt_gpu
import ppt_gpu.scale.levels.grid as whole_grid
from ppt_gpu.common.errors import BudgetError, PptError
from ppt_gpu.pipeline import predict_launch
from ppt_gpu.report.result.result import Result
from ppt_gpu.scale.blocks.distribution import plan
from ppt_gpu.scale.levels.grid import disagreement, small, small_prediction
from ppt_gpu.scale.occupancy.occupancy import occupancy
from ppt_gpu.scale.prediction import KernelPrediction
from ppt_gpu.sm.program.result import SmResult
from ppt_gpu.spec import load_gpu
from ppt_gpu.spec.gpu import Collectors, Gpu
from ppt_gpu.workload.budget import Budget

SAMPLES = Path(__file__).parents[3] / "tasklists"


@pytest.fixture(scope="module")
def gpu() -> Gpu:
    return load_gpu("k40", ["sm.count=3"])


def vecadd(gpu: Gpu, blocks: int, level: str, **options: object) -> Result:
    count = blocks * 256
    arguments = [f"f32[{count}]=random", f"f32[{count}]=random", f"f32[{count}]", f"i32={count}"]
    made = ppt_gpu.open_workload(str(SAMPLES / "vecadd.ptx"), grid=(blocks,), block=(256,), args=arguments)
    return ppt_gpu.predict(made, gpu, level=level, cache=False, **options)  # type: ignore[arg-type]


def test_levels_tell_the_same_of_a_regular_kernel(gpu: Gpu) -> None:
    """24 blocks on three SMs: all resident at once, reads of one another's lines none, one DRAM."""
    results = {level: vecadd(gpu, 24, level) for level in ("steady", "workload", "grid")}
    cycles = {level: float(result.launches[0].value("kernel.cycles")) for level, result in results.items()}
    assert cycles["steady"] == pytest.approx(cycles["grid"], rel=0.1)
    assert cycles["workload"] == pytest.approx(cycles["grid"], rel=0.1)
    whole = results["grid"].launches[0]
    assert whole.warnings == ()
    assert (whole.value("sim.blocks"), whole.value("sim.extrapolation")) == (24, 1)
    for tag in ("kernel.warp_instructions", "kernel.thread_instructions", "memory.dram_read_bytes", "limiter"):
        assert whole.value(tag) == results["steady"].launches[0].value(tag)
    assert any("3 SMs that share L2 and DRAM" in line for line in whole.assumptions)


def agree(sample: str, gpu: Gpu) -> None:
    """Level grid is within 5 % of level steady, which it also predicts, and so has nothing to warn of."""
    steady, grid = (ppt_gpu.predict(sample, gpu, level=level, cache=False) for level in ("steady", "grid"))
    for one, other in zip(steady.launches, grid.launches, strict=True):
        assert one.value("kernel.cycles") == pytest.approx(other.value("kernel.cycles"), rel=0.05)
        assert not any("levels differ" in text for text in other.warnings)


#: each block adds to the same 64 words: all of them in one slice of the L2
COUNT = """.version 6.0
.target sm_70
.address_size 64
.visible .entry count(.param .u64 out) {
  .reg .b32 %r<4>; .reg .b64 %d<4>;
  mov.u32 %r1, %tid.x;
  ld.param.u64 %d1, [out];
  cvta.to.global.u64 %d1, %d1;
  mul.wide.u32 %d2, %r1, 4;
  add.s64 %d3, %d1, %d2;
  atom.global.add.u32 %r2, [%d3], 1;
  ret;
}
"""


def test_where_all_sms_come_to_one_slice_behind_a_crossbar_the_launch_is_simulated_whole(tmp_path: Path) -> None:
    (tmp_path / "count.ptx").write_text(COUNT)
    made = ppt_gpu.open_workload(str(tmp_path / "count.ptx"), grid=(160,), block=(64,), args=["u32[64]"])
    steady, grid = (
        ppt_gpu.predict(made, "gpgpusim_qv100", level=level, cache=False).launches[0] for level in ("steady", "grid")
    )
    assert steady.value("kernel.cycles") == grid.value("kernel.cycles")
    assert any("wait for one another in the crossbar" in text for text in steady.assumptions)


def test_a_small_launch_of_differing_blocks_is_simulated_whole_at_level_steady() -> None:
    gpu = load_gpu("v100", ["sm.count=8"])
    survey = triangular(gpu).survey()
    assert small(survey)
    steady, grid = (predict_launch(triangular(gpu), level, survey) for level in ("steady", "grid"))
    assert steady[0].cycles == grid[0].cycles and (steady[0].plan.level, steady[0].plan.whole) == ("steady", True)
    assert steady[1].value("sim.blocks") == 600 and steady[1].value("sim.extrapolation") == 1
    assert "8 SMs that share L2 and DRAM" in steady[1].assumptions[0]
    assert "blocks differ, and the launch is small" in steady[1].assumptions[1]


def test_what_is_too_large_is_not_simulated_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = load_gpu("v100", ["sm.count=8"])
    sm = triangular(gpu)
    survey = sm.survey()
    monkeypatch.setattr(whole_grid, "SMALL", survey.grid_blocks * survey.warp_instructions)  # and some sectors
    assert not small(survey)
    assert not predict_launch(sm, "steady", survey)[0].plan.whole


def test_small_launches_are_simulated_whole_on_a_gpu_with_collector_units() -> None:
    gpu = load_gpu("gpgpusim_qv100", ["sm.count=8"])
    sm = triangular(gpu)
    found = predict_launch(sm, "steady", sm.survey())[0]
    assert found.plan.whole
    without = replace(gpu, collectors=Collectors())
    assert predict_launch(triangular(without), "steady", sm.survey())[0].cycles < found.cycles


def test_a_small_launch_whose_blocks_cannot_all_be_run_is_not_simulated_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = load_gpu("v100", ["sm.count=8"])
    sm = triangular(gpu)
    survey, lower = sm.survey(), sm.lower

    def few(blocks: list[int]) -> object:
        if len(blocks) == 600:
            raise BudgetError("too many")
        return lower(blocks)

    monkeypatch.setattr(type(sm), "lower", lambda _, blocks: few(blocks))
    assert small_prediction(sm) is None
    assert not predict_launch(sm, "steady", survey)[0].plan.whole


@pytest.mark.parametrize("kib", [384, 576])
def test_data_that_are_somewhat_larger_than_the_l2_write_back_as_much(kib: int) -> None:
    """768 KiB in three arrays. Level steady simulates all blocks of an SM here, which push out what they push out:
    nothing is to be added for blocks that are not simulated. (Waits that grow with DRAM's use would put the accesses
    of the SMs in another order, which moves 3 % of the write-backs.)"""
    gpu = load_gpu("v100", ["sm.count=8", f"l2.size={kib} KiB", "dram.loaded_latency=0"])
    written, cycles = (
        {level: float(vecadd(gpu, 256, level).launches[0].value(tag)) for level in ("steady", "grid")}
        for tag in ("memory.dram_write_bytes", "kernel.cycles")
    )
    assert written["steady"] == pytest.approx(written["grid"], rel=0.02) and written["grid"] > 60_000
    assert cycles["steady"] == pytest.approx(cycles["grid"], rel=0.1)


def test_levels_tell_the_same_of_samples(gpu: Gpu) -> None:
    agree("reduction", gpu)


@pytest.mark.slow
@pytest.mark.parametrize("sample", ["saxpy", "stencil7", "histogram"])
def test_levels_tell_the_same_of_more_samples(sample: str, gpu: Gpu) -> None:
    agree(sample, gpu)


def test_a_level_that_tells_another_story_is_named(gpu: Gpu, sm_result: Callable[..., SmResult]) -> None:
    result = sm_result([0], [1000])
    fit = occupancy(gpu, 256, 16, 0)
    grid, steady = (
        KernelPrediction(cycles, plan(30, fit, gpu, level), result, ())
        for cycles, level in ((1000.0, "grid"), (1110.0, "steady"))
    )
    assert disagreement(grid, steady) == [
        "levels differ: steady gives 1110 cycles, +11% against the 1000 of level grid"
    ]
    assert disagreement(grid, replace(steady, cycles=905.0)) == []


def test_the_overlap_rule_is_held_against_level_steady(gpu: Gpu) -> None:
    """As many blocks as fit are one workload, and both levels the same; of many more PPT's rule takes another view."""
    fits, many = (vecadd(gpu, blocks, "workload").launches[0] for blocks in (24, 2400))
    steady = vecadd(gpu, 2400, "steady").launches[0]
    assert fits.warnings == ()
    assert float(steady.value("kernel.cycles")) != pytest.approx(float(many.value("kernel.cycles")), rel=0.1)
    assert [text for text in many.warnings if text.startswith("levels differ: steady")]
    assert steady.warnings == ()


def test_the_budget_of_the_functional_run_is_named(gpu: Gpu) -> None:
    with pytest.raises(BudgetError, match="instruction budget of 100 warp instructions"):
        vecadd(gpu, 30, "grid", budget=Budget(instructions=100))


def test_no_window_of_one_sm(gpu: Gpu) -> None:
    from ppt_gpu.sm.reference.recording import Window

    with pytest.raises(PptError, match="level grid records no window"):
        vecadd(gpu, 30, "grid", window=Window(0, 10))


def test_the_plan_has_all_blocks_of_all_sms(gpu: Gpu) -> None:
    chosen = plan(10, occupancy(gpu, 256, 16, 0), gpu, "grid")
    assert chosen.blocks == tuple(range(10))
    assert (chosen.exact, chosen.simulated_sms, chosen.factor, chosen.chip_factor) == (True, 3, 1.0, 1.0)
    assert chosen.sm_blocks == pytest.approx(10 / 3)
