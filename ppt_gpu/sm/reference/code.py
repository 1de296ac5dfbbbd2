"""Instruction fetch and the first constant read in the plain reference. See README.md, "Instructions"."""

from __future__ import annotations

from ppt_gpu.sm.program.machine import ONE, Machine, fetched, instruction_lines, lines_behind, lines_in_l2
from ppt_gpu.sm.program.program import CODE_IN_SM, Program
from ppt_gpu.sm.reference.memory import Memory, whole


def place(held: dict[int, int], ways: int, line: int, fill: int) -> None:
    """A line becomes the newest of a set, whose lines `held` has with the cycles at which they are there."""
    if len(held) == ways:
        del held[next(iter(held))]
    held[line] = fill


class Code:
    """The instruction cache of the SM, and whether it has read a constant yet."""

    def __init__(self, program: Program, machine: Machine, memory: Memory) -> None:
        self.program, self.m, self.memory = program, machine, memory
        self.fetched = fetched(program, machine)
        self.line, self.behind = instruction_lines(program, machine), lines_behind(program, machine)
        self.sets: list[dict[int, int]] = [{} for _ in range(machine.code_sets)]  # line: fill; least recent first
        lines = sorted(set(self.line.tolist())) if machine.code_sets else []
        self.in_l2 = lines_in_l2(program, machine)
        self.constants_from = -1  # cycle from which constants are in the SM; -1: nobody has asked
        if machine.code_at == CODE_IN_SM:
            for line in lines:
                self._place(line, 0)

    def fetch(self, time: int, entry: int) -> int:
        """Cycle from `time` on at which the entry is there."""
        if not self.fetched[entry]:
            return time
        return self.line_there(time, int(self.line[self.program.entry_op[entry]]))

    def line_there(self, time: int, line: int, queued: int = 0) -> int:
        """Cycle from `time` on at which a line is there, which is looked up at `time`. `queued`: answers that come in
        before that to this line, if it is not there."""
        if self.m.code_sets == 0:
            return time
        held = self.sets[line % self.m.code_sets]
        if line in held:
            return max(time, self._place(line, held.pop(line)))
        memory, server = self.memory, time * ONE
        wait = max(0, memory.l2_server - server, memory.inward - server)
        latency = self.m.code_l2 + queued
        if line not in self.in_l2:
            wait = max(wait, memory.dram - server)
            latency = self.m.code_dram + queued
        self.in_l2.add(line)
        return self._place(line, whole(server + wait) + latency)

    def _place(self, line: int, fill: int) -> int:
        place(self.sets[line % self.m.code_sets], self.m.code_ways, line, fill)
        return fill

    def constant(self, cycle: int) -> int:
        """Cycle at which a constant that is read in `cycle` is there."""
        late = self.m.constant_late
        if late:  # those that are asked for before the first one is there
            self.constants_from = cycle + late - 2 if self.constants_from < 0 else self.constants_from
            return cycle + self.m.constant_latency + (late if cycle < self.constants_from else 0)
        if self.constants_from < 0:
            self.constants_from = cycle + self.m.constant_miss
        return max(cycle + self.m.constant_latency, self.constants_from)
