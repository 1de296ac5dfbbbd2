"""What floating-point instructions compute, held against exact fractions that know nothing of the descriptions.

As `test_described_values` does for integers. Approximations are left to `test_approximate_functions`.
"""

import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from reference.interpreter.described import evaluate
from test_described_values import instructions, number, of_integers
from test_exact_arithmetic import FORMATS, expected, rounded, sample, value_of

from ppt_gpu.emulator.forms import float_formats
from ppt_gpu.emulator.forms.computes import DESCRIBED, Form
from ppt_gpu.emulator.forms.convert import INTEGERS, conversion, limits, not_a_number, storage
from ppt_gpu.emulator.forms.described import described, pattern_of
from ppt_gpu.emulator.forms.opcode import WIDTH, opcode_of

PARTS = {"f16x2": "f16", "bf16x2": "bf16", "f32x2": "f32"}
COMPARE = {"eq": lambda x, y: x == y, "ne": lambda x, y: x != y, "lt": lambda x, y: x < y, "le": lambda x, y: x <= y,
           "gt": lambda x, y: x > y, "ge": lambda x, y: x >= y}  # fmt: skip
#: approximations in all their forms
APPROXIMATE = {"rsqrt", "sin", "cos", "ex2", "lg2", "tanh"}


def sign(bits, kind):
    return bits & 1 << (WIDTH[kind] - 1)


def is_nan(bits, kind):
    x = value_of(bits, kind)
    return isinstance(x, float) and math.isnan(x)


def flush(bits, kind):
    e, m, _ = FORMATS[kind]
    return sign(bits, kind) if not bits >> m & ((1 << e) - 1) else bits


def finish(f, bits, kind):
    x, one = value_of(bits, kind), (1 << (FORMATS[kind][0] - 1)) - 1 << FORMATS[kind][1]
    if f.has("sat"):
        bits = 0 if is_nan(bits, kind) or x <= 0 else min(bits, one)
    if f.has("relu") and not is_nan(bits, kind) and x <= 0:
        bits = 0
    return flush(bits, kind) if f.has("ftz") else bits


def arithmetic(f, kind, *operands):
    """One rounding."""
    narrow, operation = f.opcode.types[-1], {"mad": "fma", "rcp": "div"}.get(f.base, f.base)
    kinds = [kind] * len(operands)
    if narrow not in (kind, *PARTS):
        kinds[: 2 if operation == "fma" else 1] = [narrow] * (2 if operation == "fma" else 1)
    if f.has("ftz"):
        operands = [flush(x, k) for x, k in zip(operands, kinds, strict=True)]
    if f.base == "rcp":
        operands, kinds = [0x3F800000 if kind == "f32" else 0x3FF << 52, *operands], [kind] * 2
    if f.base == "div" and f.has("approx") and 2**126 < abs(value_of(operands[1], kind)) < math.inf:
        operation, operands = "mul", [operands[0], sign(operands[1], kind)]
    return finish(f, expected(operation, operands, kinds, kind, f.opcode.rounding), kind)


def extremum(f, kind, *operands):
    nan = FORMATS[kind][2]
    if f.has("ftz"):
        operands = [flush(x, kind) for x in operands]
    signs = sign(operands[0] ^ operands[1], kind)
    if f.has("abs"):
        operands = [x & ~sign(x, kind) for x in operands]
    numbers = [x for x in operands if not is_nan(x, kind)]
    if not numbers or (f.has("NaN") and len(numbers) < len(operands)):
        return nan

    def order(bits):
        return value_of(bits, kind), -sign(bits, kind)

    found = (min if f.base == "min" else max)(numbers, key=order)
    return found | signs if f.has("xorsign") else found


def compare(f, kind, a, b):
    if f.has("ftz") and kind in ("f32", "f16"):
        a, b = flush(a, kind), flush(b, kind)
    x, y = value_of(a, kind), value_of(b, kind)
    lost = is_nan(a, kind) or is_nan(b, kind)
    name = next(word for word in f.opcode.order if word.removesuffix("u") in (*COMPARE, "n", "num", "nan"))
    if name in ("num", "nan"):
        return lost == (name == "nan")
    return COMPARE[name.removesuffix("u")](x, y) and not lost if name in COMPARE else lost or COMPARE[name[:-1]](x, y)


def combine(f, flag, c):
    word = next((word for word in f.opcode.order if word in ("and", "or", "xor")), "")
    return {"": flag, "and": flag and c, "or": flag or c, "xor": flag != bool(c)}[word]


def compared(f, a, b):
    """The comparison, of packed types the lower and the upper one."""
    kind = f.opcode.kind
    if kind not in PARTS:
        return [compare(f, kind, a, b)]
    return [compare(f, PARTS[kind], a >> at & 0xFFFF, b >> at & 0xFFFF) for at in (0, 16)]


def set_predicate(f, a, b, c):
    found = compared(f, a, b)
    return combine(f, found[0], c), combine(f, found[1] if len(found) > 1 else not found[0], c)


def set_value(f, a, b, c):
    target, found = f.opcode.types[0], [combine(f, flag, c) for flag in compared(f, a, b)]
    ones = {"f16": 0x3C00, "bf16": 0x3F80, "f32": 0x3F800000}.get(PARTS.get(target, target))
    width = WIDTH[target] // len(found)
    ones = (1 << width) - 1 if ones is None else ones
    return sum(ones << width * place for place, flag in enumerate(found) if flag)


def property_of(f, a):
    kind = f.opcode.kind
    x, small = value_of(a, kind), flush(a, kind) != a
    lost, infinite = is_nan(a, kind), not is_nan(a, kind) and abs(x) == math.inf
    return {"finite": not lost and not infinite, "infinite": infinite, "number": not lost, "notanumber": lost,
            "subnormal": small, "normal": not (lost or infinite or small)}[f.opcode.order[0]]  # fmt: skip


def change_sign(f, kind, a):
    a = flush(a, kind) if f.has("ftz") else a
    return a ^ 1 << (WIDTH[kind] - 1) if f.base == "neg" else a & ~sign(a, kind)


def select_by_sign(f, a, b, c):
    c = flush(c, "f32") if f.has("ftz") else c
    return a if not is_nan(c, "f32") and value_of(c, "f32") >= 0 else b


ROUNDS = {"rni": round, "rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil}


def convert(f, a, b=None):
    c = conversion(f.opcode.order)
    if c.count == 1:
        return converted(c, a) & ((1 << held(c.target)) - 1)
    size, half = storage(c.source, 1), storage(c.target, 1)
    high, low = (a, b) if c.source_count == 1 else (a >> size, a & ((1 << size) - 1))
    return converted(c, high) << half | converted(c, low)


def held(kind):
    return float_formats.FORMATS[kind].width if kind in float_formats.FORMATS else WIDTH[kind]


def converted(c, bits):
    """One number, in the target's bits."""
    if c.source in INTEGERS:
        x, negative_zero = Fraction(number(bits, INTEGERS[c.source], c.source[0] == "s")), False
    else:
        bits = flush(bits, "f32") if "ftz" in c.flags and c.source == "f32" else bits
        if c.source == c.target and not c.integral and not {"sat", "relu"} & set(c.flags):
            return bits
        x = value_of(bits, c.source) if c.source in FORMATS else small_value(bits, c.source)
        negative_zero = isinstance(x, float) and x == 0
        lost = isinstance(x, float) and math.isnan(x)
        if (c.integral or c.target in INTEGERS) and not lost and abs(x) < math.inf:
            whole = Fraction(ROUNDS[c.integral or "rzi"](Fraction(x)))
            negative_zero, x = negative_zero or (whole == 0 and x < 0), whole
        if c.target in INTEGERS:
            low, high = limits(c.target)
            return not_a_number(c.source, c.target) if lost else int(max(low, min(high, x)))
    if {"sat", "relu"} & set(c.flags) and (not x > 0 or negative_zero) and not (x != x and "relu" in c.flags):
        x, negative_zero = Fraction(0), False
    if "sat" in c.flags and x > 1:
        x = Fraction(1)
    found = in_format(x, c, negative_zero)
    return flush(found, "f32") if "ftz" in c.flags and c.target == "f32" else found


def small_value(bits, kind):
    """Of a format that f64 holds exactly."""
    x = float(float_formats.decode(np.array([bits], np.uint64), kind)[0])
    return x if math.isnan(x) or math.isinf(x) or (x == 0 and math.copysign(1, x) < 0) else Fraction(x)


def in_format(x, c, negative_zero):
    special = isinstance(x, float) and x != 0
    if c.target in ("f16", "bf16", "f32", "f64") and not special and "satfinite" not in c.flags:
        return rounded(Fraction(x), c.target, c.rounding, negative_zero)
    if c.target == "f64":
        return FORMATS["f64"][2] if math.isnan(x) else 0x7FF0000000000000 | (1 << 63 if x < 0 else 0)
    value = np.array([-0.0 if negative_zero else float(x)])
    return int(float_formats.encode(value, c.target, c.rounding, "satfinite" in c.flags)[0])


#: by type and operands; once for each part
ON_PARTS = {
    **dict.fromkeys(("add", "sub", "mul", "fma", "mad", "div", "sqrt", "rcp"), arithmetic),
    **dict.fromkeys(("min", "max"), extremum),
    **dict.fromkeys(("neg", "abs"), change_sign),
}
JUDGES = {
    "setp": set_predicate,
    "set": set_value,
    "slct": select_by_sign,
    "selp": lambda f, a, b, c: a if c else b,
    "testp": property_of,
    "cvt": convert,
    "copysign": lambda f, a, b: sign(a, f.opcode.kind) | b & ~sign(b, f.opcode.kind),
}


def judged(f, operands):
    if f.base in JUDGES:
        return JUDGES[f.base](f, *operands)
    kind = f.opcode.types[0]
    if f.base in ("min", "max") and len(f.operands) == 3:
        operands = operands[:2]
    if kind not in PARTS:
        return ON_PARTS[f.base](f, kind, *operands)
    half = WIDTH[kind] // 2
    parts = [[x >> at & ((1 << half) - 1) for x in operands] for at in (0, half)]
    low, high = (ON_PARTS[f.base](f, PARTS[kind], *part) for part in parts)
    return high << half | low


@cache
def forms():
    """One instruction of each form, approximations left out."""
    found = {}
    for i in instructions():
        approximate = i.base in APPROXIMATE or i.opcode.startswith("rcp.approx.ftz.f64")
        if not approximate and (opcode_of(i.opcode).is_float or (i.base == "cvt" and not of_integers(i))):
            found.setdefault((i.opcode, len(i.operands)), i)
    return list(found.values())


def column(kind, seed):
    """Bits of one operand."""
    if kind in PARTS:
        half = WIDTH[kind] // 2
        return [
            high << half | low
            for high, low in zip(column(PARTS[kind], seed), column(PARTS[kind], seed + 9), strict=True)
        ]
    if kind in FORMATS:
        return sample(kind, 40, seed)
    return [bits & ((1 << WIDTH[kind]) - 1) for bits in sample("f64", 40, seed)]


def test_every_description_is_judged():
    described_bases = {base for base, floats in DESCRIBED if floats}
    assert {i.base for i in forms()} | APPROXIMATE == described_bases == {*ON_PARTS, *JUDGES} | APPROXIMATE


@pytest.mark.parametrize("base", sorted({*ON_PARTS, *JUDGES}))
def test_values(base):
    for i in (one for one in forms() if one.base == base):
        form, found = Form(base, opcode_of(i.opcode), i.operands), described(i)
        pattern = pattern_of(i.opcode, i.operands)
        columns = [column(kind, seed) for seed, (_, kind) in enumerate(pattern.inputs)]
        known = {}
        results = [evaluate(value, columns, known) for _, _, value in found.results]
        for place, inputs in enumerate(zip(*columns, strict=True)):
            operands = [v.number if v.op == "const" else inputs[v.number] for v in pattern.operands]
            right = judged(form, operands)
            for result, one in zip(results, right if isinstance(right, tuple) else (right,), strict=False):
                assert result[place] == one, (i.opcode, [hex(x) for x in operands])
