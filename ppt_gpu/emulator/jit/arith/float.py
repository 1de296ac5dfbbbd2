"""Operations on floating-point numbers as LLVM IR: rounded once, and the canonical NaN for every NaN.

f32 and f64 are the host's own operations. f16 and bf16 are computed in a wider format and rounded to their own, which
is one rounding in effect. Numbers of f32 and f64 are float lanes, those of f16 and bf16 are given and taken as bits.
"""

from __future__ import annotations

from collections.abc import Sequence

from ppt_gpu.emulator.jit.arith.float_values import VALUE, canonical, in_double, sum_and_error, values_of
from ppt_gpu.emulator.jit.arith.formats import encode, narrow, to_odd
from ppt_gpu.emulator.jit.arith.math import FUNCTIONS
from ppt_gpu.emulator.jit.arith.rounded import rounded
from ppt_gpu.emulator.jit.emit import Unsupported
from ppt_gpu.emulator.llvm.text import Text, vec

HALVES = ("f16", "bf16")


def float_operation(t: Text, op: str, operands: Sequence[str]) -> str:
    """An operation such as "fadd.f32.rn" or "fcmp.olt.f64"."""
    name, kind, *rest = op.split(".")
    if name == "fcmp":
        return t.op(f"fcmp {kind} {vec(VALUE[rest[0]])} {operands[0]}, {operands[1]}")
    if name == "fpext":
        if kind == "f64":
            return t.convert("fpext", "float", operands[0], "double")
        return t.convert("fpext", "half", t.cast(operands[0], "i16", "half"), "float")
    values = [values_of(t, kind, bits) for bits in operands] if kind in HALVES else operands
    if name[1:] in FUNCTIONS:
        return _function(t, name[1:], kind, values[0])
    if kind in HALVES:
        return _half(t, name, kind, rest[0], values)
    return canonical(t, kind, _wide(t, name, kind, rest[0], values))


def _wide(t: Text, name: str, kind: str, rounding: str, values: Sequence[str]) -> str:
    """An IEEE operation of f32 or f64."""
    element, name = VALUE[kind], name.removeprefix("f") if name == "fsqrt" else name
    if rounding != "rn":
        return rounded(t, name, rounding, element, *values)
    if name in ("fma", "sqrt"):
        return t.intrinsic(name, element, *values)
    return t.binary(name, element, values[0], values[1])


def _half(t: Text, name: str, kind: str, rounding: str, values: Sequence[str]) -> str:
    """The bits of f16 or bf16.

    In f32, except for the fma of bf16, whose products f32 cannot hold. An f16 product has 22 bits and fits; the other
    f32 results carry more than twice the bits of the type and two, so that a second rounding does no harm (Figueroa,
    "When is double rounding innocuous?", SIGNUM Newsletter 30(3), 1995).
    """
    element = "float"
    if kind == "bf16" and name == "fma":
        element, values = "double", [t.convert("fpext", "float", v, "double") for v in values]
    if name in ("fadd", "fsub", "fmul"):
        total = t.binary(name, element, values[0], values[1])
    elif name == "fma":
        product = t.binary("fmul", element, values[0], values[1])
        total, error = sum_and_error(t, product, values[2], element)
        if rounding == "rm":  # numbers that cancel give -0
            zero = t.op(f"fcmp oeq {vec(element)} {total}, zeroinitializer")
            total = t.select(zero, element, rounded(t, "fadd", rounding, element, product, values[2]), total)
        total = to_odd(t, total, error, element)
    else:
        raise Unsupported(f"{name} of half precision")
    return narrow(t, kind, total) if element == "float" else encode(t, total, kind, rounding)


def _function(t: Text, base: str, kind: str, value: str) -> str:
    """rsqrt, sin, cos, lg2, ex2, tanh: computed in f64 and rounded once."""
    result = FUNCTIONS[base](t, in_double(t, kind, value))
    if kind in HALVES:
        return encode(t, result, kind)
    if kind == "f32":
        result = t.convert("fptrunc", "double", result, "float")
    return canonical(t, kind, result)
