"""The stratified sample: what it takes, and how well its error says how wrong it is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ppt_gpu.scale.blocks.strata import landmarks, stand_ins, standard_error, stratified, variation


@given(st.integers(1, 5000), st.integers(1, 300))
def test_one_block_a_stratum(blocks: int, count: int) -> None:
    found = stratified(blocks, count)
    assert len(found) == min(blocks, count)
    index = np.arange(len(found))
    assert np.all(found >= index * blocks // len(found)) and np.all(found < (index + 1) * blocks // len(found))


def test_a_sample_does_not_fall_into_step_with_the_rows() -> None:
    columns = stratified(64 * 64, 64) % 64  # a stratum is a row
    assert len(np.unique(columns)) > 32 and np.histogram(columns, 4, (0, 64))[0].min() >= 12


def test_landmarks() -> None:
    assert landmarks((5, 1, 1)).tolist() == [0, 2, 4]
    assert landmarks((4, 3, 1)).tolist() == [0, 2, 3, 4, 6, 7, 8, 10, 11]
    assert len(landmarks((9, 9, 9))) == 27 and landmarks((1, 1, 1)).tolist() == [0]


def test_error_by_hand() -> None:
    values = np.array([1, 3, 2])  # differences 2, -1; mean 2
    assert standard_error(values, 12) == pytest.approx(((1 - 3 / 12) / 3 * 5 / (2 * 2)) ** 0.5 / 2)
    assert standard_error(values, 3) == 0 and standard_error(np.array([4]), 9) == 1 and standard_error(values, 2) == 0
    assert variation(np.array([1, 3])) == 0.5 and variation(np.zeros(3)) == 0


def test_a_trend_is_not_taken_for_noise() -> None:
    """Of sorted work the sample's mean is nearly exact, and the error says so; shuffled, both are worse."""
    work = np.arange(4000) + 1.0
    chosen = stratified(4000, 100)
    assert abs(work[chosen].mean() / work.mean() - 1) < 0.005
    assert standard_error(work[chosen], 4000) < 0.01
    shuffled = np.random.default_rng(0).permutation(work)
    assert 0.03 < standard_error(shuffled[chosen], 4000) < 0.1


def test_the_error_covers_what_it_should() -> None:
    """Of 300 grids with noise the true mean lies within two standard errors in about 95 %."""
    inside = 0
    for seed in range(300):
        work = np.random.default_rng(seed).gamma(2.0, 50.0, 2000)
        sample = work[stratified(2000, 64)]
        inside += abs(sample.mean() - work.mean()) < 2 * standard_error(sample, 2000) * sample.mean()
    assert 270 <= inside <= 299


def test_stand_ins_keep_trend_and_spread() -> None:
    sample = np.array([10, 20, 40])
    assert stand_ins(np.array([0, 10, 20, 40, 99]), sample).tolist() == [0, 0, 1, 2, 2]
    between = stand_ins(np.arange(21, 40), sample)
    assert set(between.tolist()) == {1, 2} and 7 <= (between == 2).sum() <= 12
    assert (between[:5] == 1).sum() > (between[-5:] == 1).sum()
