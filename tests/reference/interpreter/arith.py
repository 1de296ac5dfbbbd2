"""Arithmetic instructions of the interpreter: one function a group of opcodes, chosen by `ARITHMETIC`.

Each takes the warp and the instruction, reads its operands, and writes its result in the active lanes. The
floating-point side of each is run by `interpreter.float_ops`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ppt_gpu.ptx.module import Instruction, Reg
from ppt_gpu.ptx.operations import types_of
from reference.interpreter import float_rounding as fp
from reference.interpreter import integer
from reference.interpreter.block import Bits
from reference.interpreter.float_ops import FLOAT_ONLY, on_bits, on_values, rounding
from reference.interpreter.warp import Warp, signed, truncate, unsupported, width_of

Execute = Callable[[Warp, Instruction], None]

ONE = np.uint64(1)


def type_of(ins: Instruction) -> str:
    """The (last) data type of the instruction."""
    types = types_of(ins.modifiers)
    if not types:
        raise unsupported(ins, "an instruction without a type")
    return types[-1]


def is_signed(type_name: str) -> bool:
    """Whether values of the type have a sign in integer arithmetic."""
    return type_name[0] == "s"


def _integers(warp: Warp, ins: Instruction) -> tuple[list[Bits], int, bool]:
    kind = type_of(ins)
    width = width_of(kind)
    return [warp.read(operand, width) for operand in ins.operands[1:]], width, is_signed(kind)


def _carry(warp: Warp, ins: Instruction, total: Bits | None = None) -> Bits:
    """Read the carry flag of each lane, or set it to `total`."""
    register = next(i for i, r in enumerate(warp.kernel.registers) if r.name.startswith("%cc"))
    if total is not None:
        warp.write(Reg(register), total)
    return warp.registers[register].copy()


def add(warp: Warp, ins: Instruction) -> None:
    """add, addc, sub, subc: with carry in and out, saturating s32, floating point."""
    subtract = ins.base.startswith("sub")

    if on_values(warp, ins, lambda x, kind: fp.add(x[0], -x[1] if subtract else x[1], rounding(ins))):
        return
    if _on_pairs(warp, ins, lambda a, b: a - b if subtract else a + b):
        return
    (a, b), width, _ = _integers(warp, ins)
    if "sat" in ins.modifiers:
        total = signed(a, width) - signed(b, width) if subtract else signed(a, width) + signed(b, width)
        warp.write(ins.operands[0], truncate(np.clip(total, -(1 << 31), (1 << 31) - 1), width))
        return
    if subtract:  # a + ~b + 1, as the adder does it: the flag says that nothing was borrowed, to addc and madc, too
        b = truncate(~b, width)
    carry_in = _carry(warp, ins) if ins.base in ("addc", "subc") else np.full_like(a, int(subtract))
    exact = [x + y + c for x, y, c in zip(a.tolist(), b.tolist(), carry_in.tolist(), strict=True)]
    if "cc" in ins.modifiers:
        _carry(warp, ins, np.array([(value >> width) & 1 for value in exact], np.uint64))
    warp.write(ins.operands[0], np.array([value & ((1 << width) - 1) for value in exact], np.uint64))


def multiply(warp: Warp, ins: Instruction) -> None:
    """mul, mul24."""
    if on_values(warp, ins, lambda x, kind: fp.multiply(x[0], x[1], kind)):
        return
    (a, b), width, has_sign = _integers(warp, ins)
    part = _part(ins)
    if ins.base == "mul24":
        warp.write(ins.operands[0], integer.multiply24(a, b, has_sign, part))
    else:
        warp.write(ins.operands[0], integer.multiply(a, b, width, has_sign, part))


def _part(ins: Instruction) -> str:
    return next((m for m in ins.modifiers if m in ("lo", "hi", "wide")), "lo")


def multiply_add(warp: Warp, ins: Instruction) -> None:
    """fma, mad, mad24, madc: mad of floats is fused, as on every GPU since Fermi."""

    if on_values(warp, ins, lambda x, kind: _fma(ins, x, kind)):
        return
    kind, part = type_of(ins), _part(ins)
    width, has_sign = width_of(kind), is_signed(type_of(ins))
    a, b = (warp.read(operand, width) for operand in ins.operands[1:3])
    if ins.base == "mad24":
        product, out = integer.multiply24(a, b, has_sign, part), 32
    else:
        product, out = integer.multiply(a, b, width, has_sign, part), 2 * width if part == "wide" else width
    c = warp.read(ins.operands[3], out)
    carry_in = _carry(warp, ins) if ins.base == "madc" else np.zeros_like(a)
    if "sat" in ins.modifiers:
        total = signed(product, out) + signed(c, out) + carry_in.astype(np.int64)
        warp.write(ins.operands[0], truncate(np.clip(total, -(1 << 31), (1 << 31) - 1), out))
        return
    exact = [p + q + r for p, q, r in zip(product.tolist(), c.tolist(), carry_in.tolist(), strict=True)]
    if "cc" in ins.modifiers:
        _carry(warp, ins, np.array([(value >> out) & 1 for value in exact], np.uint64))
    warp.write(ins.operands[0], np.array([value & ((1 << out) - 1) for value in exact], np.uint64))


def _fma(ins: Instruction, x: list[fp.Floats], kind: str) -> fp.Rounded:
    return fp.fma(x[0], x[1], x[2], kind, rounding(ins))


def divide(warp: Warp, ins: Instruction) -> None:
    """div, rem. div.approx.f32 takes the reciprocal of a divisor beyond 2^126 as 0."""

    def quotient(x: list[fp.Floats], kind: str) -> fp.Rounded:
        value, error = fp.divide(x[0], x[1])
        if "approx" in ins.modifiers:
            far = (np.abs(x[1]) > 2.0**126) & np.isfinite(x[1])
            with np.errstate(invalid="ignore"):
                value = np.where(far, x[0] * np.copysign(0.0, x[1]), value)
            error = np.where(far, 0, error).astype(np.int8)
        return value, error

    if on_values(warp, ins, quotient):
        return
    (a, b), width, has_sign = _integers(warp, ins)
    function = integer.divide if ins.base == "div" else integer.remainder
    warp.write(ins.operands[0], function(a, b, width, has_sign))


def extremum(warp: Warp, ins: Instruction) -> None:
    """min, max, of two or three values."""
    largest = ins.base == "max"

    if on_bits(warp, ins, lambda x, types: fp.extremum(x, types[0], largest, ins.modifiers)):
        return
    has_sign = "s16x2" in ins.modifiers or type_of(ins)[0] == "s"

    def lane(a: int, b: int) -> int:
        found = max(a, b) if largest else min(a, b)
        return max(found, 0) if "relu" in ins.modifiers else found

    if _on_pairs(warp, ins, lane):
        return
    (a, b, *_), width, _ = _integers(warp, ins)
    warp.write(ins.operands[0], integer.on_integers(lane, width, has_sign, a, b))


def _on_pairs(warp: Warp, ins: Instruction, function: Callable[[int, int], int]) -> bool:
    """Run a function of integers on both halves of two operands if the type is u16x2 or s16x2."""
    kind = next((m for m in ins.modifiers if m in ("u16x2", "s16x2")), "")
    if not kind:
        return False
    result = np.zeros(32, np.uint64)
    sources = [warp.read(operand, 32) for operand in ins.operands[1:3]]
    for shift in (np.uint64(0), np.uint64(16)):
        pieces = [(bits >> shift) & np.uint64(0xFFFF) for bits in sources]
        result |= integer.on_integers(function, 16, kind[0] == "s", *pieces) << shift
    warp.write(ins.operands[0], result)
    return True


def negate(warp: Warp, ins: Instruction) -> None:
    """neg, abs."""

    def changed(x: list[Bits], types: list[str]) -> Bits:
        sign = np.uint64(1 << (width_of(types[0]) - 1))
        return x[0] ^ sign if ins.base == "neg" else x[0] & ~sign

    if on_bits(warp, ins, changed):
        return
    (a,), width, _ = _integers(warp, ins)
    value = signed(a, width)
    warp.write(ins.operands[0], truncate(-value if ins.base == "neg" else np.abs(value), width))


def absolute_difference(warp: Warp, ins: Instruction) -> None:
    """sad: c + |a - b|."""
    (a, b, c), width, has_sign = _integers(warp, ins)

    def lane(x: int, y: int, z: int) -> int:
        return z + abs(integer.as_int(x, width, has_sign) - integer.as_int(y, width, has_sign))

    warp.write(ins.operands[0], integer.per_lane(lane, width, a, b, c))


def dot_product(warp: Warp, ins: Instruction) -> None:
    """dp4a, dp2a."""
    types = types_of(ins.modifiers)
    a, b, c = (warp.read(operand, 32) for operand in ins.operands[1:])
    pairs = "" if ins.base == "dp4a" else "hi" if "hi" in ins.modifiers else "lo"
    signs = (is_signed(types[0]), is_signed(types[1]))
    warp.write(ins.operands[0], integer.dot_product(a, b, c, signs, pairs))


ARITHMETIC: dict[str, Execute] = {
    **dict.fromkeys(("add", "addc", "sub", "subc"), add),
    **dict.fromkeys(("mul", "mul24"), multiply),
    **dict.fromkeys(("fma", "mad", "mad24", "madc"), multiply_add),
    **dict.fromkeys(("div", "rem"), divide),
    **dict.fromkeys(("min", "max"), extremum),
    **dict.fromkeys(("neg", "abs"), negate),
    **FLOAT_ONLY,
    **dict.fromkeys(("dp4a", "dp2a"), dot_product),
    "sad": absolute_difference,
}
