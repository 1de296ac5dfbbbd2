"""What floating-point instructions compute, of f16, bf16, f32, f64 and of packed ones. `.ftz` replaces subnormal inputs
and results by zeros of the same sign.

An operation such as "fadd.f32.rz" takes and gives the bits of numbers of a type. It rounds the exact result once, in a
mode; a NaN is the type's canonical one, whatever the operands' NaNs were. `signature` lists the operations.
Source: PTX ISA, "Floating-Point Instructions", "Half Precision Floating-Point Instructions", "Comparison and Selection
Instructions".
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from ppt_gpu.emulator.forms.bits import combine, true_value
from ppt_gpu.emulator.forms.computes import Form, Unsupported, computes
from ppt_gpu.emulator.forms.float_formats import MANTISSA, canonical_nan, infinity, one
from ppt_gpu.emulator.forms.opcode import WIDTH
from ppt_gpu.emulator.forms.value import Value, const, largest, least, node, on_halves, pick

#: packed type -> type of its parts
PARTS = {"f16x2": "f16", "bf16x2": "bf16", "f32x2": "f32"}
_HIGH = -(1 << 32)  # the upper half of 64 bits
_PLAIN = frozenset(("add", "sub", "mul", "fma", "mad", "div", "sqrt"))
_FLAGS = ("ftz", "sat", "relu", "approx")
#: comparison -> LLVM's name: plain ones are false with a NaN, those with u are true
_COMPARISONS = {"eq": "oeq", "ne": "one", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge",
                "equ": "ueq", "neu": "une", "ltu": "ult", "leu": "ule", "gtu": "ugt", "geu": "uge",
                "num": "ord", "nan": "uno"}  # fmt: skip


def signature(op: str) -> tuple[str, str]:
    """(type of the operands, type of the result) of an operation on floating-point numbers.

    fcmp.olt.f32 compares, by LLVM's names: o... is false with a NaN, u... true. fcvt.f64.f16.rz rounds to another
    format (`float_formats`), with .satfinite to its largest number at most. fround.f32.rni rounds to an integer.
    fptoi.f32.s16 drops the fraction and saturates, NaN gives 0. itofp.u64.f32.rp rounds an integer. All others have
    one type.
    """
    name, first, *rest = op.split(".")
    if name == "fcmp":
        return rest[0], "pred"
    return (first, rest[0]) if name in ("fcvt", "fptoi", "itofp") else (first, first)


def is_operation(op: str) -> bool:
    """Is it an operation on floating-point numbers?"""
    return op[0] == "f" or op.startswith("itofp")


def magnitude(x: Value) -> Value:
    return x & ((1 << (x.width - 1)) - 1)


def sign(x: Value) -> Value:
    return x & (1 << (x.width - 1))


def is_nan(x: Value, kind: str) -> Value:
    return magnitude(x).is_above(infinity(kind))


def flush(x: Value, kind: str) -> Value:
    """Subnormals become zeros of the same sign."""
    return pick(magnitude(x).is_less(1 << MANTISSA[kind]), sign(x), x)


def saturate(x: Value, kind: str) -> Value:
    """Clamped to [0, 1]; NaN and -0 become +0."""
    inside = largest(least(x, one(kind), signed=True), 0, signed=True)
    return pick(is_nan(x, kind), const(0, x.width), inside)


def rectify(x: Value, kind: str) -> Value:
    """Negative numbers and -0 become +0, NaN stays."""
    return pick(x.is_negative() & ~is_nan(x, kind), const(0, x.width), x)


def widen(x: Value, kind: str, to: str) -> Value:
    """The same number in a wider type."""
    return x if kind == to else node(f"fcvt.{kind}.{to}.rn", WIDTH[to], x)


def each_part(form: Form, function: Callable[..., Value], *operands: Value) -> Value:
    """A function of a type and of numbers, once or on each part of packed ones."""
    packed = form.opcode.types[0]
    if packed not in PARTS:
        return function(packed, *operands)
    return on_halves(lambda *parts: function(PARTS[packed], *parts), *operands)


def arithmetic(form: Form, name: str, *operands: Value) -> Value:
    """An operation of one rounding, and what the modifiers make of its operands and its result."""
    narrow, mode = form.opcode.types[-1], form.opcode.rounding
    if form.has("oob"):
        raise Unsupported(".oob: the NaN that marks elements out of bounds is not documented")
    if mode not in ("rn", "rz", "rm", "rp"):
        raise Unsupported(f"rounding .{mode}")

    def of(kind: str, *operands: Value) -> Value:
        kinds = [kind if x.width == WIDTH[kind] else narrow for x in operands]
        if form.has("ftz"):
            operands = tuple(flush(x, k) for x, k in zip(operands, kinds, strict=True))
        operands = tuple(widen(x, k, kind) if k != kind else x for x, k in zip(operands, kinds, strict=True))
        return finish(form, kind, operation(name, kind, mode, *operands))

    return each_part(form, of, *operands)


def operation(name: str, kind: str, mode: str, *operands: Value) -> Value:
    return node(f"{name}.{kind}.{mode}", WIDTH[kind], *operands)


def finish(form: Form, kind: str, x: Value) -> Value:
    """What the modifiers make of a rounded result."""
    if form.has("sat"):
        x = saturate(x, kind)
    if form.has("relu"):
        x = rectify(x, kind)
    return flush(x, kind) if form.has("ftz") else x


def is_long(form: Form) -> bool:
    """All but the host's own operations."""
    plain = form.base in _PLAIN and form.opcode.rounding == "rn" and not form.has(*_FLAGS)
    return not plain or set(form.opcode.types) not in ({"f32"}, {"f64"})


@computes("add", "sub", "mul", operands="T S", result="S", floats=True, apart=is_long)
def add(form: Form, a: Value, b: Value) -> Value:
    return arithmetic(form, f"f{form.base}", a, b)


@computes("fma", "mad", operands="T T S", result="S", floats=True, apart=is_long)
def multiply_add(form: Form, a: Value, b: Value, c: Value) -> Value:
    """Rounded once: mad of floats is fused, as on every GPU since Fermi."""
    return arithmetic(form, "fma", a, b, c)


@computes("div", operands="T T", floats=True, apart=is_long)
def divide(form: Form, a: Value, b: Value) -> Value:
    """.approx takes the reciprocal of a divisor beyond 2^126 as 0."""
    if not form.has("approx"):
        return arithmetic(form, "fdiv", a, b)
    if form.has("ftz"):
        a, b = flush(a, "f32"), flush(b, "f32")
    far = magnitude(b).is_above(0x7E800000) & magnitude(b).is_less(infinity("f32"))
    found = pick(far, operation("fmul", "f32", "rn", a, sign(b)), operation("fdiv", "f32", "rn", a, b))
    return finish(form, "f32", found)


@computes("sqrt", operands="T", floats=True, apart=is_long)
def root(form: Form, a: Value) -> Value:
    return arithmetic(form, "fsqrt", a)


@computes("rcp", "rsqrt", "sin", "cos", "ex2", "lg2", "tanh", operands="T", floats=True, apart=True)
def function(form: Form, a: Value) -> Value:
    """rcp is rounded as asked; the others are worked out in f64 and rounded once. The approximations of f64 read and
    give the upper 32 bits of a number."""
    kind = form.opcode.kind
    upper = kind == "f64" and form.has("approx") and form.has("ftz")
    operands = [flush(a, kind) & _HIGH if upper else a]
    if form.base == "rcp":
        operands.insert(0, const(one(kind), a.width))
    found = operation if upper else lambda name, kind, mode, *x: arithmetic(form, name, *x)
    result = found("fdiv" if form.base == "rcp" else f"f{form.base}", kind, "rn", *operands)
    return flush(result & _HIGH, kind) if upper else result


def is_packed_or_flushed(form: Form) -> bool:
    return form.opcode.types[0] in PARTS or form.has("ftz")


@computes("neg", "abs", operands="T", floats=True, apart=is_packed_or_flushed)
def change_sign(form: Form, a: Value) -> Value:
    """The sign alone; a NaN stays what it is."""

    def of(kind: str, x: Value) -> Value:
        x = flush(x, kind) if form.has("ftz") else x
        return x ^ (1 << (x.width - 1)) if form.base == "neg" else magnitude(x)

    return each_part(form, of, a)


@computes("copysign", operands="T T", floats=True)
def copy_sign(form: Form, a: Value, b: Value) -> Value:
    """The sign of a with the magnitude of b."""
    return sign(a) | magnitude(b)


@computes("min", "max", operands="T T T", floats=True, apart=True)
def extremum(form: Form, a: Value, b: Value, c: Value) -> Value:
    numbers = (a, b, c) if len(form.operands) > 3 else (a, b)
    return each_part(form, lambda kind, *x: extremum_of(form.base, kind, form.opcode.modifiers, *x), *numbers)


def extremum_of(base: str, kind: str, flags: Collection[str], *numbers: Value) -> Value:
    """min or max of two or three numbers. A NaN loses against a number, with .NaN it wins; -0 is below +0. All NaN: the
    canonical NaN. .abs takes magnitudes, .xorsign gives the result the product of the operands' signs."""
    if "ftz" in flags:
        numbers = tuple(flush(x, kind) for x in numbers)
    signs = sign(numbers[0] ^ numbers[1])
    if "abs" in flags:
        numbers = tuple(magnitude(x) for x in numbers)
    found = numbers[0]
    for other in numbers[1:]:
        first = in_order(found).is_less(in_order(other), signed=True)
        chosen = pick(first, found, other) if base == "min" else pick(first, other, found)
        bad = [is_nan(x, kind) for x in (found, other)]
        chosen = pick(bad[0], other, pick(bad[1], found, chosen))
        none = bad[0] | bad[1] if "NaN" in flags else bad[0] & bad[1]
        found = pick(none, const(canonical_nan(kind), other.width), chosen)
    return pick(is_nan(found, kind), found, found | signs) if "xorsign" in flags else found


def in_order(x: Value) -> Value:
    """Integers with a sign that are in the order of the numbers, -0 below +0."""
    return x ^ magnitude(x.ashr(x.width - 1))


@computes("testp", operands="T", result="pred", floats=True)
def test(form: Form, a: Value) -> Value:
    """Zeros count as normal."""
    kind, size = form.opcode.kind, magnitude(a)
    finite, small = size.is_less(infinity(kind)), size.is_less(1 << MANTISSA[kind]) & ~size.is_zero()
    return {
        "finite": finite,
        "infinite": size.is_equal(infinity(kind)),
        "number": ~is_nan(a, kind),
        "notanumber": is_nan(a, kind),
        "subnormal": small,
        "normal": finite & ~small,
    }[next(word for word in form.opcode.order if word not in WIDTH)]


def compare(form: Form, kind: str, name: str, a: Value, b: Value) -> Value:
    if form.has("ftz") and kind in ("f32", "f16"):
        a, b = flush(a, kind), flush(b, kind)
    wide = "f64" if kind == "f64" else "f32"
    return node(f"fcmp.{name}.{wide}", 1, widen(a, kind, wide), widen(b, kind, wide))


def compared(form: Form, a: Value, b: Value) -> list[Value]:
    """The comparison that the opcode names; of packed numbers that of the lower and that of the upper parts."""
    name = _COMPARISONS[next(word for word in form.opcode.order if word in _COMPARISONS)]
    kind = form.opcode.kind
    if kind not in PARTS:
        return [compare(form, kind, name, a, b)]
    half = a.width // 2
    return [compare(form, PARTS[kind], name, a.bits(at, half), b.bits(at, half)) for at in (0, half)]


@computes("setp", operands="T T pred", result="pred pred", floats=True)
def set_predicate(form: Form, a: Value, b: Value, c: Value) -> tuple[Value, Value]:
    """The comparison and its opposite; of packed types the lower and the upper comparison."""
    found = compared(form, a, b)
    return combine(form, found[0], c), combine(form, found[1] if len(found) > 1 else ~found[0], c)


@computes("set", operands="T T pred", result="S", floats=True)
def set_number(form: Form, a: Value, b: Value, c: Value) -> Value:
    """All ones, or 1.0 of a floating-point result, else 0; of packed types in each half."""
    target = form.opcode.types[0]
    found = [combine(form, flag, c) for flag in compared(form, a, b)]
    width = WIDTH[target] // len(found)
    true = const(true_value(PARTS.get(target, target)), width)
    results = [pick(flag, true, 0).resize(WIDTH[target]) for flag in found]
    return results[0] if len(results) == 1 else results[1] << width | results[0]


@computes("slct", operands="S S T", result="S", floats=True)
def select_by_sign(form: Form, a: Value, b: Value, c: Value) -> Value:
    """a where c >= 0, also -0.0, but not NaN."""
    return pick(compare(form, "f32", "oge", c, const(0, 32)), a, b)
