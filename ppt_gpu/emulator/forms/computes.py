"""How an instruction is described as values: the registry of descriptions.

A description is a function that takes the opcode and the operands as values, and gives one result or several. It is
registered with `computes`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ppt_gpu.emulator.forms.opcode import WIDTH, Opcode, is_signed
from ppt_gpu.emulator.forms.value import Value
from ppt_gpu.ptx.module import Instruction

Describe = Callable[..., "Value | tuple[Value, ...]"]
#: type of an operand or of a result that is the carry flag
CARRY = "carry"


@dataclass(frozen=True)
class Description:
    """Types are PTX types, CARRY, or T: the instruction's last type, S: its first, W: twice as wide as T with .wide."""

    describe: Describe
    operands: tuple[str, ...]
    results: tuple[str, ...]
    apart: Callable[[Form], bool] | bool  # too long to be written in the middle of a kernel


#: base opcode, whether it computes with floating-point numbers -> description
DESCRIBED: dict[tuple[str, bool], Description] = {}


def computes(
    *bases: str, operands: str, result: str = "T", apart: Callable[[Form], bool] | bool = False, floats: bool = False
) -> Callable[[Describe], Describe]:
    """Registers the description of base opcodes, of integers or of floating-point numbers.

    `operands` and `result` are types with blanks between them. Operands that an instruction leaves out are 0. A second
    result goes to the second register of d|p, or to the carry flag; it is dropped where the instruction has none.
    """

    def register(describe: Describe) -> Describe:
        found = Description(describe, tuple(operands.split()), tuple(result.split()), apart)
        DESCRIBED.update(dict.fromkeys([(base, floats) for base in bases], found))
        return describe

    return register


@dataclass(frozen=True)
class Form:
    """What a description is told of an instruction beside its operands."""

    instruction: Instruction
    opcode: Opcode

    @property
    def base(self) -> str:
        return self.instruction.base

    @property
    def width(self) -> int:
        """Bits of the instruction's type."""
        return WIDTH[self.opcode.kind]

    @property
    def signed(self) -> bool:
        return is_signed(self.opcode.kind)

    def has(self, *names: str) -> bool:
        """Has the opcode one of these modifiers?"""
        return self.opcode.has(*names)
