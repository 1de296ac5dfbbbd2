"""The SM loop compiled in a second process: only where that is needed, and nothing depends on how the process ends."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hanging import HANGING

from benchmarks.loop_programs import DEPENDENT_FMA, loop_program
from ppt_gpu.common.compiled import entry
from ppt_gpu.sm import precompile
from ppt_gpu.sm.loop.loop import common_loop
from ppt_gpu.sm.one_sm import simulate
from ppt_gpu.sm.program.result import SmResult
from ppt_gpu.spec import load_gpu

WAITS = "import sys; sys.stdin.buffer.read()"


def simulated() -> SmResult:
    gpu = load_gpu("k40")
    return simulate(loop_program(gpu, DEPENDENT_FMA, 4, 1, 1), gpu, resident_blocks=1, active_sms=1)


def simulated_first() -> SmResult:
    """As the first thing of a process that needs compiled code."""
    entry(simulated).made()
    return simulated()


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[subprocess.Popen[bytes]]]:
    """As if nothing were in the cache; the processes that are started, which wait for their end."""
    found: list[subprocess.Popen[bytes]] = []

    def start() -> subprocess.Popen[bytes]:
        found.append(subprocess.Popen([sys.executable, "-c", WAITS], stdin=subprocess.PIPE))
        return found[-1]

    monkeypatch.setattr(precompile, "_start", start)
    monkeypatch.setattr(precompile, "_is_kept", lambda loop: False)
    monkeypatch.setattr(precompile, "processors", lambda: 2)
    yield found
    for process in found:
        process.kill()
        process.communicate()


def test_no_process_where_the_loop_is_in_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precompile, "_start", lambda: pytest.fail("a process was started"))
    simulated()
    with precompile.loop_beside():
        simulated_first()


def test_no_process_on_one_processor(started: list[subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precompile, "processors", lambda: 1)
    with precompile.loop_beside():
        simulated_first()
    assert not started


def test_no_process_where_nothing_is_compiled(started: list[subprocess.Popen[bytes]]) -> None:
    with precompile.loop_beside():
        assert not started
    simulated_first()
    assert not started


def test_a_killed_process_changes_nothing(started: list[subprocess.Popen[bytes]]) -> None:
    wanted = simulated()
    with precompile.loop_beside():
        entry(simulated).made()
        started[0].kill()
        found = simulated()
    assert len(started) == 1
    assert found.cycles == wanted.cycles


def test_a_process_that_hangs_is_not_waited_for_forever(
    started: list[subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(precompile, "PATIENCE", 0.05)
    with precompile.loop_beside():
        simulated_first()
        assert started[0].returncode not in (None, 0)


def test_an_error_ends_the_process(started: list[subprocess.Popen[bytes]]) -> None:
    with pytest.raises(KeyboardInterrupt), precompile.loop_beside():
        entry(simulated).made()
        raise KeyboardInterrupt
    assert started[0].returncode not in (None, 0)
    assert precompile._beside is None


def test_another_loop_is_not_waited_for(started: list[subprocess.Popen[bytes]]) -> None:
    with precompile.loop_beside():
        entry(simulated).made()
        precompile.wait_for(None)
        assert started[0].poll() is None


def test_no_more_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precompile, "_is_kept", lambda loop: False)
    monkeypatch.setattr(sys, "executable", os.devnull)
    with precompile.loop_beside():
        simulated_first()


def test_the_process_ends_with_the_one_that_started_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))  # so that it compiles, which takes long
    process = precompile._start()
    assert process is not None
    process.communicate(timeout=HANGING)
    assert process.returncode == precompile.LEFT_ALONE
    assert not list(tmp_path.rglob("core.make_loop*.nbi"))


@pytest.mark.slow
def test_a_first_prediction_finds_the_loop_compiled(tmp_path: Path) -> None:
    """The types for which the second process compiles the loop are those of real kernels."""
    code = (
        "import json, sys; from ppt_gpu.cli import main; from ppt_gpu.sm.loop.loop import common_loop; "
        "code = main(['predict', 'vecadd', '--gpu', 'k40', '--no-cache']); stats = common_loop().stats; "
        "print(json.dumps([code, len(stats.cache_hits), len(stats.cache_misses)]))"
    )
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    found = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert json.loads(found.stdout.splitlines()[-1]) == [0, 1, 0]


def test_the_cache_is_recognised() -> None:
    simulated()
    assert precompile._is_kept(common_loop())
