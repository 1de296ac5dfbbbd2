"""compare a.json b.json: what differs between two saved results, launch by launch; and files that are none."""

import json
from pathlib import Path

import pytest

import ppt_gpu
from ppt_gpu.cli import main
from ppt_gpu.explore.saved import differences


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Files by name: vecadd on k40, with half the bandwidth, and a reduction of two launches."""
    from ppt_gpu.report.json import to_json

    folder = tmp_path_factory.mktemp("saved results")
    made = {
        "a": ppt_gpu.predict("vecadd", "k40"),
        "b": ppt_gpu.predict("vecadd", "k40", overrides=["dram.bandwidth=144 GB/s"]),
        "two": ppt_gpu.predict("reduction", "k40"),
    }
    for name, result in made.items():
        (folder / f"{name}.json").write_text(to_json(result))
    return {name: str(folder / f"{name}.json") for name in made}


def test_what_differs(saved: dict[str, str]) -> None:
    found = differences(saved["a"], saved["b"])
    documents = [json.loads(Path(saved[name]).read_text()) for name in "ab"]
    assert found.times == (documents[0]["time_s"], documents[1]["time_s"])
    (launch,) = found.launches
    metrics = {one.name: one for one in launch.metrics}
    time = metrics["kernel.time"]
    assert time.ratio == time.after / time.before > 1.5 and time.seen
    assert not metrics["kernel.registers"].seen and "sim.wall" not in metrics
    bounds = {one.name: one.ratio for one in launch.bounds}
    assert bounds["DRAM bandwidth"] == pytest.approx(2.0, rel=0.01)
    assert sum(one.before for one in launch.stalls) == pytest.approx(1.0)


def test_nothing_differs(saved: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", saved["a"], saved["a"]]) == 0
    out = capsys.readouterr().out
    assert "1.00x as fast" in out and out.endswith("vecadd: no difference\n")


def test_launches_of_only_one(saved: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", saved["two"], saved["a"], "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["launches"] == []
    kernels = [launch["kernel"] for launch in json.loads(Path(saved["two"]).read_text())["launches"]]
    assert document["notes"] == [f"only in {saved['two']}: {', '.join(kernels)}", f"only in {saved['a']}: vecadd"]


def test_text_and_json(saved: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", saved["a"], saved["b"]]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("vecadd on k40: ") and max(map(len, lines)) <= 120
    assert any(line.startswith("kernel.time") and line.endswith("%") for line in lines)
    assert any(line.startswith("long_scoreboard") and line.endswith(" points") for line in lines)
    assert main(["compare", saved["a"], saved["b"], "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    row = next(row for row in document["launches"][0]["metric"] if row["name"] == "kernel.cycles")
    assert row["ratio"] == row["after"] / row["before"] and row["unit"] == "cycles"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not JSON"),
        ("{", "x.json:1:2: not JSON"),
        ("[" * 100000, "not "),
        ("[1, 2]", "not a saved result of predict"),
        ('{"schema": 1}', "not a saved result of predict"),
        ('{"schema": 99, "workload": "", "gpu": "", "time_s": 1, "launches": []}', "its schema is 99"),
        ('{"schema": 1, "workload": "", "gpu": "", "time_s": "x", "launches": []}', "somebody changed"),
        ('{"schema": 1, "workload": "", "gpu": "", "time_s": 1, "launches": [{"kernel": "k"}]}', "somebody changed"),
        ('{"schema": 1, "workload": "", "gpu": "", "time_s": 1, "launches": 3}', "somebody changed"),
    ],
)
def test_files_that_are_no_results(
    text: str, message: str, saved: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x.json").write_text(text)
    assert main(["compare", saved["a"], str(tmp_path / "x.json")]) == 2
    out, err = capsys.readouterr()
    assert out == "" and message in err and "Traceback" not in err
