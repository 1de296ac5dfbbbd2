"""Arithmetic instructions of the interpreter: one function a group of opcodes, chosen by `ARITHMETIC`.

Each takes the warp and the instruction, reads its operands, and writes its result in the active lanes.
Approximate functions (.approx) are computed in f64 and rounded once, so a compiled run may differ in the last places.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ppt_gpu.exec import interp_float as fp
from ppt_gpu.exec import interp_integer as integer
from ppt_gpu.exec.interp_warp import Bits, Warp, signed, truncate, unsupported, width_of
from ppt_gpu.ptx.module import Instruction, Reg
from ppt_gpu.ptx.operations import types_of

Execute = Callable[[Warp, Instruction], None]

ONE = np.uint64(1)


def type_of(ins: Instruction) -> str:
    """The (last) data type of the instruction."""
    return types_of(ins.modifiers)[-1]


def is_signed(type_name: str) -> bool:
    """Whether values of the type have a sign in integer arithmetic."""
    return type_name[0] == "s"


def rounding(ins: Instruction) -> str:
    """The rounding mode of a floating-point instruction; to nearest even where it names none."""
    return next((m for m in ins.modifiers if m in fp.ROUNDINGS), "rn")


def float_result(ins: Instruction, rounded: fp.Rounded, type_name: str) -> Bits:
    """Rounded, flushed and saturated as the instruction says."""
    bits = fp.round_to(rounded, type_name, rounding(ins))
    if "ftz" in ins.modifiers:
        bits = fp.flush(bits, type_name)
    if "sat" in ins.modifiers:
        bits = fp.saturate(bits, type_name)
    if "relu" in ins.modifiers:
        bits = fp.minimum(bits, np.zeros_like(bits), type_name, largest=True, keep_nan=True)
    return bits


def float_operands(warp: Warp, ins: Instruction, type_name: str) -> list[Bits]:
    """The bits of all sources, subnormals flushed under .ftz."""
    sources = [warp.read_typed(operand, type_name) for operand in ins.operands[1:]]
    return [fp.flush(bits, type_name) for bits in sources] if "ftz" in ins.modifiers else sources


def _on_halves(warp: Warp, ins: Instruction, packed: str, function: Callable[[list[Bits], str], Bits]) -> None:
    """Apply `function` to the lower and the upper halves of packed operands."""
    part = fp.PACKED[packed]
    half = width_of(part)
    sources = [warp.read(operand, 2 * half) for operand in ins.operands[1:]]
    result = np.zeros(32, np.uint64)
    for shift in (np.uint64(0), np.uint64(half)):
        pieces = [(bits >> shift) & np.uint64((1 << half) - 1) for bits in sources]
        if "ftz" in ins.modifiers:
            pieces = [fp.flush(bits, part) for bits in pieces]
        result |= function(pieces, part) << shift
    warp.write(ins.operands[0], result)


def _float(warp: Warp, ins: Instruction, function: Callable[[list[Bits], str], Bits]) -> bool:
    """Run a floating-point function on the operands if the type is floating point."""
    kind = type_of(ins)
    if kind in fp.PACKED:
        _on_halves(warp, ins, kind, function)
    elif kind in fp.FLOATS:
        warp.write(ins.operands[0], function(float_operands(warp, ins, kind), kind))
    return kind in fp.PACKED or kind in fp.FLOATS


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

    def on_floats(x: list[Bits], kind: str) -> Bits:
        b = fp.widen(x[1], kind)
        return float_result(ins, fp.add(fp.widen(x[0], kind), -b if subtract else b, rounding(ins)), kind)

    if _float(warp, ins, on_floats):
        return
    (a, b), width, _ = _integers(warp, ins)
    if "sat" in ins.modifiers:
        total = signed(a, width) - signed(b, width) if subtract else signed(a, width) + signed(b, width)
        warp.write(ins.operands[0], truncate(np.clip(total, -(1 << 31), (1 << 31) - 1), width))
        return
    carry_in = _carry(warp, ins) if ins.base in ("addc", "subc") else np.zeros_like(a)
    sign = -1 if subtract else 1
    exact = [x + sign * (y + c) for x, y, c in zip(a.tolist(), b.tolist(), carry_in.tolist(), strict=True)]
    if "cc" in ins.modifiers:  # the flag is the carry, or the borrow of a subtraction
        _carry(warp, ins, np.array([(value >> width) & 1 for value in exact], np.uint64))
    warp.write(ins.operands[0], np.array([value & ((1 << width) - 1) for value in exact], np.uint64))


def multiply(warp: Warp, ins: Instruction) -> None:
    """mul, mul24."""
    if _float(warp, ins, lambda x, k: float_result(ins, fp.multiply(fp.widen(x[0], k), fp.widen(x[1], k), k), k)):
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

    def on_floats(x: list[Bits], kind: str) -> Bits:
        a, b, c = (fp.widen(bits, kind) for bits in x)
        return float_result(ins, fp.fma(a, b, c, kind, rounding(ins)), kind)

    if _float(warp, ins, on_floats):
        return
    kind, part = type_of(ins), _part(ins)
    width, has_sign = width_of(kind), is_signed(type_of(ins))
    a, b = (warp.read(operand, width) for operand in ins.operands[1:3])
    if ins.base == "mad24":
        product, out = integer.multiply24(a, b, has_sign, part), 32
    else:
        product, out = integer.multiply(a, b, width, has_sign, part), 2 * width if part == "wide" else width
    c = warp.read(ins.operands[3], out)
    if "sat" in ins.modifiers:
        total = signed(product, out) + signed(c, out)
        warp.write(ins.operands[0], truncate(np.clip(total, -(1 << 31), (1 << 31) - 1), out))
        return
    carry_in = _carry(warp, ins) if ins.base == "madc" else np.zeros_like(a)
    exact = [p + q + r for p, q, r in zip(product.tolist(), c.tolist(), carry_in.tolist(), strict=True)]
    if "cc" in ins.modifiers:
        _carry(warp, ins, np.array([(value >> out) & 1 for value in exact], np.uint64))
    warp.write(ins.operands[0], np.array([value & ((1 << out) - 1) for value in exact], np.uint64))


def divide(warp: Warp, ins: Instruction) -> None:
    """div, rem."""

    def on_floats(x: list[Bits], kind: str) -> Bits:
        return float_result(ins, fp.divide(fp.widen(x[0], kind), fp.widen(x[1], kind)), kind)

    if _float(warp, ins, on_floats):
        return
    (a, b), width, has_sign = _integers(warp, ins)
    function = integer.divide if ins.base == "div" else integer.remainder
    warp.write(ins.operands[0], function(a, b, width, has_sign))


def extremum(warp: Warp, ins: Instruction) -> None:
    """min, max, of two or three values."""
    largest = ins.base == "max"

    def on_floats(x: list[Bits], kind: str) -> Bits:
        if "xorsign" in ins.modifiers:
            raise unsupported(ins, "the interpreter has no .xorsign")
        result = x[0]
        for other in x[1:]:
            result = fp.minimum(result, other, kind, largest=largest, keep_nan="NaN" in ins.modifiers)
        return fp.flush(result, kind) if "ftz" in ins.modifiers else result

    if _float(warp, ins, on_floats):
        return
    (a, b, *_), width, has_sign = _integers(warp, ins)
    x, y = (signed(a, width), signed(b, width)) if has_sign else (a, b)
    warp.write(ins.operands[0], np.where((x > y) if largest else (x < y), a, b))


def negate(warp: Warp, ins: Instruction) -> None:
    """neg, abs."""

    def on_floats(x: list[Bits], kind: str) -> Bits:
        sign = np.uint64(1 << (width_of(kind) - 1))
        return x[0] ^ sign if ins.base == "neg" else x[0] & ~sign

    if _float(warp, ins, on_floats):
        return
    (a,), width, _ = _integers(warp, ins)
    value = signed(a, width)
    warp.write(ins.operands[0], truncate(-value if ins.base == "neg" else np.abs(value), width))


def copy_sign(warp: Warp, ins: Instruction) -> None:
    """copysign d, a, b: the sign of a, the magnitude of b."""
    kind = type_of(ins)
    a, b = (warp.read_typed(operand, kind) for operand in ins.operands[1:])
    sign = np.uint64(1 << (width_of(kind) - 1))
    warp.write(ins.operands[0], (a & sign) | (b & ~sign))


def test_property(warp: Warp, ins: Instruction) -> None:
    """testp."""
    kind = type_of(ins)
    bits = warp.read_typed(ins.operands[1], kind)
    value = fp.widen(bits, kind)
    magnitude = bits & np.uint64((1 << (width_of(kind) - 1)) - 1)
    normal = np.isfinite(value) & (magnitude >= np.uint64(fp.FLOATS[kind][1]))
    tests = {
        "finite": np.isfinite(value), "infinite": np.isinf(value), "number": ~np.isnan(value),
        "notanumber": np.isnan(value), "normal": normal, "subnormal": np.isfinite(value) & ~normal & (magnitude != 0),
    }  # fmt: skip
    warp.write(ins.operands[0], tests[ins.modifiers[0]].astype(np.uint64))


def root(warp: Warp, ins: Instruction) -> None:
    """rcp, sqrt: exactly rounded in every mode; the .approx forms are rounded to nearest."""

    def on_floats(x: list[Bits], kind: str) -> Bits:
        value = fp.widen(x[0], kind)
        exact = fp.square_root(value) if ins.base == "sqrt" else fp.divide(np.ones(32), value)
        return float_result(ins, exact, kind)

    _float(warp, ins, on_floats)


_APPROXIMATE: dict[str, Callable[[fp.Floats], fp.Floats]] = {
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
    "sin": np.sin,
    "cos": np.cos,
    "ex2": np.exp2,
    "lg2": np.log2,
    "tanh": np.tanh,
}


def approximate(warp: Warp, ins: Instruction) -> None:
    """rsqrt, sin, cos, ex2, lg2, tanh: in f64, rounded to nearest."""
    function = _APPROXIMATE[ins.base]
    _float(warp, ins, lambda x, kind: float_result(ins, fp.exactly(function(fp.widen(x[0], kind))), kind))


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
    **dict.fromkeys(("rcp", "sqrt"), root),
    **dict.fromkeys(tuple(_APPROXIMATE), approximate),
    **dict.fromkeys(("dp4a", "dp2a"), dot_product),
    "copysign": copy_sign,
    "testp": test_property,
    "sad": absolute_difference,
}
