"""The caches of an SM of GPGPU-Sim's GTX480: of instructions and constants, and the L1 of data."""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import Generic, TypeVar

from simulator_sm import Issued

L1_SETS, L1_WAYS, L1_MSHRS, L1_MERGES, L1_QUEUE = 32, 4, 64, 8, 8
T = TypeVar("T")


class Mshrs(Generic[T]):
    """Who waits for lines. `ready`: those that are there, until all have been given theirs."""

    def __init__(self) -> None:
        self.waiting: dict[int, list[T]] = {}  # by line
        self.ready: deque[int] = deque()

    def take(self) -> T:
        """Who waited longest for a line that is there."""
        line = self.ready[0]
        who = self.waiting[line].pop(0)
        if not self.waiting[line]:
            del self.waiting[line]
            self.ready.popleft()
        return who


class ReadOnly(Mshrs[T]):
    """A cache of instructions or constants: lines get their place when they come."""

    entries, merges, queue = 2, 32, 4  # MSHRs, of each those who wait, and misses that have not left

    def __init__(self, sets: int, ways: int) -> None:
        super().__init__()
        self.sets, self.ways = sets, ways
        self.held: list[OrderedDict[int, None]] = [OrderedDict() for _ in range(sets)]
        self.misses: deque[int] = deque()

    def look_up(self, line: int, who: T) -> str:
        """hit, miss, or full: it cannot be served now."""
        lines = self.held[line % self.sets]
        if line in lines:
            lines.move_to_end(line)
            return "hit"
        if len(self.misses) >= self.queue:
            return "full"
        if line in self.waiting:
            if len(self.waiting[line]) >= self.merges:
                return "full"
            self.waiting[line].append(who)
            return "miss"
        if len(self.waiting) >= self.entries:
            return "full"
        self.waiting[line] = [who]
        self.misses.append(line)
        return "miss"

    def fill(self, line: int) -> None:
        lines = self.held[line % self.sets]
        if len(lines) == self.ways:
            lines.popitem(last=False)
        lines[line] = None
        self.ready.append(line)


class LineL1(Mshrs[Issued]):
    """The L1 of data. A line gets its place at the miss, and keeps it until its data are there."""

    def __init__(self) -> None:
        super().__init__()
        self.sets: list[OrderedDict[int, bool]] = [OrderedDict() for _ in range(L1_SETS)]  # whether it is there
        self.misses: deque[tuple[Issued, int]] = deque()

    @staticmethod
    def index(line: int) -> int:
        """The hash of Fermi, of 32 sets: bits 13, 14, 15, 17 and 19 of the address folded into five above the line."""
        return (line ^ (line >> 6 & 7 | line >> 7 & 8 | line >> 8 & 16)) & 31

    def look_up(self, one: Issued, line: int) -> str:
        """hit, miss, or full: it has to wait."""
        lines = self.sets[self.index(line)]
        if one.what.access == "store":
            if len(self.misses) >= L1_QUEUE:
                return "full"
            if lines.get(line):
                del lines[line]
            self.misses.append((one, line))
            return "miss"
        if lines.get(line):
            lines.move_to_end(line)
            return "hit"
        if line not in lines and len(lines) == L1_WAYS and not any(lines.values()):
            return "full"
        if len(self.misses) + 1 >= L1_QUEUE:
            return "full"
        if line in self.waiting:
            if len(self.waiting[line]) >= L1_MERGES:
                return "full"
            self.waiting[line].append(one)
        elif len(self.waiting) >= L1_MSHRS:
            return "full"
        else:
            self.waiting[line] = [one]
            self.misses.append((one, line))
        if line not in lines and len(lines) == L1_WAYS:
            del lines[next(other for other, there in lines.items() if there)]
        lines[line] = False
        lines.move_to_end(line)
        return "miss"

    def fill(self, line: int) -> None:
        self.sets[self.index(line)][line] = True
        self.ready.append(line)
