"""Floating-point instructions of the interpreter: operands to values, the exact result rounded to the type.

`on_values` and `on_bits` run a function on the operands of a scalar, packed or mixed-precision instruction. Approximate
functions (.approx) are computed in f64 and rounded once, so a compiled run may differ in the last place.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ppt_gpu.ptx.module import Instruction
from ppt_gpu.ptx.operations import types_of
from ppt_gpu.ptx.table import SCALAR_TYPES
from reference.interpreter import float_rounding as fp
from reference.interpreter.block import Bits
from reference.interpreter.warp import Warp, unsupported, width_of


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


def on_bits(warp: Warp, ins: Instruction, function: Callable[[list[Bits], list[str]], Bits]) -> bool:
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


def on_values(warp: Warp, ins: Instruction, function: Callable[[list[fp.Floats], str], fp.Rounded]) -> bool:
    """Run a function of operands' values, its result rounded, if the instruction's type is floating point."""
    kind = float_kind(ins)
    part = fp.PACKED.get(kind, kind)

    def rounded(operands: list[Bits], types: list[str]) -> Bits:
        values = [fp.widen(bits, t) for bits, t in zip(operands, types, strict=True)]
        return float_result(ins, function(values, part), part)

    return on_bits(warp, ins, rounded)


def copy_sign(warp: Warp, ins: Instruction) -> None:
    """copysign d, a, b: the sign of a, the magnitude of b."""
    kind = types_of(ins.modifiers)[-1]
    a, b = (warp.read_typed(operand, kind) for operand in ins.operands[1:])
    sign = np.uint64(1 << (width_of(kind) - 1))
    warp.write(ins.operands[0], (a & sign) | (b & ~sign))


def test_property(warp: Warp, ins: Instruction) -> None:
    """testp."""
    kind = types_of(ins.modifiers)[-1]
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
        on_bits(warp, ins, lambda x, types: _upper_halves(lambda value: 1.0 / value, x[0]))
        return

    def exact(x: list[fp.Floats], kind: str) -> fp.Rounded:
        return fp.square_root(x[0]) if ins.base == "sqrt" else fp.divide(np.ones(32), x[0])

    on_values(warp, ins, exact)


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
        on_bits(warp, ins, lambda x, types: _upper_halves(function, x[0]))
    else:
        on_values(warp, ins, lambda x, kind: fp.exactly(function(x[0])))


#: base opcode -> instruction that only floating-point types have
FLOAT_ONLY: dict[str, Callable[[Warp, Instruction], None]] = {
    **dict.fromkeys(("rcp", "sqrt"), root),
    **dict.fromkeys(tuple(_APPROXIMATE), approximate),
    "copysign": copy_sign,
    "testp": test_property,
}
