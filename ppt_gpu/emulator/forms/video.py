"""Video instructions: what they say, read from opcode and operands, and what they compute.

Source: PTX ISA, "Scalar Video Instructions" and "SIMD Video Instructions". Selected bytes or half-words of the sources
are extended to integers, the operation is exact, its result optionally saturated to the destination's part, then
combined with c by a second operation or merged into it.
"""

from __future__ import annotations

from dataclasses import dataclass

from ppt_gpu.emulator.forms.computes import Form, computes
from ppt_gpu.emulator.forms.integer import into_range
from ppt_gpu.emulator.forms.value import Value, largest, least, node, pick
from ppt_gpu.ptx.module import Minus, Operand, Part

COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
_SECOND = ("add", "min", "max")
#: opcodes of instructions on one value, and on 2 or 4 values in a word
SCALAR = ("vadd", "vsub", "vabsdiff", "vmin", "vmax", "vshl", "vshr", "vset")
SIMD = tuple(f"v{name}{n}" for n in (2, 4) for name in ("add", "sub", "avrg", "absdiff", "min", "max", "set"))


@dataclass(frozen=True)
class Video:
    operation: str  # add sub absdiff min max shl shr mad set avrg
    lanes: int  # 1, 2 or 4 numbers in a register
    types: tuple[bool, bool, bool]  # are destination, a, b signed?
    saturate: bool
    second: str  # add, min, max, or ""
    wrap: bool  # shift amounts modulo 32, else clamped to 32
    comparison: str
    scale: int  # bits that vmad shifts its sum to the right
    plus_one: bool
    selectors: tuple[str, str, str]  # of destination, a, b; "" for the whole register
    negative: tuple[bool, bool, bool]  # of a, b, c
    has_c: bool

    @property
    def part_bits(self) -> int:
        """Bits of one number of the destination."""
        if self.lanes > 1:
            return 32 // self.lanes
        return {"": 32, "b": 8, "h": 16}[self.selectors[0][:1]]

    @property
    def sources(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """For a and b: the place of each number among the parts of {b, a} (SIMD) or of the operand, lowest first."""
        if self.lanes == 1:
            places = tuple((int(s[1:] or 0),) if s else (0,) for s in self.selectors[1:])
            return places[0], places[1]
        defaults = ("10", "32") if self.lanes == 2 else ("3210", "7654")
        a, b = (
            tuple(int(digit) for digit in reversed(s[1:] or default))
            for s, default in zip(self.selectors[1:], defaults, strict=True)
        )
        return a, b

    @property
    def source_bits(self) -> tuple[int, int]:
        """Bits of a part of a and of b."""
        if self.lanes > 1:
            return 32 // self.lanes, 32 // self.lanes
        a, b = ({"": 32, "b": 8, "h": 16}[s[:1]] for s in self.selectors[1:])
        return a, b

    @property
    def written(self) -> tuple[int, ...]:
        """Numbers of the destination that receive a result; the others are those of c."""
        digits = self.selectors[0][1:]
        if self.lanes == 1:
            return (int(digits or 0),)
        return tuple(sorted(int(d) for d in digits)) if digits else tuple(range(self.lanes))

    @property
    def signed_sum(self) -> bool:
        """Is the sum of vmad signed?"""
        return self.types[1] or self.types[2] or self.negative[0] != self.negative[1] or self.negative[2]


def video(ins: Form) -> Video:
    """The parts of a video instruction."""
    name = ins.base[1:]
    lanes = int(name[-1]) if name[-1] in "24" else 1
    operation = name.rstrip("24")
    types = [m[0] == "s" for m in ins.opcode.order if m in ("u32", "s32")]
    if operation == "set":  # its result is 0 or 1
        types.insert(0, False)
    words = ins.opcode.order[2:] if operation == "set" else ins.opcode.order
    return Video(
        operation, lanes, (types[0], types[1], types[2]), "sat" in words,
        next((m for m in words if m in _SECOND), ""), "wrap" in words,
        next((m for m in words if m in COMPARISONS), ""),
        7 if "shr7" in words else 15 if "shr15" in words else 0, "po" in words,
        (_selector(ins.operands[0]), _selector(ins.operands[1]), _selector(ins.operands[2])),
        (_negative(ins.operands[1]), _negative(ins.operands[2]), len(ins.operands) > 3 and _negative(ins.operands[3])),
        len(ins.operands) > 3,
    )  # fmt: skip


def _selector(operand: Operand) -> str:
    if isinstance(operand, Minus):
        operand = operand.operand
    return operand.selector if isinstance(operand, Part) else ""


def _negative(operand: Operand) -> bool:
    return isinstance(operand, Minus)


def _wide(v: Video) -> int:
    """Bits in which no step overflows."""
    return 128 if v.operation in ("shl", "mad") else 64


def _into_type(v: Video, value: Value, signed: bool, bits: int) -> Value:
    """Saturated, where the instruction says so, to an integer type."""
    if not v.saturate:
        return value
    return into_range(value, -(1 << (bits - 1)) if signed else 0, (1 << (bits - signed)) - 1)


@computes(*SCALAR, *SIMD, operands="b32 b32 b32", result="b32", apart=True)
def combine(form: Form, a: Value, b: Value, c: Value) -> Value:
    """One operation, or one for each part of a word."""
    v = video(form)
    sources = [a, b] if v.lanes == 1 else [b.resize(64) << 32 | a.resize(64)] * 2
    results = []
    for places in zip(*v.sources, strict=True):
        x, y = (_part(v, k, sources[k], places[k]) for k in (0, 1))
        results.append(_into_type(v, _operate(v, x, y), v.types[0], v.part_bits))
    return _second(v, c, results) if v.second else _merged(v, c, results)


def _part(v: Video, source: int, bits: Value, place: int) -> Value:
    """A part of a (source 0) or b, extended."""
    size = v.source_bits[source]
    return bits.bits(place * size, size).resize(_wide(v), v.types[source + 1])


def _operate(v: Video, x: Value, y: Value) -> Value:
    width = x.width
    if v.operation in ("add", "sub"):
        return node(v.operation, width, x, y)
    if v.operation in ("min", "max"):
        return (least if v.operation == "min" else largest)(x, y, signed=True)
    if v.operation == "absdiff":
        return pick(x.is_less(y, signed=True), y - x, x - y)
    if v.operation == "avrg":
        total = x + y
        return (total + (~total.is_negative()).resize(width)).ashr(1)
    if v.operation == "set":
        sign = "" if v.comparison in ("eq", "ne") else "s"
        return node(sign + v.comparison, 1, x, y).resize(width)
    by = y & 31 if v.wrap else least(y, 32)
    return x << by if v.operation == "shl" else x.ashr(by)


def _second(v: Video, c: Value, results: list[Value]) -> Value:
    """Combined with c, as a number of the destination's sign."""
    found = c.resize(_wide(v), v.types[0])
    if v.second != "add":
        return (least if v.second == "min" else largest)(found, results[0], signed=True).resize(32)
    for place in v.written if v.lanes > 1 else (0,):
        found = found + results[place]
    return found.resize(32)


def _merged(v: Video, c: Value, results: list[Value]) -> Value:
    """The results put into c."""
    if v.part_bits == 32:
        return results[0].resize(32)
    mask = (1 << v.part_bits) - 1
    for place in v.written:
        at = place * v.part_bits
        value = results[place if v.lanes > 1 else 0].resize(32) & mask
        c = c & ~(mask << at) | value << at
    return c


@computes("vmad", operands="b32 b32 b32", result="b32", apart=True)
def multiply_add(form: Form, a: Value, b: Value, c: Value) -> Value:
    v = video(form)
    x, y = (_part(v, k, bits, v.sources[k][0]) for k, bits in enumerate((a, b)))
    product, other = x * y, c.resize(_wide(v), v.signed_sum)
    if v.negative[0] != v.negative[1]:
        product = -product
    elif v.negative[2] and not v.plus_one:
        other = -other
    total = (product + other + int(v.plus_one)).ashr(v.scale)
    return _into_type(v, total, v.signed_sum, 32).resize(32)
