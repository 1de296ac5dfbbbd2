"""Computing jobs: here, in processes, or under mpirun; what is found is the same, only its order differs.

A worker process ends by itself when the process that started it is gone. Of jobs that share functional traces
the first comes alone.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Condition, Lock, Thread
from typing import Any

from ppt_gpu.cluster.engine.mpi import Mpi
from ppt_gpu.common.errors import PptError
from ppt_gpu.common.paths import PACKAGE
from ppt_gpu.common.threads import VARIABLE, allowed, at_most, together


@dataclass(frozen=True)
class Job:
    """Something to compute: its number, what it shares traces with, and what a worker needs."""

    number: int
    group: Hashable
    content: Any


class Jobs:
    """Hands out jobs to any number of threads. The first of a group runs alone, so that the others find its traces."""

    def __init__(self, jobs: Sequence[Job]) -> None:
        self._changed = Condition()
        self._waiting: dict[Hashable, deque[Job]] = {}
        for job in jobs:
            self._waiting.setdefault(job.group, deque()).append(job)
        self._ready: deque[Job] = deque()  # of groups whose first job is done
        self._first = deque(self._waiting)  # groups that nobody has begun
        self._stopped = False

    def take(self, wait: bool = True) -> Job | None:
        """The next job. None when none is left, or, unless `wait`, when none may be begun now."""
        with self._changed:
            while not self._stopped:
                if self._ready:
                    return self._ready.popleft()
                if self._first:
                    return self._waiting[self._first.popleft()].popleft()
                if not wait or not any(self._waiting.values()):
                    return None
                self._changed.wait()
            return None

    def done(self, job: Job) -> None:
        """`job` is finished: the others of its group may begin."""
        with self._changed:
            self._ready.extend(self._waiting.pop(job.group, ()))
            self._changed.notify_all()

    def stop(self) -> None:
        """Hand out no more."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()


POLL = 0.005  # s between looks for messages: waiting must not take a core from those that compute
TO_WORKER, TO_FIRST = 7, 8  # tags

Work = Callable[[Any], Any]
Done = Callable[[Job, Any], None]


def compute(jobs: Sequence[Job], work: Work, done: Done, processes: int = 1, mpi: Mpi | None = None) -> None:
    """Call `work` with the content of each job, and `done` with what it returns, as it comes, one call at a time.

    `work` is a function of a module. In one process as many threads work as are allowed, which N processes share. With
    `mpi` all ranks call this, and rank 0 alone is told what is found. An exception in a worker is raised here.
    """
    if mpi is not None and mpi.rank:
        _serve(mpi, work)
        return
    queue = Jobs(jobs)
    if mpi is None and processes == 1:
        _here(queue, work, done, min(allowed(), len(jobs)))
        return
    with ExitStack() as stack:
        stack.callback(queue.stop)
        answers: SimpleQueue[tuple[Job, bool, Any]] = SimpleQueue()
        for _ in range(min(processes, max(len(jobs), 1))):
            stack.enter_context(_process(queue, work, answers, max(1, allowed() // processes)))
        ranks = _Ranks(mpi, queue) if mpi is not None else None
        for _ in range(len(jobs)):
            job, good, found = _next(answers, ranks)
            if not good:
                raise found
            done(job, found)
            queue.done(job)
        if ranks is not None:
            ranks.end()


def _here(queue: Jobs, work: Work, done: Done, threads: int) -> None:
    """All jobs, in threads of this process."""
    one = Lock()

    def take_all() -> None:
        try:
            while (job := queue.take()) is not None:
                found = work(job.content)
                with one:
                    done(job, found)
                queue.done(job)
        except BaseException:
            queue.stop()
            raise

    together(take_all, max(1, threads))


class WorkerError(Exception):
    """What went wrong in a worker, with its own traceback."""


def _next(answers: SimpleQueue[tuple[Job, bool, Any]], ranks: _Ranks | None) -> tuple[Job, bool, Any]:
    while True:
        try:
            return answers.get(timeout=POLL if ranks is not None else 0.2)
        except Empty:
            pass
        if ranks is not None and (found := ranks.look()) is not None:
            return found


@contextmanager
def _process(queue: Jobs, work: Work, answers: SimpleQueue[tuple[Job, bool, Any]], threads: int) -> Iterator[None]:
    """A worker process, of so many threads, and the thread that feeds it."""
    paths = os.pathsep.join(filter(None, (str(PACKAGE.parent), os.environ.get("PYTHONPATH", ""))))
    process = subprocess.Popen(
        [sys.executable, "-m", "ppt_gpu.explore.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": paths, VARIABLE: str(threads)},
        start_new_session=True,  # Ctrl-C is for the process that started it
    )
    Thread(target=_feed, args=(process, queue, work, answers), daemon=True).start()
    try:
        yield
    finally:
        process.kill()
        process.wait()


def _feed(
    process: subprocess.Popen[bytes], queue: Jobs, work: Work, answers: SimpleQueue[tuple[Job, bool, Any]]
) -> None:
    assert process.stdin is not None and process.stdout is not None
    while (job := queue.take()) is not None:
        try:
            pickle.dump((work, job.content), process.stdin)
            process.stdin.flush()
            good, found = pickle.load(process.stdout)
            found = found if good else WorkerError(found)
        except (EOFError, OSError, pickle.UnpicklingError):
            hint = "killed for memory? Then fewer --processes help; what is finished is not computed again"
            good, found = (
                False,
                PptError(f"a worker process ended unexpectedly (exit code {process.wait()})", hint=hint),
            )
        answers.put((job, good, found))


class _Ranks:
    """The other ranks of MPI's world, as rank 0 sees them: each asks for a job, and answers with what it found."""

    def __init__(self, mpi: Mpi, queue: Jobs) -> None:
        self.communicator, self.queue = mpi.communicator, queue
        self.idle: list[int] = []
        self.jobs: dict[int, Job] = {}
        self.ended, self.others = 0, mpi.size - 1

    def look(self) -> tuple[Job, bool, Any] | None:
        """Hand out what may be begun; an answer, if there is one."""
        found = None
        if self.communicator.Iprobe(tag=TO_FIRST):
            rank, answer = self.communicator.recv(tag=TO_FIRST)
            self.idle.append(rank)
            if answer is not None:
                found = (self.jobs.pop(rank), *answer)
        while self.idle and (job := self.queue.take(wait=False)) is not None:
            rank = self.idle.pop()
            self.jobs[rank] = job
            self.communicator.send(("job", job.content), dest=rank, tag=TO_WORKER)
        return found

    def end(self) -> None:
        """Let all ranks go, once they have asked."""
        while self.ended < self.others:
            while self.idle:
                self.communicator.send(("end", None), dest=self.idle.pop(), tag=TO_WORKER)
                self.ended += 1
            if self.ended < self.others:
                rank, _ = self.communicator.recv(tag=TO_FIRST)
                self.idle.append(rank)


def _serve(mpi: Mpi, work: Work) -> None:
    """What ranks other than 0 do: ask, compute, answer."""
    answer: Any = None
    while True:
        mpi.communicator.send((mpi.rank, answer), dest=0, tag=TO_FIRST)
        while not mpi.communicator.Iprobe(source=0, tag=TO_WORKER):
            time.sleep(POLL)
        what, content = mpi.communicator.recv(source=0, tag=TO_WORKER)
        if what == "end":
            return
        with at_most(1):  # there may be a rank for each processor
            answer = (True, work(content))


def check_processes(processes: int, mpi: Mpi | None) -> None:
    """PptError where processes are asked for under mpirun, which starts them itself."""
    if mpi is not None and processes > 1:
        raise PptError("--processes under mpirun: it starts the processes itself", hint="mpirun -n 4 ppt-gpu sweep ...")
