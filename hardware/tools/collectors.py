"""What the collector units of GPGPU-Sim's QV100 do to kernels that keep the load/store unit busy, cycle by cycle.

`python hardware/tools/collectors.py` runs one SM of the simulator, with all that stands between a warp and its load, on
the PTX of two kernels under perfect memory, and prints its cycles beside the reference's (validation/gpgpusim), with
two collector units a scheduler as the simulator has them, and with four.

A load waits in a slot of its scheduler, then in one of its two collector units, then in a slot behind them, from which
the load/store unit takes the oldest of all schedulers. The units are asked in the same order every time: while loads
come to the first one without a gap, the load in the second one stays. Its warp is the last to get through the loop,
alone, at the latency of a load and a multiply-add a step.
"""

from __future__ import annotations

import csv
from collections import deque
from dataclasses import dataclass, field

from kernel_paths import FOLDER, Instruction, kernel, looping, reducing

SCHEDULERS, BANKS = 4, 4  # banks of registers, each scheduler's own
SHARED_STAGES = L1_STAGES = 20
MISS_QUEUE = 15
STEPS, PORTS, FETCHES = 2, 8, 4  # a cycle, of the collectors; their input ports; warps that get two instructions
TIMES = {"add": (4, 2), "mul": (4, 2), "fma": (5, 2), "mad": (5, 2)}  # cycles in the unit, cycles between two


@dataclass
class Issued:
    what: Instruction
    warp: Warp
    age: int
    missing: int = 0  # operands that are not read yet
    sectors: int = 0


@dataclass
class Warp:
    number: int
    path: list[Instruction]
    block: int
    at: int = 0
    fetched: list[int] = field(default_factory=list)  # program counters in the buffer
    next_pc: int = 0
    pending: set[str] = field(default_factory=set)  # registers
    flying: int = 0  # instructions and stores on their way
    waits: bool = False  # at a barrier

    @property
    def over(self) -> bool:
        return self.at == len(self.path) and not self.pending and self.flying == 0

    def bank(self, register: str) -> int:
        """Of a register, in the file of all schedulers."""
        number = int(register.lstrip("%prdf"))
        return (number + self.number) % BANKS + self.number % SCHEDULERS * BANKS


class Sm:
    """`blocks` of equal paths, `resident` at a time; `units`: collector units of a scheduler."""

    def __init__(self, paths: list[list[Instruction]], blocks: int, resident: int, units: int) -> None:
        self.paths, self.left, self.units = paths, blocks, units
        self.warps: list[Warp] = []
        for _ in range(min(resident, blocks)):
            self._launch(len(self.warps))
        units_of_sm = ("fp", "memory", "int")
        self.before: dict[str, list[Issued | None]] = {unit: [None] * SCHEDULERS for unit in units_of_sm}
        self.behind: dict[str, list[Issued | None]] = {unit: [None] * SCHEDULERS for unit in units_of_sm}
        self.collecting: list[Issued | None] = [None] * (SCHEDULERS * units)
        self.reads = [deque[Issued]() for _ in range(SCHEDULERS * BANKS)]
        self.written: set[int] = set()  # banks, until the next step of the collectors
        self.pipes: dict[tuple[str, int], list[tuple[int, Issued]]] = {
            (unit, scheduler): [] for unit in ("fp", "int") for scheduler in range(SCHEDULERS)
        }
        self.unit_free = dict.fromkeys(self.pipes, 0)
        self.memory: Issued | None = None
        self.shared: list[Issued | None] = [None] * SHARED_STAGES
        self.writing: Issued | None = None  # back to the registers, one a cycle
        self.lookups: list[list[Issued | None]] = [[None] * L1_STAGES for _ in range(4)]  # by bank of the L1
        self.misses, self.answers, self.filled = deque[Issued](), deque[Issued](), deque[Issued]()
        self.last, self.fetch_last = [-1] * SCHEDULERS, 0
        self.fetching: Warp | None = None
        self.cycle = self.age = 0

    def _launch(self, first: int) -> None:
        self.left -= 1
        self.warps[first : first + len(self.paths)] = [
            Warp(first + n, path, self.left) for n, path in enumerate(self.paths)
        ]

    def run(self) -> int:
        while True:
            self._arithmetic()
            self._load_store()
            for _ in range(STEPS):
                self._step()
            for turn in range(SCHEDULERS):
                self._issue((self.cycle + turn) % SCHEDULERS)
            for _ in range(FETCHES):
                self._fetch()
            self.cycle += 1
            size = len(self.paths)
            ended = [n for n in range(0, len(self.warps), size) if all(w.over for w in self.warps[n : n + size])]
            for first in ended[: self.left]:
                self._launch(first)
            if len(ended) == len(self.warps) // size and not any(self.warps[n].at == 0 for n in ended):
                return self.cycle

    def _write(self, done: Issued) -> bool:
        """Into its register bank, if nothing else is written there."""
        if done.what.result[1] != "p":
            bank = done.warp.bank(done.what.result)
            if bank in self.written:
                return False
            self.written.add(bank)
        return True

    def _arithmetic(self) -> None:
        for (unit, scheduler), pipe in self.pipes.items():
            while pipe and pipe[0][0] <= self.cycle:
                done = pipe.pop(0)[1]
                done.warp.flying -= 1
                if done.what.result:
                    self._write(done)
                    done.warp.pending.discard(done.what.result)
            waiting = self.behind[unit][scheduler]
            if waiting is not None and self.unit_free[unit, scheduler] <= self.cycle:
                latency, interval = TIMES.get(waiting.what.opcode, (1, 1))
                self.unit_free[unit, scheduler] = self.cycle + interval
                pipe.append((self.cycle + latency + 2, waiting))
                pipe.sort(key=lambda entry: entry[0])
                self.behind[unit][scheduler] = None

    def _load_store(self) -> None:
        if self.writing is not None and self._write(self.writing):
            done, self.writing = self.writing, None
            done.sectors -= 1
            if done.sectors <= 0:
                done.warp.pending.discard(done.what.result)
        if self.writing is None:
            if self.shared[0] is not None:
                self.writing, self.shared[0] = self.shared[0], None
            elif self.filled:
                self.writing = self.filled.popleft()
        _advance(self.shared)
        if self.answers:
            answer = self.answers.popleft()
            if answer.what.opcode == "st":
                answer.warp.flying -= 1
            else:
                self.filled.append(answer)
        if self.misses:
            self.answers.append(self.misses.popleft())
        for bank in self.lookups:
            if bank[0] is not None and len(self.misses) < MISS_QUEUE:
                self.misses.append(bank[0])
                bank[0] = None
            _advance(bank)
        self._serve()
        if self.memory is None:
            waiting = [one for one in self.behind["memory"] if one is not None]
            if waiting:
                self.memory = min(waiting, key=lambda one: one.age)
                self.behind["memory"][self.memory.warp.number % SCHEDULERS] = None

    def _serve(self) -> None:
        """What the load/store unit holds goes on."""
        one = self.memory
        if one is None:
            return
        load = one.what.opcode == "ld"
        if one.what.space == "global":
            one.sectors = 4 if load or len(self.paths) == 32 else 1
            if any(bank[-1] is not None for bank in self.lookups[: one.sectors]):
                return
            one.warp.flying += 0 if load else one.sectors
            for bank in self.lookups[: one.sectors]:
                bank[-1] = one
        elif one.what.space == "shared" and load:
            if self.shared[-1] is not None:
                return
            self.shared[-1] = one
        elif load:
            one.warp.pending.discard(one.what.result)
        one.warp.flying -= 1
        self.memory = None

    def _step(self) -> None:
        """The collectors: hand over, read, take in."""
        for number, one in enumerate(self.collecting):
            if one is not None and one.missing == 0 and self.behind[one.what.unit][number // self.units] is None:
                self.behind[one.what.unit][number // self.units], self.collecting[number] = one, None
        for bank, queue in enumerate(self.reads):
            if queue and bank not in self.written:
                queue.popleft().missing -= 1
        for _ in range(PORTS):
            for unit in self.before:
                self._collect(unit)
        self.written.clear()

    def _collect(self, unit: str) -> None:
        """The oldest of all schedulers goes to a free unit of its scheduler; the others wait for it."""
        waiting = [one for one in self.before[unit] if one is not None]
        if not waiting:
            return
        one = min(waiting, key=lambda one: one.age)
        scheduler = one.warp.number % SCHEDULERS
        for number in range(scheduler * self.units, (scheduler + 1) * self.units):
            if self.collecting[number] is None:
                self.collecting[number], self.before[unit][scheduler] = one, None
                one.missing = len(one.what.sources)
                for register in one.what.sources:
                    self.reads[one.warp.bank(register)].append(one)
                return

    def _issue(self, scheduler: int) -> None:
        """Loose round robin."""
        mine = self.warps[scheduler::SCHEDULERS]
        for step in range(1, len(mine) + 1):
            place = (self.last[scheduler] + step) % len(mine)
            warp = mine[place]
            if warp.waits or not warp.fetched or warp.at == len(warp.path):
                continue
            what = warp.path[warp.at]
            if warp.fetched[0] != what.pc:  # the instructions behind a branch that was taken
                warp.fetched, warp.next_pc = [], what.pc
                continue
            if warp.pending & what.registers or self.before[what.unit][scheduler] is not None:
                continue
            self.before[what.unit][scheduler] = Issued(what, warp, self.age)
            self.age += 1
            self.last[scheduler] = place
            warp.fetched.pop(0)
            warp.at, warp.next_pc, warp.flying = warp.at + 1, what.pc + 1, warp.flying + 1
            if what.result:
                warp.pending.add(what.result)
            if what.opcode == "bar":
                self._arrive(warp)
            return

    def _arrive(self, warp: Warp) -> None:
        warp.waits = True
        block = [other for other in self.warps if other.block == warp.block and other.at < len(other.path)]
        if all(other.waits for other in block):
            for other in block:
                other.waits = False

    def _fetch(self) -> None:
        """What was fetched goes to its warp; the next warp in turn whose buffer is empty."""
        if self.fetching is not None:
            self.fetching.fetched = [self.fetching.next_pc, self.fetching.next_pc + 1]
        self.fetching = None
        for step in range(1, len(self.warps) + 1):
            number = (self.fetch_last + step) % len(self.warps)
            warp = self.warps[number]
            if not warp.fetched and warp.at < len(warp.path):
                self.fetching, self.fetch_last = warp, number
                return


def _advance(stages: list[Issued | None]) -> None:
    for stage in range(len(stages) - 1):
        if stages[stage] is None:
            stages[stage], stages[stage + 1] = stages[stage + 1], None


def main() -> None:
    with (FOLDER / "launches.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if (row["config"], row["mem"]) == ("SM7_QV100", "perfect")]
    known = {(row["bench"], row["launch"]): int(row["gpu_sim_cycle"]) for row in rows}
    reduction = kernel("reduction", "_Z13reduce_sharedPKfPfi")
    cases = {("reduction", "1"): ([reducing(reduction, w) for w in range(8)], 4, 8)}
    cases["reduction_600k", "1"] = (cases["reduction", "1"][0], 15, 8)
    for bench, side, rounds, blocks in (
        ("sgemm16", 16, 8, 1), ("sgemm16_192", 16, 12, 2), ("sgemm32", 32, 4, 1), ("sgemm32_256", 32, 8, 1),
    ):  # fmt: skip
        code = kernel("sgemm", f"_Z11sgemm_tiledILi{side}EEvPKfS1_Pfi")
        cases[bench, "1"] = ([looping(code, rounds)] * (side * side // 32), blocks, blocks)
    print("cycles: the reference; two collector units a scheduler; four")
    for name, (paths, blocks, resident) in cases.items():
        found = [Sm(paths, blocks, resident, units).run() for units in (2, 4)]
        print(f"{name[0]:15} {known[name]:6} {found[0]:6} {found[0] / known[name] - 1:+6.1%} {found[1]:6}")


if __name__ == "__main__":
    main()
