"""What logic, shift and bit field instructions compute, and comparisons and selections of integers.

Source: PTX ISA, "Logic and Shift Instructions", "Integer Arithmetic Instructions", "Comparison and Selection
Instructions". A shift by the width or more leaves nothing, or copies of the sign.
"""

from __future__ import annotations

from ppt_gpu.emulator.forms.computes import Form, Unsupported, computes
from ppt_gpu.emulator.forms.float_formats import MANTISSA, one
from ppt_gpu.emulator.forms.opcode import WIDTH
from ppt_gpu.emulator.forms.value import Value, const, largest, least, node, pick

_COMPARISONS = {"eq": "eq", "ne": "ne", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge",
                "lo": "ult", "ls": "ule", "hi": "ugt", "hs": "uge"}  # fmt: skip
_MODES = ("f4e", "b4e", "rc8", "ecl", "ecr", "rc16")


@computes("and", "or", "xor", operands="T T")
def logic(form: Form, a: Value, b: Value) -> Value:
    return node(form.base, a.width, a, b)


@computes("not", operands="T")
def invert(form: Form, a: Value) -> Value:
    return ~a


@computes("cnot", operands="T")
def is_zero(form: Form, a: Value) -> Value:
    return a.is_zero().resize(a.width)


def look_up(a: Value, b: Value, c: Value, table: int) -> Value:
    """Any logic function of three inputs: bit 4a + 2b + c of the table, for each bit. By Shannon's expansion."""

    def expand(inputs: tuple[Value, ...], table: int) -> Value:
        if not inputs:
            return const(-(table & 1), 32)
        half = 1 << (len(inputs) - 1)
        flag, rest = inputs[0], inputs[1:]
        upper, lower = expand(rest, table >> half), expand(rest, table & ((1 << half) - 1))
        same = upper is lower or (upper.op == lower.op == "const" and upper.number == lower.number)
        return lower if same else flag & upper | ~flag & lower

    return expand((a, b, c), table)


@computes("lop3", operands="b32 b32 b32 b32 pred", result="b32 pred")
def logic_of_three(form: Form, a: Value, b: Value, c: Value, table: Value, q: Value) -> tuple[Value, Value]:
    """.and, .or: also a predicate, (d != 0) combined with q."""
    if table.op != "const":
        raise Unsupported("lop3 with a table that is not a literal")
    found = look_up(a, b, c, table.number)
    some = node("ne", 1, found, 0)
    return found, some & q if form.has("and") else some | q


def shift_left(a: Value, by: Value) -> Value:
    return pick(by.is_less(a.width), a << by.resize(a.width), 0)


def shift_right(a: Value, by: Value, signed: bool = False) -> Value:
    if signed:
        return a.ashr(least(by, a.width - 1).resize(a.width))
    return pick(by.is_less(a.width), a >> by.resize(a.width), 0)


@computes("shl", "shr", operands="T u32")
def shift(form: Form, a: Value, by: Value) -> Value:
    return shift_left(a, by) if form.base == "shl" else shift_right(a, by, form.signed)


def funnel_shift(a: Value, b: Value, by: Value, left: bool) -> Value:
    """The upper half of b:a shifted to the left, or the lower half of it shifted to the right, by up to 32."""
    both = b.resize(64) << 32 | a.resize(64)
    return (both << by.resize(64)).bits(32, 32) if left else (both >> by.resize(64)).resize(32)


@computes("shf", operands="b32 b32 u32", result="b32")
def funnel(form: Form, a: Value, b: Value, by: Value) -> Value:
    return funnel_shift(a, b, by & 31 if form.has("wrap") else least(by, 32), form.has("l"))


@computes("bfe", operands="T u32 u32")
def extract_field(form: Form, a: Value, start: Value, count: Value) -> Value:
    """`count` bits from `start`, both modulo 256; beyond the top the sign, or 0, repeats."""
    width = a.width
    start, count = least(start & 255, width), least(count & 255, width)
    end = least(start + count, width)
    down = const(width, 32) - (end - start)  # bits of the field that exist are left
    up = shift_left(a, const(width, 32) - end)
    if not form.signed:
        return shift_right(up, down)
    field = pick(start.is_less(width), shift_right(up, down, signed=True), a.ashr(width - 1))
    return pick(count.is_zero(), const(0, width), field)


@computes("bfi", operands="T T u32 u32")
def insert_field(form: Form, a: Value, b: Value, start: Value, count: Value) -> Value:
    """The `count` lowest bits of a replace those of b from `start` on; both modulo 256."""
    start, count = start & 255, count & 255
    field = shift_left(~shift_left(const(-1, a.width), count), start)
    return shift_left(a, start) & field | b & ~field


@computes("popc", "clz", operands="T", result="u32")
def count_bits(form: Form, a: Value) -> Value:
    return node("ctpop" if form.base == "popc" else "ctlz", a.width, a).resize(32)


@computes("brev", operands="T")
def reverse(form: Form, a: Value) -> Value:
    return node("bitreverse", a.width, a)


@computes("bfind", operands="T", result="u32")
def find_highest(form: Form, a: Value) -> Value:
    """The place of the highest bit that is not the sign, -1 for none. .shiftamt: the shift that moves it up."""
    if form.signed:
        a = a ^ a.ashr(a.width - 1)
    zeros = node("ctlz", a.width, a).resize(32)
    return pick(a.is_zero(), const(-1, 32), zeros if form.has("shiftamt") else const(a.width - 1, 32) - zeros)


@computes("bmsk", operands="b32 u32", result="b32")
def mask(form: Form, start: Value, count: Value) -> Value:
    """`count` ones from `start` on; .clamp limits both to 32, .wrap takes them modulo 32."""
    if form.has("wrap"):
        start, count = start & 31, count & 31
    return shift_left(~shift_left(const(-1, 32), count), start)


@computes("szext", operands="T u32")
def extend(form: Form, a: Value, count: Value) -> Value:
    """The `count` lowest bits of a, extended by sign or zero; .clamp limits it to 32, .wrap takes it modulo 32."""
    count = count & 31 if form.has("wrap") else least(count, 32)
    above = const(32, 32) - count
    found = shift_right(shift_left(a, above), above, form.signed)
    return pick(count.is_zero(), const(0, 32), found)


@computes("prmt", operands="b32 b32 b32", result="b32", apart=True)
def permute(form: Form, a: Value, b: Value, selector: Value) -> Value:
    """Four bytes of b:a. In the default mode each by a nibble, whose bit 3 repeats the byte's sign instead."""
    mode = next((name for name in _MODES if form.has(name)), "")
    both = b.resize(64) << 32 | a.resize(64)
    found = const(0, 32)
    for place in range(4):
        which = _byte(mode, selector, place)
        byte = (both >> ((which & 7) << 3).resize(64)).resize(8)
        byte = pick(which.is_less(8), byte, byte.ashr(7))
        found = found | byte.resize(32) << 8 * place
    return found


def _byte(mode: str, selector: Value, place: int) -> Value:
    """The number of the byte that goes to `place`."""
    n, here = selector & 3, const(place, 32)
    return {
        "": (selector >> 4 * place) & 15,
        "f4e": (n + here) & 7,
        "b4e": (n - here) & 7,
        "rc8": n,
        "ecl": largest(n, here),
        "ecr": least(n, here),
        "rc16": (n & 1) << 1 | here & 1,
    }[mode]


@computes("fns", operands="b32 b32 s32", result="b32", apart=True)
def find_nth(form: Form, bits: Value, base: Value, n: Value) -> Value:
    """The place of the |n|-th one bit from `base` up (n > 0) or down; n = 0: at `base` itself; -1 where there is none.

    The wanted bits are put at the low end, upside down for n < 0; then the lowest one is cleared |n| - 1 times.
    """
    down, beyond, start = n.is_negative(), base.is_above(31), base & 31
    count = pick(n.is_zero(), const(1, 32), pick(down, -n, n))
    source = pick(down, node("bitreverse", 32, bits), bits)
    first = pick(down, pick(beyond, const(0, 32), const(31, 32) - start), start)
    left = pick(beyond & ~down, const(0, 32), source & (const(-1, 32) << first))
    left = pick(n.is_zero(), left & (const(1, 32) << start), left)
    for k in range(1, 32):
        left = pick(count.is_above(k), left & (left - 1), left)
    left = pick(count.is_above(32), const(0, 32), left)
    place = node("cttz", 32, left)
    return pick(left.is_zero(), const(-1, 32), pick(down, const(31, 32) - place, place))


def compare(form: Form, a: Value, b: Value) -> Value:
    """The comparison that the opcode names."""
    name = _COMPARISONS[next(word for word in form.opcode.order if word in _COMPARISONS)]
    if name in ("lt", "le", "gt", "ge"):
        name = ("s" if form.signed else "u") + name
    return node(name, 1, a, b)


def combine(form: Form, flag: Value, c: Value) -> Value:
    """With the third source, if there is one."""
    word = next((word for word in form.opcode.order if word in ("and", "or", "xor")), "")
    return node(word, 1, flag, c) if word else flag


@computes("setp", operands="T T pred", result="pred pred")
def set_predicate(form: Form, a: Value, b: Value, c: Value) -> tuple[Value, Value]:
    """The comparison and its opposite."""
    found = compare(form, a, b)
    return combine(form, found, c), combine(form, ~found, c)


def true_value(kind: str) -> int:
    """What set gives for "true": 1.0 of a floating-point type, else all ones."""
    return one(kind) if kind in MANTISSA else -1


@computes("set", operands="T T pred", result="S")
def set_number(form: Form, a: Value, b: Value, c: Value) -> Value:
    """All ones, or 1.0 of a floating-point result; else 0."""
    kind = form.opcode.types[0]
    return pick(combine(form, compare(form, a, b), c), const(true_value(kind), WIDTH[kind]), 0)


@computes("selp", operands="T T pred")
@computes("selp", operands="T T pred", floats=True)
def select(form: Form, a: Value, b: Value, c: Value) -> Value:
    return pick(c, a, b)


@computes("slct", operands="S S T", result="S")
def select_by_sign(form: Form, a: Value, b: Value, c: Value) -> Value:
    return pick(c.is_negative(), b, a)
