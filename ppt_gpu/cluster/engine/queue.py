"""Queues of events, in the total order of (time, order): the lean one behind every run, and the same on simpy.

An event is a call `act(time, subject)`. `order` is unique; ppt_gpu.cluster.engine.state says what it is made of. Both
queues yield the same run, which tests hold; `python -m benchmarks cluster` says what each costs.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any, Protocol

Act = Callable[[int, Any], None]
Entry = tuple[int, int, Act, Any]

SEQUENCE_SHIFT = 48  # of the order of an event: the sequence of its source stands above the source
NEVER = 1 << 62  # ps, later than any event


class Queue(Protocol):
    """Where events wait. `run_window` runs those before `end`; after each, `resume` if it left ranks `runnable`."""

    events: int

    def push(self, time: int, order: int, act: Act, subject: Any) -> None: ...
    def next_time(self) -> int: ...
    def run_window(self, end: int, runnable: list[Any], resume: Callable[[], None]) -> None: ...


class WindowQueue:
    """Events in buckets as wide as a window: appended unsorted, sorted when their window comes.

    Most events fall into later windows than the one that makes them, so that a heap (`extra`) sees few of them.
    """

    def __init__(self, width: int) -> None:
        """`width` of a window in ps."""
        self.width = width
        self.events = 0
        self.buckets: dict[int, list[Entry]] = {}
        self.numbers: list[int] = []  # a heap of the buckets' numbers
        self.running = -1  # the last number whose events go to `extra`
        self.extra: list[Entry] = []

    def push(self, time: int, order: int, act: Act, subject: Any) -> None:
        number = time // self.width
        if number <= self.running:
            heappush(self.extra, (time, order, act, subject))
            return
        bucket = self.buckets.get(number)
        if bucket is None:
            self.buckets[number] = [(time, order, act, subject)]
            heappush(self.numbers, number)
        else:
            bucket.append((time, order, act, subject))

    def next_time(self) -> int:
        """A time before which nothing happens, in the window of the next event. NEVER if there is none."""
        return self.numbers[0] * self.width if self.numbers else NEVER

    def run_window(self, end: int, runnable: list[Any], resume: Callable[[], None]) -> None:
        """Run all events before `end`, the end of a window; one window at a time."""
        last = (end - 1) // self.width
        while self.numbers and self.numbers[0] <= last:
            self.running = heappop(self.numbers)
            self._run_bucket(self.buckets.pop(self.running), runnable, resume)
        self.running = -1

    def _run_bucket(self, entries: list[Entry], runnable: list[Any], resume: Callable[[], None]) -> None:
        entries.sort()
        extra = self.extra
        for entry in entries:
            while extra and extra[0] < entry:
                time, _, act, subject = heappop(extra)
                act(time, subject)
                if runnable:
                    resume()
                self.events += 1
            time, _, act, subject = entry
            act(time, subject)
            if runnable:
                resume()
        self.events += len(entries)
        while extra:
            time, _, act, subject = heappop(extra)
            act(time, subject)
            if runnable:
                resume()
            self.events += 1


class SimpyQueue:
    """The same on a simpy environment, as plainly as it goes: the reference. Simpy's priorities carry the order."""

    def __init__(self) -> None:
        import simpy

        self.environment = simpy.Environment(initial_time=0)
        self.events = 0
        self.runnable: list[Any] = []
        self.resume: Callable[[], None] = self.runnable.clear
        self._event = simpy.events.Event

    def push(self, time: int, order: int, act: Act, subject: Any) -> None:
        event = self._event(self.environment)
        event._ok, event._value = True, None
        event.callbacks.append(lambda _: self._run(time, act, subject))
        self.environment.schedule(event, priority=order, delay=time - self.environment.now)  # type: ignore[arg-type]

    def next_time(self) -> int:
        found = self.environment.peek()
        return NEVER if found == float("inf") else int(found)

    def run_window(self, end: int, runnable: list[Any], resume: Callable[[], None]) -> None:
        self.runnable, self.resume = runnable, resume
        while self.next_time() < end:
            self.environment.step()

    def _run(self, time: int, act: Act, subject: Any) -> None:
        act(time, subject)
        if self.runnable:
            self.resume()
        self.events += 1
