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
from ppt_gpu.ptx.table import SCALAR_TYPES

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


def float_kind(ins: Instruction) -> str:
    """The floating-point type of the instruction, packed or not; "" for integers."""
    first = next((m for m in ins.modifiers if m in SCALAR_TYPES), "")
    return first if first in fp.FLOATS or first in fp.PACKED else ""


def float_result(ins: Instruction, rounded: fp.Rounded, kind: str) -> Bits:
    """Saturated, rounded and flushed as the instruction says."""
    if "sat" in ins.modifiers:
        rounded = fp.saturate(rounded)
    if "relu" in ins.modifiers:
        rounded = fp.rectify(rounded)
    bits = fp.round_to(rounded, kind, rounding(ins))
    return fp.flush(bits, kind) if "ftz" in ins.modifiers else bits


def _float(warp: Warp, ins: Instruction, function: Callable[[list[Bits], list[str]], Bits]) -> bool:
    """Run a function of operands' bits and types if the instruction's type is floating point."""
    kind = float_kind(ins)
    if not kind:
        return False
    if "oob" in ins.modifiers:
        raise unsupported(ins, "the NaN that marks elements out of bounds is not documented")
    if kind in fp.PACKED:
        _on_parts(warp, ins, kind, function)
        return True
    types = [kind] * (len(ins.operands) - 1)
    named = types_of(ins.modifiers)
    if len(named) > 1:  # fma.f32.f16: a and b are narrow; add.f32.f16: a
        narrow = 2 if ins.base == "fma" else 1
        types[:narrow] = [named[1]] * narrow
    operands = [warp.read_typed(o, t) for o, t in zip(ins.operands[1:], types, strict=True)]
    warp.write(ins.operands[0], function(_flushed(ins, operands, types), types))
    return True


def _flushed(ins: Instruction, operands: list[Bits], types: list[str]) -> list[Bits]:
    if "ftz" not in ins.modifiers:
        return operands
    return [fp.flush(bits, kind) for bits, kind in zip(operands, types, strict=True)]


def _on_parts(warp: Warp, ins: Instruction, packed: str, function: Callable[[list[Bits], list[str]], Bits]) -> None:
    """Apply `function` to the lower and the upper parts of packed operands."""
    part = fp.PACKED[packed]
    half = width_of(part)
    sources = [warp.read(operand, 2 * half) for operand in ins.operands[1:]]
    result = np.zeros(32, np.uint64)
    for shift in (np.uint64(0), np.uint64(half)):
        types = [part] * len(sources)
        pieces = [(bits >> shift) & np.uint64((1 << half) - 1) for bits in sources]
        result |= function(_flushed(ins, pieces, types), types) << shift
    warp.write(ins.operands[0], result)


def _float_values(warp: Warp, ins: Instruction, function: Callable[[list[fp.Floats], str], fp.Rounded]) -> bool:
    """Run a function of operands' values, its result rounded, if the instruction's type is floating point."""
    kind = float_kind(ins)
    part = fp.PACKED.get(kind, kind)

    def on_bits(operands: list[Bits], types: list[str]) -> Bits:
        values = [fp.widen(bits, t) for bits, t in zip(operands, types, strict=True)]
        return float_result(ins, function(values, part), part)

    return _float(warp, ins, on_bits)


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

    if _float_values(warp, ins, lambda x, kind: fp.add(x[0], -x[1] if subtract else x[1], rounding(ins))):
        return
    if _on_pairs(warp, ins, lambda a, b: a - b if subtract else a + b):
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
    if _float_values(warp, ins, lambda x, kind: fp.multiply(x[0], x[1], kind)):
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

    if _float_values(warp, ins, lambda x, kind: _fma(ins, x, kind)):
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

    if _float_values(warp, ins, quotient):
        return
    (a, b), width, has_sign = _integers(warp, ins)
    function = integer.divide if ins.base == "div" else integer.remainder
    warp.write(ins.operands[0], function(a, b, width, has_sign))


def extremum(warp: Warp, ins: Instruction) -> None:
    """min, max, of two or three values."""
    largest = ins.base == "max"

    if _float(warp, ins, lambda x, types: fp.extremum(x, types[0], largest, ins.modifiers)):
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

    def on_bits(x: list[Bits], types: list[str]) -> Bits:
        sign = np.uint64(1 << (width_of(types[0]) - 1))
        return x[0] ^ sign if ins.base == "neg" else x[0] & ~sign

    if _float(warp, ins, on_bits):
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
    zero = magnitude == 0  # zeros count as normal (PTX ISA, testp)
    normal = np.isfinite(value) & (magnitude >= np.uint64(fp.FLOATS[kind][1])) | zero
    tests = {
        "finite": np.isfinite(value), "infinite": np.isinf(value), "number": ~np.isnan(value),
        "notanumber": np.isnan(value), "normal": normal, "subnormal": np.isfinite(value) & ~normal,
    }  # fmt: skip
    warp.write(ins.operands[0], tests[ins.modifiers[0]].astype(np.uint64))


_UPPER = np.uint64(0xFFFFFFFF00000000)


def _upper_halves(function: Callable[[fp.Floats], fp.Floats], operand: Bits) -> Bits:
    """rcp.approx.ftz.f64, rsqrt.approx.ftz.f64: read and give the upper 32 bits of an f64."""
    with np.errstate(all="ignore"):
        value = function(fp.widen(operand & _UPPER, "f64"))
    return fp.flush(fp.round_to(fp.exactly(value), "f64") & _UPPER, "f64")


def root(warp: Warp, ins: Instruction) -> None:
    """rcp, sqrt: exactly rounded in every mode; the .approx forms are rounded to nearest."""
    if ins.base == "rcp" and "f64" in ins.modifiers and "approx" in ins.modifiers:
        _float(warp, ins, lambda x, types: _upper_halves(lambda value: 1.0 / value, x[0]))
        return

    def exact(x: list[fp.Floats], kind: str) -> fp.Rounded:
        return fp.square_root(x[0]) if ins.base == "sqrt" else fp.divide(np.ones(32), x[0])

    _float_values(warp, ins, exact)


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
    if "f64" in ins.modifiers and "ftz" in ins.modifiers:
        _float(warp, ins, lambda x, types: _upper_halves(function, x[0]))
    else:
        _float_values(warp, ins, lambda x, kind: fp.exactly(function(x[0])))


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
