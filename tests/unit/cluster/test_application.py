"""Applications from files: shipped ones run, parameters are checked, files that do not run say where."""

from __future__ import annotations

from pathlib import Path

import pytest
from plain_machine import PlainMachine

from ppt_gpu.cluster.application import load_application, shipped_applications
from ppt_gpu.cluster.engine.simulate import simulate
from ppt_gpu.cluster.engine.world import Settings
from ppt_gpu.cluster.model.kernel import Kernel
from ppt_gpu.common.errors import PptError

APPLICATIONS = {
    "conjugate_gradient": "iterations=2",
    "data_parallel": "steps=2",
    "iterate_with_copies": "iterations=2",
    "jacobi2d": "iterations=2",
    "jacobi3d": "iterations=2",
    "pipeline_parallel": "batches=3",
    "summa": "n=256",
}


def a_millisecond(kernel: Kernel, gpu: str) -> float:
    assert kernel.workload and gpu == "k40"
    return 1e-3


def test_all_are_here() -> None:
    assert shipped_applications() == sorted(APPLICATIONS)


@pytest.mark.parametrize("name", APPLICATIONS)
def test_shipped_applications_run(name: str) -> None:
    application = load_application(name, [APPLICATIONS[name]])
    assert application.description
    settings = Settings(digest=True, history=True, kernel_times=a_millisecond)
    machine = PlainMachine(nodes=4, gpus_per_node=2)
    found = simulate(machine, application.program, settings)
    full = simulate(machine, application.program, settings, collapse=False, partitions=2)
    assert found.sha256 == full.sha256
    assert found.time > 1e9
    for rank in found.ranks:
        assert rank.split is not None
        assert rank.split.compute + rank.split.exposed + rank.split.copies + rank.split.idle == rank.end
    assert found.path[-1][4] <= found.time


@pytest.mark.parametrize("name", ["jacobi2d", "jacobi3d", "data_parallel"])
def test_overlap_helps(name: str) -> None:
    """A slow network, so that what is hidden shows."""
    machine = PlainMachine(nodes=4, gpus_per_node=2, byte=4000)
    times = []
    for overlap in ("true", "false"):
        program = load_application(name, [f"overlap={overlap}"]).program
        times.append(simulate(machine, program, Settings(kernel_times=lambda kernel, gpu: 1e-3 / kernel.times)).time)
    assert times[0] < times[1]


def test_pipeline_bubble() -> None:
    """With free messages the step takes (ranks + batches - 1) slots forward and back (GPipe)."""
    machine = PlainMachine(nodes=4, gpus_per_node=1, overhead=0, latency=1, byte=0, near_byte=0)
    program = load_application("pipeline_parallel", ["layers=1", "batches=6"]).program
    slots = simulate(machine, program, Settings(kernel_times=a_millisecond)).time / 1e9
    assert slots == pytest.approx((4 + 6 - 1) * 3, rel=1e-3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def app(rank):\n    return 1\n", "no generator function 'app'"),
        ("def main(rank):\n    yield\n", "no generator function 'app'"),
        ("def app(rank)\n    yield\n", "app.py:1:"),
        ("x = 1\ny = 1 / 0\n", "app.py:2: ZeroDivisionError: division by zero"),
        ("def app(rank, n):\n    yield\n", "parameters without a default: n"),
    ],
)
def test_files_that_do_not_run(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "app.py").write_text(text)
    with pytest.raises(PptError) as found:
        load_application(tmp_path / "app.py")
    assert message in str(found.value)


@pytest.mark.parametrize(
    ("source", "parameters", "message"),
    [
        ("jacobi3e", [], "did you mean 'jacobi3d'?"),
        ("nowhere/jacobi3d.py", [], "no such file"),
        ("jacobi3d", ["m=5"], "has no parameter 'm'"),
        ("jacobi3d", ["n"], "expected NAME=VALUE"),
        ("jacobi3d", ["n=5.5"], "'5.5' is not a whole number"),
        ("jacobi3d", ["overlap=yes"], "'yes' is not true or false"),
        ("iterate_with_copies", ["host_time=soon"], "'soon' is not a number"),
    ],
)
def test_names_and_parameters(source: str, parameters: list[str], message: str) -> None:
    with pytest.raises(PptError) as found:
        load_application(source, parameters)
    assert message in str(found.value)


def test_parameters_are_of_the_type_of_their_defaults() -> None:
    found = load_application("jacobi3d", ["n=64", "overlap=False"]).parameters
    assert found == {"n": 64, "iterations": 10, "overlap": False, "norm_every": 1}
