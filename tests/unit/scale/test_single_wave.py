"""A launch of one wave whose blocks differ: held against every SM with its own blocks, and against the whole chip."""

from __future__ import annotations

from dataclasses import replace

import pytest
from irregular_kernels import bfs, boundary, mandelbrot, spmv, triangular, whole_chip

from ppt_gpu.bounds.bounds import bounds
from ppt_gpu.scale.levels.single_wave import single_wave_prediction
from ppt_gpu.scale.simulated_sm import TraceSm
from ppt_gpu.spec import load_gpu

GPU = load_gpu("v100", ["sm.count=24"])
LAUNCHES = {
    "triangular": lambda: triangular(GPU, 90),
    "triangular backwards": lambda: triangular(GPU, 90, backwards=1),
    "mandelbrot": lambda: mandelbrot(GPU, 160),
    "bfs": lambda: bfs(GPU, 100),
    "boundary": lambda: boundary(GPU, 8, 12),
}


def every_sm(sm: TraceSm) -> list[int]:
    """Cycles of each SM with its blocks."""
    sm = replace(sm, one_wave=True)
    return [sm(sm.spread.sm_blocks(number)).result.cycles for number in range(sm.spread.active_sms)]


@pytest.mark.parametrize("name", LAUNCHES)
def test_the_slowest_sm_counts(name: str) -> None:
    sm = LAUNCHES[name]()
    assert sm.spread.max_blocks <= sm.spread.resident and sm.survey().irregular
    found = single_wave_prediction(sm, sm.survey())
    slowest = max(every_sm(sm))
    assert found.cycles <= found.result.cycles <= slowest
    assert found.result.cycles == pytest.approx(slowest, rel=0.03)
    assert found.plan.blocks == tuple(sm.spread.sm_blocks(found.plan.sm)) and found.exact
    assert "all are resident at once" in found.assumptions[0]


@pytest.mark.parametrize("name", ["triangular", "mandelbrot", "bfs"])
def test_as_the_whole_chip(name: str) -> None:
    sm = LAUNCHES[name]()
    found = single_wave_prediction(sm, sm.survey())
    assert found.cycles == pytest.approx(whole_chip(LAUNCHES[name]()), rel=0.1)


@pytest.mark.slow
def test_of_many_long_warps_the_slowest_counts() -> None:
    """Rows up to one limit make the longest warps of many SMs alike; what they wait for in memory does not."""
    sm = spmv(load_gpu("v100", ["sm.count=80"]), 80)
    found = single_wave_prediction(sm, sm.survey())
    assert found.cycles == pytest.approx(max(every_sm(sm)), rel=0.01)  # of six SMs the slowest: 7.5 % less
    assert " others, which have the most to do" in found.assumptions[0]


def test_counts_stand_for_the_grid() -> None:
    """The SM that has the most to do has more than its share."""
    sm = LAUNCHES["triangular"]()
    found = single_wave_prediction(sm, sm.survey())
    own = int(found.simulation.feed.features.warp_instructions.sum())
    whole = int(sm.survey("all").features.warp_instructions.sum())
    assert own * found.plan.chip_factor == pytest.approx(whole)


@pytest.mark.parametrize("name", LAUNCHES)
def test_bounds_are_those_of_the_slowest_sm(name: str) -> None:
    """It ran whole: what it issued needs issue slots of its own, and the chip moves what the whole grid does."""
    sm = LAUNCHES[name]()
    found = single_wave_prediction(sm, sm.survey())
    plan, own = found.plan, len(found.plan.blocks)
    floors = {
        bound.resource: bound
        for bound in bounds(
            found.simulation.work, found.result, GPU, resident=sm.spread.resident, active_sms=sm.spread.active_sms,
            sm_blocks=plan.sm_blocks, grid_blocks=plan.grid_blocks,
        )
    }  # fmt: skip
    slots = GPU.sm.schedulers * GPU.sm.issue_width
    assert plan.sm_blocks >= own and floors["issue slots"].cycles >= found.result.issued / slots
    if plan.grid_blocks <= own * sm.spread.active_sms:  # it does more than the mean
        assert plan.sm_blocks == own and plan.factor == 1
        assert max(bound.cycles for bound in floors.values()) <= found.cycles
    read = found.result.dram_read_bytes + found.result.dram_write_bytes
    chip = floors["DRAM bandwidth"].cycles * GPU.dram_bytes_per_cycle if read else 0
    assert chip == pytest.approx(read * plan.chip_factor)


def test_a_sample_of_the_blocks_finds_a_slow_sm() -> None:
    sm = LAUNCHES["triangular"]()
    found = single_wave_prediction(sm, sm.survey(30))
    assert found.cycles == pytest.approx(max(every_sm(sm)), rel=0.1) and found.error > 0
