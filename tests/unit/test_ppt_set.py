"""The PPT paper redone: the applications compute what they say; what is refused; how the projection is made."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ppt_gpu.cli import main
from ppt_gpu.emulator.memory.memory import DeviceMemory
from ppt_gpu.emulator.run.run import run
from ppt_gpu.ptx.parsing.parser import parse_module
from ppt_gpu.validate.papers.ppt import APPLICATIONS, Application, Case, speedups
from ppt_gpu.workload.workload import Workload

SGEMM, STENCIL, OPT_STENCIL = APPLICATIONS


def outcome(workload: Workload) -> list[np.ndarray]:
    """The buffers after a run of the whole grid from random content."""
    module = parse_module(Path(workload.ptx_path).read_text(), workload.ptx_path)
    buffers = [replace(buffer, init="random", seed=number) for number, buffer in enumerate(workload.buffers)]
    memory = DeviceMemory.build(module, buffers)
    (launch,) = workload.launches
    run(module.kernels[launch.kernel], module, launch, memory, range(launch.blocks), trace=False)
    return [memory.view(buffer.name, "f4") for buffer in buffers]


def test_sgemm_multiplies() -> None:
    a, b, c = (matrix.reshape(128, 128).T.astype(float) for matrix in outcome(SGEMM.workload(100)))  # column-major
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)


@pytest.mark.parametrize("application", [STENCIL, OPT_STENCIL], ids=lambda one: one.name)
def test_stencils_compute_seven_points(application: Application) -> None:
    volume, result = (one.reshape(34, 34, 34).astype(float) for one in outcome(application.workload(34)))
    inner = slice(1, -1)
    near = sum(np.roll(volume, step, axis) for axis in range(3) for step in (1, -1))
    np.testing.assert_allclose(result[inner, inner, inner], (near - 6 * volume)[inner, inner, inner], atol=2e-5)


def test_both_copies_and_a_thousand_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", "ppt", "--case", "STENCIL k40 32", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["application"] for row in rows] == ["STENCIL", "OPT_STENCIL"]
    copies = 2 * (10e-6 + 4 * 32**3 / 6.175e9)
    for row in rows:
        assert row["simulation"] == pytest.approx(copies + 1000 * max(row["kernel"], 3.5e-6), rel=0.01)


def test_what_does_not_fit_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", "ppt", "--case", "OPT_STENCIL m2090 1024"]) == 0
    assert "refused: out of memory, the GPU has 6 GiB" in capsys.readouterr().out
    assert OPT_STENCIL.bytes(1024) == 8_589_934_592  # "> 8.5 GB", section 4.3
    assert SGEMM.bytes(16384) < 6 << 30


def test_speed_up_of_the_projection() -> None:
    def case(gpu: str, size: int, simulation: float | None) -> Case:
        return Case("STENCIL", gpu, size, 1, 1, simulation, simulation and 2 * simulation, simulation)

    found = [case("k6000", 16, 3.0), case("pascal_ppt", 16, 2.0), case("k6000", 32, 3.0), case("pascal_ppt", 32, None)]
    (one,) = speedups(found)
    assert (one.printed, one.simulation, one.module) == (1.5, {16: 1.5}, {16: 1.5})


def test_a_set_without_figure(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", "mwp", "--plot", "x.png"]) == 2
    assert "set 'mwp' has no figure" in capsys.readouterr().err


def test_the_figure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / "ppt.svg"
    assert main(["validate", "ppt", "--case", "STENCIL m2090 16", "--plot", str(path)]) == 0
    assert "figure 6" in capsys.readouterr().out
    assert path.read_text().lstrip().startswith("<?xml")
