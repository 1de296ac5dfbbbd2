"""Jobs and the order in which workers take them: of jobs that share functional traces the first comes alone."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from threading import Condition
from typing import Any


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
