"""Core counts within a budget, Pareto points, scaling tables: the corners that no golden reaches."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ppt_gpu.common.errors import InputErrors, PptError
from ppt_gpu.multicore.base.device_scaling import load_scaling
from ppt_gpu.multicore.dark_silicon.chip import Budget, cores_within, parse_budget
from ppt_gpu.multicore.dark_silicon.study import load_study, measured_frontier, pareto
from ppt_gpu.multicore.dark_silicon.topology import TOPOLOGIES

WHOLE = Budget(100.0, 50.0)


def count(topology: str, *, rounding: str = "none", heavy: tuple[float, float] = (20.0, 10.0)) -> float:
    found = cores_within(
        WHOLE, topology, area=7.0, power=3.0, heavy_area=heavy[0], heavy_power=heavy[1], rounding=rounding
    )
    return float(found.count)


def test_each_topology_pays_for_its_heavy_core() -> None:
    assert count("symmetric") == pytest.approx(100 / 7)
    assert count("asymmetric") == pytest.approx((100 - 20) / 7)
    assert count("dynamic") == pytest.approx((100 - 20) / 7)
    assert count("composed") == pytest.approx(100 / 7.7)
    assert count("asymmetric", heavy=(20.0, 30.0)) == pytest.approx((50 - 30) / 3)
    assert count("dynamic", heavy=(20.0, 30.0)) == pytest.approx((100 - 20) / 7)


def test_rounding() -> None:
    assert [count("symmetric", rounding=each) for each in ("floor", "round")] == [14, 14]
    assert [count("asymmetric", rounding=each) for each in ("floor", "round")] == [11, 11]


def test_what_does_not_fit_counts_no_core() -> None:
    assert count("dynamic", heavy=(20.0, 51.0)) == 0
    assert count("composed", heavy=(101.0, 10.0)) == 0
    assert count("asymmetric", heavy=(94.0, 10.0)) == 0


def test_dark_share() -> None:
    full = cores_within(WHOLE, "symmetric", area=10.0, power=1.0)
    assert (float(full.count), float(full.dark), bool(full.power_limited)) == (10.0, pytest.approx(0.0), False)
    half = cores_within(WHOLE, "symmetric", area=10.0, power=10.0)
    assert (float(half.count), float(half.dark), bool(half.power_limited)) == (5.0, pytest.approx(0.5), True)


@given(area=st.floats(1, 400), power=st.floats(1, 400), more=st.floats(1, 4), topology=st.sampled_from(TOPOLOGIES))
def test_a_larger_budget_never_holds_fewer_cores(area: float, power: float, more: float, topology: str) -> None:
    sizes = {"area": 8.0, "power": 2.5, "heavy_area": 28.0, "heavy_power": 25.0}
    small = cores_within(Budget(area, power), topology, **sizes)
    large = cores_within(Budget(area * more, power * more), topology, **sizes)
    assert large.count >= small.count * (1 - 1e-12)


def test_budget_texts() -> None:
    default = Budget(111, 125)
    assert parse_budget("50 W", default) == Budget(111, 50)
    assert parse_budget("2 cm2, 0.2 kW", default) == Budget(200, 200)
    for bad in ("", "50", "50 W,", "50 V", "0 W"):
        with pytest.raises(PptError):
            parse_budget(bad, default)


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=1, max_size=12))
def test_pareto_points_are_those_that_nothing_beats(points: list[tuple[int, int]]) -> None:
    performance, cost = [float(p) for p, _ in points], [float(c) for _, c in points]
    found = pareto(performance, cost)
    assert [performance[i] for i in found] == sorted({performance[i] for i in found})
    for i in range(len(points)):
        beaten = any(
            performance[j] >= performance[i] and cost[j] <= cost[i] and (performance[j], cost[j]) != points[i]
            for j in range(len(points))
        )
        same = [j for j in found if (performance[j], cost[j]) == (performance[i], cost[i])]
        assert len(same) == (0 if beaten else 1)


def test_a_table_in_csv_is_a_table(tmp_path: Path) -> None:
    shipped = load_scaling("itrs")
    rows = [f"{node.name},{node.clock},{node.power},{node.area}" for node in shipped.nodes]
    (tmp_path / "mine.csv").write_text("\n".join(["name,clock,power,area", *rows]) + "\n")
    mine = load_scaling(str(tmp_path / "mine.csv"))
    assert [(n.name, n.clock, n.power, n.area) for n in mine.nodes] == [
        (n.name, n.clock, n.power, n.area) for n in shipped.nodes
    ]
    assert mine.node("22 nm") is mine.nodes[2]
    assert np.isnan(mine.nodes[0].capacitance)


def test_csv_without_nodes_or_columns(tmp_path: Path) -> None:
    for text in ("", "name,clock\n", "name,clock,power,area\n"):
        (tmp_path / "bad.csv").write_text(text)
        with pytest.raises(PptError):
            load_scaling(str(tmp_path / "bad.csv"))
    (tmp_path / "bad.csv").write_text("name,clock,power,area\na,1,1,1\n,1,1,1\n")
    with pytest.raises(InputErrors):
        load_scaling(str(tmp_path / "bad.csv"))
    with pytest.raises(PptError, match="cannot read"):
        load_scaling(str(tmp_path / "absent.csv"))


def test_a_measured_frontier_runs_through_the_cores_that_nothing_beats() -> None:
    cores = [(1.0, 5.0, 1.0), (10.0, 9.0, 8.0), (8.0, 9.5, 3.0), (20.0, 15.0, 30.0)]
    found = measured_frontier(cores)
    assert found.area_points == ((1.0, 10.0, 20.0), (5.0, 9.0, 15.0))
    assert found.power_points == ((1.0, 8.0, 10.0, 20.0), (1.0, 3.0, 8.0, 30.0))
    assert (found.low, found.high) == (1.0, 20.0)
    assert float(found.area(15.0)) == pytest.approx(12.0)
    assert list(found.scores(3)) == [1.0, 10.5, 20.0]
    with pytest.raises(PptError, match="the frontier of area has one core: score 3 beats all others"):
        measured_frontier([(1.0, 5.0, 1.0), (3.0, 4.0, 2.0)])


def test_a_study_of_measured_cores_lies_over_another(tmp_path: Path) -> None:
    shipped, extended = load_study(), load_study("extended")
    assert extended.memory == shipped.memory
    assert (extended.frontier.low, extended.frontier.high) == (1.19, 47.1)
    assert float(extended.frontier.area(36.5)) == 28.7
    assert extended.sources["frontier.measured"].source.startswith("BLEM table 2.4a")
    (tmp_path / "mine.toml").write_text('base = "isca11"\ntitle = "mine"\n[memory]\nl2 = "16 MiB"\n')
    assert load_study(str(tmp_path / "mine.toml")).memory.l2 == 2.0**24


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[frontier]\nmeasured = [[1, 2, 3]]", "expected >= 2 items, not 1"),
        ("[frontier]\nmeasured = [[1, 2, 3], [2, 3]]", "expected 3 items, not 2"),
        ("[frontier]\nmeasured = [[1, 2, 3], [2, 3, -4]]", "-4 is out of range"),
        ("[frontier]\nmeasured = [[6, 9, 9], [40, 5, 5]]", "frontier.measured: the frontier of area has one core"),
        ("[frontier]\nmeasured = [[7, 5, 5], [40, 9, 9]]", "m_core.score: 6 is not on the frontier"),
        ("[frontier]\nlowest = 40", "the frontier goes from score 40 to 36.5"),
        ('[s_core]\nslowest = "4 GHz"', "the slowest core has 4e+09 Hz"),
    ],
)
def test_broken_studies(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "bad.toml").write_text(f'base = "isca11"\ntitle = "bad"\n{text}\n')
    with pytest.raises(InputErrors) as caught:
        load_study(str(tmp_path / "bad.toml"))
    assert message in str(caught.value)
