"""Summaries of validation rows and their figure."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from ppt_gpu.validate.tables.rows import Row, kendall_tau, summaries, to_text

ROWS = [
    Row(str(number), gpu, "set", "steady", reference, predicted, "us")
    for number, (gpu, reference, predicted) in enumerate(
        [("a", 10.0, 11.0), ("a", 20.0, 18.0), ("a", 30.0, 36.0), ("b", 5.0, 5.0), ("b", 6.0, 3.0)]
    )
]


def test_summaries() -> None:
    first, second, everything = summaries(ROWS)
    assert (first.gpu, first.cases, first.tau) == ("a", 3, 1.0)
    assert first.mean == pytest.approx(0.4 / 3) and first.worst == pytest.approx(0.2)
    assert second.tau == -1.0 and second.bias == pytest.approx(-0.25)
    assert everything.cases == 5 and everything.tau == pytest.approx(0.8)
    assert to_text("x", ROWS).splitlines()[-1].endswith(" 0.800")


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_tau_counts_pairs(order: tuple[int, ...]) -> None:
    pairs = list(itertools.combinations(range(4), 2))
    same = sum(1 if order[i] < order[j] else -1 for i, j in pairs)
    assert kendall_tau(range(4), order) == pytest.approx(same / len(pairs))


def test_ties_count_in_neither_direction() -> None:
    # three pairs: one tied in the first, two ordered alike; tau-b = 2 / sqrt(2 x 3)
    assert kendall_tau([1, 1, 2], [1, 2, 3]) == pytest.approx(2 / 6**0.5)
    assert kendall_tau([1, 1], [3, 4]) == 1.0


def test_the_figure_is_a_picture_and_always_the_same(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from ppt_gpu.validate.tables.figures import draw

    paths = [tmp_path / name for name in ("a.svg", "b.svg")]
    for path in paths:
        draw(ROWS, str(path))
    first, second = (path.read_text() for path in paths)
    assert first == second and "set, µs" in first and "-20%" in first and "<svg" in first
