"""Kernels whose blocks differ: predicted from a mix of blocks, held against every block simulated on its own SM.

The whole grid is simulated SM by SM with the blocks that the dispatch gives it. What a level that takes all blocks for
alike predicts stands beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest
from irregular_kernels import KERNELS, Whole, chains, ragged_copy, rounds, triangular, whole_chip, whole_grid
from some_examples import one_in

import ppt_gpu.scale.levels.irregular as irregular
from ppt_gpu.scale.blocks.distribution import plan
from ppt_gpu.scale.blocks.representative_blocks import mixed_blocks
from ppt_gpu.scale.levels.irregular import irregular_prediction
from ppt_gpu.scale.levels.steady import AFFORDABLE
from ppt_gpu.scale.levels.workload import workload_prediction
from ppt_gpu.scale.prediction import KernelPrediction
from ppt_gpu.scale.simulated_sm import TraceSm
from ppt_gpu.spec import load_gpu
from ppt_gpu.spec.gpu import Gpu

GPUS = {"v100": load_gpu("v100", ["sm.count=8"]), "k40": load_gpu("k40", ["sm.count=4"])}

#: an eighth of each
FEW = {
    "v100": load_gpu("v100", ["sm.count=10", "dram.bandwidth=112.5 GB/s", "l2.bandwidth=217"]),
    "rtx4090": load_gpu("rtx4090", ["sm.count=16", "dram.bandwidth=126 GB/s", "l2.bandwidth=245"]),
}


@cache
def outcome(kernel: str, gpu: str) -> tuple[KernelPrediction, KernelPrediction, Whole]:
    """(the mix, the first wave extrapolated, the truth)."""
    sm = KERNELS[kernel](GPUS[gpu])
    mixed = irregular_prediction(sm, sm.survey())
    first = plan(sm.launch.blocks, sm.occupancy, GPUS[gpu], "workload")
    wave = workload_prediction(sm(list(first.blocks)).result, first)
    return mixed, wave, whole_grid(sm)


@pytest.mark.parametrize("gpu", one_in(2, GPUS))
@pytest.mark.parametrize("kernel", one_in(2, KERNELS))
def test_time_of_the_whole_grid(kernel: str, gpu: str) -> None:
    mixed, _, whole = outcome(kernel, gpu)
    truth = whole_chip(KERNELS[kernel](GPUS[gpu])) if kernel == "boundary" else whole.cycles
    assert mixed.cycles == pytest.approx(truth, rel=0.08)


@pytest.mark.parametrize("kernel", KERNELS)
def test_work_of_the_whole_grid(kernel: str) -> None:
    sm = KERNELS[kernel](GPUS["v100"])
    whole = outcome(kernel, "v100")[2].features.warp_instructions.mean()
    assert sm.survey().warp_instructions == pytest.approx(whole, rel=0.02)
    few = sm.survey(64)
    assert abs(few.warp_instructions / whole - 1) < 3 * few.error


@pytest.mark.parametrize("kernel", ["triangular", "triangular backwards", "mandelbrot", "bfs"])
def test_the_first_wave_alone_is_wrong(kernel: str) -> None:
    mixed, wave, whole = outcome(kernel, "v100")
    assert abs(wave.cycles / whole.cycles - 1) > 0.5 > 5 * abs(mixed.cycles / whole.cycles - 1)


@pytest.mark.parametrize("kernel", ["triangular", "mandelbrot", "boundary"])
def test_a_sample_is_enough(kernel: str) -> None:
    """Without looking at most of the blocks."""
    sm = KERNELS[kernel](GPUS["v100"])
    survey = sm.survey(100)
    assert not survey.whole
    found = irregular_prediction(sm, survey)
    assert found.cycles == pytest.approx(outcome(kernel, "v100")[2].cycles, rel=0.1 + 2 * survey.error)
    assert found.error == survey.error > 0


@pytest.mark.slow
def test_sorted_work_ends_late() -> None:
    """The same blocks, longest last, take longer than longest first; a mean over the blocks sees no difference."""
    gpu = load_gpu("v100", ["sm.count=20"])
    forward, backward = (triangular(gpu, 700, backwards) for backwards in (0, 1))
    late, early = (irregular_prediction(sm, sm.survey()) for sm in (forward, backward))
    assert late.cycles > 1.02 * early.cycles
    assert (whole_grid(forward).cycles, whole_grid(backward).cycles) == (
        pytest.approx(late.cycles, rel=0.02),
        pytest.approx(early.cycles, rel=0.02),
    )


def test_the_mix_follows_the_shares_of_the_kinds() -> None:
    sm = KERNELS["mandelbrot"](GPUS["v100"])
    survey = sm.survey()
    blocks = mixed_blocks(sm.spread, survey, AFFORDABLE)
    assert len(blocks) == len(set(blocks)) < sm.launch.blocks
    kind = survey.clusters.member[blocks]  # all were surveyed: position is id
    for number, share in enumerate(survey.clusters.share):
        assert (kind == number).mean() == pytest.approx(share, abs=0.08)
    assert int(survey.features.longest.argmax()) in blocks


def test_counts_are_scaled_by_work() -> None:
    mixed, _, whole = outcome("mandelbrot", "v100")
    work = whole.features.warp_instructions  # position is id
    assert mixed.plan.chip_factor * work[list(mixed.plan.blocks)].sum() == pytest.approx(work.sum())
    assert mixed.plan.factor == pytest.approx(mixed.plan.chip_factor / 8)


@pytest.mark.parametrize("gpu", ["v100", "rtx4090"])
@pytest.mark.parametrize("kernel", [ragged_copy, chains])
def test_the_last_blocks_wait_for_latencies_only(kernel: Callable[[Gpu], TraceSm], gpu: str) -> None:
    """Few long blocks among short ones that fill memory, beside the whole chip.

    What finished SMs left was taken off as if the last blocks waited for bandwidth: ragged copies -12 and -20 %.
    """
    few = FEW[gpu]
    sm = kernel(few)
    found = irregular_prediction(sm, sm.survey())
    assert found.cycles == pytest.approx(whole_chip(kernel(few)), rel=0.10)
    assert any("waits for bandwidth" in text for text in found.assumptions)


def test_young_blocks_that_wait_for_old_ones_are_not_long() -> None:
    """Under `gto_block` a short block beside a long one takes as long as it; all like it would count for long ones."""
    gpu = FEW["rtx4090"]
    assert gpu.sm.policy == "gto_block"
    sm = rounds(gpu)
    found = irregular_prediction(sm, sm.survey())
    assert found.cycles == pytest.approx(whole_chip(rounds(gpu)), rel=0.15)


def test_a_grid_too_large_to_dispatch_block_by_block(monkeypatch) -> None:
    sm = KERNELS["mandelbrot"](GPUS["v100"])
    survey = sm.survey()
    every = irregular_prediction(sm, survey).cycles
    monkeypatch.setattr(irregular, "DISPATCHED", 300)
    assert irregular_prediction(sm, survey).cycles == pytest.approx(every, rel=0.05)
