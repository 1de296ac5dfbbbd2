"""One number from launches that depend on it."""

from __future__ import annotations

import pytest

from ppt_gpu.calibrate.solve import Number, solve

LATENCY = Number("l1.latency", 1, 600)


def test_a_latency_comes_back_in_few_steps() -> None:
    asked: list[float] = []

    def predicted(value: float) -> list[float]:
        asked.append(value)
        return [1000.0 + 256 * value, 500.0 + 64 * value]

    found = solve(LATENCY, 40, [1000.0 + 256 * 97, 500.0 + 64 * 97], predicted)
    assert (found.value, found.low, found.high, found.residual) == (97, 97, 97, 0)
    assert found.determined and len(set(asked)) <= 10


def test_a_bandwidth_comes_back_within_its_step() -> None:
    rate = Number("l2.bandwidth", 32, 32768, step=16)
    found = solve(rate, 4000, [1e6 / 2345.0], lambda value: [1e6 / value])
    assert abs(found.value - 2345) < 16 and found.residual < 0.01


def test_launches_that_disagree_give_a_range() -> None:
    found = solve(LATENCY, 40, [256 * 90.0, 256 * 110.0], lambda value: [256 * value, 256 * value])
    assert found.low == pytest.approx(90, abs=1) and found.high == pytest.approx(110, abs=1)
    assert 90 < found.value < 110 and found.residual == pytest.approx(0.1, abs=0.02)


def test_the_spread_of_repeats_widens_the_range() -> None:
    found = solve(LATENCY, 40, [100 * 50.0], lambda value: [100 * value], spread=[0.1])
    assert (found.value, found.low, found.high) == (50, pytest.approx(45), pytest.approx(55))


def test_what_changes_nothing_is_not_determined() -> None:
    found = solve(LATENCY, 40, [123.0], lambda value: [100.0])
    assert not found.determined and found.value == 40 and (found.low, found.high) == (1, 600)


def test_what_lies_beyond_the_range_gives_its_end() -> None:
    interval = Number("op.x.ii", 1, 512)
    found = solve(interval, 4, [90.0], lambda value: [100 * value])
    assert (found.value, found.determined) == (1, True) and found.residual == pytest.approx(1 / 9)


@pytest.mark.parametrize("true", [1, 2, 3, 7, 64, 511, 512])
def test_stepwise_dependence(true: int) -> None:
    """Times that change in steps, and only above a floor: the limit is something else below it."""

    def predicted(value: float) -> list[float]:
        return [1000.0 + 32 * max(value, 2)]

    found = solve(Number("op.x.ii", 1, 512), 16, predicted(true), predicted)
    assert max(found.value, 2) == max(true, 2)
