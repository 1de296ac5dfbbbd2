"""Floating-point arithmetic of the interpreter: one function a group of opcodes, chosen by `ARITHMETIC`.

Each takes the warp and the instruction, reads its operands, and writes its result in the active lanes.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ppt_gpu.ptx.module import Instruction
from ppt_gpu.ptx.operations import types_of
from reference.interpreter import float_rounding as fp
from reference.interpreter.block import Bits
from reference.interpreter.float_ops import FLOAT_ONLY, on_bits, on_values, rounding
from reference.interpreter.warp import Warp, unsupported, width_of

Execute = Callable[[Warp, Instruction], None]


def type_of(ins: Instruction) -> str:
    """The (last) data type of the instruction."""
    types = types_of(ins.modifiers)
    if not types:
        raise unsupported(ins, "an instruction without a type")
    return types[-1]


def is_signed(type_name: str) -> bool:
    """Whether values of the type have a sign in integer arithmetic."""
    return type_name[0] == "s"


def add(warp: Warp, ins: Instruction) -> None:
    """add, sub."""
    subtract = ins.base == "sub"
    on_values(warp, ins, lambda x, kind: fp.add(x[0], -x[1] if subtract else x[1], rounding(ins)))


def multiply(warp: Warp, ins: Instruction) -> None:
    """mul."""
    on_values(warp, ins, lambda x, kind: fp.multiply(x[0], x[1], kind))


def multiply_add(warp: Warp, ins: Instruction) -> None:
    """fma, mad: mad of floats is fused, as on every GPU since Fermi."""
    on_values(warp, ins, lambda x, kind: fp.fma(x[0], x[1], x[2], kind, rounding(ins)))


def divide(warp: Warp, ins: Instruction) -> None:
    """div. div.approx.f32 takes the reciprocal of a divisor beyond 2^126 as 0."""

    def quotient(x: list[fp.Floats], kind: str) -> fp.Rounded:
        value, error = fp.divide(x[0], x[1])
        if "approx" in ins.modifiers:
            far = (np.abs(x[1]) > 2.0**126) & np.isfinite(x[1])
            with np.errstate(invalid="ignore"):
                value = np.where(far, x[0] * np.copysign(0.0, x[1]), value)
            error = np.where(far, 0, error).astype(np.int8)
        return value, error

    on_values(warp, ins, quotient)


def extremum(warp: Warp, ins: Instruction) -> None:
    """min, max, of two or three values."""
    on_bits(warp, ins, lambda x, types: fp.extremum(x, types[0], ins.base == "max", ins.modifiers))


def negate(warp: Warp, ins: Instruction) -> None:
    """neg, abs."""

    def changed(x: list[Bits], types: list[str]) -> Bits:
        sign = np.uint64(1 << (width_of(types[0]) - 1))
        return x[0] ^ sign if ins.base == "neg" else x[0] & ~sign

    on_bits(warp, ins, changed)


ARITHMETIC: dict[str, Execute] = {
    **dict.fromkeys(("add", "sub"), add),
    **dict.fromkeys(("fma", "mad"), multiply_add),
    **dict.fromkeys(("min", "max"), extremum),
    **dict.fromkeys(("neg", "abs"), negate),
    **FLOAT_ONLY,
    "mul": multiply,
    "div": divide,
}
