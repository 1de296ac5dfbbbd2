"""The command `cluster` from outside, and kernel times that are predicted once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from trace_format import read

from ppt_gpu.cli import main
from ppt_gpu.cluster.model.kernel import Kernel
from ppt_gpu.cluster_kernels import PredictedKernels
from ppt_gpu.common.errors import PptError
from ppt_gpu.report.figures.cluster import decade_ticks

APPLICATION = '''"""Neighbours, a kernel and an all-reduce.

More."""


def app(rank, nbytes=4096, seconds=50e-6, iterations=4):
    before, behind = rank.grid(1).neighbours(0)
    for _ in range(iterations):
        yield rank.launch(seconds)
        yield [rank.irecv(before, nbytes), rank.isend(behind, nbytes)]
        yield rank.all_reduce(nbytes)
        rank.mark()
'''


@pytest.fixture
def application(tmp_path: Path) -> str:
    (tmp_path / "ring.py").write_text(APPLICATION)
    return str(tmp_path / "ring.py")


def simulated(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["cluster", *arguments, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_json(application: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = (application, "--machine", "dgx_h100", "--nodes", "4", "--digest", "-p", "iterations=3")
    found = simulated(capsys, *arguments)
    assert (found["schema"], found["ranks"], found["nodes"], found["machine"]) == (1, 32, 4, "dgx_h100")
    assert found["parameters"] == {"nbytes": 4096, "seconds": 50e-6, "iterations": 3}
    assert 3 * 50e-6 < found["time_s"] < 1e-3
    assert found["iteration_s"] * 3 == pytest.approx(found["time_s"], rel=0.2)
    assert len(found["sha256"]) == 64
    for how in (("--full",), ("--full", "--queue", "simpy"), ("--full", "--partitions", "3")):
        other = simulated(capsys, *arguments, *how)
        assert (other["sha256"], other["time_s"]) == (found["sha256"], found["time_s"])
    jittered = [simulated(capsys, *arguments, "--jitter", "5%", "--partitions", parts)["sha256"] for parts in "124"]
    assert len(set(jittered)) == 1
    assert jittered[0] != found["sha256"]


def test_text(application: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cluster", application, "--machine", "dgx_a100", "--nodes", "1,2,4", "--scaling", "weak"]) == 0
    out = capsys.readouterr().out
    for text in (
        "ring on dgx_a100, 4 nodes, 32 ranks",
        "an iteration",
        "Time of a rank",
        "Critical path",
        "Weak scaling",
    ):
        assert text in out


def test_lines_fit_a_terminal(application: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cluster", application, "--machine", "dgx_h100", "--nodes", "1,2,4", "--sensitivity"]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80


def test_sensitivity_names_what_does_not_matter(application: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = simulated(capsys, application, "--machine", "k40_node", "--nodes", "4", "--sensitivity")
    effects = {effect["parameter"]: effect["ratio"] for effect in found["sensitivity"]}
    assert 1.02 < effects["kernel times"] < 1.1
    assert any(ratio == 1 for ratio in effects.values())


def test_values_for_each_size(application: str, capsys: pytest.CaptureFixture[str]) -> None:
    machine = ("--machine", "dgx_h100", "--nodes", "1,2,4", "--scaling", "strong")
    found = simulated(capsys, application, *machine, "-p", "seconds=4e-3,2e-3,1e-3")
    sizes = found["scaling"]
    assert [size["nodes"] for size in sizes] == [1, 2, 4]
    assert 3.5 < sizes[2]["speedup"] < 4
    assert sizes[2]["efficiency"] == pytest.approx(sizes[2]["speedup"] / 4)


@pytest.mark.parametrize(("more", "said"), [((), True), (("-p", "seconds=2e-3,1e-3"), False)])
def test_strong_scaling_says_that_parameters_are_the_same(
    application: str, capsys: pytest.CaptureFixture[str], more: tuple[str, ...], said: bool
) -> None:
    assert main(["cluster", application, "--machine", "dgx_a100", "--nodes", "1,2", "--scaling", "strong", *more]) == 0
    assert ("all node counts ran with the same parameters" in capsys.readouterr().out) is said


def test_all_errors_of_a_launch_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cluster", "jacobi3d", "--machine", "dgx_h100", "--nodes", "2", "-p", "n=1"]) == 2
    error = capsys.readouterr().err
    assert "jacobi3d.py:" in error and "rank 0: grid.x is 0" in error and "rank 0: grid.y is 0" in error


def test_ticks_enclose_the_times() -> None:
    assert decade_ticks(0.057, 0.46) == pytest.approx([0.05, 0.1, 0.2, 0.5])
    assert decade_ticks(2, 5) == pytest.approx([2, 5])


def test_timeline_of_chosen_ranks(application: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A node's ranks stand for all; both ways of simulating give the same timeline."""
    documents = []
    for how in ((), ("--full",)):
        file = tmp_path / "timeline.json"
        machine = ("--machine", "dgx_h100", "--nodes", "3", "--set", "network=single_switch")
        simulated(capsys, application, *machine, "--timeline", str(file), "--ranks", "1,17", *how)
        events = read(file)["traceEvents"]
        documents.append([event for event in events if event["pid"] <= 24])  # ranks, from 1 on; then the critical path
    first, second = documents
    assert first == second
    kernels = [event for event in first if event.get("tid") == 1 and event["ph"] == "X"]
    assert [event["dur"] for event in kernels if event["pid"] == 18] == [50] * 4
    assert main(["cluster", application, *machine, "--timeline", str(file), "--ranks", "24"]) == 2
    assert "no rank 24" in capsys.readouterr().err


def test_plot_of_scaling(application: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    file = tmp_path / "scaling.svg"
    simulated(capsys, application, "--machine", "dgx_h100", "--nodes", "1,2,4", "--plot", str(file))
    assert "<svg" in file.read_text()
    assert main(["cluster", application, "--machine", "dgx_h100", "--plot", str(file)]) == 2
    assert "several node counts" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["jacobi3d", "--machine", "dgx_h10"], "dgx_h100"),
        (["jacobi4d", "--machine", "dgx_h100"], "did you mean 'jacobi3d'?"),
        (["jacobi3d", "--machine", "dgx_h100", "--nodes", "0"], "'0' is not a positive number"),
        (["jacobi3d", "--machine", "dgx_h100", "--jitter", "2"], "expected a share between 0 and 1"),
        (["jacobi3d", "--machine", "dgx_h100", "--nodes", "1,2", "-p", "n=1,2,3"], "3 values for 2 node counts"),
        (["jacobi3d", "--machine", "dgx_h100", "--set", "network.latancy=1 us"], "network.latancy"),
    ],
)
def test_bad_command_lines(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cluster", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert err.startswith("error: ")


def test_kernels_are_predicted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PPT_GPU_CACHE", str(tmp_path))
    kernel = Kernel("saxpy", (64,), (256,), ("i32=65536", "f32=2.0", "f32[65536]", "f32[65536]"), registers=12)
    first = PredictedKernels(tmp_path)
    seconds = first(kernel, "k40")
    again = PredictedKernels(tmp_path)
    assert again(kernel, "k40") == seconds
    assert (first.predicted, again.predicted) == (1, 0)
    assert again(Kernel(**{**vars(kernel), "times": 3}), "k40") == 3 * seconds
    assert again(kernel, "k6000") != seconds
    assert again.predicted == 1


def test_kernels_that_cannot_be_predicted(tmp_path: Path) -> None:
    with pytest.raises(PptError, match="need a grid"):
        PredictedKernels(tmp_path)(Kernel("saxpy", block=(64,)), "k40")
    with pytest.raises(PptError, match="saxpi"):
        PredictedKernels(tmp_path)(Kernel("saxpi"), "k40")
