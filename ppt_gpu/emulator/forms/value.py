"""Values made of a few operations on bits: the language in which an instruction's result is described once.

A `Value` is an operation on other values. It has a width in bits; a predicate is 1 bit wide. `apply` says exactly what
each operation on integers gives, in Python's. Operations on floating-point numbers are IEEE 754's (`floating`).
The compiled engine writes the same operations as LLVM IR.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, eq=False, slots=True)
class Value:
    """An operation and its operands. "const" and "input" have none: `number` is the constant, or which input it is."""

    op: str
    width: int  # bits
    args: tuple[Value, ...] = ()
    number: int = 0

    def __add__(self, other: Value | int) -> Value:
        return node("add", self.width, self, other)

    def __sub__(self, other: Value | int) -> Value:
        return node("sub", self.width, self, other)

    def __mul__(self, other: Value | int) -> Value:
        return node("mul", self.width, self, other)

    def __and__(self, other: Value | int) -> Value:
        return node("and", self.width, self, other)

    def __or__(self, other: Value | int) -> Value:
        return node("or", self.width, self, other)

    def __xor__(self, other: Value | int) -> Value:
        return node("xor", self.width, self, other)

    def __invert__(self) -> Value:
        return self ^ -1

    def __neg__(self) -> Value:
        return const(0, self.width) - self

    def __lshift__(self, other: Value | int) -> Value:
        """By less than the width: beyond, the result may be anything."""
        return node("shl", self.width, self, other)

    def __rshift__(self, other: Value | int) -> Value:
        """Without sign, by less than the width: beyond, the result may be anything."""
        return node("lshr", self.width, self, other)

    def ashr(self, other: Value | int) -> Value:
        """With copies of the sign, by less than the width: beyond, the result may be anything."""
        return node("ashr", self.width, self, other)

    def is_equal(self, other: Value | int) -> Value:
        return node("eq", 1, self, other)

    def is_zero(self) -> Value:
        return self.is_equal(0)

    def is_less(self, other: Value | int, signed: bool = False) -> Value:
        return node("slt" if signed else "ult", 1, self, other)

    def is_above(self, other: Value | int, signed: bool = False) -> Value:
        return node("sgt" if signed else "ugt", 1, self, other)

    def is_negative(self) -> Value:
        return self.is_less(0, signed=True)

    def resize(self, width: int, signed: bool = False) -> Value:
        """The lowest bits, or more of them: zeros, or copies of the sign."""
        if width == self.width:
            return self
        return node("trunc" if width < self.width else "sext" if signed else "zext", width, self)

    def bits(self, start: int, width: int) -> Value:
        """`width` bits from bit `start` on."""
        return (self >> start).resize(width)


def const(number: int, width: int) -> Value:
    return Value("const", width, number=number & ((1 << width) - 1))


def given(place: int, width: int) -> Value:
    """The operand of an instruction that stands at a place."""
    return Value("input", width, number=place)


def pick(condition: Value, yes: Value, no: Value | int) -> Value:
    """`yes` where the predicate holds, else `no`."""
    return node("select", yes.width, condition, yes, no)


def least(a: Value, b: Value | int, signed: bool = False) -> Value:
    return node("smin" if signed else "umin", a.width, a, b)


def largest(a: Value, b: Value | int, signed: bool = False) -> Value:
    return node("smax" if signed else "umax", a.width, a, b)


def high_product(a: Value, b: Value, signed: bool) -> Value:
    """The upper half of a product of twice the width."""
    width = a.width
    if width == 64:
        return node("smulh" if signed else "umulh", 64, a, b)
    return (a.resize(2 * width, signed) * b.resize(2 * width, signed)).bits(width, width)


def on_halves(operate: Callable[..., Value], *words: Value) -> Value:
    """An operation on the lower and on the upper halves of words of one width."""
    width = words[0].width
    low, high = (operate(*(word.bits(at, width // 2) for word in words)).resize(width) for at in (0, width // 2))
    return high << width // 2 | low


def node(op: str, width: int, *operands: Value | int) -> Value:
    """An operation of a result of `width` bits, worked out at once where its operands are constants. Integers among
    the operands are constants of the first one's width, of "select" the second one's."""
    of = next(x.width for x in operands[op == "select" :] if isinstance(x, Value))
    args = tuple(x if isinstance(x, Value) else const(x, of) for x in operands)
    if op in EXACT and all(x.op == "const" for x in args):
        return const(apply(op, width, args, [x.number for x in args]), width)
    return _simpler(op, args) or Value(op, width, args)


def _simpler(op: str, args: tuple[Value, ...]) -> Value | None:
    """One of the operands where it is the result."""
    if op == "select":
        condition, yes, no = args
        if yes is no:
            return yes
        return None if condition.op != "const" else yes if condition.number else no
    if len(args) != 2 or "const" not in (args[0].op, args[1].op):
        return None
    other, constant = args if args[1].op == "const" else args[::-1]
    full = (1 << constant.width) - 1
    if constant.number == 0 and op in ("and", "mul"):
        return constant
    if constant.number == 0 and (op in ("or", "xor", "add") or (op in _FROM_FIRST and other is args[0])):
        return other
    if constant.number == full and op in ("and", "or"):
        return other if op == "and" else constant
    return None


_FROM_FIRST = ("sub", "shl", "lshr", "ashr")


def signed(number: int, width: int) -> int:
    """Bits as a number with a sign."""
    return number - (number >> (width - 1) << width)


def _divide(a: int, b: int, width: int) -> int:
    """Rounded toward zero; all ones where the divisor is 0, as the hardware's routine gives."""
    if b == 0:
        return -1
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _saturate(number: int, width: int, signs: bool) -> int:
    low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if signs else (0, (1 << width) - 1)
    return max(low, min(number, high))


#: operation -> result of the operands and their width; the lowest bits of it count
EXACT: dict[str, Callable[..., int]] = {
    "select": lambda condition, yes, no, _: yes if condition else no,
    "add": lambda a, b, _: a + b,
    "sub": lambda a, b, _: a - b,
    "mul": lambda a, b, _: a * b,
    "and": lambda a, b, _: a & b,
    "or": lambda a, b, _: a | b,
    "xor": lambda a, b, _: a ^ b,
    "shl": lambda a, b, width: a << b if b < width else 0,
    "lshr": lambda a, b, _: a >> b,
    "ashr": lambda a, b, width: signed(a, width) >> b,
    "udiv": _divide,
    "umulh": lambda a, b, width: a * b >> width,
    "smulh": lambda a, b, width: a * b >> width,
    "uadd.sat": lambda a, b, width: _saturate(a + b, width, False),
    "sadd.sat": lambda a, b, width: _saturate(a + b, width, True),
    "usub.sat": lambda a, b, width: _saturate(a - b, width, False),
    "ssub.sat": lambda a, b, width: _saturate(a - b, width, True),
    "umin": lambda a, b, _: min(a, b),
    "umax": lambda a, b, _: max(a, b),
    "eq": lambda a, b, _: a == b,
    "ne": lambda a, b, _: a != b,
    "ult": lambda a, b, _: a < b,
    "ule": lambda a, b, _: a <= b,
    "ugt": lambda a, b, _: a > b,
    "uge": lambda a, b, _: a >= b,
    "zext": lambda a, _: a,
    "sext": lambda a, _: a,
    "trunc": lambda a, _: a,
    "ctpop": lambda a, _: a.bit_count(),
    "ctlz": lambda a, width: width - a.bit_length(),
    "cttz": lambda a, width: (a & -a).bit_length() - 1 if a else width,
    "bitreverse": lambda a, width: int(f"{a:0{width}b}"[::-1], 2),
}
#: operations that take their operands as numbers with a sign -> the same without
_SIGNED = {"sdiv": "udiv", "smin": "umin", "smax": "umax",
           "slt": "ult", "sle": "ule", "sgt": "ugt", "sge": "uge"}  # fmt: skip
_WITH_SIGN = frozenset((*_SIGNED, "sext", "smulh", "sadd.sat", "ssub.sat"))
EXACT |= {signed: EXACT[plain] for signed, plain in _SIGNED.items()}


def apply(op: str, width: int, args: tuple[Value, ...], numbers: list[int]) -> int:
    """The bits that an operation of EXACT gives for the bits of its operands."""
    of = args[0].width
    if op in _WITH_SIGN:
        numbers = [signed(number, of) for number in numbers]
    return int(EXACT[op](*numbers, of)) & ((1 << width) - 1)
