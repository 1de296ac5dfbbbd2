"""The SM's cache of constants that registers choose, in the plain reference. See README.md, "Constants"."""

from __future__ import annotations

from ppt_gpu.sm.program.machine import ONE, Machine
from ppt_gpu.sm.program.program import Program, looked_up_by
from ppt_gpu.sm.reference.code import place
from ppt_gpu.sm.reference.memory import whole


class Constants:
    """Which lines are in the cache, or on their way to it, and when the cache behind it can send the next one."""

    def __init__(self, program: Program, machine: Machine) -> None:
        self.program, self.m = program, machine
        self.looked_up = looked_up_by(program)
        self.sets: list[dict[int, int]] = [{} for _ in range(machine.constant_sets)]  # line: fill; least recent first
        self.behind = 0  # time from which the cache behind is free

    def looks_up(self, op: int) -> bool:
        """Whether `op` reads constants that the cache may not hold."""
        return bool(self.sets) and bool(self.looked_up[op])

    def read(self, at: int, cycle: int, latency: int) -> tuple[int, int]:
        """A read in `cycle`, `latency` cycles for a hit, whose lines stand from `at` on in Program.constant_line:
        (where those of the next read stand, cycle of the result)."""
        there = cycle
        while True:
            there = max(there, self._line(int(self.program.constant_line[at]), cycle))
            at += 1
            if self.program.constant_last[at - 1]:
                return at, there + latency

    def _line(self, line: int, cycle: int) -> int:
        """Cycle at which a line is in the cache that is asked for in `cycle`."""
        held = self.sets[line % self.m.constant_sets]
        fill = held.pop(line, None)
        if fill is None:
            begin = max(cycle * ONE, self.behind)
            self.behind = begin + self.m.constant_fill
            fill = whole(begin) + self.m.constant_behind
        place(held, self.m.constant_ways, line, fill)
        return fill
