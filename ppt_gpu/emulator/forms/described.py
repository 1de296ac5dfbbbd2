"""An instruction's results as values of its operands: what both engines ask, whatever the instruction is."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ppt_gpu.emulator.forms import bits, convert, floating, integer, video
from ppt_gpu.emulator.forms.computes import CARRY, DESCRIBED, Form
from ppt_gpu.emulator.forms.float_formats import MANTISSA, encode
from ppt_gpu.emulator.forms.opcode import WIDTH, float_bits, opcode_of
from ppt_gpu.emulator.forms.value import Value, const, given
from ppt_gpu.ptx.module import Imm, Instruction, Minus, Operand, Pair, Part, Reg

#: each of these registers descriptions when it is imported
REGISTERED = (bits, convert, floating, integer, video)


@dataclass(frozen=True)
class Described:
    """An instruction's results as values of its operands. None as an operand is the carry flag."""

    sources: tuple[tuple[Operand | None, str], ...]  # what each input reads, as which type
    results: tuple[tuple[Operand | None, str, Value], ...]  # where each result goes, as which type
    apart: bool


@dataclass(frozen=True)
class Pattern:
    """What instructions have in common that differ only in the registers that they name."""

    operands: tuple[Value, ...]  # as the description is given them
    inputs: tuple[tuple[int, str], ...]  # which operand each input reads, as which type; 0: the carry flag
    results: tuple[tuple[str, Value], ...]
    apart: bool


_SOME = Reg(0)


def described(instruction: Instruction) -> Described | None:
    """None where no description has this instruction."""
    operands = instruction.operands
    pattern = pattern_of(instruction.opcode, tuple(map(_shape, operands)))
    if pattern is None:
        return None
    to = operands[0]
    places: list[Operand | None] = [to.first, to.second] if isinstance(to, Pair) else [register_of(to)]
    if "cc" in instruction.modifiers:
        places.append(None)
    sources = tuple((register_of(operands[at]) if at else None, kind) for at, kind in pattern.inputs)
    results = zip(places, pattern.results, strict=False)
    return Described(sources, tuple((place, kind, value) for place, (kind, value) in results), pattern.apart)


def _shape(operand: Operand) -> Operand:
    """The operand with another register: all that a description may ask of it."""
    if isinstance(operand, Imm):
        return operand
    if isinstance(operand, Part):
        return Part(_SOME, operand.selector)
    return Minus(_shape(operand.operand)) if isinstance(operand, Minus) else _SOME  # type: ignore[arg-type]


@lru_cache(maxsize=65536)
def pattern_of(text: str, operands: tuple[Operand, ...]) -> Pattern | None:
    """By opcode and operands. None where there is no description."""
    opcode, base = opcode_of(text), text.partition(".")[0]
    found = DESCRIBED.get((base, opcode.is_float)) if opcode.types else None
    if found is None:
        return None
    form = Form(base, opcode, operands)
    kinds, written = found.types(form)
    inputs: list[tuple[int, str]] = []
    values, at = [], 0
    for kind in kinds:
        at += kind != CARRY
        operand = operands[at] if at < len(operands) else Imm(0)
        if kind != CARRY and isinstance(operand, Imm):
            values.append(const(literal_bits(operand, kind), WIDTH[kind]))
        else:
            values.append(given(len(inputs), WIDTH.get(kind, 1)))
            inputs.append((at if kind != CARRY else 0, kind))
    results = found.describe(form, *values)
    results = (results,) if isinstance(results, Value) else results
    apart = found.apart(form) if callable(found.apart) else found.apart
    return Pattern(tuple(values), tuple(inputs), tuple(zip(written, results, strict=True)), apart)


def literal_bits(literal: Imm, kind: str) -> int:
    """The bits of a literal as an operand of a type. A floating-point literal keeps its bits in an integer."""
    width = WIDTH[kind]
    if literal.bits is not None and (literal.width == width or kind not in MANTISSA):
        return literal.bits & ((1 << width) - 1)
    if kind == "bf16":
        return int(encode(np.array([float(literal.value)]), kind)[0])
    if kind in MANTISSA or isinstance(literal.value, float):
        return float_bits(float(literal.value), width)
    return literal.value & ((1 << width) - 1)


def register_of(operand: Operand) -> Operand:
    """The operand without sign and selector."""
    if isinstance(operand, Minus):
        operand = operand.operand
    return operand.reg if isinstance(operand, Part) else operand
