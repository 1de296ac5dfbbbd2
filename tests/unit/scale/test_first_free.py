"""The SM whose slots are free first, and the blocks that it gets."""

from dataclasses import replace

import numpy as np
import pytest

from ppt_gpu.scale.blocks.distribution import plan_of, spread_grid
from ppt_gpu.scale.levels.long_launch import first_free
from ppt_gpu.spec import load_gpu
from ppt_gpu.spec.gpu import Gpu

V100 = load_gpu("v100")
SPREAD = spread_grid(1024, 8, 80)  # 12.8 blocks for an SM that holds 8


def _ends(first: int, apart: int) -> np.ndarray:
    """Of 13 blocks: eight that began together, then five that took the slots of the first."""
    began_together = first + apart * np.arange(8)
    return np.concatenate([began_together, began_together[:5] + first])


def _most(ends: np.ndarray, gpu: Gpu = V100) -> int:
    return SPREAD.resident + len(first_free(ends, SPREAD, gpu).later_blocks)


@pytest.mark.parametrize("apart", [300, 600, 1000])
def test_blocks_that_end_far_apart_are_shared_out_evenly(apart: int) -> None:
    assert _most(_ends(10_000, apart)) == SPREAD.max_blocks == 13


def test_the_closer_blocks_end_the_more_an_sm_gets() -> None:
    found = [_ends(10_000, apart) for apart in (500, 100, 50, 10)]
    most = [_most(ends) for ends in found]
    assert most == sorted(most) and most[-1] > 14
    assert all(0.0 <= first_free(ends, SPREAD, V100).earlier <= V100.dram.latency for ends in found)


def test_with_perfect_memory_sms_are_as_far_apart_as_their_first_blocks() -> None:
    ends = _ends(10_000, 300)
    perfect = replace(V100, perfect_memory=True)
    assert _most(ends, perfect) == 13
    at_once = replace(perfect, host=replace(perfect.host, blocks_per_cycle=0.0))
    assert first_free(ends, SPREAD, at_once).earlier == 0.0


def test_it_gets_the_blocks_that_are_due_when_its_slots_are_free() -> None:
    later = first_free(_ends(10_000, 1000), SPREAD, V100).later_blocks
    assert [block // 80 for block in later] == [8, 9, 10, 11, 12]  # one in each round of all SMs


def test_the_simulated_sm_has_them_behind_its_first_wave() -> None:
    later = first_free(_ends(10_000, 50), SPREAD, V100).later_blocks
    spread = replace(SPREAD, max_blocks=8 + len(later), later_blocks=later)
    made = plan_of(spread, waves=99, sm=3)
    assert made.blocks == (*range(3, 640, 80), *later) and made.exact
    assert sorted(set(made.blocks)) == list(made.blocks) and made.blocks[-1] < 1024
    assert made.total_blocks_of_this_sm == spread.max_blocks
