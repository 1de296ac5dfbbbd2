"""Distances between registers that are the same in all threads of a launch: sums, and what is added in them.

A register is uniform if one instruction writes it, which computes from parameters, the sizes of block and grid,
addresses of variables and other such registers: all threads of a launch that compute it get one value. A sum with it is
as far from the other summand in all lanes as one with a constant.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ppt_gpu.emulator.llvm.text import BITS, ELEMENT
from ppt_gpu.ptx.instructions import is_memory, is_traced, loads_launch_parameter
from ppt_gpu.ptx.linking.linked import LinkedKernel
from ppt_gpu.ptx.module import Imm, Instruction, Kernel, Mem, Operand, Reg, Special, Sym
from ppt_gpu.ptx.uses import writers_of

_UNIFORM_SPECIALS = ("ntid.", "nctaid.")
_COMPUTING = frozenset(
    ("mov", "cvta", "cvt", "add", "sub", "mul", "mad", "shl", "shr", "and", "or", "xor", "not", "neg", "min", "max")
)
_COPIES = frozenset(("mov", "cvta"))
_SUMS = frozenset(("add", "sub"))


@dataclass(frozen=True, slots=True)
class Distance:
    """Bytes: a constant, and values of uniform registers, each so many times (not 0; in the order of registers)."""

    constant: int = 0
    terms: tuple[tuple[int, int], ...] = ()  # (register, times)

    def __add__(self, other: Distance) -> Distance:
        if not other.terms:
            return Distance(self.constant + other.constant, self.terms)
        times = dict(self.terms)
        for register, more in other.terms:
            times[register] = times.get(register, 0) + more
        terms = tuple((register, count) for register, count in sorted(times.items()) if count)
        return Distance(self.constant + other.constant, terms)

    def __neg__(self) -> Distance:
        return Distance(-self.constant, tuple((register, -times) for register, times in self.terms))

    def __sub__(self, other: Distance) -> Distance:
        return self + -other

    def value(self, uniform: Mapping[int, int]) -> int:
        """Where uniform registers have these values."""
        return self.constant + sum(times * uniform[register] for register, times in self.terms)


NEAR = Distance()


@dataclass(frozen=True, slots=True)
class Step:
    """An instruction whose result lies at a distance from one of its operands."""

    result: int
    source: int
    operand: int  # which one the source is
    distance: Distance


def steps(kernel: LinkedKernel, entry: int) -> dict[int, Step]:
    """By instruction: those on the way to addresses of accesses. `entry`: bit set of registers that may be read before
    they are written."""
    code = kernel.instructions
    writers = writers_of(code)
    wanted = _address_registers(code, writers)
    uniform = _uniform(kernel, entry, writers, wanted)
    found = {}
    for register in sorted(wanted):
        for writer in writers.get(register, ()):
            step = _step(kernel, writer, uniform)
            if step is not None:
                found[writer.index] = step
    return found


def _address_registers(code: Sequence[Instruction], writers: Mapping[int, list[Instruction]]) -> set[int]:
    """Addresses of accesses, and what they are sums or copies of; none where one access is all there is."""
    accesses = [i for i in code if is_memory(i) and is_traced(i)]
    bases = [o.base.id for i in accesses for o in i.operands if isinstance(o, Mem) and isinstance(o.base, Reg)]
    found = set(bases)
    todo = sorted(found) if len(bases) > 1 else []
    while todo:
        for writer in writers.get(todo.pop(), ()):
            if writer.base in _SUMS or writer.base in _COPIES:
                fresh = {o.id for o in writer.operands[1:] if isinstance(o, Reg)} - found
                found |= fresh
                todo += sorted(fresh)
    return found if len(bases) > 1 else set()


def _uniform(
    kernel: LinkedKernel, entry: int, writers: Mapping[int, list[Instruction]], wanted: Iterable[int]
) -> frozenset[int]:
    """Those of the registers that are uniform: what they are computed from is looked at first."""
    known: dict[int, bool] = {}
    for register in sorted(wanted):
        todo = [register]
        while todo:
            at = todo[-1]
            if at in known:
                todo.pop()
                continue
            sources = None if entry >> at & 1 else _sources(kernel, writers.get(at, ()), at)
            unknown = [source for source in sources or () if source not in known]
            if unknown and not set(unknown) & set(todo):
                todo += unknown
                continue
            known[at] = sources is not None and all(known.get(source, False) for source in sources)
    return frozenset(register for register in wanted if known[register])


def _sources(kernel: LinkedKernel, writers: Sequence[Instruction], register: int) -> tuple[int, ...] | None:
    """The registers that a register is computed from; None if more than registers and a launch decide its value."""
    if len(writers) != 1:
        return None
    (writer,) = writers
    if writer.index >= kernel.own_end or writer.guard is not None or writer.writes != (register,):
        return None
    if writer.base == "ld":
        own = loads_launch_parameter(kernel, writer) and _names_parameter(kernel, writer.operands[1])
        return () if own and isinstance(writer.operands[0], Reg) else None
    if writer.base not in _COMPUTING or "cc" in writer.modifiers:
        return None
    return writer.reads if all(_of_launch(kernel, operand) for operand in writer.operands[1:]) else None


def _names_parameter(kernel: Kernel, operand: Operand) -> bool:
    base = operand.base if isinstance(operand, Mem) else operand
    return isinstance(base, Sym) and any(base.name == parameter.name for parameter in kernel.params)


def _of_launch(kernel: LinkedKernel, operand: Operand) -> bool:
    """Is an operand, unless it is a register, the same for all threads of a launch?"""
    if isinstance(operand, Special):
        return operand.name.startswith(_UNIFORM_SPECIALS)
    return isinstance(operand, Reg | Imm) or (isinstance(operand, Sym) and operand.name not in kernel.offsets)


def _step(kernel: LinkedKernel, i: Instruction, uniform: frozenset[int]) -> Step | None:
    """What an instruction adds to one of its operands, if it is a sum or a copy, of integers of one width."""
    result = i.operands[0] if i.operands else None
    if i.guard is not None or len(i.writes) != 1 or not isinstance(result, Reg):
        return None
    element = ELEMENT.get(i.opcode.rpartition(".")[2], "")
    widths = {BITS.get(ELEMENT.get(kernel.registers[o.id].type, "")) for o in i.operands if isinstance(o, Reg)}
    if element not in ("i32", "i64") or "x2" in i.opcode or widths != {BITS[element]}:
        return None
    if i.base in _COPIES:
        source = i.operands[1]
        plain = i.base == "mov" or "global" in i.modifiers  # addresses of global memory are generic ones
        return Step(result.id, source.id, 1, NEAR) if plain and isinstance(source, Reg) else None
    if i.base not in _SUMS or {"sat", "cc"} & set(i.modifiers):
        return None
    for at in (1, 2) if i.base == "add" else (1,):
        source, more = i.operands[at], _summand(i.operands[3 - at], uniform)
        if isinstance(source, Reg) and more is not None:
            return Step(result.id, source.id, at, more if i.base == "add" else -more)
    return None


def _summand(operand: Operand, uniform: frozenset[int]) -> Distance | None:
    if isinstance(operand, Imm) and isinstance(operand.value, int):
        return Distance(operand.value)
    return Distance(0, ((operand.id, 1),)) if isinstance(operand, Reg) and operand.id in uniform else None
