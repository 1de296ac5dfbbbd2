"""Under mpirun: the same digest from any number of processes, and the fault of one ends all. Needs mpi4py, mpirun."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hanging import HANGING

from ppt_gpu.cluster.engine import mpi
from ppt_gpu.common.errors import PptError

MPIRUN = shutil.which("mpirun", path=os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", ""))))
needs_mpi = pytest.mark.skipif(
    MPIRUN is None or importlib.util.find_spec("mpi4py") is None, reason="mpi4py or mpirun is missing"
)
ROOT = {f"{name}_ALLOW_RUN_AS_ROOT{more}": "1" for name in ("OMPI", "PRTE") for more in ("", "_CONFIRM")}

APPLICATION = """
def app(rank, iterations=3):
    grid = rank.grid(2)
    peers = [grid.neighbour(axis, step) for axis in range(2) for step in (-1, 1)]
    for turn in range(iterations):
        rank.launch(1e-6 * (1 + rank.index % 3))
        yield rank.synchronize()
        receives = [rank.irecv(peer, 100_000 * turn, side ^ 1) for side, peer in enumerate(peers)]
        yield receives + [rank.isend(peer, 100_000 * turn, side) for side, peer in enumerate(peers)]
        yield rank.all_reduce(8)
        yield rank.all_gather(800, group=range(rank.local, rank.size, rank.local_size))
        yield rank.all_reduce(8, algorithm="recursive_doubling", memory="host")
        {fault}
"""


def under_mpi(processes: int, folder: Path, fault: str, *more: str) -> subprocess.CompletedProcess[str]:
    file = folder / "application.py"
    file.write_text(APPLICATION.replace("{fault}", fault or "pass"))
    command = [str(MPIRUN), "--oversubscribe", "-n", str(processes), sys.executable, "-m", "ppt_gpu", "cluster"]
    command += [str(file), "--machine", "dgx_h100", "--nodes", "4", "--digest", "--json", *more]
    return subprocess.run(command, capture_output=True, text=True, timeout=HANGING, env=os.environ | ROOT, check=False)


@needs_mpi
def test_any_number_of_processes(tmp_path: Path) -> None:
    cases = [(1, "block"), (3, "round_robin"), (4, "round_robin")]
    done = [under_mpi(processes, tmp_path, "", "--placement", scheme) for processes, scheme in cases]
    assert [run.returncode for run in done] == [0] * len(cases), [run.stderr for run in done]
    assert len({run.stdout for run in done}) == 1
    assert {"sha256", "critical_path"} <= set(json.loads(done[0].stdout))


@needs_mpi
def test_an_exception_ends_all(tmp_path: Path) -> None:
    run = under_mpi(3, tmp_path, "assert rank.index != 30, 'out of memory'")
    assert run.returncode not in (0, 124)
    assert run.stderr.count("rank 30: AssertionError: out of memory") == 1
    assert "Traceback" not in run.stderr


@pytest.mark.slow
@needs_mpi
def test_a_killed_process_ends_all(tmp_path: Path) -> None:
    run = under_mpi(3, tmp_path, "rank.index == 30 and __import__('os').kill(__import__('os').getpid(), 9)")
    assert run.returncode not in (0, 124)
    assert run.stdout == ""


def test_started_by_mpirun_without_mpi4py(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "2")
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(PptError, match="mpi4py cannot be imported"):
        mpi.processes()


def test_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in mpi.SIZES:
        monkeypatch.delenv(name, raising=False)
    assert mpi.processes() is None
