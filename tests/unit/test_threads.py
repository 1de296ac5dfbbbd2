"""Threads: what they find is what one finds, in order, and errors are the first in order."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hanging import HANGING

from ppt_gpu.cli import main
from ppt_gpu.common import threads
from ppt_gpu.common.errors import PptError
from ppt_gpu.common.threads import allowed, at_most, both, ordered, together
from ppt_gpu.explore.workers import Job, compute


@pytest.mark.parametrize("count", [1, 2, 4, 9])
def test_results_are_in_order(count: int) -> None:
    with at_most(count):
        assert ordered(lambda value: value * value, range(50)) == [value * value for value in range(50)]
        assert ordered(str, []) == []
        assert both(lambda: 1, lambda: "two") == (1, "two")


def test_so_many_work_at_once_and_share_what_is_allowed() -> None:
    meeting = threading.Barrier(4)

    def work(number: int) -> tuple[int, str]:
        meeting.wait(HANGING)  # ends only when all four are here
        return allowed(), threading.current_thread().name

    with at_most(9):
        found = ordered(work, range(4))
    assert [share for share, _ in found] == [2, 2, 2, 2]
    assert threading.main_thread().name in {name for _, name in found}


def test_the_first_error_in_order_is_raised_and_those_before_it_have_run() -> None:
    started = threading.Event()
    ran: list[int] = []

    def work(number: int) -> int:
        if number == 2:
            started.wait(HANGING)  # fails after 3 did
        ran.append(number)
        if number >= 2:
            started.set()
            raise PptError(f"number {number}")
        return number

    with at_most(3), pytest.raises(PptError, match="number 2"):
        ordered(work, range(100))
    assert {0, 1, 2} <= set(ran) and len(ran) <= 6
    assert not threads.at_work()


def test_what_another_thread_raises_is_raised_here() -> None:
    def work() -> None:
        if threading.current_thread() is not threading.main_thread():
            raise KeyError("there")

    with pytest.raises(KeyError, match="there"):
        together(work, 2)


def test_ctrl_c_does_not_wait_for_other_threads() -> None:
    """As when it reaches the calling thread while the others are in compiled code."""
    go_on = threading.Event()

    def work() -> None:
        if threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt
        go_on.wait(HANGING)

    with pytest.raises(KeyboardInterrupt):
        together(work, 3)
    assert threads.at_work()
    go_on.set()
    for thread in threading.enumerate():
        if thread.name == "ppt_gpu":
            thread.join()
    assert not threads.at_work()


def test_the_number_comes_from_the_variable_or_the_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(threads.VARIABLE, raising=False)
    assert allowed() == threads.processors()
    monkeypatch.setenv(threads.VARIABLE, "7")
    assert allowed() == 7
    with at_most(None):
        assert allowed() == 7
    with at_most(3):
        assert allowed() == 3


@pytest.mark.parametrize("text", ["0", "-1", "two", "1.5", "1025", "", "²"])
def test_bad_numbers(text: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["predict", "vecadd", "--gpu", "k40", f"--threads={text}"]) == 2
    assert capsys.readouterr().err.startswith(f"error: --threads: '{text}' is not a number of threads\n")
    if text:
        monkeypatch.setenv(threads.VARIABLE, text)
        assert main(["predict", "vecadd", "--gpu", "k40"]) == 2
        error = f"error: PPT_GPU_THREADS: '{text}' is not a number of threads\n  hint: 1 to 1024, such as PPT_GPU"
        assert capsys.readouterr().err.startswith(error)


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("PPT_GPU_CACHE", str(tmp_path))
    yield tmp_path


@pytest.mark.parametrize("workload, gpu", [("spmv", "k40"), pytest.param("mandelbrot", "v100", marks=pytest.mark.slow)])
def test_any_number_predicts_the_same(workload: str, gpu: str, capsys: pytest.CaptureFixture[str]) -> None:
    """spmv: two launches, an application; mandelbrot: blocks that differ, simulated in several numbers of slots."""
    texts = []
    for count in (1, 2, 4):
        assert main(["predict", workload, "--gpu", gpu, "--no-cache", "--threads", str(count)]) == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1] == texts[2]


def test_a_study_in_threads_is_the_same(empty_cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = []
    for count in (1, 3):
        arguments = ["sweep", "vecadd", "--gpu", "k40", "--set", "sm.count=4:12:4", "--set", "block=64,128"]
        assert main([*arguments, "--threads", str(count)]) == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1] and texts[0].count("\n") == 7


def test_an_error_in_a_job_ends_all() -> None:
    done: list[int] = []
    with at_most(3), pytest.raises(TypeError):
        compute([Job(n, n, "text" if n == 4 else -n) for n in range(9)], abs, lambda job, found: done.append(found))
    assert all(value >= 0 for value in done) and len(done) < 9
