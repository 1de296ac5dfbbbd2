"""Requests: what a rank started and may wait for. A request knows when it ended, or who waits until that is known.

Times are known before they pass: a receive whose message is on the wire is done at a time in the future. Whoever waits
goes on at once then, with its own clock set ahead; nothing else can touch what it owns before.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, NamedTuple

#: (sender, tag) -> messages without a receive, or receives without a message: never both; one by itself, more in a list
Queues = dict[tuple[int, Hashable], Any]
PENDING = -1
Elsewhere = tuple[int, int]  # a cause that another process keeps: the process and its number there


class Segment(NamedTuple):
    """A stretch of time on the way to some moment, and what came before: a chain back to the start of the run."""

    previous: Segment | Elsewhere | None
    rank: int
    kind: str  # "kernel", "copy", "message", "collective", "host"
    label: str
    start: int  # ps
    end: int


Cause = Segment | Elsewhere | None


class Request:
    """Something that ends. `done`: when, in ps, or PENDING; `cause`: what it ended with, where a history is kept."""

    __slots__ = ("cause", "done", "waiters")

    def __init__(self, done: int = PENDING, cause: Cause = None) -> None:
        self.done = done
        self.cause = cause
        self.waiters: list[Waiter] | None = None

    def complete(self, time: int, cause: Cause = None) -> None:
        """It ends at `time`: everyone who waits gets to know."""
        self.done = time
        self.cause = cause
        waiters = self.waiters
        if waiters is not None:
            self.waiters = None
            for waiter in waiters:
                waiter.arrived(time, cause)

    def waits_for(self) -> tuple[str, Sequence[int]]:
        """What it is, in words, and the ranks that it waits for. For messages about runs that cannot go on."""
        return "an operation", ()


class Waiter:
    """Waits until several requests are done: `pending` of them are not, the others ended at `latest` or before."""

    __slots__ = ("cause", "latest", "pending")

    def __init__(self, time: int, cause: Cause) -> None:
        self.pending = 0
        self.latest = time
        self.cause = cause

    def wait(self, requests: Iterable[Request]) -> bool:
        """Wait for these. Returns whether all are done already."""
        for request in requests:
            done = request.done
            if done < 0:
                self.pending += 1
                if request.waiters is None:
                    request.waiters = [self]
                else:
                    request.waiters.append(self)
            elif done > self.latest:
                self.latest = done
                self.cause = request.cause
        return not self.pending

    def arrived(self, time: int, cause: Cause) -> None:
        """One of the requests is done at `time`."""
        if time > self.latest:
            self.latest = time
            self.cause = cause
        self.pending -= 1
        if not self.pending:
            self.ready()

    def ready(self) -> None:
        """All are done."""
        raise NotImplementedError


class Gate(Waiter):
    """Calls `start(time, cause)` when all that it waits for is done: at the latest of their ends."""

    __slots__ = ("start",)

    def __init__(self, time: int, cause: Cause, start: Callable[[int, Cause], None]) -> None:
        super().__init__(time, cause)
        self.start = start

    def ready(self) -> None:
        self.start(self.latest, self.cause)


def when_done(requests: Iterable[Request], time: int, cause: Cause, start: Callable[[int, Cause], None]) -> None:
    """Call `start` with the latest of `time` and the requests' ends as soon as it is known, and what made it so."""
    gate = Gate(time, cause, start)
    if gate.wait(requests):
        start(gate.latest, gate.cause)
