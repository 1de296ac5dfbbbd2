"""Helper functions for floating-point instructions, one a form: bits of the operands in, bits of the result out.

f32 and f64 are the host's own operations. f16 and bf16 are computed in a wider format and rounded to their own, which
is one rounding in effect.
"""

from __future__ import annotations

from collections.abc import Sequence

from ppt_gpu.emulator.jit.arith.float_values import (
    PARTS,
    VALUE,
    WIDTH,
    canonical,
    extremum,
    flush_bits,
    in_double,
    infinite,
    raw,
    rectify,
    saturate,
    sum_and_error,
    values_of,
)
from ppt_gpu.emulator.jit.arith.formats import encode, narrow, to_odd
from ppt_gpu.emulator.jit.arith.math import FUNCTIONS
from ppt_gpu.emulator.jit.arith.rounded import rounded
from ppt_gpu.emulator.jit.emit import Unsupported
from ppt_gpu.emulator.llvm.library import writes
from ppt_gpu.emulator.llvm.text import Helper, Text, const, vec

_HIGH = -(1 << 32)  # keeps the upper half of 64 bits


@writes("float")
def write_float(base: str, kind: str, rounding: str, flags: str, sources: str) -> Helper:
    """`flags` and the types of the operands, `sources`, are words joined by "_"."""
    types = sources.split("_")
    part = PARTS.get(kind, kind)
    width = WIDTH[part] * (2 if kind in PARTS else 1)
    inputs = [width if s in PARTS else WIDTH[s] for s in types]
    f = Helper(vec(f"i{width}"), *(f"{vec(f'i{n}')} %a{i}" for i, n in enumerate(inputs)))
    f.label("entry")
    operands = [f"%a{i}" for i in range(len(types))]
    words = flags.split("_")
    if kind not in PARTS:
        result = operate(f, base, kind, rounding, words, types, operands)
    else:
        halves = [[half(f, kind, bits, upper) for bits in operands] for upper in (False, True)]
        low, high = (operate(f, base, part, rounding, words, [part] * len(types), h) for h in halves)
        result = join(f, kind, low, high)
    f.do(f"ret {vec(f'i{width}')} {result}")
    return f


def half(t: Text, kind: str, bits: str, upper: bool) -> str:
    """The lower or upper part of packed bits."""
    whole, part = f"i{2 * WIDTH[PARTS[kind]]}", WIDTH[PARTS[kind]]
    moved = t.binary("lshr", whole, bits, const(whole, part)) if upper else bits
    return t.convert("trunc", whole, moved, f"i{part}")


def join(t: Text, kind: str, low: str, high: str) -> str:
    """Two parts packed."""
    whole, part = f"i{2 * WIDTH[PARTS[kind]]}", WIDTH[PARTS[kind]]
    wide = [t.convert("zext", f"i{part}", v, whole) for v in (low, high)]
    return t.binary("or", whole, wide[0], t.binary("shl", whole, wide[1], const(whole, part)))


def operate(
    t: Text, base: str, kind: str, rounding: str, flags: Sequence[str], types: Sequence[str], operands: Sequence[str]
) -> str:
    """The bits of one result of `kind` from the bits of operands of `types`."""
    if base in ("min", "max"):
        return extremum(t, base, kind, flags, operands)
    if "ftz" in flags:
        operands = [flush_bits(t, s, bits) for s, bits in zip(types, operands, strict=True)]
    if base in ("neg", "abs"):
        return _sign(t, base, kind, operands[0])
    values = [values_of(t, s, bits) for s, bits in zip(types, operands, strict=True)]
    if base in FUNCTIONS:
        return _function(t, base, kind, flags, values[0])
    if kind in ("f16", "bf16"):
        return _round_half(t, kind, flags, *_half(t, base, kind, rounding, values), rounding)
    if base in ("rcp", "div"):
        return _quotient(t, base, kind, rounding, flags, values)
    return finish(t, kind, flags, _wide(t, base, kind, rounding, values))


def finish(t: Text, kind: str, flags: Sequence[str], value: str) -> str:
    """f32 or f64 values to the bits of the result: .sat, canonical NaN, .ftz."""
    element = VALUE[kind]
    value = saturate(t, element, value) if "sat" in flags else canonical(t, kind, value)
    bits = t.cast(value, element, raw(kind))
    return flush_bits(t, kind, bits) if "ftz" in flags else bits


def _sign(t: Text, base: str, kind: str, bits: str) -> str:
    element, top = raw(kind), 1 << (WIDTH[kind] - 1)
    if base == "neg":
        return t.binary("xor", element, bits, const(element, top))
    return t.binary("and", element, bits, const(element, top - 1))


_WIDE = {"add": "fadd", "sub": "fsub", "mul": "fmul", "fma": "fma", "mad": "fma", "div": "fdiv", "sqrt": "sqrt"}


def _wide(t: Text, base: str, kind: str, rounding: str, values: Sequence[str]) -> str:
    """An IEEE operation of f32 or f64."""
    element, name = VALUE[kind], _WIDE[base]
    if rounding != "rn":
        return rounded(t, name, rounding, element, *values)
    if name in ("fma", "sqrt"):
        return t.intrinsic(name, element, *values)
    return t.binary(name, element, values[0], values[1])


def _half(t: Text, base: str, kind: str, rounding: str, values: Sequence[str]) -> tuple[str, str]:
    """(add, sub, mul, fma of f16 or bf16 as values that round like the exact result, their element).

    In f32, except for the fma of bf16, whose products f32 cannot hold. An f16 product has 22 bits and fits; the other
    f32 results carry more than twice the bits of the type and two, so that a second rounding does no harm (Figueroa,
    "When is double rounding innocuous?", SIGNUM Newsletter 30(3), 1995).
    """
    element = "float"
    if kind == "bf16" and base in ("fma", "mad"):
        element, values = "double", [t.convert("fpext", "float", v, "double") for v in values]
    if base in ("add", "sub", "mul"):
        return t.binary(f"f{base}", element, values[0], values[1]), element
    if base not in ("fma", "mad"):
        raise Unsupported(f"{base} of half precision")
    product = t.binary("fmul", element, values[0], values[1])
    total, error = sum_and_error(t, product, values[2], element)
    if rounding == "rm":  # numbers that cancel give -0
        zero = t.op(f"fcmp oeq {vec(element)} {total}, zeroinitializer")
        total = t.select(zero, element, rounded(t, "fadd", rounding, element, product, values[2]), total)
    return to_odd(t, total, error, element), element


def _round_half(t: Text, kind: str, flags: Sequence[str], value: str, element: str, mode: str = "rn") -> str:
    """Values to the bits of f16 or bf16."""
    if "sat" in flags:
        value = saturate(t, element, value)
    if "relu" in flags:
        value = rectify(t, element, value)
    bits = narrow(t, kind, value) if element == "float" else encode(t, value, kind, mode)
    return flush_bits(t, kind, bits) if "ftz" in flags else bits


def _function(t: Text, base: str, kind: str, flags: Sequence[str], value: str) -> str:
    """rsqrt, sin, cos, lg2, ex2, tanh: computed in f64 and rounded once."""
    wide = in_double(t, kind, value)
    if kind == "f64" and "ftz" in flags:  # rsqrt.approx.ftz.f64 reads and gives upper halves
        bits = t.v64("and", t.cast(wide, "double", "i64"), const("i64", _HIGH))
        return _upper_half(t, FUNCTIONS[base](t, t.cast(bits, "i64", "double")))
    result = FUNCTIONS[base](t, wide)
    if kind in ("f16", "bf16"):
        return _round_half(t, kind, flags, result, "double")
    if kind == "f32":
        result = t.convert("fptrunc", "double", result, "float")
    return finish(t, kind, flags, result)


def _upper_half(t: Text, value: str) -> str:
    bits = t.cast(canonical(t, "f64", value), "double", "i64")
    return flush_bits(t, "f64", t.v64("and", bits, const("i64", _HIGH)))


def _quotient(t: Text, base: str, kind: str, rounding: str, flags: Sequence[str], values: Sequence[str]) -> str:
    element = VALUE[kind]
    a, b = (const(element, 1.0), values[0]) if base == "rcp" else values
    if base == "rcp" and kind == "f64" and "approx" in flags:
        bits = t.v64("and", t.cast(b, "double", "i64"), const("i64", _HIGH))
        return _upper_half(t, t.binary("fdiv", "double", a, t.cast(bits, "i64", "double")))
    result = _wide(t, "div", kind, rounding, [a, b])
    if base == "div" and "approx" in flags:  # beyond 2^126 the reciprocal of b counts as 0
        large = t.op(f"fcmp ogt {vec(element)} {t.intrinsic('fabs', element, b)}, {const(element, 2.0**126)}")
        finite = t.binary("xor", "i1", infinite(t, element, b), const("i1", 1))
        zero = t.intrinsic("copysign", element, "zeroinitializer", b)
        far = t.binary("fmul", element, a, zero)
        result = t.select(t.binary("and", "i1", large, finite), element, far, result)
    return finish(t, kind, flags, result)
