"""What integer instructions compute, held against formulas in Python's integers that know nothing of the descriptions.

Each form of `random_arithmetic` that is described is worked out for random and for extreme operands. Both engines
compute what is described; that they do is seen to by `test_every_form`.
"""

import random
import sys
from functools import cache
from pathlib import Path

import pytest
from reference.interpreter.described import evaluate

from ppt_gpu.emulator.forms.computes import DESCRIBED, Form, Unsupported
from ppt_gpu.emulator.forms.convert import FLOATS, INTEGERS, conversion, limits
from ppt_gpu.emulator.forms.described import described, pattern_of
from ppt_gpu.emulator.forms.opcode import opcode_of
from ppt_gpu.emulator.forms.video import SCALAR, SIMD, video
from ppt_gpu.ptx import parse_module
from ppt_gpu.ptx.module import Reg

sys.path.insert(0, str(Path(__file__).parents[2] / "property"))

from random_ptx import TABLE, instance, kernel_text

SAMPLES = 60


def number(bits, width, signed):
    bits &= (1 << width) - 1
    return bits - (1 << width) if signed and bits >> (width - 1) else bits


def clamp(value, kind):
    low, high = limits(kind)
    return max(low, min(high, value))


def halves(f, function, *words):
    """A function of numbers on both halves of words."""
    signed = f.has("s16x2")
    parts = [[number(word >> at, 16, signed) for word in words] for at in (0, 16)]
    low, high = (function(*part) & 0xFFFF for part in parts)
    return high << 16 | low


def add(f, a, b, carry=0):
    if f.has("u16x2", "s16x2"):
        return halves(f, lambda x, y: x + y if f.base == "add" else x - y, a, b), 0
    if f.has("sat"):
        x, y = (number(v, f.width, f.signed) for v in (a, b))
        return clamp(x + y if f.base == "add" else x - y, f.opcode.kind), 0
    if f.base == "sub":
        return a - b, a >= b
    total = a + ((1 << f.width) - 1 - b if f.base == "subc" else b) + carry
    return total, total >> f.width & 1


def product(f, a, b):
    """(product, its width)."""
    if "24" in f.base:
        return number(a, 24, f.signed) * number(b, 24, f.signed) >> (16 if f.has("hi") else 0), 32
    whole = number(a, f.width, f.signed) * number(b, f.width, f.signed)
    return (whole, 2 * f.width) if f.has("wide") else (whole >> f.width if f.has("hi") else whole, f.width)


def multiply_add(f, a, b, c, carry=0):
    value, width = product(f, a, b)
    if f.has("sat"):
        return clamp(number(value, 32, True) + number(c, 32, True) + carry, "s32"), 0
    total = (value & (1 << width) - 1) + c + carry
    return total, total >> width & 1


def divide(f, a, b):
    x, y = (number(v, f.width, f.signed) for v in (a, b))
    if y == 0:
        return -1 if f.base == "div" else x
    quotient = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
    return quotient if f.base == "div" else x - quotient * y


def extremum(f, a, b):
    def choose(x, y):
        found = min(x, y) if f.base == "min" else max(x, y)
        return max(found, 0) if f.has("relu") else found

    if f.has("u16x2", "s16x2"):
        return halves(f, choose, a, b)
    return choose(number(a, f.width, f.signed), number(b, f.width, f.signed))


def dot(f, a, b, c):
    first, second = (kind == "s32" for kind in f.opcode.types)
    if f.base == "dp4a":
        terms = [(a >> 8 * k, 8, b >> 8 * k) for k in range(4)]
    else:
        terms = [(a >> 16 * k, 16, b >> (16 if f.has("hi") else 0) + 8 * k) for k in range(2)]
    return c + sum(number(x, width, first) * number(y, 8, second) for x, width, y in terms)


def look_up(f, a, b, c, table, q):
    found = 0
    for bit in range(32):
        index = (a >> bit & 1) << 2 | (b >> bit & 1) << 1 | c >> bit & 1
        found |= (table >> index & 1) << bit
    return found, (found != 0) & q if f.has("and") else (found != 0) | q


def shift(f, a, by):
    if f.base == "shl":
        return a << by if by < f.width else 0
    return number(a, f.width, f.signed) >> min(by, f.width)


def funnel(f, a, b, by):
    by, both = by & 31 if f.has("wrap") else min(by, 32), b << 32 | a
    return both << by >> 32 if f.has("l") else both >> by


def extract(f, a, start, count):
    start, count = start & 255, count & 255
    bits = [a >> min(start + k, f.width - 1) & 1 for k in range(min(count, f.width))]
    if not f.signed:
        bits = [bit if start + k < f.width else 0 for k, bit in enumerate(bits)]
    found = sum(bit << k for k, bit in enumerate(bits))
    return number(found, len(bits), f.signed) if bits else 0


def insert(f, a, b, start, count):
    start, count = start & 255, count & 255
    field = ((1 << count) - 1) << start
    return b & ~field | a << start & field


def find_highest(f, a):
    value = number(a, f.width, f.signed)
    place = (~value if value < 0 else value).bit_length() - 1
    return -1 if place < 0 else f.width - 1 - place if f.has("shiftamt") else place


def mask(f, start, count):
    start, count = (start & 31, count & 31) if f.has("wrap") else (min(start, 32), min(count, 32))
    return ((1 << count) - 1) << start


def extend(f, a, count):
    count = count & 31 if f.has("wrap") else min(count, 32)
    return number(a, count, f.signed) if count else 0


def permute(f, a, b, selector):
    source, n = [(b << 32 | a) >> 8 * k & 255 for k in range(8)], selector & 3
    modes = {"f4e": [n, n + 1, n + 2, n + 3], "b4e": [n, (n - 1) & 7, (n - 2) & 7, (n - 3) & 7], "rc8": [n] * 4,
             "ecl": [max(k, n) for k in range(4)], "ecr": [min(k, n) for k in range(4)],
             "rc16": [2 * n & 2, (2 * n & 2) + 1] * 2}  # fmt: skip
    named = next((modes[word] for word in f.opcode.order if word in modes), None)
    picks = named or [selector >> 4 * k & 15 for k in range(4)]
    signs = [0 if source[p & 7] < 128 else 255 for p in picks]
    return sum(
        (sign if p & 8 else source[p & 7]) << 8 * k for k, (p, sign) in enumerate(zip(picks, signs, strict=True))
    )


def find_nth(f, bits, base, n):
    n = number(n, 32, True)
    if n == 0:
        return base if base < 32 and bits >> base & 1 else -1
    places = range(base, 32) if n > 0 else range(min(base, 31), -1, -1)
    found = [place for place in places if bits >> place & 1]
    return found[abs(n) - 1] if len(found) >= abs(n) else -1


def compare(f, a, b, c, *, opposite=False):
    x, y = (number(v, f.width, f.signed) for v in (a, b))
    tests = {"eq": x == y, "ne": x != y, "lt": x < y, "le": x <= y, "gt": x > y, "ge": x >= y,
             "lo": a < b, "ls": a <= b, "hi": a > b, "hs": a >= b}  # fmt: skip
    found = next(tests[word] for word in f.opcode.order if word in tests) != opposite
    combine = {"and": found & c, "or": found | c, "xor": found ^ c}
    return next((combine[word] for word in f.opcode.order if word in combine), found)


def set_number(f, a, b, c):
    true = {"f32": 0x3F800000, "f16": 0x3C00, "bf16": 0x3F80}.get(f.opcode.types[0], -1)
    return true if compare(f, a, b, c) else 0


def convert(f, a, b=0, rest=0):
    c = conversion(f.opcode.order)
    size, x, y = int(c.target[1:]), *(number(v, int(c.source[1:]), c.source[0] == "s") for v in (a, b))
    if f.has("sat"):
        x, y = clamp(x, c.target), clamp(y, c.target)
    ones = (1 << size) - 1
    return rest << 2 * size | (x & ones) << size | y & ones if f.has("pack") else x


def operate(v, x, y):
    by = y & 31 if v.wrap else min(y, 32)
    if v.operation in ("shl", "shr"):
        return x << by if v.operation == "shl" else x >> by
    if v.operation == "set":
        return int({"eq": x == y, "ne": x != y, "lt": x < y, "le": x <= y, "gt": x > y, "ge": x >= y}[v.comparison])
    return {"add": x + y, "sub": x - y, "absdiff": abs(x - y), "min": min(x, y), "max": max(x, y),
            "avrg": (x + y + (x + y >= 0)) >> 1}[v.operation]  # fmt: skip


def parts(v, a, b):
    """The numbers that a video instruction takes of a and b."""
    words = (a, b) if v.lanes == 1 else (b << 32 | a,) * 2
    return [
        [number(word >> place * size, size, v.types[k + 1]) for place in v.sources[k]]
        for k, (word, size) in enumerate(zip(words, v.source_bits, strict=True))
    ]


def combine_parts(f, a, b, c):
    v = video(f)
    found = [operate(v, x, y) for x, y in zip(*parts(v, a, b), strict=True)]
    if v.saturate:
        found = [clamp(x, f"{'s' if v.types[0] else 'u'}{v.part_bits}") for x in found]
    if v.second and v.lanes > 1:
        return c + sum(found[place] for place in v.written)
    if v.second:
        other = number(c, 32, v.types[0])
        return {"add": found[0] + other, "min": min(found[0], other), "max": max(found[0], other)}[v.second]
    if v.part_bits == 32:
        return found[0]
    for place in v.written:
        at, ones = place * v.part_bits, (1 << v.part_bits) - 1
        c = c & ~(ones << at) | (found[place if v.lanes > 1 else 0] & ones) << at
    return c


def multiply_parts(f, a, b, c):
    v = video(f)
    (x,), (y,) = parts(v, a, b)
    whole, other = x * y, number(c, 32, v.signed_sum)
    if v.negative[0] != v.negative[1]:
        whole = -whole
    elif v.negative[2] and not v.plus_one:
        other = -other
    total = (whole + other + v.plus_one) >> v.scale
    return clamp(total, "s32" if v.signed_sum else "u32") if v.saturate else total


#: base opcode -> its result, or its results
JUDGES = {
    **dict.fromkeys(("add", "sub", "addc", "subc"), add),
    **dict.fromkeys(("mul", "mul24"), lambda f, a, b: product(f, a, b)[0]),
    **dict.fromkeys(("mad", "mad24", "madc"), multiply_add),
    **dict.fromkeys(("div", "rem"), divide),
    **dict.fromkeys(("min", "max"), extremum),
    "neg": lambda f, a: -a,
    "abs": lambda f, a: abs(number(a, f.width, True)),
    "sad": lambda f, a, b, c: c + abs(number(a, f.width, f.signed) - number(b, f.width, f.signed)),
    **dict.fromkeys(("dp4a", "dp2a"), dot),
    "and": lambda f, a, b: a & b,
    "or": lambda f, a, b: a | b,
    "xor": lambda f, a, b: a ^ b,
    "not": lambda f, a: ~a,
    "cnot": lambda f, a: a == 0,
    "lop3": look_up,
    **dict.fromkeys(("shl", "shr"), shift),
    "shf": funnel,
    "bfe": extract,
    "bfi": insert,
    "popc": lambda f, a: bin(a).count("1"),
    "clz": lambda f, a: f.width - a.bit_length(),
    "brev": lambda f, a: int(f"{a:0{f.width}b}"[::-1], 2),
    "bfind": find_highest,
    "bmsk": mask,
    "szext": extend,
    "prmt": permute,
    "fns": find_nth,
    "setp": lambda f, a, b, c: (compare(f, a, b, c), compare(f, a, b, c, opposite=True)),
    "set": set_number,
    "selp": lambda f, a, b, c: a if c else b,
    "slct": lambda f, a, b, c: a if c < 1 << (f.width - 1) else b,
    "cvt": convert,
    **dict.fromkeys((*SCALAR, *SIMD), combine_parts),
    "vmad": multiply_parts,
}


def of_integers(instruction):
    c = conversion(instruction.modifiers) if instruction.base == "cvt" else None
    if c is not None:
        return c.source in INTEGERS and c.target not in FLOATS
    return not opcode_of(instruction.opcode).is_float


@cache
def instructions():
    """Every described instruction of the corpus."""
    found = []
    for first in range(0, len(TABLE), 200):
        text = kernel_text([instance(row)[0] for row in TABLE[first : first + 200]])
        found += [i for i in parse_module(text, "rows.ptx").kernels["k"].instructions if described(i) is not None]
    return found


@cache
def forms():
    """One instruction of each form."""
    return list({(i.opcode, str(i.operands)): i for i in instructions() if of_integers(i)}.values())


def samples(widths):
    """Bits of operands: anything, small numbers, and the extremes."""
    draw = random.Random(1)
    for _ in range(SAMPLES):
        yield [
            draw.choice((draw.getrandbits(w), draw.randrange(70), 0, (1 << w) - 1, 1 << (w - 1), (1 << (w - 1)) - 1))
            & ((1 << w) - 1)
            for w in widths
        ]


def test_every_description_is_judged():
    bases = {base for base, floats in DESCRIBED if not floats}
    assert {instruction.base for instruction in forms()} == bases == set(JUDGES)


@pytest.mark.parametrize("base", sorted(JUDGES))
def test_values(base):
    for instruction in (one for one in forms() if one.base == base):
        form = Form(base, opcode_of(instruction.opcode), instruction.operands)
        found = described(instruction)
        pattern = pattern_of(instruction.opcode, instruction.operands)
        widths = [
            next(v.width for v in pattern.operands if v.op == "input" and v.number == k)
            for k in range(len(pattern.inputs))
        ]
        rows = list(samples(widths))
        columns, known = [list(column) for column in zip(*rows, strict=True)], {}
        results = [evaluate(value, columns, known) for _, _, value in found.results]
        for place, inputs in enumerate(rows):
            operands = [v.number if v.op == "const" else inputs[v.number] for v in pattern.operands]
            expected = JUDGES[base](form, *operands)
            expected = expected if isinstance(expected, tuple) else (expected,)
            for result, (_, _, value), right in zip(results, found.results, expected, strict=False):
                assert result[place] == right & ((1 << value.width) - 1), (instruction.opcode, operands)


def test_only_signed_sums_with_carry_saturate():
    with pytest.raises(Unsupported, match="another type than s32"):
        pattern_of("madc.hi.sat.u32", (Reg(0), Reg(1), Reg(2), Reg(3)))
