"""The crossbar from the SMs of a chip to the slices of its L2, in plain Python. See README.md, "The whole chip"."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from ppt_gpu.sm.chip_machine import AHEAD, SKEW, SKEW_HASH, SKEW_SHIFT


@dataclass
class Sent:
    """A request on its way. `there`: the cycle in which its slice has its last packet."""

    cycle: int  # in which it leaves the SM
    slice: int
    packets: int
    there: int = -1


def skew(sm: int) -> int:
    """By how many cycles an SM's packets are behind those of others."""
    return (sm * SKEW_HASH >> SKEW_SHIFT) % SKEW


class Crossbar:
    """Takes the requests of one window after another."""

    def __init__(self, sms: int, slices: int) -> None:
        self.gone = [0] * sms  # cycle from which the next packet of each SM may leave
        self.turn = [0] * slices
        self.booked: list[set[int]] = [set() for _ in range(slices)]  # cycles in which each takes a packet

    def cross(self, first: int, queues: list[deque[Sent]]) -> None:
        """Of each SM, its requests in their order, in the window that begins in cycle `first`."""
        left = [queue[0].packets if queue else 0 for queue in queues]
        now = first
        while any(queues):
            waiting: dict[int, list[int]] = {}
            for sm, queue in enumerate(queues):
                if queue and max(self.gone[sm], queue[0].cycle + skew(sm)) <= now:
                    waiting.setdefault(queue[0].slice, []).append(sm)
            for to, sms in waiting.items():
                if now - first < AHEAD - 64:
                    if now in self.booked[to]:
                        continue
                    self.booked[to].add(now)
                sm = min(sms, key=lambda sm: (sm - self.turn[to]) % len(queues))
                self.turn[to] = sm + 2 if sm + 2 < len(queues) else 0  # so does the simulator
                self.gone[sm] = now + 1
                left[sm] -= 1
                if left[sm] == 0:
                    queues[sm].popleft().there = now - skew(sm)
                    left[sm] = queues[sm][0].packets if queues[sm] else 0
            now += 1
