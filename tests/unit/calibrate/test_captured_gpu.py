"""A capture of a GPU that is known, made by the simulation, gives its numbers back."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from synthetic import capture_text, synthetic_capture

from ppt_gpu.calibrate.capture import calibrate_capture
from ppt_gpu.calibrate.report import value_of
from ppt_gpu.cli import main
from ppt_gpu.common.errors import PptError
from ppt_gpu.spec import load_gpu
from ppt_gpu.validate.silicon.capture import Capture, read_capture
from ppt_gpu.validate.silicon.capture_runs import plan

#: what is changed in the H100, and how near it has to come back: cycles exactly, rates within 5 % (they act in steps)
CHANGED = {
    'op."fp32.fma".latency': "6",
    'op."sfu".ii': "5",
    "shared.latency": "34",
    "l1.latency": "33",
    "l2.latency": "301",
    "dram.latency": "777",
    "memory.transactions_per_cycle": "2",
    "interconnect.bandwidth": "45 B/cycle",
    "l2.bandwidth": "2900 B/cycle",
    "dram.efficiency": "0.75",
    "memory.atomics_per_cycle": "2",
    "host.launch_overhead": "3.5 us",
    "host.link_bandwidth": "40 GB/s",
    "host.copy_latency": "7 us",
    "sm.clock": "1700 MHz",
    "sm.count": "114",
}
TOLERANCE = 0.05
#: those of `latency` and `throughput` that are not changed are left out: each takes its time
LEFT_OUT = (
    "mma",
    "dfma",
    "dadd",
    "hfma2",
    "imad",
    "logic",
    "rsqrt",
    "popc",
    "ex2_1",
    "ffma_8",
    "shuffle",
    "cvt",
    "fadd",
    "fmul",
)
QUICK = ("latency", "throughput", "shared_latency", "l1_latency", "sm_bandwidth", "host")
SLOW = ("l2_latency", "dram_latency", "l1_scatter", "l2_bandwidth", "dram_bandwidth", "atomics")


def of_groups(*groups: str) -> Capture:
    gpu = load_gpu("h100", [f"{path}={value}" for path, value in CHANGED.items()])
    return synthetic_capture(
        gpu, [run for run in plan(gpu) if run.group in groups and not run.kernel.startswith(LEFT_OUT)]
    )


@pytest.fixture(scope="module")
def capture() -> Capture:
    return of_groups(*QUICK)


def calibrated(capture: Capture, folder: Path, capsys: pytest.CaptureFixture[str]) -> set[str]:
    """The changed numbers that come back, written by the command; all others are as they were."""
    source, target = folder / "capture.csv", folder / "mine.toml"
    source.write_text(capture_text(capture))
    assert main(["calibrate", "--capture", str(source), "--base", "h100", "-o", str(target), "--json"]) == 0
    numbers = {one["path"]: one for one in json.loads(capsys.readouterr().out)["numbers"]}
    assert main(["check", str(target)]) == 0
    true, written, base = load_gpu("h100", [f"{a}={b}" for a, b in CHANGED.items()]), load_gpu(target), load_gpu("h100")
    back = {path for path in CHANGED if path in numbers}
    for path in back:
        assert numbers[path]["determined"]
        if path.endswith((".latency", ".ii", ".count")):
            assert value_of(written, path) == value_of(true, path), path
        else:
            assert value_of(written, path) == pytest.approx(value_of(true, path), rel=TOLERANCE), path
            assert value_of(base, path) != pytest.approx(value_of(true, path), rel=TOLERANCE), path
        assert numbers[path]["low"] <= numbers[path]["value"] <= numbers[path]["high"]
        assert path.startswith("op.") or "calibrated" in written.sources[path].source
    assert written.title == "H100 SXM5, calibrated" and written.sm.schedulers == base.sm.schedulers
    return back


def test_a_known_gpu_comes_back(capture: Capture, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    host = {"host.launch_overhead", "host.link_bandwidth", "host.copy_latency", "sm.clock", "sm.count"}
    sm = {'op."fp32.fma".latency', 'op."sfu".ii', "shared.latency", "l1.latency", "interconnect.bandwidth"}
    assert calibrated(capture, tmp_path, capsys) == host | sm


@pytest.mark.slow
def test_its_memory_comes_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    back = calibrated(of_groups(*QUICK, *SLOW), tmp_path, capsys)
    assert back == set(CHANGED)


def test_the_text_of_a_capture_is_read_back(capture: Capture, tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    path.write_text(capture_text(capture))
    found = read_capture(path)
    assert found.facts == capture.facts
    assert [time.run for time in found.times] == [time.run for time in capture.times]
    for ours, theirs in zip(found.times, capture.times, strict=True):
        assert ours.median == pytest.approx(theirs.median, abs=1e-4)


def test_another_capability_is_refused(capture: Capture) -> None:
    with pytest.raises(PptError, match=r"compute capability 9.0, a100 has 8.0"):
        calibrate_capture(capture, "a100")


def test_a_run_that_took_no_longer(capture: Capture) -> None:
    first = next(time for time in capture.times if time.run.group == "shared_latency")
    times = (
        replace(time, median=first.median) if time.run.group == "shared_latency" else time for time in capture.times
    )
    with pytest.raises(PptError, match="took no longer"):
        calibrate_capture(replace(capture, times=tuple(times)), "h100", ["shared_latency"])


def test_a_capture_is_held_against_its_prediction(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gpu = load_gpu("h200", ["sm.clock=1800 MHz"])
    made = synthetic_capture(gpu, [run for run in plan(gpu) if run.group in ("host", "shared_latency")])
    slower = [replace(time, median=2 * time.median, high=2 * time.high) for time in made.times]
    path = tmp_path / "c.csv"
    path.write_text(
        capture_text(replace(made, facts={**made.facts, "memory_bytes": "150000000000"}, times=tuple(slower)))
    )
    assert main(["validate", "measured", "--capture", str(path), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert len(rows) == len(made.times) and {row["gpu"] for row in rows} == {"h200"}
    assert [row["error"] for row in rows] == pytest.approx([-0.5] * len(rows), abs=1e-4)
    path.write_text(path.read_text().replace("# gpu:", "# hardware: h100\n# gpu:"))
    assert main(["validate", "measured", "--capture", str(path), "--case", "shared_latency"]) == 0
    assert "h100" in capsys.readouterr().out
