from __future__ import annotations

import numpy as np
import pytest

from ppt_gpu.common.errors import PptError
from ppt_gpu.scale.blocks.distribution import plan, spread_grid, typical_sm
from ppt_gpu.scale.blocks.neighbours import neighbour_blocks


def test_large_grid_fills_every_sm() -> None:
    spread = spread_grid(1000, 8, 15)
    assert (spread.active_sms, spread.resident, spread.max_blocks) == (15, 8, 67)
    assert spread.mean_blocks == pytest.approx(66.667, abs=1e-3)
    assert spread.sm_blocks(0, 3) == [0, 15, 30]
    assert spread.sm_blocks(14)[-1] == 989


def test_small_grid_is_spread_evenly() -> None:
    spread = spread_grid(20, 8, 15)
    assert (spread.active_sms, spread.resident, spread.max_blocks) == (15, 2, 2)
    assert spread.sm_blocks(0) == [0, 15] and spread.sm_blocks(7) == [7]
    tiny = spread_grid(4, 8, 15)
    assert (tiny.active_sms, tiny.resident, tiny.max_blocks) == (4, 1, 1)
    assert tiny.sm_blocks(9) == []


def test_every_block_runs_exactly_once() -> None:
    spread = spread_grid(101, 4, 15)
    ids = [block for sm in range(15) for block in spread.sm_blocks(sm)]
    assert sorted(ids) == list(range(101))


def test_blocks_that_end_together_are_followed_by_as_many_in_a_row(chip, holding) -> None:
    spread = spread_grid(15 * 4 * 3 + 10, 4, 15, bunched=True)  # three waves, and ten blocks more
    assert spread.sm_blocks(0) == [0, 15, 30, 45, 60, 61, 62, 63, 120, 121, 122, 123, 180, 181, 182, 183]
    assert spread.sm_blocks(2)[-2:] == [188, 189] and len(spread.sm_blocks(3)) == 12
    assert spread.max_blocks == 16 and spread.mean_blocks == pytest.approx(190 / 15)
    made = plan(190, holding(4), chip(15), "steady", 9, bunched=True)
    assert made.exact and made.blocks == tuple(spread.sm_blocks(0))


def test_a_first_wave_is_never_in_a_row() -> None:
    assert spread_grid(45, 4, 15, bunched=True).sm_blocks(1) == [1, 16, 31]


def test_blocks_begin_with_the_nearest_ones_of_an_sm() -> None:
    """Of 8 SMs that hold two: SM 0 begins 16, 24, ... behind the first wave; 20 lies between 16 and 24, 19 before."""
    spread = spread_grid(80, 2, 8)
    blocks = np.array([0, 7, 8, 15, 16, 19, 20, 23, 24, 27, 28])
    assert spread.turns(blocks, 0).tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 3, 3, 4]
    assert spread.turns(blocks, 4).tolist() == [0, 0, 1, 1, 2, 2, 2, 2, 3, 3, 3]
    for sm in (0, 3, 7):
        own = np.array(spread.sm_blocks(sm))
        assert spread.turns(own, sm).tolist() == list(range(10))
        inner = own[2:-1]  # their neighbours begin with them, on whichever SM
        assert np.array_equal(spread.turns(inner - 1, sm)[1:], spread.turns(inner + 1, sm)[1:])


@pytest.mark.parametrize(
    ("grid", "sm", "typical"),
    [
        ((16, 64, 1), 0, 1),  # the left edge alone
        ((16, 64, 1), 15, 1),
        ((16, 64, 1), 7, 7),  # as near as any inner column
        ((17, 64, 1), 0, 0),  # every column, one after another
        ((4, 64, 1), 0, 1),  # the corner; either edges or none elsewhere, as far from half of them
        ((2, 512, 1), 0, 0),  # no inner columns
        ((1024, 1, 1), 0, 0),
        ((8, 129, 1), 7, 1),
    ],
)
def test_a_typical_sm_has_its_share_of_the_edges(grid: tuple[int, int, int], sm: int, typical: int) -> None:
    blocks = grid[0] * grid[1] * grid[2]
    assert typical_sm(spread_grid(blocks, 8, 16), grid, sm) == typical


def test_neighbours_of_blocks_in_a_row_are_other_rows() -> None:
    spread = spread_grid(15 * 4 * 4, 4, 15, bunched=True)
    found = neighbour_blocks(spread, spread.sm_blocks(5)[4:8], (240, 1, 1), 14)
    assert [other.block for other in found] == [*range(60, 80), *range(84, 120)]
    assert {other.offset for other in found if other.block in range(84, 88)} == {1}


def test_steady_plan_takes_successive_waves_from_the_middle_and_the_true_last_one(chip, holding) -> None:
    made = plan(15 * 42, holding(4), chip(15), "steady", 3)  # 42 blocks per SM: 10 waves of 4 and 2 more
    assert made.total_blocks_of_this_sm == 42 and not made.exact
    assert made.waves == 3 and len(made.blocks) == 3 * 4 + 2
    positions = [block // 15 for block in made.blocks]
    assert positions == [*range(12, 24), 40, 41]
    assert made.factor == 42 / 14
    assert made.chip_factor == 630 / 14


def test_plan_is_exact_when_the_waves_cover_the_sm(chip, holding) -> None:
    made = plan(15 * 12, holding(4), chip(15), "steady", 3)
    assert made.exact and made.blocks == tuple(range(0, 180, 15))
    assert plan(15 * 100, holding(4), chip(15), "grid").exact


def test_workload_plan_is_the_first_wave(chip, holding) -> None:
    made = plan(15 * 100, holding(4), chip(15), "workload")
    assert made.blocks == (0, 15, 30, 45) and not made.exact
    assert plan(7, holding(4), chip(15), "workload").exact


def test_neighbours_run_beside_the_blocks() -> None:
    found = neighbour_blocks(spread_grid(15 * 100, 2, 15), (0, 15), (1500, 1, 1), 4)
    assert len(found) == 4 * 2 and {other.block // 15 for other in found} == {0, 1}
    assert all(other.offset == other.block % 15 for other in found)
    assert neighbour_blocks(spread_grid(1, 2, 15), (0,), (1, 1, 1)) == []
    all_others = neighbour_blocks(spread_grid(16, 2, 15), (0, 15), (16, 1, 1), 99)
    assert [other.block for other in all_others] == list(range(1, 15))
    assert {other.stands_for for other in all_others} == {1.0}


@pytest.mark.parametrize(
    ("samples", "near"), [(8, {1, 79, 4, 76}), (10, {1, 79, 4, 76, 64, 16}), (12, {1, 79, 4, 76, 64, 16}), (2, {1})]
)
def test_neighbours_along_the_grid_stand_for_themselves(samples: int, near: set[int]) -> None:
    """Along x and y, and along z where samples are left for the others, which stand for the rest."""
    found = neighbour_blocks(spread_grid(80 * 40, 1, 80), (800,), (4, 16, 50), samples)
    weight = {other.offset: other.stands_for for other in found}
    assert {offset for offset, stands_for in weight.items() if stands_for == 1} == near
    assert len(weight) == samples and sum(weight.values()) == pytest.approx(79)


def test_sms_that_stand_for_others_run_no_block_next_to_these() -> None:
    """Nor one across an edge or a corner, unless all SMs are sampled."""
    found = {other.offset for other in neighbour_blocks(spread_grid(80 * 40, 1, 80), (800,), (30, 100, 1), 40)}
    assert found.isdisjoint({29, 31, 49, 51}) and {1, 79, 30, 50} <= found
    found = {other.offset for other in neighbour_blocks(spread_grid(15 * 40, 1, 15), (300,), (30, 20, 1), 14)}
    assert found == set(range(1, 15))


@pytest.mark.parametrize("samples", [6, 8, 12])
def test_rows_and_columns_of_blocks_are_each_sampled(samples: int) -> None:
    """Blocks of 16 x 16, as in a product: a row shares a tile of one factor, a column of the other."""
    spread = spread_grid(256, 2, 108)
    own = spread.sm_blocks(40)
    found = [other for other in neighbour_blocks(spread, own, (16, 16, 1), samples) if other.stands_for > 1]
    in_row = {other.offset for other in found if any(other.block // 16 == block // 16 for block in own)}
    in_column = {other.offset for other in found if any(other.block % 16 == block % 16 for block in own)}
    weight = {other.offset: other.stands_for for other in found}
    near = max(samples - 4, samples // 2, 1)
    assert sum(weight.values()) == pytest.approx(107 - min(near, 4))
    rows, columns = (sum(weight[offset] for offset in each) for each in (in_row, in_column))
    true_rows = {
        o for o in range(1, 108) if any(spread.block((40 + o) % 108, p) // 16 == b // 16 for b in own for p in (0, 1))
    }
    true_columns = {
        o for o in range(1, 108) if any(spread.block((40 + o) % 108, p) % 16 == b % 16 for b in own for p in (0, 1))
    }
    assert rows > len(true_rows) / 3 and columns > len(true_columns) / 3


def test_samples_are_not_all_an_even_number_apart() -> None:
    """Blocks of the same rank in clusters of eight are eight apart; half of the SMs are sampled."""
    found = {other.offset for other in neighbour_blocks(spread_grid(112, 1, 112), (0,), (112, 1, 1), 56)}
    assert 4 <= sum(offset % 8 == 0 for offset in found) <= 10


def test_one_neighbour_stands_for_all() -> None:
    (other,) = neighbour_blocks(spread_grid(80, 1, 80), (0,), (80, 1, 1), 1)
    assert (other.block, other.stands_for) == (1, 79)


def test_neighbours_of_blocks_of_several_sms_are_counted_by_distance() -> None:
    found = neighbour_blocks(spread_grid(40, 2, 4), (5, 10), (40, 1, 1), 99)  # SM 1 and SM 2
    assert [other[:2] for other in found] == [(4, 3), (6, 1), (7, 2), (8, 2), (9, 3), (11, 1)]


def test_bad_plans_are_named(chip, holding) -> None:
    with pytest.raises(PptError, match="unknown level 'stedy'") as caught:
        plan(10, holding(1), chip(2), "stedy")
    assert "did you mean 'steady'" in str(caught.value)
    with pytest.raises(PptError, match="grid of 0 blocks"):
        plan(0, holding(1), chip(2))
    with pytest.raises(PptError, match="SM 5 runs no block"):
        plan(3, holding(1), chip(15), sm=5)
    with pytest.raises(PptError, match="0 waves"):
        plan(3, holding(1), chip(15), waves=0)
