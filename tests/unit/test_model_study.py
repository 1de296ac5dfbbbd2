"""The study of the analytical models: enough launches, errors counted rightly, every form printed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ppt_gpu.cli import main
from ppt_gpu.validate.models.cases import BLOCK, case_names, model_cases
from ppt_gpu.validate.models.speed import Speed
from ppt_gpu.validate.models.study import PAPER, TABLE_II, accuracies
from ppt_gpu.validate.tables.rows import Row
from ppt_gpu.workload.workload import Workload

FAST = ["--case", "copy_2", "--case", "copy_8"]


def test_at_least_as_many_launches_as_the_paper() -> None:
    names = case_names()
    assert len(set(names)) == len(names) >= 40
    for case in model_cases(["copy_2", "mixed_1_0", "chase", "sgemm16"]):
        assert isinstance(case.workload, Workload)
        x, y, z = case.workload.launches[0].block
        assert x * y * z <= BLOCK  # eight warps a block: fits in every sweep


def test_errors_by_model_and_policy() -> None:
    rows = [
        Row("a", "g", "lrr gpumech", "steady", 100.0, 110.0, "cycles"),
        Row("b", "g", "lrr gpumech", "steady", 100.0, 50.0, "cycles"),
        Row("a", "g", "gto gpumech", "steady", 100.0, 100.0, "cycles"),
    ]
    lrr, gto = accuracies(rows)
    assert (lrr.policy, lrr.model, lrr.cases) == ("lrr", "gpumech", 2)
    assert (lrr.mean, lrr.worst, lrr.below) == (pytest.approx(0.3), pytest.approx(0.5), 0.5)
    assert (gto.policy, gto.mean, gto.below) == ("gto", 0.0, 1.0)


def test_validate_models_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", "models", "--json", *FAST]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["set"] == "models"
    assert {row["mode"].split()[0] for row in document["rows"]} == {"lrr", "gto"}
    assert {f"lrr {name}" for name in TABLE_II} <= {row["mode"] for row in document["summary"]}
    assert document["paper"] == {model: {"lrr": rr, "gto": gto} for model, (rr, gto) in PAPER.items()}


@pytest.mark.parametrize("part", ["accuracy", "mshrs", "stacks", "speed"])
def test_text_and_json_of_every_part(part: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["study", part, *FAST[:2]]) == 0
    text = capsys.readouterr().out
    assert "copy_2" in text or part == "mshrs"
    assert main(["study", part, "--json", *FAST[:2]]) == 0
    assert json.loads(capsys.readouterr().out)["schema"] == 1


def test_a_clock_that_sees_no_time_pass_is_no_error() -> None:
    assert Speed("copy_2", 5120, simulation=0.002, caches=0.0, model=0.0).ratio == pytest.approx(2e6)


def test_ways_to_choose_the_warp(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["study", "representative", "--json", "--case", "trips_by_warp"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["mode"] for row in rows] == ["lrr gpumech", "lrr gpumech_max", "lrr gpumech_min"]
    assert len({row["predicted"] for row in rows}) > 1
    assert main(["study", "representative", *FAST[:2]]) == 0
    assert "In none of the launches" in capsys.readouterr().out


@pytest.mark.parametrize("part", ["accuracy", "bandwidth", "stacks"])
def test_figures(part: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    target = tmp_path / "figure.svg"
    assert main(["study", part, *FAST[:2], "--plot", str(target)]) == 0
    assert target.read_bytes().startswith(b"<?xml")
    capsys.readouterr()


@pytest.mark.parametrize(
    "arguments, expected",
    [
        (["speeds"], "did you mean 'speed'?"),
        (["speed", "--plot", "x.svg"], "speed has no figure"),
        (["mshrs", "--plot", "x.txt"], "unknown kind of picture"),
        (["--case", "nothing_like_it"], "no case of 'models'"),
    ],
)
def test_bad_command_lines(arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["study", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("error: ") and expected in err
