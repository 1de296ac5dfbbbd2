"""Register operands of instructions: how many, which, and in which banks of the registers they lie."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ppt_gpu.ptx.module import Instruction, Kernel, Mem, Neg, Operand, Part, Reg, Vec
from ppt_gpu.sm.program import RESULT_AT

_DIGITS = re.compile(r"\d+")


def sources(instruction: Instruction) -> int:
    """Register operands that the instruction reads; one that it names twice counts twice, its guard does not."""
    written = 1 if instruction.writes else 0
    return sum(_registers(operand) for operand in instruction.operands[written:])


def _registers(operand: Operand | None) -> int:
    if isinstance(operand, Vec):
        return sum(_registers(item) for item in operand.items)
    if isinstance(operand, Mem):
        return _registers(operand.base)
    return 1 if isinstance(operand, Reg | Neg | Part) else 0


def operands_in_banks(instruction: Instruction, kernel: Kernel, banks: int) -> int:
    """Program.op_operands: registers by the number in their name, once each; addresses pass the collectors."""
    found = _bank(kernel, instruction.writes[0], banks) + 1 << RESULT_AT if instruction.writes else 0
    for register in register_operands(instruction):
        bank = _bank(kernel, register, banks)
        found += 1 << 4 * bank if found >> 4 * bank & 15 < 15 else 0
    return found


def _bank(kernel: Kernel, register: int, banks: int) -> int:
    digits = _DIGITS.search(kernel.registers[register].name)
    return int(digits.group()) % banks if digits else 0


def register_operands(instruction: Instruction) -> set[int]:
    """Ids of the registers that the instruction reads as operands: not those of addresses, nor its guard."""
    return _read(instruction.operands[1 if instruction.writes else 0 :])


def _read(operands: Sequence[Operand | None]) -> set[int]:
    """Ids of the registers among operands, and in vectors of them."""
    found: set[int] = set()
    for operand in operands:
        if isinstance(operand, Reg):
            found.add(operand.id)
        elif isinstance(operand, Neg | Part):
            found.add(operand.reg.id)
        elif isinstance(operand, Vec):
            found |= _read(operand.items)
    return found
