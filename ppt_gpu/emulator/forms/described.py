"""An instruction's results as values of its operands: what both engines ask, whatever the instruction is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ppt_gpu.emulator.forms import bits, convert, floating, integer, video
from ppt_gpu.emulator.forms.computes import CARRY, DESCRIBED, Form
from ppt_gpu.emulator.forms.float_formats import encode
from ppt_gpu.emulator.forms.opcode import WIDTH, float_bits, opcode_of
from ppt_gpu.emulator.forms.value import Value, const, given
from ppt_gpu.ptx.module import Imm, Instruction, Minus, Operand, Pair, Part

#: each of these registers descriptions when it is imported
REGISTERED = (bits, convert, floating, integer, video)
_FLOATS = ("f16", "bf16", "f32", "f64")


@dataclass(frozen=True)
class Described:
    """An instruction's results as values of its operands. None as an operand is the carry flag."""

    sources: tuple[tuple[Operand | None, str], ...]  # what each input reads, as which type
    results: tuple[tuple[Operand | None, str, Value], ...]  # where each result goes, as which type
    apart: bool


def described(instruction: Instruction) -> Described | None:
    """None where no description has this instruction."""
    opcode = opcode_of(instruction.opcode)
    found = DESCRIBED.get((instruction.base, opcode.is_float)) if opcode.types else None
    if found is None:
        return None
    form = Form(instruction, opcode)
    kinds, written = found.types(form)
    sources, values = operands_of(instruction, kinds)
    results = found.describe(form, *values)
    if isinstance(results, Value):
        results = (results,)
    to = instruction.operands[0]
    places: list[Operand | None] = [to.first, to.second] if isinstance(to, Pair) else [register_of(to)]
    if opcode.has("cc"):
        places.append(None)
    apart = found.apart(form) if callable(found.apart) else found.apart
    return Described(tuple(sources), tuple(zip(places, written, results, strict=False)), apart)


def operands_of(
    instruction: Instruction, kinds: tuple[str, ...]
) -> tuple[list[tuple[Operand | None, str]], list[Value]]:
    """(what each input reads, the values that a description is given) of operands of these types."""
    left = [register_of(operand) for operand in instruction.operands[1:]]
    sources: list[tuple[Operand | None, str]] = []
    values = []
    for kind in kinds:
        operand = left.pop(0) if left and kind != CARRY else None
        if kind != CARRY and (operand is None or isinstance(operand, Imm)):
            values.append(const(literal_bits(operand, kind) if operand else 0, WIDTH[kind]))
        else:
            values.append(given(len(sources), WIDTH.get(kind, 1)))
            sources.append((operand, kind))
    return sources, values


def literal_bits(literal: Imm, kind: str) -> int:
    """The bits of a literal as an operand of a type. A floating-point literal keeps its bits in an integer."""
    width = WIDTH[kind]
    if literal.bits is not None and (literal.width == width or kind not in _FLOATS):
        return literal.bits & ((1 << width) - 1)
    if kind == "bf16":
        return int(encode(np.array([float(literal.value)]), kind)[0])
    if kind in _FLOATS or isinstance(literal.value, float):
        return float_bits(float(literal.value), width)
    return literal.value & ((1 << width) - 1)


def register_of(operand: Operand) -> Operand:
    """The operand without sign and selector."""
    if isinstance(operand, Minus):
        operand = operand.operand
    return operand.reg if isinstance(operand, Part) else operand
