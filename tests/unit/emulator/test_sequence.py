"""Launches in order: loops unrolled, what is predicted once, and what must run for its data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ppt_gpu
from ppt_gpu.common.errors import PptError
from ppt_gpu.emulator.cache.traces import LaunchTraces, Traces
from ppt_gpu.emulator.launch.sequence import Sequence, plan_sequence
from ppt_gpu.ptx.module import Module
from ppt_gpu.ptx.parsing.parser import load_module
from ppt_gpu.workload.budget import Budget
from ppt_gpu.workload.reader import bind_workload, load_workload
from ppt_gpu.workload.workload import Workload

PTX = Path(__file__).parents[2] / "data" / "scale" / "irregular.ptx"


def read(folder: Path, text: str) -> tuple[Workload, Module]:
    path = folder / "w.toml"
    path.write_text(f'ptx = "{PTX}"\nblock = 128\nregisters = 24\n{text}')
    workload = load_workload(path)
    module = load_module(PTX)
    return bind_workload(workload, module), module


def planned(folder: Path, text: str) -> Sequence:
    return plan_sequence(*read(folder, text))


def steps(sequence: Sequence) -> list[tuple[int, int, bool]]:
    return [(step.number, step.count, step.advance) for step in sequence.steps]


def graph(folder: Path, nodes: int = 1024) -> tuple[np.ndarray, np.ndarray]:
    """A random graph in CSR form, as two .npy files, and the depths of its nodes before the search."""
    rng = np.random.default_rng(11)
    degree = rng.integers(1, 6, nodes)
    first = np.concatenate(([0], np.cumsum(degree))).astype(np.int32)
    neighbour = rng.integers(0, nodes, first[-1]).astype(np.int32)
    depth = np.full(nodes, -1, np.int32)
    depth[0] = 0
    for name, values in (("first", first), ("neighbour", neighbour), ("depth", depth)):
        np.save(folder / f"{name}.npy", values)
    return first, neighbour


def searched(first: np.ndarray, neighbour: np.ndarray) -> np.ndarray:
    depth = np.full(len(first) - 1, -1, np.int64)
    depth[0] = 0
    front = [0]
    while front:
        following = []
        for node in front:
            for other in neighbour[first[node] : first[node + 1]]:
                if depth[other] < 0:
                    depth[other] = depth[node] + 1
                    following.append(int(other))
        front = following
    return depth


SEARCH = """
grid = 8
kernel = "bfs"
[buffers]
first = "s32[]=npy:first.npy"
neighbour = "s32[]=npy:neighbour.npy"
depth = "s32[]=npy:depth.npy"
[[loop]]
repeat = 12
[[loop.launch]]
arguments = ["first", "neighbour", "depth", "i32=1024", "i32=round"]
"""

PING_PONG = """
grid = [4, 4]
kernel = "boundary"
[buffers]
a = "f32[2048]=random"
b = "f32[2048]"
[[launch]]
kernel = "plain"
grid = 16
arguments = ["a", "b", "i32=2048"]
[[loop]]
repeat = 5
swap = ["a", "b"]
[[loop.launch]]
arguments = ["a", "b", "i32=512"]
[[launch]]
kernel = "plain"
grid = 16
arguments = ["b", "a", "i32=2048"]
"""


def test_launches_and_loops_run_in_the_order_of_the_file(tmp_path: Path) -> None:
    workload, module = read(tmp_path, PING_PONG)
    assert [launch.kernel for launch in workload.launches] == ["plain", "boundary", "plain"]
    assert workload.places == ("launch[0]", "loop[0].launch[0]", "launch[1]")
    assert [(loop.first, loop.end, loop.repeat, loop.swap) for loop in workload.loops] == [(1, 2, 5, ("a", "b"))]
    found = plan_sequence(workload, module)
    assert steps(found) == [(0, 1, False), (1, 5, False), (0, 1, False)]
    assert [launch.repeat for launch in found.launches] == [2, 5]


def test_sparse_products_are_one_prediction_and_nothing_runs_for_them(tmp_path: Path) -> None:
    """Rows and columns steer it, but no launch writes them."""
    text = """
grid = 4
[buffers]
first = "s32[513]"
column = "s32[512]"
value = "f32[512]"
x = "f32[512]"
y = "f32[512]"
[[loop]]
repeat = 1000
swap = ["x", "y"]
[[loop.launch]]
kernel = "spmv"
arguments = ["first", "column", "value", "x", "y", "i32=512"]
[[loop.launch]]
kernel = "plain"
arguments = ["y", "x", "i32=512"]
"""
    found = planned(tmp_path, text)
    assert {launch.kernel for launch in found.launches} == {"spmv", "plain"}
    assert sum(step.count for step in found.steps) == 2000 and not any(step.advance for step in found.steps)
    by_kernel = [(launch.kernel, launch.repeat) for launch in found.launches]
    assert by_kernel == [("spmv", 500), ("plain", 1000), ("spmv", 500)]  # x and y change places


def test_a_search_is_predicted_level_by_level(tmp_path: Path) -> None:
    graph(tmp_path)
    found = planned(tmp_path, SEARCH)
    assert steps(found) == [(level, 1, level < 11) for level in range(12)]
    assert [launch.arguments[-1].value for launch in found.launches] == list(range(12))


def test_every_level_finds_what_the_one_before_left(tmp_path: Path) -> None:
    first, neighbour = graph(tmp_path)
    workload, module = read(tmp_path, SEARCH)
    expected = searched(first, neighbour)
    sequence = plan_sequence(workload, module)
    bound = Workload(**{**vars(workload), "launches": sequence.launches})
    traces = Traces(module, bound, {}, Budget())
    active = []
    for step in sequence.steps:
        one: LaunchTraces = traces.launch(step.number)
        active.append(one.features(range(8)).thread_instructions.sum())
        one.advance(range(8))
    assert np.array_equal(traces.state.memory.view("depth", np.int32), expected)
    levels = np.bincount(expected[expected >= 0])
    widest = int(levels.argmax())
    assert active.index(max(active)) == widest and active[0] == min(active)


def test_predictions_of_a_search_follow_its_front(tmp_path: Path) -> None:
    first, neighbour = graph(tmp_path)
    (tmp_path / "w.toml").write_text(f'ptx = "{PTX}"\nblock = 128\nregisters = 24\n{SEARCH}')
    result = ppt_gpu.predict(str(tmp_path / "w.toml"), "k40")
    levels = np.bincount(searched(first, neighbour)[searched(first, neighbour) >= 0], minlength=12)
    assert len(result.launches) == 12
    cycles = [float(launch.value("kernel.cycles")) for launch in result.launches]
    assert min(cycles) == cycles[0] and cycles[int(levels.argmax())] > 2 * cycles[0]
    again = ppt_gpu.predict(str(tmp_path / "w.toml"), "k40", cache=False)
    assert [launch.value("kernel.cycles") for launch in again.launches] == cycles


def test_repeats_of_what_steers_itself_are_predicted_one_by_one(tmp_path: Path) -> None:
    graph(tmp_path)
    text = SEARCH.partition("[[loop]]")[0] + (
        '[[launch]]\nrepeat = 3\narguments = ["first", "neighbour", "depth", "i32=1024", "i32=0"]\n'
    )
    assert steps(planned(tmp_path, text)) == [(0, 1, True), (1, 1, True), (2, 1, False)]
    regular = 'grid = 16\nkernel = "plain"\narguments = ["f32[2048]", "f32[2048]", "i32=2048"]\nrepeat = 30\n'
    assert steps(planned(tmp_path, regular)) == [(0, 30, False)]


def test_scalars_and_buffers_tell_launches_apart(tmp_path: Path) -> None:
    text = """
grid = 16
kernel = "plain"
[buffers]
a = "f32[2048]"
b = "f32[2048]"
c = "f32[4096]"
[[launch]]
arguments = ["a", "b", "i32=2048"]
[[launch]]
arguments = ["b", "a", "i32=2048"]
[[launch]]
arguments = ["b", "a", "i32=1024"]
[[launch]]
arguments = ["a", "c", "i32=2048"]
[[launch]]
arguments = ["a", "a", "i32=2048"]
[[launch]]
arguments = ["b", "b", "i32=2048"]
"""
    assert steps(planned(tmp_path, text)) == [(0, 2, False), (1, 1, False), (2, 1, False), (3, 2, False)]


def test_one_result_for_all_runs_and_the_time_of_all() -> None:
    result = ppt_gpu.predict("jacobi", "k40")
    (launch,) = result.launches
    assert launch.extra["repeat"] == 100
    seconds = float(launch.value("kernel.cycles")) / float(launch.value("gpu.clock"))
    assert result.time == pytest.approx(100 * seconds + float(launch.value("kernel.launch_overhead")), rel=1e-6)
    assert any("100 runs" in text for text in launch.assumptions)


@pytest.mark.parametrize(
    ("value", "loop", "text"),
    [
        ("u8=200+10*round", True, "in the last of 12 rounds: 310 does not fit u8"),
        ("i32=round", False, "this launch is in no loop"),
        ("f32=round", True, "round is an integer"),
    ],
)
def test_bad_rounds(value: str, loop: bool, text: str, tmp_path: Path) -> None:
    graph(tmp_path)
    head = SEARCH if loop else SEARCH.replace("[[loop]]\nrepeat = 12\n[[loop.launch]]", "[[launch]]")
    with pytest.raises(PptError, match=text):
        planned(tmp_path, head.replace("i32=round", value))


def test_a_grid_too_large_to_run_for_its_data_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph(tmp_path)
    monkeypatch.setattr("ppt_gpu.scale.simulated_sm.ADVANCE_BUDGET", 1000)
    (tmp_path / "w.toml").write_text(f'ptx = "{PTX}"\nblock = 128\nregisters = 24\n{SEARCH}')
    result = ppt_gpu.predict(str(tmp_path / "w.toml"), "k40", cache=False)
    assert any("too large to run whole" in text for text in result.launches[0].warnings)
    assert not result.launches[-1].warnings  # nothing runs after it
