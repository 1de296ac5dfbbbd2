"""Register operands of instructions: which, and in which banks of the registers they lie."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ppt_gpu.ptx.module import Instruction, Kernel, Mem, Neg, Operand, Part, Reg, Vec
from ppt_gpu.sm.program.program import RESULT_AT, operand_bits

_DIGITS = re.compile(r"\d+")


def operands_in_banks(instruction: Instruction, kernel: Kernel, banks: int) -> int:
    """Program.op_operands: registers by the number in their name, each number once, those of addresses too."""
    found = _number(kernel, instruction.writes[0]) % banks + 1 << RESULT_AT if instruction.writes else 0
    for number in sorted({_number(kernel, register) for register in register_operands(instruction)}):
        place, most = number % banks * operand_bits(banks), (1 << operand_bits(banks)) - 1
        found += 1 << place if found >> place & most < most else 0
    return found


def _number(kernel: Kernel, register: int) -> int:
    digits = _DIGITS.search(kernel.registers[register].name)
    return int(digits.group()) if digits else 0


def register_operands(instruction: Instruction) -> set[int]:
    """Ids of the registers that the instruction reads as operands or for an address: not its guard."""
    return _read(instruction.operands[1 if instruction.writes else 0 :])


def _read(operands: Sequence[Operand | None]) -> set[int]:
    """Ids of the registers among operands, in addresses and in vectors of them."""
    found: set[int] = set()
    for operand in operands:
        if isinstance(operand, Reg):
            found.add(operand.id)
        elif isinstance(operand, Neg | Part):
            found.add(operand.reg.id)
        elif isinstance(operand, Vec):
            found |= _read(operand.items)
        elif isinstance(operand, Mem):
            found |= _read([operand.base])
    return found
