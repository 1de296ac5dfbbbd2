"""Do two stores to one place store different values? As far as code and the addresses in a trace show it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ppt_gpu.emulator.races.accesses import PathAccesses, Race
from ppt_gpu.emulator.trace.trace import Trace
from ppt_gpu.ptx.instructions import access_kind, copied, memory_space
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
