"""design: the cheapest configuration that reaches the target, and a GPU file that says what it is."""

import json
from pathlib import Path

import pytest

import ppt_gpu
from ppt_gpu.cli import main
from ppt_gpu.explore import design as module
from ppt_gpu.explore.case import Case, Measured
from ppt_gpu.explore.design import Option, design, no_better
from ppt_gpu.explore.expression import parse_expression
from ppt_gpu.explore.space import Point, make_space
from ppt_gpu.explore.sweep import Run
from ppt_gpu.spec import load_gpu

VECADD = ppt_gpu.open_workload("vecadd")
COST = "5*sm.count + dram.bandwidth/'1 GB/s'"
GRID = ("sm.count=4:12:4", "dram.bandwidth=144:432:144 GB/s")
ASK = ["design", "vecadd", "--gpu", "k40", "--target", "400 us", "--cost", COST]
ASK += [part for text in GRID for part in ("--set", text)]


@pytest.mark.parametrize("target", [900e-6, 600e-6, 400e-6])
def test_the_search_finds_what_looking_at_all_finds(target: float) -> None:
    space = make_space(GRID, (), (), load_gpu("k40"), VECADD)
    cost = parse_expression(COST, "--cost")
    some = design(VECADD, "k40", space, cost, target, Run())
    every = design(VECADD, "k40", space, cost, target, Run(), everything=True)
    assert some.best.point == every.best.point and (some.best.time or 1) <= target
    assert len(some.simulated) < len(every.simulated) == some.total == 9
    cheaper = [option for option in every.simulated if option.cost < every.best.cost]
    assert all((option.time or 0) > target for option in cheaper)
    front = every.front()
    assert [option.cost for option in front] == sorted(option.cost for option in front)
    assert [option.time for option in front] == sorted((option.time for option in front), reverse=True)
    for option in every.simulated:
        assert option in front or any(
            other.cost <= option.cost and (other.time or 0) <= (option.time or 0) for other in front
        )


def test_few_of_many_are_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Times as they would be if they went with both parameters: 40 x 40 configurations, a known answer."""

    def measured(cases: list[Case], *more: object, **options: object) -> list[Measured]:
        found = []
        for case in cases:
            sms, rate = (float(text.partition("=")[2].split()[0]) for text in case.overrides)
            found.append(Measured((1e-3 / min(sms, rate / 10),)))
        return found

    monkeypatch.setattr(module, "measured", measured)
    settings = ("sm.count=1:40:1", "dram.bandwidth=10:400:10 GB/s")
    space = make_space(settings, (), (), load_gpu("k40"), VECADD)
    found = design(VECADD, "k40", space, parse_expression(COST, "--cost"), 1e-3 / 17, Run())
    assert found.best.point.values == {"sm.count": "17", "dram.bandwidth": "170 GB/s"}
    assert found.total == 1600 and len(found.simulated) < 60


def test_what_is_no_better() -> None:
    def point(**values: str) -> Point:
        return Point(0, {key.replace("_", "."): text for key, text in values.items()})

    assert no_better(point(sm_count="8", l2_latency="300"), point(sm_count="8", l2_latency="200"))
    assert not no_better(point(sm_count="8", l2_latency="100"), point(sm_count="9", l2_latency="200"))
    assert not no_better(point(sm_policy="gto"), point(sm_policy="lrr"))
    assert not no_better(point(sm_count="8", l2_ways="8"), point(sm_count="9", l2_ways="16"))


def test_the_file_is_the_gpu(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "my gpu.toml"
    assert main([*ASK, "--let", "l2.bandwidth=sm.count*32", "-o", str(file), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["file"] == file.read_text() and document["best"] in document["simulated"]
    assert main(["check", str(file)]) == 0
    assert ppt_gpu.predict("vecadd", str(file)).time == document["best"]["time_s"]
    # and it may be the base of the next one, from wherever that is written
    (tmp_path / "more").mkdir()
    again = ["design", "vecadd", "--gpu", str(file), "--target", "1 s", "--cost", "sm.clock", "--set", "sm.clock=1 GHz"]
    assert main([*again, "-o", str(tmp_path / "more" / "next.toml")]) == 0
    gpu = load_gpu(str(tmp_path / "more" / "next.toml"))
    assert (gpu.sm.clock, gpu.sm.count) == (1e9, int(document["best"]["parameters"]["sm.count"]))


def test_text_and_figure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    assert main([*ASK, "--plot", str(tmp_path / "front.svg")]) == 0
    out = capsys.readouterr().out
    assert out.startswith("vecadd in 400 us: the cheapest GPU based on k40 costs ")
    assert "9 of 9 configurations were simulated" in out and 'base = "k40"' in out
    assert max(map(len, out.splitlines())) <= 120
    assert (tmp_path / "front.svg").read_bytes().startswith(b"<?xml")


def test_a_configuration_that_cannot_be_is_passed_over() -> None:
    space = make_space(["sm.max_threads_per_block=128,1024", "sm.count=15"], (), (), load_gpu("k40"), VECADD)
    found = design(VECADD, "k40", space, parse_expression("sm.max_threads_per_block", "--cost"), 1.0, Run())
    assert found.best.point.values["sm.max_threads_per_block"] == "1024"
    (wrong,) = [option for option in found.simulated if option.time is None] or [Option(Point(0, {}), 0.0)]
    assert wrong.found is not None and "exceed the limit" in wrong.found.error
