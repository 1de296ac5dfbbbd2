"""Instructions with other registers in their operands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ppt_gpu.ptx.instructions import FIRST, form
from ppt_gpu.ptx.module import Guard, Instruction, Mem, Minus, Neg, Operand, Pair, Part, Reg, Vec

Names = Callable[[int], int]


def is_renamable(instruction: Instruction) -> bool:
    """Are what it reads and what it writes different operands, each of them named by the instruction?"""
    known = form(instruction.opcode)
    if known.carry_in or known.carry_out or known.base in ("call", "ret", "brx", "wgmma", "tcgen05"):
        return False
    if known.destination == FIRST:
        return True
    return not instruction.writes


def renamed(instruction: Instruction, reads: Names, writes: Names) -> Instruction:
    """The instruction, reading and writing other registers. `is_renamable` says of which this can be done."""
    has_destination = bool(instruction.writes)
    operands = tuple(
        _renamed(operand, writes if place == 0 and has_destination else reads, reads)
        for place, operand in enumerate(instruction.operands)
    )
    guard = instruction.guard
    return replace(
        instruction,
        operands=operands,
        guard=None if guard is None else Guard(reads(guard.reg), guard.negated),
        reads=tuple(map(reads, instruction.reads)),
        writes=tuple(map(writes, instruction.writes)),
    )


def _renamed(operand: Operand, names: Names, reads: Names) -> Operand:
    """`names` for registers that are values, `reads` for those in an address."""
    if isinstance(operand, Reg):
        return Reg(names(operand.id))
    if isinstance(operand, Vec):
        return Vec(tuple(_renamed(item, names, reads) for item in operand.items))
    if isinstance(operand, Mem):
        base = Reg(reads(operand.base.id)) if isinstance(operand.base, Reg) else operand.base
        return Mem(base, operand.offset, tuple(_renamed(index, reads, reads) for index in operand.indices))
    if isinstance(operand, Pair):
        return Pair(_renamed(operand.first, names, reads), _renamed(operand.second, names, reads))
    if isinstance(operand, Neg):
        return Neg(Reg(names(operand.reg.id)))
    if isinstance(operand, Part):
        return Part(Reg(names(operand.reg.id)), operand.selector)
    if isinstance(operand, Minus):
        inner = _renamed(operand.operand, names, reads)
        assert isinstance(inner, Reg | Part)
        return Minus(inner)
    return operand
