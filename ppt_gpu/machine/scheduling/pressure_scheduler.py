"""An order of straight-line code in which few values are alive at once, whatever it waits for.

Sums over the same loaded values, each in its own order, such as those of a filter with several results a thread, keep
alive all values between their places if they all begin together. They need next to nothing if a value is loaded when
every sum has come to it. So an instruction that makes a value is next where all who read it wait for nothing else, and
who reads is next as soon as it frees what it takes.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence

from ppt_gpu.machine.scheduling.live_registers import Taken


def fewest_alive(followers: Sequence[Mapping[int, object]], leaders: Sequence[int], taken: Taken) -> list[int]:
    """The numbers of the instructions in such an order.

    followers: of each instruction, who must come later; leaders: how many each waits for; taken: the values, with
    nothing issued yet.
    """
    return _Search(followers, leaders, taken).order()


class _Search:
    def __init__(self, followers: Sequence[Mapping[int, object]], leaders: Sequence[int], taken: Taken) -> None:
        self.followers, self.leaders, self.taken = followers, list(leaders), taken
        self.before: list[list[int]] = [[] for _ in leaders]  # whom each waits for
        for number, later in enumerate(followers):
            for follower in later:
                self.before[follower].append(number)
        self.readers = [taken.readers_of(number) for number in range(len(leaders))]
        #: of those who read what an instruction makes, how many wait for something else, too
        self.waiting = [sum(self.leaders[one] > 1 for one in readers) for readers in self.readers]
        self.issued = [False] * len(leaders)
        self.freeing: list[int] = []  # ready, and takes no more registers
        self.wanted: list[int] = []  # ready, and what it makes is read at once
        self.ready: list[int] = []

    def order(self) -> list[int]:
        for number, count in enumerate(self.leaders):
            if count == 0:
                self._is_ready(number)
        found: list[int] = []
        while len(found) < len(self.leaders):
            number = self._next()
            self.issued[number] = True
            found.append(number)
            self.taken.issue(number)
            for one in self.taken.of_one_more(number):  # who alone still reads a value may free it now
                if self.leaders[one] == 0 and not self.issued[one]:
                    self._is_ready(one)
            for follower in self.followers[number]:
                self.leaders[follower] -= 1
                if self.leaders[follower] == 0:
                    self._is_ready(follower)
                elif self.leaders[follower] == 1:
                    self._one_left(follower)
        return found

    def _one_left(self, follower: int) -> None:
        last = next(one for one in self.before[follower] if not self.issued[one])
        if follower in self.readers[last]:
            self.waiting[last] -= 1
            if self.waiting[last] == 0 and self.leaders[last] == 0:
                heapq.heappush(self.wanted, last)

    def _is_ready(self, number: int) -> None:
        if self.taken.change(number) <= 0:
            heapq.heappush(self.freeing, number)
        elif self.readers[number] and self.waiting[number] == 0:
            heapq.heappush(self.wanted, number)
        heapq.heappush(self.ready, number)

    def _next(self) -> int:
        """The first in the PTX of those that free, else of those that are wanted, else of all."""
        for some in (self.freeing, self.wanted, self.ready):
            while some:
                number = heapq.heappop(some)
                if not self.issued[number]:
                    return number
        raise AssertionError("every instruction is ready at some time")
