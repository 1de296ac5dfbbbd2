"""Jobs and workers: all are computed once, of those that share traces the first alone; faults are told."""

import os
from threading import Thread
from time import sleep

import pytest
from hanging import HANGING

from ppt_gpu.common.errors import PptError
from ppt_gpu.explore.workers import Job, Jobs, WorkerError, compute


def test_the_first_of_a_group_comes_alone() -> None:
    jobs = Jobs([Job(number, number // 3, None) for number in range(6)])
    first, second = jobs.take(), jobs.take()
    assert first is not None and second is not None
    assert (first.number, second.number) == (0, 3)
    assert jobs.take(wait=False) is None
    jobs.done(second)
    taken = [jobs.take(wait=False) for _ in range(3)]
    assert [job.number if job else None for job in taken] == [4, 5, None]
    jobs.done(first)
    last = [jobs.take(), jobs.take()]
    assert [job.number if job else None for job in last] == [1, 2]
    assert jobs.take() is None


def test_who_waits_is_woken() -> None:
    jobs = Jobs([Job(0, "a", None), Job(1, "a", None)])
    first, found = jobs.take(), []
    threads = [Thread(target=lambda: found.append(jobs.take())) for _ in range(2)]
    for thread in threads:
        thread.start()
    sleep(0.05)
    assert found == [] and first is not None
    jobs.done(first)
    for thread in threads:
        thread.join(HANGING)
    assert sorted(job.number if job else -1 for job in found) == [-1, 1]


def test_nothing_after_stop() -> None:
    jobs = Jobs([Job(0, "a", None)])
    jobs.stop()
    assert jobs.take() is None


@pytest.mark.parametrize("processes", [1, 3])
def test_every_job_once(processes: int) -> None:
    found: dict[int, int] = {}

    def done(job: Job, answer: int) -> None:
        assert job.number not in found
        found[job.number] = answer

    compute([Job(n, n % 4, -n) for n in range(20)], abs, done, processes)
    assert found == {n: n for n in range(20)}


def test_nothing_to_do() -> None:
    compute([], abs, lambda job, found: None, 2)


def test_what_a_worker_prints_is_not_an_answer() -> None:
    found = []
    compute([Job(n, n, f"text {n}") for n in range(3)], print, lambda job, answer: found.append(answer), 2)
    assert found == [None] * 3


def test_an_exception_of_a_worker() -> None:
    with pytest.raises(WorkerError, match="TypeError: bad operand type for abs"):
        compute([Job(0, 0, "text")], abs, lambda job, found: None, 2)


def test_a_worker_that_ends() -> None:
    with pytest.raises(PptError, match=r"ended unexpectedly \(exit code 9\)"):
        compute([Job(0, 0, 9)], os._exit, lambda job, found: None, 2)
