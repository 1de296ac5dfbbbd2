"""The survey of a grid: it looks closer where blocks differ, and knows how well it knows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from irregular_kernels import bfs, boundary, launch_sm, mandelbrot, triangular

from ppt_gpu.common.errors import PptError
from ppt_gpu.emulator.trace.block_features import BlockFeatures, features_of, run_features
from ppt_gpu.emulator.trace.trace import Trace
from ppt_gpu.scale.blocks.distribution import spread_grid
from ppt_gpu.scale.blocks.survey import MOST, TOLERANCE, standing_sm, survey_grid
from ppt_gpu.spec import load_gpu

GPU = load_gpu("v100", ["sm.count=4"])


def test_features_are_counts_of_the_trace() -> None:
    sm = launch_sm(GPU, "plain", (3,), (64,), [np.zeros(192, np.float32), np.zeros(192, np.float32), 160])
    trace = sm.traces.run([2, 0])
    found = features_of(trace)
    assert found.blocks.tolist() == [2, 0]
    assert found.warp_instructions.sum() == trace.warp_instructions
    assert found.thread_instructions.sum() == trace.thread_instructions
    assert found.longest[1] * 2 == found.warp_instructions[1]
    assert found.sectors.tolist() == [8, 16]  # 32 lanes of 4 B are 4 sectors, read and written; half of block 2 is cut


def test_triangular_blocks_by_formula() -> None:
    sm = triangular(GPU, 50)
    found = sm.survey("all")
    steps = np.diff(found.features.warp_instructions)
    assert found.whole and found.irregular and found.error == 0
    assert np.all(steps[20:] > 0)
    by_block = [sm.traces.run([block]).warp_instructions for block in (0, 13, 49)]
    assert found.features.warp_instructions[[0, 13, 49]].tolist() == by_block


def test_regular_blocks_are_looked_at_once() -> None:
    count = 64 * 60_000
    field = np.zeros(count, np.float32)
    sm = launch_sm(GPU, "plain", (60_000,), (64,), [field, field, count])
    found = sm.survey()
    assert not found.irregular and not found.whole and len(found.clusters) == 1
    assert len(found.features) < 40 and found.error == 0


def test_a_last_block_that_does_less_makes_no_grid_irregular() -> None:
    """Of 100 blocks, one with a warp of two; of 20 it would be one in twenty."""
    for blocks, irregular in ((100, False), (20, True)):
        count = 64 * blocks - 33
        field = np.zeros(count, np.float32)
        found = launch_sm(GPU, "plain", (blocks,), (64,), [field, field, count]).survey("all")
        assert found.sector_variation > 0.04 and found.irregular is irregular


def test_a_landmark_that_does_far_more_shows_that_a_sample_is_not_enough() -> None:
    """One block in 64 is 40 times as long: none is in the first look, but the last block of the grid is one."""
    launch = replace(triangular(GPU, 4096).launch, grid=(4096, 1, 1))

    def look(blocks: Sequence[int]) -> BlockFeatures:
        ids = np.array(sorted(blocks), np.int64)
        work = np.where(ids % 64 == 63, 40_000, 1_000)
        return BlockFeatures(ids, work, 32 * work, work // 4, work)

    found = survey_grid(look, launch, "sample")
    assert found.whole and found.irregular and found.warp_instructions == pytest.approx(1000 * (63 + 40) / 64)
    assert not survey_grid(look, replace(launch, grid=(4095, 1, 1)), "sample").irregular  # nobody knows


def test_the_sample_grows_until_the_mean_is_known() -> None:
    sm = triangular(GPU, 2400)
    found = sm.survey()
    assert found.irregular and not found.whole and found.error <= TOLERANCE
    assert found.features.thread_instructions.sum() < MOST
    whole = sm.survey("all").features.warp_instructions.mean()
    assert abs(found.warp_instructions / whole - 1) < 4 * found.error + 1e-3


def test_a_number_of_blocks() -> None:
    sm = mandelbrot(GPU)
    few, more = sm.survey(16), sm.survey(256)
    assert len(few.features) == 16 and len(more.features) == 256 and more.error < few.error
    whole = sm.survey("all").warp_instructions
    assert abs(more.warp_instructions / whole - 1) < 3 * more.error
    assert len(sm.survey(10**6).features) == 1024
    for wrong in (0, "some"):
        with pytest.raises(PptError, match="blocks to look at"):
            sm.survey(wrong)


@pytest.mark.parametrize("kernel", [bfs, boundary])
def test_rare_kinds_of_blocks_are_found(kernel) -> None:
    found = kernel(GPU).survey()
    assert found.irregular and len(found.clusters) >= 2 and found.clusters.share.sum() == pytest.approx(1)


def test_a_whole_grid_runs_in_chunks() -> None:
    sm = mandelbrot(GPU, most=8000)
    asked: list[int] = []

    def run_blocks(blocks: Sequence[int]) -> Trace:
        asked.append(len(blocks))
        return sm.traces.run(blocks)

    found = run_features(run_blocks, range(sm.launch.blocks))
    assert asked[:3] == [32, 64, 128] and sum(asked) == len(found) == sm.launch.blocks
    assert max(asked) < sm.launch.blocks / 2
    assert np.array_equal(found.warp_instructions, features_of(sm.traces.run(range(1024))).warp_instructions)


def test_features_are_kept() -> None:
    sm = triangular(GPU, 50)
    first = sm.survey()
    sm.traces._execute = None  # type: ignore[method-assign,assignment]
    again = sm.survey()
    assert again.error == first.error and np.array_equal(again.features.blocks, first.features.blocks)


@pytest.mark.parametrize(
    ("idle", "blocks", "sm"),
    [([], 150, 0), ([0, 149], 150, 1), ([0, 1, 3], 150, 2), ([149], 150, 0), ([0], 40 * 40, 1), ([0], 400 * 40, 0)],
)
def test_an_sm_with_one_of_the_few_blocks_that_do_less_does_not_stand_for_the_chip(
    idle: list[int], blocks: int, sm: int
) -> None:
    """Block 0 of a stencil's border may return at once: of 40 SMs, SM 0 runs it, one of its four blocks. Of 400
    blocks one more or less is nothing."""

    def look(ids: Sequence[int]) -> BlockFeatures:
        numbers = np.array(ids)
        work = np.where(np.isin(numbers, idle), 10, 1000)
        return BlockFeatures(numbers, work, 32 * work, work // 8, work)

    launch = launch_sm(GPU, "plain", (blocks,), (64,), [np.zeros(1, np.float32), np.zeros(1, np.float32), 0]).launch
    survey = survey_grid(look, launch, "all")
    assert not survey.irregular
    assert standing_sm(survey, spread_grid(blocks, 8, 40), launch.grid) == sm


def test_in_a_short_launch_an_sm_away_from_the_edges_stands_for_the_chip() -> None:
    """16 SMs, rows of 16 blocks: SM 0 has the left edge alone, where blocks touch less memory, as many accesses as they
    make. The last row does less, so that blocks differ; each SM has one of it."""

    def look(ids: Sequence[int]) -> BlockFeatures:
        numbers = np.array(ids)
        work = np.where(numbers >= 16 * 7, 960, 1000)
        return BlockFeatures(numbers, work, 32 * work, work // 8, work)

    arguments = [np.zeros(1, np.float32), np.zeros(1, np.float32), 0]
    launch = launch_sm(GPU, "plain", (16, 8), (64,), arguments).launch
    survey = survey_grid(look, launch, "all")
    assert not survey.irregular
    assert standing_sm(survey, spread_grid(launch.blocks, 8, 16), launch.grid) == 1


@pytest.mark.parametrize(
    ("rows", "resident", "sm"),
    [
        (24, 8, 1),  # three waves: SM 0 has the left edge alone, and it is in one of 16 columns
        (23, 8, 0),  # fewer: which SM runs which column is as it began, and SM 0 has the most to do
        (24, 24, 0),
    ],
)
def test_in_a_long_launch_no_sm_has_the_edge_of_the_grid_to_itself(rows: int, resident: int, sm: int) -> None:
    """16 SMs, rows of 16 blocks; those at the left edge do 4 % more, so that no block differs by more than is alike."""

    def look(ids: Sequence[int]) -> BlockFeatures:
        numbers = np.array(ids)
        work = np.where(numbers % 16 == 0, 1040, 1000)
        return BlockFeatures(numbers, work, 32 * work, work // 8, work)

    arguments = [np.zeros(1, np.float32), np.zeros(1, np.float32), 0]
    launch = launch_sm(GPU, "plain", (16, rows), (64,), arguments).launch
    survey = survey_grid(look, launch, "all")
    assert not survey.irregular
    assert standing_sm(survey, spread_grid(launch.blocks, resident, 16), launch.grid) == sm
