"""Floating-point arithmetic of f32 and f64: add, multiply, fused multiply-add, minimum, sign.

`.ftz` replaces subnormal inputs and results by zeros of the same sign, `.sat` clamps to [0, 1] with NaN as 0.
Rounding to nearest is the host's own. The directed roundings need the error of the nearest result, or only its sign:
f32 computes it in f64, and for f64 the error of a sum or product is itself a float (Dekker 1971). Where rounding went
the wrong way, the result steps to its neighbour.
"""

from __future__ import annotations

import math

from ppt_gpu.exec.jit_emit import Emitter, Unsupported, emits, integer_of
from ppt_gpu.exec.jit_text import BITS, ELEMENT, bits_of_lowest_normal, canonical_nan, const, vec
from ppt_gpu.exec.jit_types import Opcode, parts
from ppt_gpu.ptx.module import Instruction, Operand

_INFINITY = const("double", math.inf)
SCALE, TINY = 2.0**600, 2.0**-900


def check_kind(p: Opcode) -> str:
    """The LLVM element of an f32 or f64 instruction."""
    if p.kind not in ("f32", "f64"):
        raise Unsupported(f"arithmetic on .{p.kind}")
    if any(m.endswith("x2") for m in p.modifiers):
        raise Unsupported("packed arithmetic")
    return ELEMENT[p.kind]


def read(e: Emitter, p: Opcode, operand: Operand) -> str:
    value = e.read(operand, p.kind)
    return flush(e, value) if p.has("ftz") and p.kind == "f32" else value


def write(e: Emitter, p: Opcode, operand: Operand, value: str) -> None:
    """Flush and saturate as the opcode asks, then write."""
    element = ELEMENT[p.kind]
    if p.has("ftz") and p.kind == "f32":
        value = flush(e, value)
    if p.has("sat"):
        zero, one = "zeroinitializer", const(element, 1.0)
        above = e.op(f"fcmp ogt {vec(element)} {value}, {zero}")  # false for NaN
        value = e.select(above, element, value, zero)
        value = e.select(e.op(f"fcmp olt {vec(element)} {value}, {one}"), element, value, one)
    e.write(operand, p.kind, value)


def flush(e: Emitter, value: str) -> str:
    """Subnormal f32 become zero and keep their sign."""
    raw = e.cast(value, "float", "i32")
    magnitude = e.v32("and", raw, const("i32", 0x7FFFFFFF))
    small = e.v32("icmp ult", magnitude, const("i32", bits_of_lowest_normal(32)))
    sign = e.v32("and", raw, const("i32", -0x80000000))
    return e.cast(e.select(small, "i32", sign, raw), "i32", "float")


def round_directed(e: Emitter, rounding: str, value: str, error: str, element: str = "float") -> str:
    """value + error (f64, |error| at most half a unit of value) rounded to `element` toward zero, down or up."""
    nearest, rest = value, error
    if element == "float":
        nearest = e.convert("fptrunc", "double", value, "float")
        back = e.convert("fpext", "float", nearest, "double")
        lost = e.binary("fsub", "double", value, back)
        rest = e.binary("fadd", "double", lost, error)
        same = e.op(f"fcmp oeq {vec('double')} {value}, {back}")  # infinities too, where the difference is NaN
        rest = e.select(same, "double", error, rest)
    raw = integer_of(element)
    bits = e.cast(nearest, element, raw)
    negative = e.op(f"icmp slt {vec(raw)} {bits}, zeroinitializer")
    below = e.op(f"fcmp olt {vec('double')} {rest}, zeroinitializer")
    above = e.op(f"fcmp ogt {vec('double')} {rest}, zeroinitializer")
    if rounding == "rz":
        positive = e.binary("xor", "i1", negative, const("i1", 1))
        wrong = e.binary("or", "i1", e.binary("and", "i1", below, positive), e.binary("and", "i1", above, negative))
        return e.cast(e.select(wrong, raw, e.binary("sub", raw, bits, const(raw, 1)), bits), raw, element)
    wrong = below if rounding == "rm" else above
    return e.select(wrong, element, _neighbour(e, raw, element, bits, negative, rounding == "rm"), nearest)


def _neighbour(e: Emitter, raw: str, element: str, bits: str, negative: str, down: bool) -> str:
    """The next number downwards or upwards."""
    top = 1 << (BITS[raw] - 1)
    zero = e.op(f"icmp eq {vec(raw)} {e.binary('and', raw, bits, const(raw, top - 1))}, zeroinitializer")
    away, toward = e.binary("add", raw, bits, const(raw, 1)), e.binary("sub", raw, bits, const(raw, 1))
    moved = e.select(negative, raw, away, toward) if down else e.select(negative, raw, toward, away)
    tiny = const(raw, top + 1 if down else 1)  # smallest subnormal of that sign
    return e.cast(e.select(zero, raw, tiny, moved), raw, element)


def zero_down(e: Emitter, element: str, result: str, a: str, b: str) -> str:
    """Rounding down, a sum a + b that is exactly 0 is -0 unless both are +0 (IEEE 754, 6.3)."""
    raw = integer_of(element)
    signs = e.binary("or", raw, e.cast(a, element, raw), e.cast(b, element, raw))
    sign = e.binary("and", raw, signs, const(raw, 1 << (BITS[raw] - 1)))
    zero = e.op(f"fcmp oeq {vec(element)} {result}, zeroinitializer")
    return e.select(zero, element, e.cast(sign, raw, element), result)


def widened(e: Emitter, *values: str) -> list[str]:
    return [e.convert("fpext", "float", v, "double") for v in values]


def sum_and_error(e: Emitter, a: str, b: str) -> tuple[str, str]:
    """(a + b rounded, its exact error): Knuth's two-sum."""
    total = e.binary("fadd", "double", a, b)
    part = e.binary("fsub", "double", total, a)
    lost = e.binary("fsub", "double", a, e.binary("fsub", "double", total, part))
    error = e.binary("fadd", "double", lost, e.binary("fsub", "double", b, part))
    # a sum of numbers that overflows: infinity is too far out
    finite = [e.op(f"fcmp one {vec('double')} {e.intrinsic('fabs', 'double', v)}, {_INFINITY}") for v in (a, b)]
    over = e.op(f"fcmp oeq {vec('double')} {e.intrinsic('fabs', 'double', total)}, {_INFINITY}")
    over = e.binary("and", "i1", over, e.binary("and", "i1", *finite))
    return total, e.select(over, "double", e.op(f"fneg {vec('double')} {total}"), error)


def product_error(e: Emitter, a: str, b: str, product: str) -> str:
    """A number with the sign of a b - product (f64), also where that error is below the smallest number.

    Tiny products are compared 2^600 times larger: the smaller factor and the product scale exactly.
    """
    minus = e.op(f"fneg {vec('double')} {product}")
    error = e.intrinsic("fma", "double", a, b, minus)
    swap = e.op(f"fcmp olt {vec('double')} {e.intrinsic('fabs', 'double', b)}, {e.intrinsic('fabs', 'double', a)}")
    small, large = e.select(swap, "double", b, a), e.select(swap, "double", a, b)
    scaled = e.intrinsic("fma", "double", scale_up(e, small), large, scale_up(e, minus))
    none = e.op(f"fcmp oeq {vec('double')} {product}, zeroinitializer")
    scaled = e.select(none, "double", e.binary("fmul", "double", scale_up(e, a), scale_up(e, b)), scaled)
    return e.select(is_tiny(e, product), "double", scaled, error)


def scale_up(e: Emitter, value: str) -> str:
    return e.binary("fmul", "double", value, const("double", SCALE))


def is_tiny(e: Emitter, value: str) -> str:
    """So small that 2^-53 of it may not exist."""
    return e.op(f"fcmp olt {vec('double')} {e.intrinsic('fabs', 'double', value)}, {const('double', TINY)}")


def _check_rounding(p: Opcode) -> None:
    if p.rounding not in ("rn", "rz", "rm", "rp"):
        raise Unsupported(f"rounding .{p.rounding}")


def float_add(e: Emitter, i: Instruction, p: Opcode) -> None:
    element = check_kind(p)
    _check_rounding(p)
    a, b = read(e, p, i.operands[1]), read(e, p, i.operands[2])
    if p.rounding == "rn":
        result = e.binary(f"f{i.base}", element, a, b)
    else:
        if i.base == "sub":
            b = e.op(f"fneg {vec(element)} {b}")
        wide = [a, b] if element == "double" else widened(e, a, b)
        result = round_directed(e, p.rounding, *sum_and_error(e, *wide), element)
        if p.rounding == "rm":
            result = zero_down(e, element, result, a, b)
    write(e, p, i.operands[0], result)


def float_multiply_add(e: Emitter, i: Instruction, p: Opcode) -> None:
    """mul, and mad and fma, which round once."""
    element = check_kind(p)
    _check_rounding(p)
    a, b = read(e, p, i.operands[1]), read(e, p, i.operands[2])
    c = read(e, p, i.operands[3]) if i.base != "mul" else ""
    if p.rounding == "rn":
        result = e.intrinsic("fma", element, a, b, c) if c else e.binary("fmul", element, a, b)
    elif element == "double":
        if c:
            raise Unsupported(f"fma of .f64 with rounding .{p.rounding}")
        product = e.binary("fmul", element, a, b)
        result = round_directed(e, p.rounding, product, product_error(e, a, b, product), element)
    else:
        result = _directed_multiply_add(e, p, a, b, c)
    write(e, p, i.operands[0], result)


def _directed_multiply_add(e: Emitter, p: Opcode, a: str, b: str, c: str) -> str:
    """f32: the product has 48 bits, exact in f64."""
    product = e.binary("fmul", "double", *widened(e, a, b))
    if not c:
        return round_directed(e, p.rounding, product, "zeroinitializer")
    (wide,) = widened(e, c)
    result = round_directed(e, p.rounding, *sum_and_error(e, product, wide))
    if p.rounding == "rm":
        sign = e.convert("fptrunc", "double", e.intrinsic("copysign", "double", const("double", 1.0), product), "float")
        exact = e.op(f"fcmp oeq {vec('double')} {e.binary('fadd', 'double', product, wide)}, zeroinitializer")
        result = e.select(exact, "float", zero_down(e, "float", result, sign, c), result)
    return result


def float_abs(e: Emitter, i: Instruction, p: Opcode) -> None:
    element = check_kind(p)
    write(e, p, i.operands[0], e.intrinsic("fabs", element, read(e, p, i.operands[1])))


def float_neg(e: Emitter, i: Instruction, p: Opcode) -> None:
    element = check_kind(p)
    write(e, p, i.operands[0], e.op(f"fneg {vec(element)} {read(e, p, i.operands[1])}"))


def float_min_max(e: Emitter, i: Instruction, p: Opcode) -> None:
    """A NaN loses against a number; -0 is below +0. With .NaN any NaN wins. Both NaN: the canonical NaN."""
    element = check_kind(p)
    if p.has("xorsign"):
        raise Unsupported(".xorsign.abs")
    values = [read(e, p, o) for o in i.operands[1:]]
    result = values[0]
    for other in values[1:]:
        result = _min_max(e, i.base, element, result, other, p.has("NaN"))
    write(e, p, i.operands[0], result)


def _min_max(e: Emitter, base: str, element: str, a: str, b: str, keep_nan: bool) -> str:
    kind, raw = vec(element), f"i{BITS[element]}"
    first = e.op(f"fcmp {'olt' if base == 'min' else 'ogt'} {kind} {a}, {b}")
    chosen = e.select(first, element, a, b)
    bits = [e.cast(v, element, raw) for v in (a, b)]
    zeros = e.cast(e.binary("or" if base == "min" else "and", raw, *bits), raw, element)
    chosen = e.select(e.op(f"fcmp oeq {kind} {a}, {b}"), element, zeros, chosen)
    nan = e.cast(const(raw, canonical_nan(BITS[element])), raw, element)
    a_nan, b_nan = (e.op(f"fcmp uno {kind} {v}, {v}") for v in (a, b))
    if keep_nan:
        return e.select(e.binary("or", "i1", a_nan, b_nan), element, nan, chosen)
    chosen = e.select(b_nan, element, a, chosen)
    chosen = e.select(a_nan, element, b, chosen)
    return e.select(e.binary("and", "i1", a_nan, b_nan), element, nan, chosen)


@emits("copysign")
def emit_copysign(e: Emitter, i: Instruction) -> None:
    """The sign of a with the magnitude of b."""
    p = parts(i)
    element = check_kind(p)
    a, b = read(e, p, i.operands[1]), read(e, p, i.operands[2])
    write(e, p, i.operands[0], e.intrinsic("copysign", element, b, a))


@emits("testp")
def emit_test(e: Emitter, i: Instruction) -> None:
    p = parts(i)
    element = check_kind(p)
    bits = BITS[element]
    raw = f"i{bits}"
    value = e.binary("and", raw, e.read(i.operands[1], f"b{bits}"), const(raw, (1 << (bits - 1)) - 1))
    lowest = bits_of_lowest_normal(bits)
    infinity = {32: 0x7F800000, 64: 0x7FF0000000000000}[bits]
    tests = {"finite": ("ult", infinity), "infinite": ("eq", infinity), "number": ("ule", infinity),
             "notanumber": ("ugt", infinity)}  # fmt: skip
    for name, (predicate, limit) in tests.items():
        if p.has(name):
            e.write(i.operands[0], "pred", e.op(f"icmp {predicate} {vec(raw)} {value}, {const(raw, limit)}"))
            return
    above = e.op(f"icmp uge {vec(raw)} {value}, {const(raw, lowest)}")
    if p.has("normal"):
        below = e.op(f"icmp ult {vec(raw)} {value}, {const(raw, infinity)}")
        e.write(i.operands[0], "pred", e.binary("and", "i1", above, below))
        return
    small = e.op(f"icmp ult {vec(raw)} {value}, {const(raw, lowest)}")  # PTX counts zero as subnormal
    e.write(i.operands[0], "pred", small)
