"""How an instruction is described as values: the registry of descriptions.

A description is a function that takes the opcode and the operands as values, and gives one result or several. It is
registered with `computes`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ppt_gpu.emulator.forms.opcode import WIDTH, Opcode, is_signed
from ppt_gpu.emulator.forms.value import Value
from ppt_gpu.ptx.module import Operand

Describe = Callable[..., "Value | tuple[Value, ...]"]
#: type of an operand or of a result that is the carry flag
CARRY = "carry"
#: types of an instruction's operands, and of its results
Types = tuple[tuple[str, ...], tuple[str, ...]]


class Unsupported(Exception):
    """This form of the instruction is not executed yet; the text says which part."""


@dataclass(frozen=True)
class Description:
    """What an instruction computes, and of which types its operands and results are."""

    describe: Describe
    types: Callable[[Form], Types]
    apart: Callable[[Form], bool] | bool  # too long to be written in the middle of a kernel


#: base opcode, whether it computes with floating-point numbers -> description
DESCRIBED: dict[tuple[str, bool], Description] = {}


def computes(
    *bases: str,
    operands: str | Callable[[Form], Types],
    result: str = "T",
    apart: Callable[[Form], bool] | bool = False,
    floats: bool = False,
) -> Callable[[Describe], Describe]:
    """Registers the description of base opcodes, of integers or of floating-point numbers.

    `operands` and `result` are types with blanks between them: PTX types, CARRY, or T: the instruction's last type, S:
    its first, W: twice as wide as T with .wide. Or `operands` gives both. Operands that an instruction leaves out are
    0. A second result goes to the second register of d|p, or to the carry flag; it is dropped where the instruction has
    none.
    """

    def types(form: Form) -> Types:
        if callable(operands):
            return operands(form)
        return _types(operands, form), _types(result, form)

    def register(describe: Describe) -> Describe:
        found = Description(describe, types, apart)
        DESCRIBED.update(dict.fromkeys([(base, floats) for base in bases], found))
        return describe

    return register


def _types(names: str, form: Form) -> tuple[str, ...]:
    """The PTX types that names and letters stand for."""
    all_types = form.opcode.types
    first, last = all_types[0], all_types[-1]
    wide = f"{last[0]}{2 * WIDTH[last]}" if form.has("wide") else last
    letters = {"T": last, "W": wide, "S": first}
    return tuple(letters.get(name, name) for name in names.split())


@dataclass(frozen=True)
class Form:
    """What a description is told of an instruction beside the values of its operands."""

    base: str
    opcode: Opcode
    operands: tuple[Operand, ...]  # which register one names does not matter

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
