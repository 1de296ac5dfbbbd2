from __future__ import annotations

import pytest
from timed import timed

from ppt_gpu.common.errors import PptError
from ppt_gpu.scale.blocks.distribution import plan
from ppt_gpu.scale.levels.steady import extrapolate_steady, in_bunches, steady_prediction, wave_durations


def lockstep(durations: list[int], resident: int, rest: int, rest_duration: int) -> list[int]:
    """Block ends of waves in lock-step, and of a last, partial wave."""
    ends, now = [], 0
    for duration in durations:
        now += duration
        ends += [now] * resident
    return ends + [now + rest_duration] * rest


def test_waves_in_lockstep_and_a_short_last_wave(chip, holding, sm_result) -> None:
    made = plan(15 * 42, holding(4), chip(15), "steady", 5)
    ends = lockstep([130, 100, 100, 100, 100], 4, 2, 60)
    found = extrapolate_steady(sm_result([0] * len(ends), ends, trailing=7), made)
    assert found.cycles == 130 + 9 * 100 + 60 + 7  # 10 full waves, the partial one, the last stores
    assert (found.convergence, found.error, found.wave_cycles) == (0, 0, 100)
    assert found.simulated_blocks == 22 and found.factor == 42 / 22


def test_staggered_blocks(chip, holding, sm_result) -> None:
    """4 slots, blocks of 100 cycles, slot s starts at 25 s: a completion every 25 cycles."""
    made = plan(15 * 40, holding(4), chip(15), "steady", 3)
    ends = [100 + 25 * block for block in range(12)]
    found = extrapolate_steady(sm_result([end - 100 for end in ends], ends), made)
    assert wave_durations(found.result, 4) == [175, 100]
    assert found.wave_cycles == 100
    assert found.cycles == 100 + 25 * 39  # the last of 40 completions


def test_the_transient_is_dropped_when_the_end_is_steady(chip, holding, sm_result) -> None:
    made = plan(15 * 400, holding(4), chip(15), "steady", 8)
    ends = lockstep([200, 160, 120, 100, 100, 100, 100, 100], 4, 0, 0)
    found = extrapolate_steady(sm_result([0] * 32, ends), made)
    assert found.wave_cycles == 100
    assert found.cycles == 980 + 92 * 100


def test_unsteady_waves_use_the_mean_and_say_so(chip, holding, sm_result) -> None:
    made = plan(15 * 400, holding(4), chip(15), "steady", 5)
    ends = lockstep([100, 110, 150, 130, 100], 4, 0, 0)
    found = extrapolate_steady(sm_result([0] * 20, ends), made)
    assert found.wave_cycles == pytest.approx(130)
    assert found.error > 0.05 and "not steady" in found.assumptions[0]


def test_all_blocks_simulated_is_exact(chip, holding, sm_result) -> None:
    made = plan(15 * 3, holding(4), chip(15))
    found = extrapolate_steady(sm_result([0] * 3, [90, 95, 99], trailing=3), made)
    assert found.cycles == 102 and found.exact and found.factor == 1


def test_driver_adds_waves_until_steady(chip, holding, sm_result) -> None:
    asked = []

    def run(blocks: list[int]) -> object:
        asked.append(len(blocks))
        waves = len(blocks) // 4
        return sm_result([0] * len(blocks), lockstep(([150 - 5 * i for i in range(10)] + [100] * 30)[:waves], 4, 0, 0))

    found = steady_prediction(timed(run), 15 * 400, holding(4), chip(15))
    assert asked == [36, 68, 132]
    assert found.cycles == sum(150 - 5 * i for i in range(10)) + 90 * 100


def test_driver_stops_at_the_whole_sm(chip, holding, sm_result) -> None:
    asked = []

    def run(blocks: list[int]) -> object:
        asked.append(blocks)
        return sm_result([0] * len(blocks), [10 * (index + 1) ** 2 for index in range(len(blocks))])

    found = steady_prediction(timed(run), 15 * 7, holding(2), chip(15))
    assert found.exact and asked[-1] == list(range(0, 105, 15))


@pytest.mark.parametrize(
    ("ends", "together"),
    [
        ([100, 101, 102, 103], True),
        ([100, 104, 108, 112], True),  # an even time is 25: two of the other 14 SMs get a block in each between
        ([100, 112, 124, 136], False),  # seven of them do: the four are further apart than 15 of the grid
        ([100, 125, 150, 175], False),
        ([100, 101, 150, 151], False),  # two and two
    ],
)
def test_blocks_that_end_together_are_told_from_others(chip, holding, sm_result, ends, together) -> None:
    """Five waves of 100 cycles."""
    made = plan(15 * 20, holding(4), chip(15), "steady", 9)
    every = [100 * wave + end for wave in range(5) for end in ends]
    found = extrapolate_steady(sm_result([0] * 4 + every[:-4], every), made)
    assert in_bunches(found) is together


def test_one_block_at_a_time_is_no_bunch_nor_is_a_single_wave(chip, holding, sm_result) -> None:
    ends = [100 * (wave + 1) for wave in range(9)]
    alone = plan(15 * 9, holding(1), chip(15), "steady", 9)
    assert not in_bunches(extrapolate_steady(sm_result([0, *ends[:-1]], ends), alone))
    wave = plan(15 * 4, holding(4), chip(15))
    assert not in_bunches(extrapolate_steady(sm_result([0] * 4, [9] * 4), wave))


def test_fill_of_the_chip_is_said(chip, holding, sm_result) -> None:
    small = extrapolate_steady(sm_result([0], [9]), plan(4, holding(4), chip(15)))
    assert "4 of 15 SMs get a block" in small.assumptions
    uneven = extrapolate_steady(sm_result([0, 0], [9, 9]), plan(16, holding(4), chip(15)))
    assert any("the mean is 1.1" in text for text in uneven.assumptions)
    rows = plan(15 * 8, holding(4), chip(15), bunched=True)
    together = extrapolate_steady(sm_result([0] * 8, [9] * 8), rows)
    assert any("gets the next 4 in a row" in text for text in together.assumptions)


def test_a_prediction_below_a_bound_is_raised_to_it(chip, holding, sm_result) -> None:
    found = extrapolate_steady(sm_result([0], [9]), plan(4, holding(4), chip(15)))
    assert found.raised_to(8, "issue slots") is found
    raised = found.raised_to(12, "issue slots")
    assert raised.cycles == 12 and "lower bound of issue slots" in raised.assumptions[-1]


def test_wrong_inputs(chip, holding, sm_result) -> None:
    with pytest.raises(PptError, match="the plan has 12"):
        extrapolate_steady(sm_result([0], [9]), plan(15 * 40, holding(4), chip(15)))
    with pytest.raises(PptError, match="too few"):
        made = plan(15 * 40, holding(4), chip(15), "workload")
        extrapolate_steady(sm_result([0] * 4, [9] * 4), made)
    with pytest.raises(PptError, match="ascending"):
        steady_prediction(lambda blocks: None, 10, holding(1), chip(1), waves=(5, 3))
