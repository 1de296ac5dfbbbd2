"""Operations on floating-point numbers as LLVM IR: rounded once, and the canonical NaN for every NaN.

f32 and f64 are the host's own operations. f16 and bf16 are computed in a wider format and rounded to their own, which
is one rounding in effect. Numbers of f32 and f64 are float lanes, those of f16 and bf16 are given and taken as bits.
"""

from __future__ import annotations

from collections.abc import Sequence

from ppt_gpu.emulator.forms.computes import Unsupported
from ppt_gpu.emulator.forms.float_formats import FORMATS, canonical_nan
from ppt_gpu.emulator.forms.opcode import WIDTH, is_signed
from ppt_gpu.emulator.jit.arith.formats import decode, encode, narrow, to_odd
from ppt_gpu.emulator.jit.arith.math import FUNCTIONS
from ppt_gpu.emulator.jit.arith.rounded import rounded
from ppt_gpu.emulator.llvm.text import Text, const, vec

HALVES = ("f16", "bf16")
#: type -> element of lanes that hold its numbers
VALUE = {"f16": "float", "bf16": "float", "f32": "float", "f64": "double"}
_INTEGRAL = {"rni": "roundeven", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}


def element_of(kind: str) -> str:
    """The element of a type as operations take it: numbers of f32 and f64, bits of all others."""
    if kind in ("f32", "f64"):
        return VALUE[kind]
    return f"i{FORMATS[kind].width if kind in FORMATS else WIDTH[kind]}"


def float_operation(t: Text, op: str, operands: Sequence[str]) -> str:
    """An operation on floating-point numbers (`emulator.forms.floating.signature`)."""
    name, kind, *rest = op.split(".")
    if name == "fcmp":
        return t.op(f"fcmp {kind} {vec(VALUE[rest[0]])} {operands[0]}, {operands[1]}")
    if name == "fcvt":
        return _convert(t, kind, rest[0], rest[1], "satfinite" in rest, operands[0])
    if name == "fround":
        return canonical(t, kind, t.intrinsic(_INTEGRAL[rest[0]], VALUE[kind], operands[0]))
    if name == "fptoi":
        return _to_integer(t, kind, rest[0], operands[0])
    if name == "itofp":
        return _from_integer(t, kind, rest[0], rest[1], operands[0])
    values = [decode(t, kind, bits) for bits in operands] if kind in HALVES else operands
    if name[1:] in FUNCTIONS:
        return _function(t, name[1:], kind, values[0])
    if kind in HALVES:
        return _half(t, name, kind, rest[0], values)
    return canonical(t, kind, _wide(t, name, kind, rest[0], values))


def in_double(t: Text, kind: str, value: str) -> str:
    """Values as doubles, exactly."""
    return value if VALUE[kind] == "double" else t.convert("fpext", "float", value, "double")


def canonical(t: Text, kind: str, value: str) -> str:
    """f32 or f64 values with every NaN replaced by the canonical one.

    As integers: to LLVM all NaNs are the same float, so that it may take the replacement away.
    """
    element, raw = VALUE[kind], f"i{WIDTH[kind]}"
    bits = t.cast(value, element, raw)
    chosen = t.select(t.op(f"fcmp uno {vec(element)} {value}, {value}"), raw, const(raw, canonical_nan(kind)), bits)
    return t.cast(chosen, raw, element)


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


def sum_and_error(t: Text, a: str, b: str, element: str) -> tuple[str, str]:
    """(a + b rounded, its exact error): Knuth's two-sum. The error is NaN where the sum is not finite."""
    total = t.binary("fadd", element, a, b)
    part = t.binary("fsub", element, total, a)
    lost = t.binary("fsub", element, a, t.binary("fsub", element, total, part))
    return total, t.binary("fadd", element, lost, t.binary("fsub", element, b, part))


def _function(t: Text, base: str, kind: str, value: str) -> str:
    """rsqrt, sin, cos, lg2, ex2, tanh: computed in f64 and rounded once."""
    result = FUNCTIONS[base](t, in_double(t, kind, value))
    if kind in HALVES:
        return encode(t, result, kind)
    if kind == "f32":
        result = t.convert("fptrunc", "double", result, "float")
    return canonical(t, kind, result)


def _convert(t: Text, source: str, target: str, mode: str, saturate: bool, x: str) -> str:
    """To another format. Every format but f64 fits into f32."""
    value = x if source in ("f32", "f64") else decode(t, source, x)
    if source != "f64" and target == "f32":
        return canonical(t, "f32", value)
    if source != "f64" and target in HALVES and mode == "rn" and not saturate:
        return narrow(t, target, value)
    if source == "f64" and target == "f32" and mode == "rn":
        return canonical(t, "f32", t.convert("fptrunc", "double", value, "float"))
    wide = in_double(t, source, value)
    if target == "f64":
        return canonical(t, "f64", wide)
    bits = encode(t, wide, target, mode, saturate)
    return t.cast(bits, "i32", "float") if target == "f32" else bits


def _to_integer(t: Text, source: str, target: str, value: str) -> str:
    sign, width = "s" if is_signed(target) else "u", WIDTH[target]
    if (source, target) != ("f32", "s32"):  # which is one instruction of the host
        source, value = "f64", in_double(t, source, value)
    name = f"llvm.fpto{sign}i.sat.v32i{width}.v32{source}"
    return t.call(vec(f"i{width}"), name, (vec(VALUE[source]), value))


def _from_integer(t: Text, source: str, target: str, mode: str, bits: str) -> str:
    element, signed = f"i{WIDTH[source]}", is_signed(source)
    operation = "sitofp" if signed else "uitofp"
    if target in ("f32", "f64") and mode == "rn" and WIDTH[source] > 8:
        return t.convert(operation, element, bits, VALUE[target])
    if WIDTH[source] < 64:  # exact; processors without this conversion would give -0 for 0 where they round down
        value = t.convert(operation, element, bits, "double")
    elif target == "f64":
        value = rounded(t, operation, mode, element, bits, target="double")
    else:
        value = _odd(t, bits, signed)
    if target == "f64":
        return value
    found = encode(t, value, target, mode)
    return t.cast(found, "i32", "float") if target == "f32" else found


def _odd(t: Text, bits: str, signed: bool) -> str:
    """A 64-bit integer as a double, rounded to odd: its 53 highest bits, the last one set if others were lost."""
    negative = t.v64("icmp slt", bits, "zeroinitializer")
    magnitude = bits
    if signed:
        magnitude = t.select(negative, "i64", t.v64("sub", "zeroinitializer", bits), bits)
    low = t.v64("and", magnitude, const("i64", 0x7FF))
    sticky = t.convert("zext", "i1", t.v64("icmp ne", low, "zeroinitializer"), "i64")
    cut = t.v64("xor", magnitude, low)
    cut = t.v64("or", cut, t.v64("shl", sticky, const("i64", 11)))
    large = t.v64("icmp uge", magnitude, const("i64", 1 << 53))
    value = t.convert("uitofp", "i64", t.select(large, "i64", cut, magnitude), "double")
    return t.select(negative, "double", t.op(f"fneg {vec('double')} {value}"), value) if signed else value
