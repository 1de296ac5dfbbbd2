"""One SM of GPGPU-Sim's GTX480 under perfect memory, cycle by cycle, and all 15 with the blocks of a launch.

As `simulator_sm`, written from what the simulator does. What differs from QV100: two schedulers (greedy, then oldest)
share all units; collector units belong to a pipe; one fetch a cycle, through an instruction cache; a cache of
constants; an L1 of whole lines in one bank, which stores pass. All caches miss, and what they miss comes back at once,
but through one queue of the SM, an answer a cycle. An SM keeps over launches what the simulator keeps: the caches of
instructions and constants, whose turn it is, and the slots that issued and were fetched for last.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from simulator_caches import L1_SETS, L1_WAYS, LineL1, ReadOnly
from simulator_sm import ANSWERS, RESPONSES, Issued, Sm, Step, Warp, _advance

SMS, SCHEDULERS, SLOTS, BANKS, BUSES = 15, 2, 48, 16, 2
#: pipe -> (units to compute, collector units); as many places before and behind these as units
PIPES = {"sp": (2, 6), "sfu": (1, 8), "memory": (1, 2)}
SHARED_STAGES, L1_STAGES = 26, 35
LINE, PTX_BYTES = 128, 8  # B of a line of instructions or data, and of an instruction

Blocks = Sequence[list[list[Step]]]


@dataclass(eq=False)
class GreedyWarp(Warp):
    number: int = 0  # in the order of launches
    missing: bool = False  # its line of instructions is on its way

    def bank(self, register: int) -> int:
        return (register + self.place) % BANKS


class GreedySm(Sm):
    """An SM of GTX480. `Step.sectors` are numbers of lines here, the highest first; of atomics, of segments of 32 B."""

    clients = 4  # shared memory, constants, what passes the L1 by, the L1

    def __init__(self) -> None:
        super().__init__([[[]]], 1, LINE * L1_SETS * L1_WAYS)
        self.before = {pipe: [None] * units for pipe, (units, _) in PIPES.items()}
        self.behind = {pipe: [None] * units for pipe, (units, _) in PIPES.items()}
        self.units_of: dict[str, list[Issued | None]] = {pipe: [None] * count for pipe, (_, count) in PIPES.items()}
        self.handed = {pipe: [0] * units for pipe, (units, _) in PIPES.items()}
        self.free_at = {pipe: [0] * units for pipe, (units, _) in PIPES.items()}
        self.ends: set[tuple[str, int, int]] = set()  # (pipe, unit, cycle): a unit ends one instruction a cycle
        self.reads = [deque() for _ in range(BANKS)]
        self.shared = [None] * SHARED_STAGES
        self.pipeline: list[tuple[Issued, int] | None] = [None] * L1_STAGES
        self.code, self.constants = ReadOnly[GreedyWarp](4, 4), ReadOnly[Issued](64, 2)
        self.data = LineL1()
        self.queue: deque[tuple[str, int, Issued | None]] = deque()  # answers on their way: whose, line, of which
        self.responses: deque[tuple[str, int, Issued | None]] = deque()
        self.slots: list[GreedyWarp | None] = [None] * SLOTS
        self.in_order: list[list[GreedyWarp]] = [[] for _ in range(SCHEDULERS)]  # of launches
        self.greedy = list(range(SCHEDULERS))  # slots that issued last
        self.taken: dict[int, int] = {}  # block slot -> warps that are not over
        self.numbered = self.size_of = self.most = self.first = self.fetched_last = 0

    def begin_launch(self, size: int, resident: int, first: int) -> None:
        """A launch of blocks of `size` warps, whose kernel's code begins at instruction `first` of the module."""
        self.size_of, self.most, self.first = size, resident, first
        self.data = LineL1()  # is emptied between launches
        self.slots = [None] * SLOTS
        self.in_order = [[] for _ in range(SCHEDULERS)]

    @property
    def busy(self) -> bool:
        return bool(self.taken)

    def has_place(self) -> bool:
        return len(self.taken) < self.most

    def enter(self, block: list[list[Step]]) -> None:
        """A block takes the first block slot that is free."""
        index = next(index for index in range(self.most) if index not in self.taken)
        self.taken[index] = len(block)
        self.launched += 1
        for n, path in enumerate(block):
            place = index * self.size_of + n
            warp = GreedyWarp(place, path, self.launched, number=self.numbered)
            self.numbered += 1
            old = self.slots[place]
            if old is not None:
                self.in_order[place % SCHEDULERS].remove(old)
            self.slots[place] = warp
            self.in_order[place % SCHEDULERS].append(warp)

    def step(self) -> None:
        self.cycle += 1
        self._deliver()
        self._results()
        self._units()
        self._load_store()
        self._step()
        for other in range(SCHEDULERS):
            self._issue((self.turn + other) % SCHEDULERS)
        self.turn += 1
        self._fetch()

    def _deliver(self) -> None:
        """An answer a cycle comes to the SM."""
        if not self.queue:
            return
        if self.queue[0][0] == "code":
            self.code.fill(self.queue.popleft()[1])
        elif len(self.responses) < RESPONSES:
            self.responses.append(self.queue.popleft())

    # --- results ---------------------------------------------------------------------------------------------

    def _units(self) -> None:
        """Each unit looks at the oldest instruction behind the collectors of its pipe."""
        for pipe in ("sp", "sfu"):
            places = self.behind[pipe]
            for unit, free in enumerate(self.free_at[pipe]):
                one = min((one for one in places if one is not None), key=_age, default=None)
                if one is None or free > self.cycle:
                    continue
                then = self.cycle + one.what.latency + 2
                if (pipe, unit, then) in self.ends or len(self.results.get(then, ())) >= BUSES:
                    continue
                self.ends.add((pipe, unit, then))
                self.results.setdefault(then, []).append(one)
                self.free_at[pipe][unit] = self.cycle + one.what.interval
                places[places.index(one)] = None

    # --- load/store unit -------------------------------------------------------------------------------------

    def _load_store(self) -> None:
        self._write_back()
        _advance(self.shared)
        if self.responses:
            self._respond()
        if self.constants.misses and len(self.queue) < ANSWERS:
            self.queue.append(("constant", self.constants.misses.popleft(), None))
        if self.data.misses and len(self.queue) < ANSWERS:
            one, line = self.data.misses.popleft()
            self.queue.append((one.what.access, line, one))
        if self.pipeline[0] is not None and self._look_up(*self.pipeline[0]):
            self.pipeline[0] = None
        _advance(self.pipeline)
        if self.memory is not None and self._serve(self.memory):
            self.memory = None
        waiting = self.behind["memory"][0]
        if self.memory is None and waiting is not None:
            self.memory, self.behind["memory"][0] = waiting, None
            waiting.delay = waiting.step.cycles

    def _respond(self) -> None:
        """An answer a cycle comes to the load/store unit."""
        kind, line, one = self.responses[0]
        if kind == "atomic":
            if self.uncached:
                return
            assert one is not None
            self.uncached.append(one)
        elif kind == "store":
            assert one is not None
            one.pending -= 1
            one.warp.flying -= one.pending == 0
        else:
            (self.constants if kind == "constant" else self.data).fill(line)
        self.responses.popleft()

    def _returned(self, client: int) -> Issued | None:
        if client == 1:
            return self.constants.take() if self.constants.ready else None
        if client == 3:
            return self.data.take() if self.data.ready else None
        return super()._returned(client and 1)

    def _look_up(self, one: Issued, sector: int) -> bool:
        found = self.data.look_up(one, sector)
        if found == "hit":
            one.pending -= 1
            if one.pending == 0:
                self._complete(one)
        return found != "full"

    def send(self, one: Issued, sector: int) -> None:
        self.queue.append((one.what.access, sector, one))

    def _serve(self, one: Issued) -> bool:
        if one.what.space == "parameter":
            found = self.constants.look_up(0, one)  # parameters of 64 B at most
            if found == "hit":
                self._complete(one)
            one.pending = 1
            return found != "full"
        if one.what.space == "shared" or not one.step.sectors:
            return super()._serve(one)
        lines = one.step.sectors
        if one.next_sector == 0:
            one.pending = len(lines)
        if one.what.access == "atomic":
            if len(self.queue) < ANSWERS:
                self.send(one, lines[one.next_sector])
                one.next_sector += 1
        elif self.pipeline[-1] is None:
            self.pipeline[-1] = one, lines[one.next_sector]
            one.next_sector += 1
        return one.next_sector == len(lines)

    # --- collectors ------------------------------------------------------------------------------------------

    def _step(self) -> None:
        for pipe, (units, count) in PIPES.items():
            collecting, behind = self.units_of[pipe], self.behind[pipe]
            for port in range(units):
                if None not in behind:
                    break
                for other in range(1, count + 1):
                    number = (self.handed[pipe][port] + other) % count
                    one = collecting[number]
                    if one is not None and one.missing == 0:
                        behind[behind.index(None)], collecting[number] = one, None
                        self.handed[pipe][port] = number
                        break
        for bank, queue in enumerate(self.reads):
            if queue and bank not in self.written:
                queue.popleft().missing -= 1
        for pipe, (units, _) in PIPES.items():
            for _ in range(units):
                self._collect(pipe)
        self.written.clear()

    def _collect(self, unit: str) -> None:
        places, collecting = self.before[unit], self.units_of[unit]
        one = min((one for one in places if one is not None), key=_age, default=None)
        if one is None or None not in collecting:
            return
        collecting[collecting.index(None)], places[places.index(one)] = one, None
        one.missing = len(one.what.sources)
        for register in one.what.sources:
            self.reads[one.warp.bank(register)].append(one)

    # --- issue and fetch -------------------------------------------------------------------------------------

    def _issue(self, scheduler: int) -> None:
        """Greedy, by the slot, then the oldest."""
        first = self.slots[self.greedy[scheduler]]
        for warp in ([first] if first else []) + [warp for warp in self.in_order[scheduler] if warp is not first]:
            if not warp.fetched or warp.waits or warp.atomics or warp.at == len(warp.path):
                continue
            what = warp.path[warp.at].what
            if warp.fetched[0] != what.pc:
                warp.fetched, warp.next_pc = [], what.pc
                continue
            places = self.before[what.unit]
            if None not in places or any(warp.pending[register] for register in what.registers):
                continue
            places[places.index(None)] = Issued(warp.path[warp.at], warp, self.age)
            self.age += 1
            self.greedy[scheduler] = warp.place
            warp.fetched.pop(0)
            warp.at, warp.next_pc, warp.flying = warp.at + 1, what.pc + 1, warp.flying + 1
            for register in what.writes:
                warp.pending[register] += 1
            warp.atomics += what.access == "atomic"
            if warp.at == len(warp.path):
                warp.fetched = []
            if what.barrier or warp.at == len(warp.path):
                self.warps = list(self.slots)
                self._arrive(warp, what.barrier)
            return

    def _fetch(self) -> None:
        """What was fetched goes to its warp. Then a line that has come is for the warp that waited for it; else the
        next warp in turn whose buffer is empty looks its line up. On the way to it the SM sees which warps are over."""
        if self.fetching is not None:
            self.fetching.fetched = [self.fetching.next_pc, self.fetching.next_pc + 1]
            self.fetching = None
        if self.code.ready:
            warp = self.code.take()
            warp.missing, self.fetching = False, warp
        else:
            self._look_for_warp()
        if self.code.misses and len(self.queue) < ANSWERS:
            self.queue.append(("code", self.code.misses.popleft(), None))

    def _look_for_warp(self) -> None:
        for step in range(1, SLOTS + 1):
            place = (self.fetched_last + step) % SLOTS
            warp = self.slots[place]
            if warp is None or warp.left:
                continue
            if warp.over:
                self._leave(warp)
            elif not warp.fetched and not warp.missing and warp.at < len(warp.path):
                self.fetched_last = place
                found = self.code.look_up((self.first + warp.next_pc) * PTX_BYTES // LINE, warp)
                warp.missing = found == "miss"
                if found == "hit":
                    self.fetching = warp
                return

    def _leave(self, warp: GreedyWarp) -> None:
        warp.left = True
        index = warp.place // self.size_of
        self.taken[index] -= 1
        if self.taken[index] == 0:
            del self.taken[index]


class Chip:
    """All SMs. The first block of a launch goes to the SM behind that which got the last block of the one before."""

    def __init__(self, sms: int = SMS) -> None:
        self.sms = [GreedySm() for _ in range(sms)]
        self.last = -1

    def run(self, blocks: Blocks, resident: int, first: int) -> int:
        """Cycles of a launch: in each of them an SM gets one block at most, at its end."""
        coming = deque(blocks)
        for sm in self.sms:
            sm.begin_launch(max(len(block) for block in blocks), resident, first)
        cycles = 0
        while True:
            cycles += 1
            last = self.last
            for step in range(1, len(self.sms) + 1):
                index = (last + step) % len(self.sms)
                if coming and self.sms[index].has_place():
                    self.sms[index].enter(coming.popleft())
                    self.last = index
            working = [sm for sm in self.sms if sm.busy]
            if not working:
                return cycles
            for sm in working:
                sm.step()


def _age(one: Issued) -> int:
    return one.age
