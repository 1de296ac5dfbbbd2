"""Blocks on SMs: by hand, and the compiled loop against plain Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.dispatch import dispatch_reference

from ppt_gpu.scale.levels.dispatch import Starts, dispatch, turn
from ppt_gpu.scale.levels.irregular import lengths, speeds


def test_the_next_block_goes_where_a_slot_frees_first() -> None:
    found = dispatch(np.array([5.0, 2.0, 2.0, 4.0, 1.0]), 2, 1, np.ones(1))
    assert found.sm.tolist() == [0, 1, 1, 1, 0]  # at 5 block 4 goes to SM 0; SM 1 ends at 8
    assert found.sm_end.tolist() == [6.0, 8.0] and found.cycles == 8
    assert found.balance == pytest.approx(7 / 8)


def test_sorted_work_has_a_tail() -> None:
    work = np.arange(1.0, 41.0)
    forward, backward = (dispatch(order, 4, 2, np.array([1.0, 1.0])) for order in (work, work[::-1]))
    assert work.sum() / 8 < backward.cycles < forward.cycles


def test_blocks_are_faster_where_fewer_are_resident() -> None:
    """Two blocks of 10 share an SM; alone a block would be twice as fast. The third runs alone from 10 on."""
    found = dispatch(np.array([10.0, 10.0, 6.0]), 1, 2, np.array([2.0, 1.0]))
    assert found.cycles == 13
    assert dispatch(np.array([10.0, 10.0, 6.0]), 1, 2, np.array([2.0, 1.0]), start=100.0).cycles == 113


def test_a_slot_waits_for_its_next_block() -> None:
    """While slot 0 waits from 10 to 15, the other block is twice as fast: it ends at 15 instead of 20."""
    speed = np.array([2.0, 1.0])
    assert dispatch(np.array([10.0, 20.0, 6.0]), 1, 2, speed, starts=Starts(gap=5.0)).cycles == 18
    late = dispatch(np.array([10.0, 10.0]), 1, 2, speed, starts=Starts(ramp=4.0))
    assert late.cycles == 4 + 2 + 4  # 8 cycles' work alone, 2 of both, then 8 of the second alone


@pytest.mark.parametrize("gap", [0.0, 40.0, 400.0])
def test_the_turn_of_a_slot(gap: float) -> None:
    """Many blocks alike: as long as their turns."""
    speed, starts, blocks = np.array([2.5, 2.0, 1.4, 1.0]), Starts(gap=gap), 20_000
    lengths_of = np.random.default_rng(1).uniform(50, 150, blocks)
    found = dispatch(lengths_of, 2, 4, speed, starts=starts)
    assert found.cycles == pytest.approx(blocks / 8 * turn(100.0, speed, starts), rel=0.03)


def test_nothing_to_do() -> None:
    found = dispatch(np.zeros(0), 3, 2, np.ones(2), start=7.0)
    assert found.cycles == 7 and found.balance == 1


@given(
    st.lists(st.floats(0.5, 100.0), min_size=1, max_size=60),
    st.integers(1, 5),
    st.lists(st.floats(1.0, 3.0), min_size=1, max_size=4),
    st.builds(Starts, st.floats(0.0, 50.0) | st.just(0.0), st.floats(0.0, 20.0) | st.just(0.0)),
)
def test_compiled_and_plain_agree(work: list[float], sms: int, speed: list[float], starts: Starts) -> None:
    falling = np.array(sorted(speed, reverse=True))
    found = dispatch(np.array(work), sms, len(falling), falling, starts=starts)
    ends, owners, block_start, block_end = dispatch_reference(np.array(work), sms, len(falling), falling, starts)
    assert found.sm_end.tolist() == ends and found.sm.tolist() == owners
    assert found.block_start.tolist() == block_start and found.block_end.tolist() == block_end
    assert found.cycles >= max(sum(work) / (sms * len(falling)), max(work)) / falling[0] * (1 - 1e-12)


def test_lengths_give_the_simulated_times_back(sm_result) -> None:
    start, end = [0, 0, 30, 50, 60], [30, 50, 90, 60, 100]
    result, speed = sm_result(start, end), np.array([1.5, 1.0])
    found = lengths(result, speed)
    assert found.tolist() == [30, 50, 60, 10, 45]  # the last runs alone from 90 on
    again = dispatch(found, 1, 2, speed)
    assert again.cycles == 100


def test_speed_is_residence_over_residence(sm_result) -> None:
    asked = []

    def simulate(count: int) -> object:
        asked.append(count)
        return sm_result([0, 0], [100 + 20 * count, 100 + 20 * count])

    found = speeds(simulate, 6)
    assert asked == [1, 2, 4, 6]
    assert found[-1] == 1 and found[0] == pytest.approx(220 / 120) and found[2] == pytest.approx(220 / 160)
    assert speeds(simulate, 1).tolist() == [1.0]
