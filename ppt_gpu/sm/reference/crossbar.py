"""Crossbars between the SMs of a chip and the slices of its L2, in plain Python. See README.md, "The whole chip"."""

from __future__ import annotations

from bisect import insort_right
from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any


@dataclass
class Sent:
    """A request, or its answer, on its way. `there`: the step in which the last packet of it is taken."""

    step: int  # from which it waits
    to: int
    packets: int
    hold: int = 1  # steps that each takes
    there: int = -1
    what: Any = None


class Crossbar:
    """`many`: in a step a sender may give packets to several receivers, which take theirs one after another; else it is
    busy as long as its receiver. `queues`: of each sender, what is not through, in its order."""

    def __init__(self, senders: int, receivers: int, many: bool) -> None:
        self.queues: list[deque[Sent]] = [deque() for _ in range(senders)]
        self.left = [0] * senders  # packets of the first that are
        self.turn, self.many = [0] * receivers, many
        self.gone: dict[int, int] = {}  # by sender: from which step on its next packet may be taken
        self.busy: dict[int, int] = {}  # by receiver: from which step on it takes another

    def send(self, sender: int, one: Sent) -> None:
        """Behind what is in the sender by the step from which this one is."""
        insort_right(self.queues[sender], one, key=lambda other: other.step)

    def step(self, now: int, stopped: Collection[int] = ()) -> list[tuple[int, Sent]]:
        """Those whose last packets are taken in this step, with their senders, one after another. `stopped`: receivers
        that take none."""
        passed = []
        ready = [self._ready(sender, now) for sender in range(len(self.queues))]
        for to in range(len(self.turn)):
            senders = [sender for sender, queue in enumerate(self.queues) if ready[sender] and queue[0].to == to]
            if not senders or self.busy.get(to, now) > now or to in stopped:
                continue
            sender = min(senders, key=lambda sender: (sender - self.turn[to]) % len(self.queues))
            one = self.queues[sender][0]
            self.turn[to] = (sender + 1) % len(self.queues)
            self.busy[to] = now + one.hold
            self.gone[sender] = now if self.many else now + one.hold
            self.left[sender] = (self.left[sender] or one.packets) - 1
            if self.left[sender] == 0:
                one.there = now
                passed.append((sender, self.queues[sender].popleft()))
            ready[sender] = self.many and self._ready(sender, now)
        return passed

    def waiting(self, sender: int, now: int) -> int:
        """Packets that are there in a step and not through."""
        queue, left = self.queues[sender], self.left[sender]
        there = sum(one.packets for one in queue if one.step <= now)
        return there - (queue[0].packets - left if left else 0)

    def look_ahead(self, now: int, stops: Mapping[int, Collection[int]]) -> list[tuple[int, Sent]]:
        """Copies of what is in it, from step `now` on taken as if nothing more came, with their senders. `stops`:
        receivers that stop, by step."""
        other = Crossbar(len(self.queues), len(self.turn), self.many)
        other.queues = [deque(replace(one) for one in queue) for queue in self.queues]
        other.left, other.turn = list(self.left), list(self.turn)
        other.gone, other.busy = dict(self.gone), dict(self.busy)
        passed = []
        while any(other.queues):
            passed += other.step(now, stops.get(now, ()))
            now += 1
        return passed

    def _ready(self, sender: int, now: int) -> bool:
        """Has it a packet?"""
        queue = self.queues[sender]
        return bool(queue) and queue[0].step <= now and self.gone.get(sender, now) <= now
