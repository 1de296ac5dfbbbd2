"""compare: one table, the simulation first, every model of the list on the same input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import ppt_gpu
from ppt_gpu.cli import main
from ppt_gpu.models.registry import models

NAMES = ["simulation", *(model.name for model in models())]


@pytest.fixture(scope="module")
def document() -> dict:
    from ppt_gpu.report.compare import to_json

    found = ppt_gpu.compare("vecadd", "gpumech_table1", policy="gto")
    assert found.main.row("simulation").cycles == ppt_gpu.predict("vecadd", "gpumech_table1", policy="gto").main.value(
        "kernel.cycles"
    )
    return json.loads(to_json(found, "gpumech"))


def test_every_model_is_there_the_simulation_first(document: dict) -> None:
    assert [row["name"] for row in document["models"]] == NAMES
    assert (document["gpu"], document["policy"], document["literal"]) == ("gpumech_table1", "gto", False)
    assert len(document["launches"]) == 1
    simulated = document["models"][0]
    for row in document["models"]:
        if row["time_s"] is None:
            assert row["reason"] and row["limiter"] == ""
            continue
        assert row["time_s"] == pytest.approx(row["cycles"] / 1e9)
        assert row["difference"] == pytest.approx(row["time_s"] / simulated["time_s"] - 1)
        assert row["limiter"] and row["wall_s"] >= 0
        if row.get("stack"):
            assert sum(part["cpi"] for part in row["stack"]) == pytest.approx(row["cpi"], rel=1e-12)


def test_models_below_the_floor_are_named() -> None:
    """What leaves out a resource may promise too much, which the table says."""
    launch = ppt_gpu.compare("vecadd", "gpumech_table1").main
    assert "mt" in launch.below_floor and "roofline" not in launch.below_floor
    assert launch.row("simulation").cycles >= launch.floor_cycles
    for row in launch.rows:
        assert row.cycles is None or (row.cycles >= launch.floor_cycles * (1 - 1e-9)) == (
            row.name not in launch.below_floor
        )


def test_explain_gives_the_steps_of_one_model(document: dict) -> None:
    with_steps = [row["name"] for row in document["models"] if "steps" in row]
    assert with_steps == ["gpumech"]
    steps = next(row["steps"] for row in document["models"] if "steps" in row)
    assert {"(9)", "(8)", "(7)", "(17)", "(3)"} <= {step["number"] for step in steps}


def test_names_and_numbers_are_whole_on_a_narrow_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["compare", "vecadd", "--gpu", "gpumech_table1", "--policy", "gto"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert {line.split()[0] for line in lines[2:] if line[:1].strip()} >= set(NAMES)
    assert max(map(len, lines)) <= 80


def test_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "vecadd", "--gpu", "gpumech_table1", "--explain", "gpumech", "--literal"]) == 0
    out = capsys.readouterr().out
    lines = out.splitlines()
    assert "equations as printed" in lines[0]
    shown = [line.split()[0] for line in lines[2:] if line and line[0].isalpha()]
    assert [name for name in shown if name in NAMES][: len(NAMES)] == NAMES
    assert "(17) CPI_mshr = D_mshr / I = " in out


def test_a_task_list(capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(__file__).parents[2] / "tasklists" / "triad.tl"
    assert main(["compare", str(path), "--gpu", "k40", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["models"]
    assert [row["name"] for row in rows] == NAMES
    refused = [row["reason"] for row in rows if row["time_s"] is None]
    assert all("task list" in reason for reason in refused)


@pytest.mark.parametrize(
    "arguments, expected",
    [
        (["--model", "gpumesh"], "unknown model 'gpumesh'"),
        (["--explain", "gpumehc"], "did you mean 'gpumech'?"),
        (["--model", "mt", "--explain", "gpumech"], "not among the models asked for"),
        (["--policy", "lru"], "--policy"),
    ],
)
def test_bad_command_lines(arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "vecadd", "--gpu", "k40", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("error: ") and expected in err


def test_hit_rates(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["compare", "stencil7", "--gpu", "gtx480", "--model", "gatsim", "--caches"]
    assert main(command) == 0
    text = capsys.readouterr().out
    assert main([*command, "--json"]) == 0
    rates = {row["model"]: row for row in json.loads(capsys.readouterr().out)["hit_rates"]}
    assert next(iter(rates)) == "simulation" and {"SDCM", "Nugteren", "reuse distance in sets"} < set(rates)
    assert f"{rates['simulation']['l1']:.1%}" in text and "lines missed: compulsory" in text
    assert rates["reuse distance in sets"]["l1"] == pytest.approx(rates["simulation"]["l1"], abs=0.05)


def test_the_page_names_every_model() -> None:
    page = (Path(__file__).parents[2] / "docs" / "models.md").read_text()
    assert [model.name for model in models() if f"`{model.name}`" not in page] == []
