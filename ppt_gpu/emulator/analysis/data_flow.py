"""Which buffers a launch writes, and which steer it: whose content decides where it branches or what it accesses.

Forward over registers without regard to order: each register has the names that it is computed from (parameters and
module variables, which are where addresses come from), and the loads from global memory whose results it is computed
from. Shared and local memory count as one variable. What an instruction does outside of that is unknown, and an answer
of None means any buffer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass

from ppt_gpu.emulator.analysis.data_dependence import OPAQUE, PLAIN, deciding, flat, steered_by_memory
from ppt_gpu.emulator.analysis.per_kernel_cache import once_a_kernel
from ppt_gpu.ptx.instructions import access_kind, memory_space
from ppt_gpu.ptx.module import Instruction, Kernel, Mem, Module, Reg, Sym
from ppt_gpu.workload.workload import Argument, Launch

Names = frozenset[str]
#: beside what steering does not understand either
_UNKNOWN = OPAQUE | {"cp", "mbarrier", "wgmma", "wmma", "griddepcontrol"}
_NOTHING: Names = frozenset()
_SCRATCH = "shared and local memory"  # stands for their content among the registers


@dataclass(frozen=True)
class Flow:
    """Sets of buffers and module variables; None: unknown, any."""

    reads: Names | None
    writes: Names | None
    steering: Names | None


@dataclass(frozen=True)
class _Access:
    """A kernel's accesses to global memory, each as the names its address comes from; None: not understood."""

    reads: frozenset[Names]
    writes: frozenset[Names]
    steering: frozenset[Names]


def data_flow(module: Module, launch: Launch) -> Flow:
    """What `launch` reads and writes, by the names of buffers and module variables, and what steers it."""
    kernel = module.kernels[launch.kernel]
    found = _accesses(kernel)
    steered = steered_by_memory(kernel)
    if found is None:
        return Flow(None, None, None if steered else _NOTHING)
    objects = {name: frozenset((name,)) for name, variable in module.variables.items() if variable.space == "global"}
    for parameter, argument in zip(kernel.params, launch.arguments, strict=False):
        objects[parameter.name] = _buffers(argument)
    steering = _resolved(found.steering, objects)
    return Flow(_resolved(found.reads, objects), _resolved(found.writes, objects), steering if steered else _NOTHING)


def _buffers(argument: Argument) -> Names:
    own = frozenset((argument.buffer,)) if argument.buffer else _NOTHING
    return own.union(*(_buffers(field) for field in argument.fields))


def _resolved(accesses: frozenset[Names], objects: dict[str, Names]) -> Names | None:
    """The buffers behind these addresses; None when one comes from nowhere known."""
    found: set[str] = set()
    for names in accesses:
        buffers = _NOTHING.union(*(objects.get(name, _NOTHING) for name in names))
        if not buffers:
            return None
        found |= buffers
    return frozenset(found)


def _symbols(i: Instruction) -> Names:
    return frozenset(operand.name for operand in flat(i.operands) if isinstance(operand, Sym))


@once_a_kernel
def _accesses(kernel: Kernel) -> _Access | None:
    return _Analysis(kernel).result()


class _Analysis:
    """The fixpoint over one kernel. `origin`: register -> names; `loaded`: register -> loads, by instruction."""

    def __init__(self, kernel: Kernel) -> None:
        self.code = kernel.instructions
        self.local = {variable.name for variable in kernel.variables}
        self.parameters = {parameter.name for parameter in kernel.params}
        self.origin: dict[int | str, set[str]] = {}
        self.loaded: dict[int | str, set[int]] = {}
        self.grown = True

    def result(self) -> _Access | None:
        """None where some instruction is not understood."""
        if any(i.base in _UNKNOWN or "cluster" in i.opcode for i in self.code):
            return None
        if any(access_kind(i) is not None and i.base not in PLAIN for i in self.code):
            return None
        steps = [(i, None if memory_space(i) else _symbols(i)) for i in self.code]
        while self.grown:
            self.grown = False
            for instruction, names in steps:
                if names is None:
                    self._access(instruction)
                else:
                    self._flow(names, instruction.reads, (), instruction.writes)
        loads = set().union(*(self.loaded.get(register, set()) for i in self.code for register in deciding(i)))
        return _Access(
            reads=frozenset(self._address(i) for i in self.code if self._goes_global(i) and access_kind(i) != "store"),
            writes=frozenset(self._address(i) for i in self.code if self._goes_global(i) and access_kind(i) != "load"),
            steering=frozenset(self._address(self.code[index]) for index in loads),
        )

    def _access(self, i: Instruction) -> None:
        names, content, targets = self._sources(i)
        loads = {i.index} if self._goes_global(i) and access_kind(i) != "store" else set()
        loads = loads.union(*(self.loaded.get(register, ()) for register in i.reads))
        self._flow(names, content, loads, targets)

    def _flow(
        self, names: Names, content: Sequence[int | str], loads: Iterable[int], targets: Iterable[int | str]
    ) -> None:
        """What is made of the content of registers, and beside it of these names and loads, goes to `targets`."""
        for target in targets:
            self._grow(self.origin.setdefault(target, set()), names.union(*(self.origin.get(s, ()) for s in content)))
            found = set(loads).union(*(self.loaded.get(source, ()) for source in content))
            self._grow(self.loaded.setdefault(target, set()), found)

    def _sources(self, i: Instruction) -> tuple[Names, list[int | str], list[int | str]]:
        """(names, registers that the result is made of, where it goes). What memory holds comes from no register."""
        space = memory_space(i)
        if space in ("param", "constant"):
            return self._address(i), [], [*i.writes]
        if space is None or not self._may_be_scratch(i, space):
            return _NOTHING, [], [*i.writes]
        stored: list[int | str] = [] if access_kind(i) == "load" else [_SCRATCH]
        return _NOTHING, [_SCRATCH, *(i.reads if stored else ())], [*i.writes, *stored]

    def _grow(self, known: set, more: Set) -> None:
        if not more <= known:
            known |= more
            self.grown = True

    def _may_be_scratch(self, i: Instruction, space: str) -> bool:
        """May the access reach shared or local memory? A generic address that comes from parameters only does not."""
        address = self._address(i)
        return space in ("shared", "local") or (space == "generic" and not (address and address <= self.parameters))

    def _goes_global(self, i: Instruction) -> bool:
        """May the access reach global memory? A generic address of a shared or local variable does not."""
        space = memory_space(i)
        if access_kind(i) is None or space not in ("global", "generic"):
            return False
        address = self._address(i)
        return space == "global" or not address or bool(address - self.local)

    def _address(self, i: Instruction) -> Names:
        """The names that the address is computed from."""
        found: set[str] = set()
        for operand in flat(i.operands):
            base = operand.base if isinstance(operand, Mem) else None
            if isinstance(base, Sym):
                found.add(base.name)
            elif isinstance(base, Reg):
                found |= self.origin.get(base.id, set())
        return frozenset(found)
