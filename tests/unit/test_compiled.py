"""Compiled functions: numba is imported when one is called, and others run meanwhile."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from benchmarks.loop_programs import DEPENDENT_FMA, loop_program
from ppt_gpu.common import compilers
from ppt_gpu.common.compiled import Deferred, called, entry, merged
from ppt_gpu.sm.loop import loop as core
from ppt_gpu.sm.one_sm import simulate
from ppt_gpu.spec import load_gpu


@merged
def doubled(x: int) -> int:
    return x * 2


@merged
def tripled(x: int) -> int:
    return doubled(x) + x


@called
def four_times(x: int) -> int:
    return tripled(x) + x


@entry
def all_of(x: int) -> int:
    """Sum of multiples."""
    return doubled(x) + tripled(x) + four_times(x)


def test_functions_that_call_each_other() -> None:
    assert all_of(5) == 45
    assert all_of.__doc__ == "Sum of multiples."
    assert all_of.py_func.__name__ == "all_of"
    assert not isinstance(all_of.py_func.__globals__["tripled"], Deferred)


def test_helpers_are_for_compiled_code() -> None:
    for helper in (doubled, four_times):
        with pytest.raises(TypeError, match=f"{helper.__name__} is for compiled code"):
            helper(2)


def test_functions_in_a_closure() -> None:
    helper, offset = called(lambda x: x + 1), 7

    def outer(x: int) -> int:
        return helper(x) + offset

    assert entry(outer)(1) == 9


def test_looked_at_without_being_compiled() -> None:
    function = entry(lambda x: x)
    assert not hasattr(function, "__array__") and copy.copy(function) is not function
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(function)
    assert function._made is None


def test_one_thread_makes_it_and_all_use_it(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    def make(function: object, options: object) -> object:
        made.append(function)
        return function

    monkeypatch.setattr(compilers, "kept", make)
    function = Deferred(lambda: 3, "kept")
    threads = [threading.Thread(target=function) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert function() == 3 and len(made) == 1


#: what takes long to import, and is of no use where nothing is run, lowered or simulated
RUNNING = {
    "numba", "llvmlite", "ppt_gpu.emulator.run.run", "ppt_gpu.machine.code", "ppt_gpu.sm.lowering.lower",
    "ppt_gpu.sm.one_sm",
}  # fmt: skip


def test_a_kept_answer_needs_no_compiler_and_no_simulator(tmp_path: Path) -> None:
    code = (
        "import sys; from ppt_gpu.cli import main; code = main(['predict', 'vecadd', '--gpu', 'k40']); "
        f"print('used:', *{RUNNING!r} & set(sys.modules)); sys.exit(code)"
    )
    environment = os.environ | {"PPT_GPU_CACHE": str(tmp_path)}
    runs = [
        subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    first, again = (run.stdout.partition("used:") for run in runs)
    assert set(first[2].split()) == RUNNING and not again[2].strip()
    assert again[0] == first[0]


def test_what_is_kept_is_read_without_what_compiling_needs(tmp_path: Path) -> None:
    """Then something else is compiled in the same process."""
    (tmp_path / "few.py").write_text(
        "from ppt_gpu.common.compiled import entry\n"
        "@entry\ndef twice(x):\n    return 2 * x\n"
        "@entry\ndef thrice(x):\n    return 3 * x\n"
    )
    code = (
        "import sys; import numpy as np; from few import thrice, twice; n = np.arange(3)\n"
        "print(twice(21), 'numba.np.linalg' in sys.modules)\n"
        "print(thrice(14), 'numba.np.linalg' in sys.modules) if len(sys.argv) > 1 else None\n"
    )
    environment = os.environ | {
        "NUMBA_CACHE_DIR": str(tmp_path),
        "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path]),
    }
    seen = [
        subprocess.run([sys.executable, "-c", code, *more], env=environment, capture_output=True, text=True, check=True)
        for more in ([], ["both"])
    ]
    assert seen[0].stdout.split() == ["42", "True"]
    assert seen[1].stdout.split() == ["42", "False", "42", "True"]


def test_what_allocates_is_read_with_what_allocates(tmp_path: Path) -> None:
    (tmp_path / "room.py").write_text(
        "import numpy as np\nfrom ppt_gpu.common.compiled import entry\n"
        "def plain(x):\n    found = np.zeros(3, np.int64)\n    found[1] = x\n    return found\n"
        "room = entry(plain, _nrt=True)\n"
    )
    path = os.pathsep.join([str(tmp_path), *sys.path])
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": path}
    command = [sys.executable, "-c", "from room import room; print(*room(7))"]
    for _ in range(2):
        run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        assert run.stdout.split() == ["0", "7", "0"]


def test_other_threads_run_beside_the_loop_of_the_sm(monkeypatch: pytest.MonkeyPatch) -> None:
    """They see blocks end while others have not; without that neither --threads nor Ctrl-C would work."""
    seen = set()

    class Watched(core.Progress):
        def __enter__(self) -> core.Progress:
            self.over = threading.Event()
            threading.Thread(target=self._look).start()
            return super().__enter__()

        def _look(self) -> None:
            while not self.over.wait(0.001):
                seen.add(self.counted() if self.counted else 0)

        def __exit__(self, *error: object) -> None:
            self.over.set()
            super().__exit__(*error)

    monkeypatch.setattr(core, "Progress", Watched)
    gpu = load_gpu("k40")
    program = loop_program(gpu, DEPENDENT_FMA, 2000, 8, 200)
    simulate(program, gpu, resident_blocks=1, active_sms=1, skip=False)
    assert any(0 < ended < 200 for ended in seen)
