"""One SM of GPGPU-Sim's QV100 under perfect memory, cycle by cycle: an independent truth for kernels of any kind.

Written from what the simulator does, in the simulator's own order of things: nothing of `ppt_gpu.sm` is used.
Write-back, units, load/store unit, operand collectors, schedulers (loose round robin), fetch. What the warps execute,
and where, is given: `ppt_gpu.emulator` ran the kernel. That of GTX480 is `simulator_sm_gtx480`.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field

SCHEDULERS, BANKS = 4, 4  # banks of registers, each scheduler's own
SHARED_STAGES = L1_STAGES = 20
L1_BANKS, L1_SETS, MISS_QUEUE, MSHRS, MERGES = 4, 4, 16, 512, 8
STEPS, PORTS, FETCHES = 2, 8, 4  # a cycle, of the collectors; their input ports; warps that get two instructions
UNITS = ("sp", "sfu", "memory", "dp", "int")  # in the order in which a port looks at them
BUSES = 8  # results that may be written in a cycle
ANSWERS, RESPONSES = 32, 2  # places in the queue of the SM for answers, and of the load/store unit


@dataclass(frozen=True)
class Instruction:
    """A PTX instruction, as the simulator decodes it."""

    pc: int
    unit: str  # of UNITS
    latency: int
    interval: int
    sources: tuple[int, ...]  # numbers of the registers read through the collectors, those of addresses too
    result: int  # number of the register written, -1: none
    writes: frozenset[int]  # registers
    registers: frozenset[int]  # read or written, addresses and guard too
    space: str = ""  # parameter, shared, global; of memory instructions
    access: str = ""  # load, store, atomic
    barrier: bool = False


@dataclass(frozen=True)
class Step:
    """One execution of an instruction by a warp."""

    what: Instruction
    cycles: int = 1  # of the shared memory
    sectors: tuple[int, ...] = ()  # numbers of 32 B sectors, the highest first; of an atomic, its transactions
    whole: frozenset[int] = frozenset()  # sectors that a store writes whole


@dataclass(eq=False)
class Issued:
    step: Step
    warp: Warp
    age: int
    missing: int = 0  # operands that are not read yet
    delay: int = 0  # cycles left in the shared memory's dispatch
    next_sector: int = 0
    pending: int = 0  # sectors that are not back

    @property
    def what(self) -> Instruction:
        return self.step.what


@dataclass(eq=False)
class Warp:
    place: int
    path: list[Step]
    block: int
    at: int = 0
    fetched: list[int] = field(default_factory=list)  # program counters in the buffer
    next_pc: int = 0
    pending: Counter[int] = field(default_factory=Counter)  # registers
    flying: int = 0  # instructions and stores on their way
    atomics: int = 0
    waits: bool = False  # at a barrier
    left: bool = False  # the SM has seen that it is over

    @property
    def over(self) -> bool:
        return self.at == len(self.path) and self.flying == 0

    def bank(self, register: int) -> int:
        """Of a register, in the file of all schedulers."""
        return (register + self.place) % BANKS + self.place % SCHEDULERS * BANKS


class L1:
    """Tags of the sectored L1: what a sector is, valid or on its way."""

    def __init__(self, size: int) -> None:
        self.ways = size // (L1_SETS * 128)
        self.sets: list[OrderedDict[int, set[int]]] = [OrderedDict() for _ in range(L1_SETS)]
        self.pending: dict[int, list[Issued]] = {}

    def held(self, sector: int) -> set[int]:
        """The sectors that its line has."""
        return self.sets[sector // 4 % L1_SETS].get(sector // 4, set())

    def use(self, sector: int) -> bool:
        """Its line is the newest of its set; False: there is no place for it, as all wait for sectors."""
        lines, line = self.sets[sector // 4 % L1_SETS], sector // 4
        if line not in lines:
            if len(lines) == self.ways:
                reserved = {pending // 4 for pending in self.pending}
                victim = next((other for other in lines if other not in reserved), None)
                if victim is None:
                    return False
                del lines[victim]
            lines[line] = set()
        lines.move_to_end(line)
        return True


class Sm:
    """Blocks (paths of their warps), `resident` at a time; `units`: collector units of a scheduler."""

    clients = 3  # who has results for the port to the registers

    def __init__(self, blocks: list[list[list[Step]]], resident: int, l1_size: int, units: int = 2) -> None:
        self.units = units
        self.begin(deque(blocks), max(len(block) for block in blocks), resident)
        self.before: dict[str, list[Issued | None]] = {unit: [None] * SCHEDULERS for unit in UNITS}
        self.behind: dict[str, list[Issued | None]] = {unit: [None] * SCHEDULERS for unit in UNITS}
        self.collecting: list[Issued | None] = [None] * (SCHEDULERS * units)
        self.reads = [deque[Issued]() for _ in range(SCHEDULERS * BANKS)]
        self.written: set[int] = set()  # banks, until the next step of the collectors
        self.results: dict[int, list[Issued]] = {}  # of the units, by cycle
        self.unit_free = {(unit, scheduler): 0 for unit in UNITS for scheduler in range(SCHEDULERS)}
        self.memory: Issued | None = None
        self.shared: list[Issued | None] = [None] * SHARED_STAGES
        self.writing: Issued | None = None  # back to the registers, one a cycle
        self.returns = 0  # whose turn it is to write: shared memory, what passes the L1 by, the L1
        self.lookups: list[list[tuple[Issued, int] | None]] = [[None] * L1_STAGES for _ in range(L1_BANKS)]
        self.l1 = L1(l1_size)
        self.misses, self.answers = deque[tuple[Issued, int]](), deque[tuple[Issued, int]]()
        self.filled, self.uncached = deque[Issued](), deque[Issued]()
        self.last, self.fetch_last = [-1] * SCHEDULERS, 0
        self.fetching: Warp | None = None
        self.turn = self.cycle = self.age = self.launched = 0

    def begin(self, blocks: deque[list[list[Step]]], size: int, resident: int) -> None:
        """Another launch: `size` warps a block."""
        self.blocks, self.size = blocks, size
        self.warps: list[Warp | None] = [None] * (size * resident)

    def run(self) -> int:
        busy = True
        while busy:
            self.cycle += 1  # the first cycle only brings a block
            busy = self.launch()
            if busy:
                self.step()
        return self.cycle

    def step(self) -> None:
        """What happens in a cycle."""
        self._results()
        self._units()
        self._load_store()
        for _ in range(STEPS):
            self._step()
        for other in range(SCHEDULERS):
            self._issue((self.turn + other) % SCHEDULERS)
        self.turn += 1
        for _ in range(FETCHES):
            self._fetch()

    def launch(self) -> bool:
        """Blocks whose warps are seen to be over leave, one block may enter; False when all are done."""
        free, busy = None, False
        for first in range(0, len(self.warps), self.size):
            warps = [warp for warp in self.warps[first : first + self.size] if warp]
            if warps and all(warp.left for warp in warps):
                self.warps[first : first + self.size] = [None] * self.size
                warps = []
            if warps:
                busy = True
            elif free is None:
                free = first
        if free is not None and self.blocks:
            self.launched += 1
            for n, path in enumerate(self.blocks.popleft()):
                self.warps[free + n] = Warp(free + n, path, self.launched)
            busy = True
        return busy

    # --- results ---------------------------------------------------------------------------------------------

    def _write(self, done: Issued) -> bool:
        """Into its register bank, if nothing else is written there."""
        if done.what.result >= 0:
            bank = done.warp.bank(done.what.result)
            if bank in self.written:
                return False
            self.written.add(bank)
        return True

    def _release(self, one: Issued) -> None:
        """Its result is there."""
        for register in one.what.writes:
            one.warp.pending[register] -= 1

    def _results(self) -> None:
        for done in self.results.pop(self.cycle, ()):
            self._write(done)
            self._release(done)
            done.warp.flying -= 1

    def _units(self) -> None:
        for (unit, scheduler), free in self.unit_free.items():
            waiting = self.behind[unit][scheduler]
            if unit == "memory" or waiting is None or free > self.cycle:
                continue
            then = self.cycle + waiting.what.latency + 2
            coming = self.results.setdefault(then, [])
            same = any(one.what.unit == unit and one.warp.place % SCHEDULERS == scheduler for one in coming)
            if len(coming) < BUSES and not same:  # a unit ends one a cycle
                self.unit_free[unit, scheduler] = self.cycle + waiting.what.interval
                coming.append(waiting)
                self.behind[unit][scheduler] = None

    # --- load/store unit -------------------------------------------------------------------------------------

    def _load_store(self) -> None:
        self._write_back()
        _advance(self.shared)
        if self.answers:
            self._answered(*self.answers.popleft())
        if self.misses:
            self.send(*self.misses.popleft())
        for bank in self.lookups:
            if bank[0] is not None and self._look_up(*bank[0]):
                bank[0] = None
            _advance(bank)
        if self.memory is not None and self._serve(self.memory):
            self.memory = None
        if self.memory is None:
            waiting = [one for one in self.behind["memory"] if one is not None]
            if waiting:
                self.memory = min(waiting, key=lambda one: one.age)
                self.memory.delay = self.memory.step.cycles
                self.behind["memory"][self.memory.warp.place % SCHEDULERS] = None

    def _write_back(self) -> None:
        if self.writing is not None and self._write(self.writing):
            done, self.writing = self.writing, None
            done.pending -= 1
            if done.pending <= 0:
                self._complete(done)
        for client in range(self.returns, self.returns + self.clients):
            if self.writing is None:
                self.writing = self._returned(client % self.clients)
                self.returns = (client + 1) % self.clients if self.writing else self.returns

    def _returned(self, client: int) -> Issued | None:
        """What shared memory, requests that pass the L1 by, or the L1 have for the registers."""
        if client == 0:
            one, self.shared[0] = self.shared[0], None
            return one
        queue = self.uncached if client == 1 else self.filled
        return queue.popleft() if queue else None

    def _complete(self, one: Issued) -> None:
        self._release(one)
        one.warp.flying -= 1
        one.warp.atomics -= one.what.access == "atomic"

    def _answered(self, one: Issued, sector: int) -> None:
        if one.what.access == "store":
            one.pending -= 1
            one.warp.flying -= one.pending == 0
        elif one.what.access == "atomic":
            self.uncached.append(one)
        else:
            self.l1.held(sector).add(sector)
            self.filled.extend(self.l1.pending.pop(sector))

    def send(self, one: Issued, sector: int) -> None:
        """To the memory, which is perfect."""
        self.answers.append((one, sector))

    def _look_up(self, one: Issued, sector: int) -> bool:
        """What the L1 does with a sector; False: it has to wait."""
        if one.what.access == "store":
            if len(self.misses) >= MISS_QUEUE or not self.l1.use(sector):
                return False
            if sector in one.step.whole:
                self.l1.held(sector).add(sector)
            self.misses.append((one, sector))
            return True
        if sector in self.l1.held(sector):
            self.l1.use(sector)
            one.pending -= 1
            if one.pending == 0:
                self._complete(one)
            return True
        if len(self.misses) + 1 >= MISS_QUEUE:
            return False
        if sector in self.l1.pending:
            if len(self.l1.pending[sector]) >= MERGES:
                return False
            self.l1.use(sector)
            self.l1.pending[sector].append(one)
            return True
        if len(self.l1.pending) >= MSHRS or not self.l1.use(sector):
            return False
        self.l1.pending[sector] = [one]
        self.misses.append((one, sector))
        return True

    def _serve(self, one: Issued) -> bool:
        """What the load/store unit holds goes on; True: it has left it."""
        what = one.what
        if what.space == "shared":
            one.delay -= 1
            if one.delay > 0 or (what.access != "store" and self.shared[-1] is not None):
                return False
            if what.access == "store":
                one.warp.flying -= 1
            else:
                one.pending, self.shared[-1] = 1, one
            return True
        if what.space == "parameter" or not one.step.sectors:
            self._complete(one)
            return True
        if one.next_sector == 0:
            one.pending = len(one.step.sectors)
        if what.access == "atomic":
            self.send(one, one.step.sectors[one.next_sector])
            one.next_sector += 1
            return one.next_sector == len(one.step.sectors)
        for _ in range(L1_BANKS):
            if one.next_sector < len(one.step.sectors):
                sector = one.step.sectors[one.next_sector]
                bank = self.lookups[sector % L1_BANKS]
                if bank[-1] is not None:
                    return False
                bank[-1] = one, sector
                one.next_sector += 1
        return one.next_sector == len(one.step.sectors)

    # --- collectors ------------------------------------------------------------------------------------------

    def _step(self) -> None:
        """The collectors: hand over, read, take in."""
        for number, one in enumerate(self.collecting):
            if one is not None and one.missing == 0 and self.behind[one.what.unit][number // self.units] is None:
                self.behind[one.what.unit][number // self.units], self.collecting[number] = one, None
        for bank, queue in enumerate(self.reads):
            if queue and bank not in self.written:
                queue.popleft().missing -= 1
        for _ in range(PORTS):
            for unit in UNITS:
                self._collect(unit)
        self.written.clear()

    def _collect(self, unit: str) -> None:
        """The oldest of all schedulers goes to a free unit of its scheduler; the others wait for it."""
        waiting = [one for one in self.before[unit] if one is not None]
        if not waiting:
            return
        one = min(waiting, key=lambda one: one.age)
        scheduler = one.warp.place % SCHEDULERS
        for number in range(scheduler * self.units, (scheduler + 1) * self.units):
            if self.collecting[number] is None:
                self.collecting[number], self.before[unit][scheduler] = one, None
                one.missing = len(one.what.sources)
                for register in one.what.sources:
                    self.reads[one.warp.bank(register)].append(one)
                return

    # --- issue and fetch -------------------------------------------------------------------------------------

    def _issue(self, scheduler: int) -> None:
        """Loose round robin."""
        mine = self.warps[scheduler::SCHEDULERS]
        for place in _from(self.last[scheduler], len(mine)):
            warp = mine[place]
            if warp is None or warp.waits or warp.atomics or not warp.fetched or warp.at == len(warp.path):
                continue
            what = warp.path[warp.at].what
            if warp.fetched[0] != what.pc:  # the instructions behind a branch that was taken
                warp.fetched, warp.next_pc = [], what.pc
                continue
            if any(warp.pending[r] for r in what.registers) or self.before[what.unit][scheduler] is not None:
                continue
            self.before[what.unit][scheduler] = Issued(warp.path[warp.at], warp, self.age)
            self.age += 1
            self.last[scheduler] = place
            warp.fetched.pop(0)
            warp.at, warp.next_pc, warp.flying = warp.at + 1, what.pc + 1, warp.flying + 1
            for register in what.writes:
                warp.pending[register] += 1
            warp.atomics += what.access == "atomic"
            if what.barrier or warp.at == len(warp.path):
                self._arrive(warp, what.barrier)
            return

    def _arrive(self, warp: Warp, waits: bool) -> None:
        warp.waits = waits and warp.at < len(warp.path)
        block = [other for other in self.warps if other and other.block == warp.block and other.at < len(other.path)]
        if all(other.waits for other in block):
            for other in block:
                other.waits = False

    def _fetch(self) -> None:
        """What was fetched goes to its warp; the next warp in turn whose buffer is empty. On the way to it the SM sees
        which warps are over."""
        if self.fetching is not None:
            self.fetching.fetched = [self.fetching.next_pc, self.fetching.next_pc + 1]
        self.fetching = None
        for number in _from(self.fetch_last, len(self.warps)):
            warp = self.warps[number]
            if warp is None:
                continue
            if warp.over:
                warp.left = True
            elif not warp.fetched and warp.at < len(warp.path):
                self.fetching, self.fetch_last = warp, number
                return


def _from(last: int, places: int) -> Iterator[int]:
    """The places behind one, which may be more than there are now, and then the others."""
    yield from range(last + 1, places)
    yield from range(min(last + 1, places))


def _advance(stages: list) -> None:
    for stage in range(len(stages) - 1):
        if stages[stage] is None:
            stages[stage], stages[stage + 1] = stages[stage + 1], None
