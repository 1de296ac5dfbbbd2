"""The order in which the compiler of machine code issues the instructions of a piece of straight-line code.

PTX is not what the hardware runs: ptxas schedules every basic block, above all by moving loads ahead of the arithmetic
between them, so that they are in flight together. Here that is list scheduling (Gibbons and Muchnick, "Efficient
Instruction Scheduling for a Pipelined Architecture", 1986): of the instructions whose operands are computed, the one
with the longest way to the end of the block is next, unless the registers are all taken.

What may not change places: readers and writers of a register; accesses to memory that may be the same, one of which
writes, unless their addresses are the same register with offsets apart; accesses and a barrier or fence; anything and
a call, branch or exit; anything and an instruction that branches within: a division, root or reciprocal whose rare
operands go another way ends a basic block, so a load behind it waits until it is done. Of the first two what stands
under a predicate may change places with what stands under its opposite.

The compiler does not know what the caches will hold, so it expects nominal latencies (`_EXPECTED`), the same for all
GPUs.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from ppt_gpu.machine.analysis.values import is_pure
from ppt_gpu.machine.scheduling.live_registers import Taken
from ppt_gpu.machine.scheduling.pressure_scheduler import fewest_alive
from ppt_gpu.ptx.instructions import (
    access_bytes,
    access_kind,
    is_branch,
    is_exit,
    memory_space,
    operation,
)
from ppt_gpu.ptx.linking.liveness import EXTRA_REGISTERS
from ppt_gpu.ptx.module import Instruction, Mem, Reg, Sym

#: instructions that nothing passes
_ENDS = frozenset(("call", "ret", "exit", "trap", "brkpt", "bra", "brx", "setmaxnreg"))
#: instructions that only arithmetic passes. What asynchronous copies and the like touch is not said by their operands
_WALLS = frozenset(
    ("bar", "barrier", "membar", "fence", "nanosleep", "cp", "mbarrier", "wgmma", "tcgen05", "griddepcontrol",
     "discard", "prefetch")
)  # fmt: skip
#: cycles; of operations by the longest prefix of their name, else ARITHMETIC
_EXPECTED = {
    "load": 32,
    "load.shared": 24,
    "load.constant": 8,
    "load.param": 1,
    "atomic": 100,
    "sfu": 20,
    "fp64": 8,
    "tensor": 18,
}
ARITHMETIC = 5


def issue_order(
    code: Sequence[Instruction],
    weights: Sequence[int],
    alive: int,
    registers: int,
    free: Collection[int],
    fewest: bool = False,
    branching: Collection[int] = (),
) -> list[int]:
    """The numbers of the instructions of a piece of straight-line code, in the order of issue.

    weights: 32-bit registers that each PTX register takes. alive: bit set of those that are read behind the code.
    registers: that a thread has; values that are alive at once take no more, where an order allows.
    free: instructions that others do together with their own work.
    fewest: where registers are too few otherwise, an order with few values alive is tried, and loads moved ahead in it.
    branching: instructions that branch within.
    """
    latency = [0 if number in free else expected_latency(i) for number, i in enumerate(code)]
    ends = {number for number, i in enumerate(code) if number in branching or _is_end(i)}
    block, room = _Block(code, latency, weights, alive, ends), registers - EXTRA_REGISTERS
    found, most = block.schedule(room)
    if most > room:
        other, fewer = block.schedule(room, by_ptx=True)
        found, most = (other, fewer) if fewer < most else (found, most)
    if fewest and most > room:
        other, fewer = block.schedule(room, ranks=block.fewest_alive())
        found = other if fewer <= room else found
    return found


def expected_latency(instruction: Instruction) -> int:
    """Cycles until the result can be used, as the compiler expects them."""
    name = operation(instruction)
    while name and name not in _EXPECTED:
        name = name.rpartition(".")[0]
    return _EXPECTED.get(name, ARITHMETIC)


class _Block:
    """The instructions of one basic block, numbered from 0, and who must follow whom."""

    def __init__(
        self,
        code: Sequence[Instruction],
        latency: Sequence[int],
        weights: Sequence[int],
        alive: int,
        ends: Collection[int],
    ) -> None:
        self.code, self.latency, self.weights, self.alive, self.ends = code, latency, weights, alive, ends
        self.products = [operation(instruction).startswith("tensor") for instruction in code]
        self.any_products = any(self.products)
        self.followers: list[dict[int, int]] = [{} for _ in code]  # later instruction -> cycles between the two
        self.leaders = [0] * len(code)  # how many an instruction waits for
        self._link_registers()
        self._link_memory()
        for follower in self.followers:
            for number in follower:
                self.leaders[number] += 1
        self.height = [0] * len(code)  # cycles to the end of the block, along the longest chain
        for number in reversed(range(len(code))):
            self.height[number] = max((gap + self.height[n] for n, gap in self.followers[number].items()), default=0)

    def _after(self, earlier: int, later: int, gap: int) -> None:
        known = self.followers[earlier]
        known[later] = max(known.get(later, 0), gap)

    def _link_registers(self) -> None:
        """Readers of a register come behind all who may have written what they read.

        Under a guard a writer may leave the value before, and of two under opposite guards one does.
        """
        writers: dict[int, list[tuple[int, _Condition]]] = {}  # the last one under no guard, and those behind it
        readers: dict[int, list[tuple[int, _Condition]]] = {}  # since then
        version: dict[int, int] = {}
        for number, instruction in enumerate(self.code):
            under = _condition(instruction, version)
            for register in instruction.reads:
                for writer, other in writers.get(register, ()):
                    if not _excludes(under, other):
                        self._after(writer, number, self.latency[writer])
            for register in instruction.writes:
                for writer, other in writers.get(register, ()):
                    if not _excludes(under, other):
                        self._after(writer, number, 1)
                for reader, other in readers.get(register, ()):
                    if reader != number and not _excludes(under, other):
                        self._after(reader, number, 0)
            for register in instruction.reads:
                readers.setdefault(register, []).append((number, under))
            for register in instruction.writes:
                kept = [] if under is None else [each for each in writers.get(register, ()) if each[1] != under]
                writers[register] = [*kept, (number, under)]
                if under is None:
                    readers[register] = []
                version[register] = version.get(register, 0) + 1

    def _link_memory(self) -> None:
        end, wall = -1, -1
        since: list[int] = []  # instructions since the last one that nothing passes
        ordered: list[int] = []  # those since the last wall that do not pass it
        touched: list[_Access] = []  # accesses since then
        version: dict[int, int] = {}
        for number, instruction in enumerate(self.code):
            if number in self.ends:
                for other in since or ([end] if end >= 0 else []):
                    self._after(other, number, 0)
                end, wall, since, ordered, touched = number, -1, [], [], []
                continue
            if end >= 0:
                self._after(end, number, 0)
            since.append(number)
            if instruction.base in _WALLS:
                for other in ordered or ([wall] if wall >= 0 else []):
                    self._after(other, number, 0)
                wall, ordered, touched = number, [], []
                continue
            if not is_pure(instruction):
                if wall >= 0:
                    self._after(wall, number, 0)
                ordered.append(number)
                access = _access(number, instruction, version)
                if access is not None:
                    access = access._replace(under=_condition(instruction, version))
                    for before in touched:
                        if access.conflicts(before):
                            self._after(before.number, number, 0)
                    touched.append(access)
            for register in instruction.writes:
                version[register] = version.get(register, 0) + 1

    def fewest_alive(self) -> list[int]:
        """The place of each instruction in an order with few values alive (`machine.fewest`)."""
        places = [0] * len(self.code)
        order = fewest_alive(self.followers, self.leaders, Taken(self.code, self.weights, self.alive))
        for place, number in enumerate(order):
            places[number] = place
        return places

    def schedule(self, room: int, by_ptx: bool = False, ranks: Sequence[int] | None = None) -> tuple[list[int], int]:
        """(the numbers in the order of issue, the most registers that are taken at once).

        by_ptx: where `room` is short, and what is ready takes more, the first in the PTX is next.
        ranks: the lowest is next, not the longest way to the end.
        """
        rank = [-height for height in self.height] if ranks is None else ranks
        leaders = list(self.leaders)
        taken = Taken(self.code, self.weights, self.alive)
        most = taken.count
        ready: list[tuple[int, int]] = []  # (rank, number)
        later: list[tuple[int, int]] = []  # (cycle, number)
        earliest = [0] * len(self.code)
        for number, count in enumerate(leaders):
            if count == 0:
                heapq.heappush(ready, (rank[number], number))
        found: list[int] = []
        while ready or later:
            now = len(found)
            while later and (later[0][0] <= now or not ready):
                _, number = heapq.heappop(later)
                heapq.heappush(ready, (rank[number], number))
            if taken.count + taken.change(ready[0][1]) > room:  # rather wait for a result than for registers
                ready += [(rank[number], number) for _, number in later]
                later = []
                heapq.heapify(ready)
            place = self._turn(found, ready, room, taken)
            number = _taken_out(ready, self._next(ready, room, by_ptx, taken) if place is None else place)
            found.append(number)
            taken.issue(number)
            most = max(most, taken.count)
            for follower, gap in self.followers[number].items():
                earliest[follower] = max(earliest[follower], now + gap)
                leaders[follower] -= 1
                if leaders[follower] == 0:
                    heapq.heappush(later, (earliest[follower], follower))
        return found, most

    def _turn(self, found: list[int], ready: list[tuple[int, int]], room: int, taken: Taken) -> int | None:
        """After a matrix product, the place of the ready instruction of the longest way that is none, and after an
        access to memory of one that is, where there are such and registers for them: neither tensor cores nor the
        load/store unit take an instruction every cycle, and ptxas has them take turns."""
        if not (self.any_products and found):
            return None
        product = self.products[found[-1]]
        if not product and access_kind(self.code[found[-1]]) is None:
            return None
        free = max(room - taken.count, 0)
        others = [
            place
            for place, (_, number) in enumerate(ready)
            if self.products[number] != product and taken.change(number) <= free
        ]
        return min(others, key=ready.__getitem__, default=None)

    def _next(self, ready: list[tuple[int, int]], room: int, by_ptx: bool, taken: Taken) -> int:
        """The place of the ready instruction of the longest way; where registers are too few for it, of the one that
        needs the fewest more, or with `by_ptx` of one that needs no more, else of the first in the PTX."""

        def key(place: int) -> tuple[int, int]:
            number = ready[place][1]
            change = taken.change(number)
            return min(change, 1) if by_ptx else change, number

        change = taken.change(ready[0][1])
        return 0 if change <= 0 or taken.count + change <= room else min(range(len(ready)), key=key)


def _taken_out(ready: list[tuple[int, int]], place: int) -> int:
    """The number of the instruction at `place` of the heap, which loses it."""
    if place == 0:
        return heapq.heappop(ready)[1]
    number = ready[place][1]
    ready[place] = ready[-1]
    ready.pop()
    heapq.heapify(ready)
    return number


def _is_end(instruction: Instruction) -> bool:
    return instruction.base in _ENDS or is_branch(instruction) or is_exit(instruction)


#: the predicate under which an instruction runs, how often that has been written, and whether it must be false
_Condition = tuple[int, int, bool] | None


def _condition(instruction: Instruction, version: Mapping[int, int]) -> _Condition:
    guard = instruction.guard
    return None if guard is None else (guard.reg, version.get(guard.reg, 0), guard.negated)


def _excludes(first: _Condition, second: _Condition) -> bool:
    """Does a lane run only one of two instructions, whatever the predicate is?"""
    return first is not None and second is not None and first[:2] == second[:2] and first[2] != second[2]


class _Access(NamedTuple):
    """What an instruction touches in memory."""

    number: int
    space: str
    writes: bool
    base: object  # the register of its address and how often that has been written; None: not known
    first: int  # B behind the base
    size: int
    under: _Condition = None

    def conflicts(self, other: _Access) -> bool:
        """May both touch the same bytes for one lane, one of them writing?"""
        if not (self.writes or other.writes) or _excludes(self.under, other.under):
            return False
        if self.space != other.space and "generic" not in (self.space, other.space):
            return False
        if self.base is None or self.base != other.base:
            return True
        return self.first < other.first + other.size and other.first < self.first + self.size


def _access(number: int, instruction: Instruction, version: Mapping[int, int]) -> _Access | None:
    kind = access_kind(instruction)
    if kind is None:
        return None
    space, writes = memory_space(instruction) or "generic", kind != "load"
    if not writes and (space in ("param", "constant") or "nc" in instruction.modifiers):
        return None
    writes = writes or "volatile" in instruction.modifiers
    address = next((operand for operand in instruction.operands if isinstance(operand, Mem)), None)
    size = access_bytes(instruction)
    if instruction.base not in ("ld", "st") or address is None or not size or (writes and kind == "load"):
        return _Access(number, space, writes, None, 0, 0)
    base = address.base
    if isinstance(base, Reg):
        return _Access(number, space, writes, (base.id, version.get(base.id, 0)), address.offset, size)
    if isinstance(base, Sym):
        return _Access(number, space, writes, base.name, address.offset + base.offset, size)
    return _Access(number, space, writes, None, 0, 0)
