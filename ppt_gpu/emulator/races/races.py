"""Races on shared memory between the warps of a block: a pass over a recorded trace.

Two accesses race when warps of one block touch the same byte between the same two barriers of the block, one of them
stores, and not both are atomic or volatile: which comes first is up to the GPU. Hazards are named as NVIDIA's
racecheck names them (Compute Sanitizer, "Racecheck tool"), by the order in which both stand behind the last barrier.

The pass is made so that it never warns wrongly. What a trace does not record is no access. Where warps may have waited
for each other in other ways (atomics, volatile flags, barriers of some warps, mbarriers), they are taken to have done
so: nothing is said of an access behind which its warp lets others know, and one before which the other warp may have
waited. Two stores of what may be one value are no race, nor is a read of what the reading warp stored itself there:
that race, if it is one, is between the stores.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.emulator.analysis.notes import is_noted
from ppt_gpu.emulator.analysis.per_kernel_cache import SameKernel, once_a_kernel
from ppt_gpu.emulator.memory.warp_context import Flag
from ppt_gpu.emulator.races import race_loops as loops
from ppt_gpu.emulator.races.accesses import NOTHING, READS, UPDATES, WRITES, PathAccesses, Race, of_opcodes, role
from ppt_gpu.emulator.trace.trace import Trace
from ppt_gpu.ptx.instructions import access_bytes, access_kind, copied, is_barrier, is_traced, memory_space
from ppt_gpu.ptx.module import Imm, Instruction, Kernel, Operand, Reg, Special, items_of
from ppt_gpu.ptx.uses import writers_of

#: operations under which different values of one operand stay different, as far as code is written for
_DISTINCT = frozenset(("mov", "add", "sub", "mul", "mad", "fma", "shl", "cvt", "cvta", "neg", "not"))
_COUNTING = frozenset(("add", "inc", "dec"))  # atomics whose result is another for each that executes them


@dataclass(frozen=True)
class Origin:
    """What a stored value is made of."""

    constants: tuple[int | float, ...] | None  # the value, where the code says it
    loads: frozenset[int]  # instructions whose addresses a trace has
    counted: bool  # atomics that count
    thread: bool  # made of the thread's number in such a way that no two threads have the same


class StoredValues:
    """Values of the stores of one kernel, in one trace."""

    def __init__(self, kernel: Kernel, trace: Trace, accesses: PathAccesses) -> None:
        self.kernel, self.trace, self.accesses = kernel, trace, accesses
        self.origins: dict[int, Origin] = {}

    @cached_property
    def writers(self) -> dict[int, list[Instruction]]:
        """Of each register; few launches ask."""
        return writers_of(self.kernel.instructions)

    def differ(self, first_warp: int, race: Race, first: int, second: int) -> bool:
        """Did the stores at `first` and `second` in `PathAccesses.pc` store different values, by all that is known?

        `first_warp` is the first warp of the block in the trace. False where it cannot be told.
        """
        one, other = self.origin(race.first), self.origin(race.second)
        if one.constants is not None and other.constants is not None:
            return one.constants != other.constants
        if one.counted or other.counted or one.thread or other.thread:
            return True
        if one.loads != other.loads:
            return True
        warps = (first_warp + race.first_warp, first_warp + race.second_warp)
        return any(self._last(load, warps[0], first) != self._last(load, warps[1], second) for load in one.loads)

    def _last(self, load: int, warp: int, place: int) -> tuple[int, ...]:
        """Address and pattern of the last execution of `load` before the access at `place`; empty: there is none."""
        trace, accesses = self.trace, self.accesses
        begin = accesses.start[trace.warp_path[warp]]
        found = np.flatnonzero(accesses.pc[begin:place] == load)
        if not len(found):
            return ()
        k = trace.access_start[warp] + found[-1]
        return (int(trace.access_base[k]), *accesses.patterns.pattern(int(accesses.line[k])))

    def origin(self, store: int) -> Origin:
        if store not in self.origins:
            self.origins[store] = self._origin(self.kernel.instructions[store])
        return self.origins[store]

    def _origin(self, store: Instruction) -> Origin:
        """A backward slice over registers in any order, which ends at memory (as in `analysis.data_dependence`)."""
        if store.base not in ("st", "atom", "red"):  # stmatrix, wmma.store: registers of the whole warp
            return Origin(None, frozenset(), False, False)
        data = store.operands[-1]
        todo, done = _registers(data), set[int]()
        loads, counted, tids, distinct = set[int](), False, _is_thread(data), True
        while todo:
            register = todo.pop()
            done.add(register)
            for writer in self.writers.get(register, ()):
                distinct = distinct and writer.base in _DISTINCT
                space = memory_space(writer)
                if writer.base in ("atom", "red"):
                    counted = counted or not _COUNTING.isdisjoint(writer.modifiers)
                elif access_kind(writer) and space not in ("constant", "param"):
                    if space != "local":  # those of two threads are never the same
                        loads.add(writer.index)
                else:
                    tids = tids or any(_is_thread(operand) for operand in writer.operands)
                    todo |= set(writer.reads) - done
        return Origin(self._constants(data), frozenset(loads), counted, tids and distinct and not loads)

    def _constants(self, data: Operand) -> tuple[int | float, ...] | None:
        values: list[int | float] = []
        for item in items_of(data):
            while isinstance(item, Reg):
                writers = self.writers.get(item.id, [])
                source = copied(writers[0]) if len(writers) == 1 and writers[0].guard is None else None
                if source is None:
                    return None
                item = source
            if not isinstance(item, Imm):
                return None
            values.append(item.value)
        return tuple(values)


def _registers(data: Operand) -> set[int]:
    return {item.id for item in items_of(data) if isinstance(item, Reg)}


def _is_thread(operand: Operand) -> bool:
    return isinstance(operand, Special) and operand.name.startswith("tid")


STRONG = frozenset(("volatile", "relaxed", "acquire", "release", "mmio"))  # PTX ISA, "Strong operations"
READ_AFTER_WRITE, WRITE_AFTER_READ, WRITE_AFTER_WRITE = "read after write", "write after read", "write after write"
#: instructions through which warps may wait for each other in ways that a trace does not show
_MEETING = frozenset(("bar", "barrier", "mbarrier", "tcgen05"))
_COPIES = frozenset(("bulk", "mbarrier"))  # of cp: those that mbarriers tell the end of
_LARGEST_GRANULE = 16  # B: what every access of more bytes is aligned to


def races(kernel: Kernel, trace: Trace, accesses: PathAccesses, shared_bytes: int) -> list[Race]:
    """The first race found of every two instructions that race, in the order of instructions.

    For a trace without barriers that warps came to in parts: how often those open, a trace does not show.
    """
    warps = len(trace.warp_path) // max(len(trace.blocks), 1)
    roles, writing = instruction_roles(kernel), writes_shared(kernel)
    if warps < 2 or shared_bytes == 0 or not writing:
        return []
    if is_noted(trace.warnings, Flag.DIVERGENT_BARRIER):
        return []
    search = _Search(kernel, trace, accesses, roles, shared_bytes)
    values = StoredValues(kernel, trace, accesses)
    found: dict[tuple[str, int, int], Race] = {}
    for position in accesses.blocks:
        for race, first, second in search.of_block(position, warps):
            key = (race.kind, race.first, race.second)
            if key in found:
                continue
            if race.kind == WRITE_AFTER_WRITE and not values.differ(position * warps, race, first, second):
                continue
            found[key] = race
    return sorted(found.values(), key=lambda race: (race.first, race.second, race.kind))


class _Search:
    """Arrays of the compiled search, made once for a trace."""

    def __init__(
        self, kernel: Kernel, trace: Trace, accesses: PathAccesses, roles: NDArray[np.int8], shared_bytes: int
    ) -> None:
        self.trace, self.accesses, self.roles = trace, accesses, roles
        warps = len(trace.warp_path) // len(trace.blocks)
        self.flags = instruction_flags(kernel, warps)
        granule = min(_LARGEST_GRANULE, int(accesses.size[roles != NOTHING].min()))
        self.shift = granule.bit_length() - 1
        granules = (shared_bytes >> self.shift) + 1
        self.stretch, self.since = (np.empty(len(accesses.pc), np.int32) for _ in range(2))
        self.order = np.empty(len(accesses.pc), np.uint8)
        self.known_paths: set[int] = set()
        self.looking = loops.Looking(
            at=np.empty(warps, np.int64),
            known=np.zeros(loops.KNOWN, np.int64),
            stamp=np.zeros(granules, np.int64),
            kept=np.empty((granules, 8), np.int64),
            own=np.zeros(granules, np.int64),
            clock=np.zeros(2, np.int64),
            pairs=np.zeros((loops.KNOWN, 2), np.int64),
            found=np.empty((loops.MOST_CONFLICTS, 6), np.int64),
        )
        self.recorded = accesses.recorded(trace)
        self.count = 0

    def of_block(self, position: int, warps: int) -> Iterator[tuple[Race, int, int]]:
        """Races of the block at `position`, each with the places of its accesses among all on paths."""
        trace, accesses = self.trace, self.accesses
        first, end = position * warps, (position + 1) * warps
        for path in set(trace.warp_path[first:end].tolist()) - self.known_paths:
            self.known_paths.add(path)
            loops.between_barriers(
                path, trace.path_start, trace.path_pc, self.flags, accesses.start, self.stretch, self.since, self.order
            )
        before = self.count
        on_paths = loops.OnPaths(
            accesses.start, accesses.pc, accesses.size, self.stretch, self.since, self.order, self.roles, self.flags
        )
        self.count = loops.conflicts(
            first, end, self.recorded, on_paths, self.looking, int(trace.blocks[position]), self.shift, self.count
        )
        for block, byte, first_warp, a, second_warp, b in self.looking.found[before : self.count].tolist():
            one, other = int(accesses.pc[a]), int(accesses.pc[b])
            yield Race(self._kind(one, other), one, other, first_warp, second_warp, block, byte), a, b

    def _kind(self, first: int, second: int) -> str:
        if self.roles[second] == READS:
            return READ_AFTER_WRITE
        return WRITE_AFTER_READ if self.roles[first] == READS else WRITE_AFTER_WRITE


@once_a_kernel
def instruction_roles(kernel: Kernel) -> NDArray[np.int8]:
    """[I] What each instruction does to shared memory."""
    return np.array(of_opcodes(kernel, lambda i: role(i) if access_bytes(i) > 0 else NOTHING), np.int8)


@once_a_kernel
def writes_shared(kernel: Kernel) -> bool:
    """Does any instruction write shared memory?"""
    return bool(np.isin(instruction_roles(kernel), (WRITES, UPDATES)).any())


def instruction_flags(kernel: Kernel, warps: int) -> NDArray[np.uint8]:
    """[I] What each instruction is to the searches of `races.race_loops`."""
    return _all_flags(SameKernel(kernel), warps)


@lru_cache(maxsize=256)
def _all_flags(key: SameKernel, warps: int) -> NDArray[np.uint8]:
    """[I] What each instruction is to the search: of most, the opcode says it."""
    kernel = key.kernel
    used = _used_results(kernel)
    by_opcode: dict[str, int] = {}
    found = np.empty(len(kernel.instructions), np.uint8)
    for k, i in enumerate(kernel.instructions):
        flags = by_opcode.get(i.opcode)
        if flags is None:
            flags = _flags(i, warps, used)
            if i.base != "atom" and not is_barrier(i):  # of those, operands and results count
                by_opcode[i.opcode] = flags
        found[k] = flags
    return found


def _flags(i: Instruction, warps: int, used: frozenset[int]) -> int:
    """What an instruction is to the search."""
    flags = loops.TRACED if is_traced(i) else 0
    strong = i.base in ("atom", "red") or not STRONG.isdisjoint(i.modifiers)
    if strong:
        flags |= loops.STRONG
    if _of_whole_block(i, warps):
        return flags | loops.BARRIER
    if (i.base in _MEETING and "warp" not in i.modifiers) or (
        i.base == "cp" and {"bulk", "mbarrier"} & set(i.modifiers)
    ):
        return flags | loops.ACQUIRES | loops.RELEASES
    if i.base == "atom":
        return flags | loops.RELEASES | (loops.ACQUIRES if used.intersection(i.writes) else 0)
    if i.base in ("st", "red") and strong:
        return flags | loops.RELEASES
    return flags | loops.ACQUIRES if i.base == "ld" and strong else flags


def _of_whole_block(i: Instruction, warps: int) -> bool:
    """A barrier that every warp of the block comes to, whenever it is executed."""
    if not is_barrier(i) or i.guard is not None:
        return False
    operands = i.operands[1:-1] if "red" in i.modifiers else i.operands
    if not all(isinstance(operand, Imm) for operand in operands):
        return False
    threads = operands[1] if len(operands) > 1 else None
    return not isinstance(threads, Imm) or int(threads.value) > 32 * (warps - 1)


def _used_results(kernel: Kernel) -> frozenset[int]:
    """Registers that something reads."""
    return frozenset(register for i in kernel.instructions for register in i.reads)
