"""Projections and sweeps: what must hold whatever the numbers, and the command in its three forms."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ppt_gpu.cli import main
from ppt_gpu.common.errors import PptError
from ppt_gpu.multicore.base.device_scaling import DeviceScaling, load_scaling
from ppt_gpu.multicore.base.suite import Suite, load_suite
from ppt_gpu.multicore.dark_silicon.chip import Budget
from ppt_gpu.multicore.dark_silicon.projection import Projection, project
from ppt_gpu.multicore.dark_silicon.study import Study, load_study
from ppt_gpu.multicore.dark_silicon.sweeps import SWEEPS, run_sweep

STUDY, SUITE, ITRS = load_study(), load_suite("parsec"), load_scaling("itrs")


def projected(study: Study = STUDY, suite: Suite = SUITE, scaling: DeviceScaling = ITRS) -> Projection:
    return project(study, suite, scaling)


def test_the_baseline_is_its_own_equal() -> None:
    """A symmetric chip of as many Nehalems as the baseline has, at its node, is as fast."""
    curve = STUDY.frontier
    budget = Budget(STUDY.baseline_cores * float(curve.area(36.5)), 1e3)
    only = replace(STUDY, budget=budget, frontier=replace(curve, low=36.4999), points=2)
    only = replace(
        only, s_core=replace(only.s_core, slowest=only.s_core.fastest), m_core=replace(only.m_core, score=36.5)
    )
    found = project(only, SUITE, ITRS, organisations=("cpu",), topologies=("symmetric",), nodes=("45nm",))
    assert found.chips[0].speedup == pytest.approx(1.0, rel=1e-5)
    assert found.chips[0].cores == pytest.approx(4.0, rel=1e-5)


def test_more_area_and_power_never_slow_the_fastest_chip() -> None:
    """With caches that are not shared: a chip has all cores that fit, and more of them leave less L2 to each."""
    alone = replace(STUDY, sharing="none")
    small, large = projected(alone), projected(replace(alone, budget=Budget(222, 250)))
    for node in ("45nm", "16nm", "8nm"):
        pairs = zip(small.best(node), large.best(node), strict=True)
        assert all(b.speedup >= a.speedup * (1 - 1e-9) for a, b in pairs)


def test_a_suite_of_one_finds_what_the_whole_finds() -> None:
    whole = projected().best("11nm")[7]
    assert projected(suite=SUITE.only(whole.benchmark)).best("11nm") == [whole]


@pytest.mark.parametrize("name", SWEEPS)
def test_a_sweep_at_the_study_s_own_value_changes_nothing(name: str) -> None:
    own = {"area": 111, "power": 125, "l2-share": 0.3, "bandwidth": 200, "smt": 1, "parallel": 0.984}
    swept = run_sweep(name, STUDY, SUITE, ITRS, "22nm", "cpu", "symmetric", [own[name]])
    plain = project(STUDY, SUITE, ITRS, organisations=("cpu",), topologies=("symmetric",), nodes=("22nm",)).chips[0]
    same = slice(0, 1) if name == "parallel" else slice(None)  # blackscholes alone has this parallel fraction
    assert swept.speedup[same, 0] == pytest.approx(plain.speedup[same], rel=1e-12)
    assert swept.cores[same, 0] == pytest.approx(plain.cores[same], rel=1e-12)


def test_bandwidth_helps_and_a_chip_of_cache_alone_has_no_core() -> None:
    wide = run_sweep("bandwidth", STUDY, SUITE, ITRS, "45nm", "gpu", "symmetric").speedup
    assert (np.diff(wide, axis=1) >= -1e-12).all()
    cached = run_sweep("l2-share", STUDY, SUITE, ITRS, "45nm", "cpu", "symmetric", [0.0, 0.5, 1.0]).speedup
    assert np.isnan(cached[:, 2]).all()
    assert not np.isnan(cached[:, :2]).any()


def test_unknown_things() -> None:
    with pytest.raises(PptError, match="unknown sweep 'smtt'"):
        run_sweep("smtt", STUDY, SUITE, ITRS, "45nm", "cpu", "symmetric")
    with pytest.raises(PptError, match="unknown technology node '7nm'"):
        run_sweep("smt", STUDY, SUITE, ITRS, "7nm", "cpu", "symmetric")


def output(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(list(arguments)) == 0
    return capsys.readouterr().out


def test_json_and_text_say_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    command = ("darksilicon", "--scaling", "itrs", "--budget", "125 W,111 mm2")
    document = json.loads(output(capsys, *command, "--json"))
    assert (document["schema"], document["budget"]) == (1, {"area_mm2": 111.0, "power_w": 125.0})
    assert len(document["benchmarks"]) == 12
    assert len(document["projections"][0]["chips"]) == 6 * 8
    assert {row["key"] for row in document["assumptions"]} >= {"memory.latency", "s_core.cpi", "budget.area"}
    last = document["projections"][0]["nodes"][-1]
    text = output(capsys, *command)
    assert ["8nm", f"{last['speedup']:.2f}", f"{last['cores']:.1f}"] in [line.split()[:3] for line in text.splitlines()]
    assert max(map(len, text.splitlines())) <= 80
    assert output(capsys, *command) == text
    swept = json.loads(output(capsys, "upperbound", "smt", "1", "2", "--json"))["sweeps"][0]
    assert (swept["values"], len(swept["rows"])) == ([1.0, 2.0], 12)


def test_the_budget_and_the_benchmark_reach_the_search(capsys: pytest.CaptureFixture[str]) -> None:
    text = output(
        capsys, "darksilicon", "--scaling", "itrs", "--budget", "250 W", "--benchmark", "x264", "--node", "8nm"
    )
    assert "1 benchmarks within 250 W, 111 mm2" in text
    assert "\nx264 " in text
    assert "canneal" not in text


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_figures_are_drawn_and_the_same_each_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], suffix: str
) -> None:
    pytest.importorskip("matplotlib", reason="drawing is optional: pip install 'ppt_gpu[plot]'")
    for command in (("darksilicon", "--scaling", "itrs"), ("upperbound", "smt")):
        pictures = []
        for number in range(2):
            path = tmp_path / f"{number}.{suffix}"
            output(capsys, *command, "--plot", str(path))
            pictures.append(path.read_bytes())
        assert pictures[0] == pictures[1]
        assert pictures[0].startswith(b"\x89PNG" if suffix == "png" else b"<?xml")
