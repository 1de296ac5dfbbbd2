"""What integer instructions compute: sums, products, quotients, of whole registers and of packed halves.

Source: PTX ISA, "Integer Arithmetic Instructions", "Extended-Precision Integer Arithmetic Instructions".
"""

from __future__ import annotations

from ppt_gpu.emulator.forms.computes import CARRY, Form, Unsupported, computes
from ppt_gpu.emulator.forms.value import Value, const, high_product, largest, least, node, on_halves, pick

_Results = tuple[Value, Value]


def with_carry(a: Value, b: Value, carry: Value) -> _Results:
    """(a + b + carry, the carry out of it)."""
    first = a + b
    total = first + carry.resize(a.width)
    return total, first.is_less(a) | (first.is_equal(-1) & carry)


@computes("add", "sub", operands="T T", result=f"T {CARRY}")
def add(form: Form, a: Value, b: Value) -> _Results:
    """The carry of a difference says that nothing was borrowed, as the adder leaves it: addc and madc, too, add 1
    then, which nvcc's division of __int128 relies on."""
    nothing = const(0, 1)
    if form.has("u16x2", "s16x2"):
        return on_halves(lambda x, y: node(form.base, 16, x, y), a, b), nothing
    if form.has("sat"):
        return node(f"{'s' if form.signed else 'u'}{form.base}.sat", a.width, a, b), nothing
    if form.base == "sub":
        return a - b, node("uge", 1, a, b)
    return a + b, (a + b).is_less(a)


@computes("addc", "subc", operands=f"T T {CARRY}", result=f"T {CARRY}")
def add_carry(form: Form, a: Value, b: Value, carry: Value) -> _Results:
    """a + b + CC, or a + ~b + CC."""
    return with_carry(a, ~b if form.base == "subc" else b, carry)


def product(form: Form, a: Value, b: Value) -> Value:
    """As .lo, .hi or .wide asks; of mul24 bits 0 to 31 or 16 to 47 of the product of the lowest 24 bits."""
    if form.base.endswith("24"):
        a, b = (x.bits(0, 24).resize(64, form.signed) for x in (a, b))
        return (a * b).bits(16 if form.has("hi") else 0, 32)
    if form.has("wide"):
        return a.resize(2 * a.width, form.signed) * b.resize(2 * a.width, form.signed)
    return high_product(a, b, form.signed) if form.has("hi") else a * b


@computes("mul", "mul24", operands="T T", result="W")
def multiply(form: Form, a: Value, b: Value) -> Value:
    return product(form, a, b)


@computes("mad", "mad24", operands="T T W", result=f"W {CARRY}")
def multiply_add(form: Form, a: Value, b: Value, c: Value) -> _Results:
    if form.has("sat"):
        return node("sadd.sat", c.width, product(form, a, b), c), const(0, 1)
    return with_carry(product(form, a, b), c, const(0, 1))


@computes("madc", operands=f"T T W {CARRY}", result=f"W {CARRY}")
def multiply_add_carry(form: Form, a: Value, b: Value, c: Value, carry: Value) -> _Results:
    if not form.has("sat"):
        return with_carry(product(form, a, b), c, carry)
    if form.opcode.kind != "s32":
        raise Unsupported("saturation of another type than s32")
    total = product(form, a, b).resize(64, signed=True) + c.resize(64, signed=True) + carry.resize(64)
    return into_range(total, -(1 << 31), (1 << 31) - 1).resize(32), const(0, 1)


def into_range(a: Value, low: int, high: int) -> Value:
    """A number with a sign, clamped."""
    return largest(least(a, high, signed=True), low, signed=True)


@computes("div", "rem", operands="T T")
def divide(form: Form, a: Value, b: Value) -> Value:
    """Rounded toward zero. By 0: all ones, and the dividend as remainder, as the hardware's routine gives."""
    quotient = node("sdiv" if form.signed else "udiv", a.width, a, b)
    return quotient if form.base == "div" else a - quotient * b


@computes("abs", operands="T")
def absolute(form: Form, a: Value) -> Value:
    return pick(a.is_negative(), -a, a)


@computes("neg", operands="T")
def negate(form: Form, a: Value) -> Value:
    return -a


@computes("min", "max", operands="T T")
def extremum(form: Form, a: Value, b: Value) -> Value:
    """.relu: at least 0."""

    def choose(x: Value, y: Value) -> Value:
        found = (least if form.base == "min" else largest)(x, y, form.signed)
        return largest(found, 0, signed=True) if form.has("relu") else found

    return on_halves(choose, a, b) if form.has("u16x2", "s16x2") else choose(a, b)


@computes("sad", operands="T T T")
def sum_of_absolute_difference(form: Form, a: Value, b: Value, c: Value) -> Value:
    """c + |a - b|."""
    return c + pick(a.is_less(b, form.signed), b - a, a - b)


@computes("dp4a", "dp2a", operands="b32 b32 b32", result="b32")
def dot_product(form: Form, a: Value, b: Value, c: Value) -> Value:
    """Of the bytes of a with those of b (dp4a), or of the halves of a with the two lower or upper bytes of b (dp2a)."""
    first, second = (kind == "s32" for kind in form.opcode.types)
    count, width = (4, 8) if form.base == "dp4a" else (2, 16)
    start = 16 if form.has("hi") else 0
    for k in range(count):
        left = a.bits(k * width, width).resize(32, first)
        c = c + left * b.bits(start + 8 * k, 8).resize(32, second)
    return c
