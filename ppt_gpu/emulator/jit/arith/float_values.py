"""Floating-point values while code is written: canonical NaN, flushing, saturation, exact sums, the smaller of two.

Functions take and give names of <32 x T> values and work in kernels and in helper functions alike. `kind` is a PTX
type: f16, bf16, f32, f64. "Bits" are integers of the type's width; "values" are float lanes, for f16 and bf16 wider
ones that hold them exactly.
"""

from __future__ import annotations

from ppt_gpu.emulator.jit.arith.formats import decode
from ppt_gpu.emulator.llvm.text import Text, const, vec

WIDTH = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}
#: packed type -> type of its parts
PARTS = {"f16x2": "f16", "bf16x2": "bf16", "f32x2": "f32"}
#: LLVM element of "values"
VALUE = {"f16": "float", "bf16": "float", "f32": "float", "f64": "double"}
LOWEST_NORMAL = {"f16": 0x0400, "bf16": 0x0080, "f32": 0x00800000, "f64": 0x0010000000000000}
INFINITY = {"f16": 0x7C00, "bf16": 0x7F80, "f32": 0x7F800000, "f64": 0x7FF0000000000000}
#: What arithmetic gives for NaN, whatever the operands' NaNs were. f16, bf16, f32: PTX ISA, "Floating-Point
#: Instructions"; f64, about which it says nothing: CUDART_NAN of CUDA's math_constants.h.
CANONICAL_NAN = {"f16": 0x7FFF, "bf16": 0x7FFF, "f32": 0x7FFFFFFF, "f64": 0xFFF8000000000000}


def raw(kind: str) -> str:
    """The integer element of a type's bits."""
    return f"i{WIDTH[kind]}"


def values_of(t: Text, kind: str, bits: str) -> str:
    """Bits to values, exactly."""
    if kind in ("f32", "f64"):
        return t.cast(bits, raw(kind), VALUE[kind])
    return decode(t, kind, bits)


def in_double(t: Text, kind: str, value: str) -> str:
    """Values as doubles, exactly."""
    return value if VALUE[kind] == "double" else t.convert("fpext", "float", value, "double")


def flush_bits(t: Text, kind: str, bits: str) -> str:
    """Subnormals become zeros of the same sign (.ftz)."""
    element = raw(kind)
    magnitude = t.binary("and", element, bits, const(element, (1 << (WIDTH[kind] - 1)) - 1))
    small = t.binary("icmp ult", element, magnitude, const(element, LOWEST_NORMAL[kind]))
    sign = t.binary("and", element, bits, const(element, 1 << (WIDTH[kind] - 1)))
    return t.select(small, element, sign, bits)


def flush(t: Text, value: str) -> str:
    """Subnormal f32 values become zeros of the same sign."""
    return t.cast(flush_bits(t, "f32", t.cast(value, "float", "i32")), "i32", "float")


def is_nan(t: Text, element: str, value: str) -> str:
    return t.op(f"fcmp uno {vec(element)} {value}, {value}")


def canonical(t: Text, kind: str, value: str) -> str:
    """f32 or f64 values with every NaN replaced by the canonical one.

    As integers: to LLVM all NaNs are the same float, so that it may take the replacement away.
    """
    element = VALUE[kind]
    bits = t.cast(value, element, raw(kind))
    chosen = t.select(is_nan(t, element, value), raw(kind), const(raw(kind), CANONICAL_NAN[kind]), bits)
    return t.cast(chosen, raw(kind), element)


def saturate(t: Text, element: str, value: str) -> str:
    """Clamped to [0, 1]; NaN and -0 become +0 (.sat)."""
    above = t.op(f"fcmp ogt {vec(element)} {value}, zeroinitializer")
    value = t.select(above, element, value, "zeroinitializer")
    one = const(element, 1.0)
    return t.select(t.op(f"fcmp olt {vec(element)} {value}, {one}"), element, value, one)


def rectify(t: Text, element: str, value: str) -> str:
    """Negative numbers and -0 become +0, NaN stays (.relu)."""
    keep = t.op(f"fcmp ugt {vec(element)} {value}, zeroinitializer")
    return t.select(keep, element, value, "zeroinitializer")


def sum_and_error(t: Text, a: str, b: str, element: str) -> tuple[str, str]:
    """(a + b rounded, its exact error): Knuth's two-sum. The error is NaN where the sum is not finite."""
    total = t.binary("fadd", element, a, b)
    part = t.binary("fsub", element, total, a)
    lost = t.binary("fsub", element, a, t.binary("fsub", element, total, part))
    return total, t.binary("fadd", element, lost, t.binary("fsub", element, b, part))
