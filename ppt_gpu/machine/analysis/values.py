"""What is known of integer values in straight-line code: sums of multiples of unknown values, and their alignment.

A value is sum(coefficient x unknown) + constant, modulo 2^bits. Equal values have equal sums; two whose sums differ by
a constant can share one base register of an address, with another offset. Unknown values are numbers that the same
operation on the same values always gets again, so that what is computed twice is seen to be the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping
from typing import NamedTuple

from ppt_gpu.ptx.module import Imm, Instruction, Operand, Reg, Special, Sym
from ppt_gpu.ptx.operations import types_of
from ppt_gpu.ptx.table import PURE

#: every address is aligned to less than 2^ALIGNED; 0 is
ALIGNED = 32
#: variables of shared memory begin at multiples of 2^4 B: ptxas lays them out for its widest access
SYMBOL_ALIGNED = 4
_BITS = {"u32": 32, "s32": 32, "b32": 32, "u64": 64, "s64": 64, "b64": 64}
#: operations whose result depends on nothing but their operands; the carry flag is none
_PURE = PURE.difference(("addc", "subc", "madc"))
#: those whose result is 32 bits wide, whatever they look at; those whose first type is the result's
_COUNTS = frozenset(("popc", "clz", "bfind", "fns"))
_TO_FIRST = frozenset(("cvt", "set", "slct"))
#: special registers that do not always read the same
_CHANGING = re.compile("clock|timer|pm|smid|warpid|lanemask|activemask|stack")


class Value(NamedTuple):
    terms: tuple[tuple[int, int], ...]  # (unknown, coefficient), ascending
    constant: int
    bits: int

    @property
    def known(self) -> int | None:
        return None if self.terms else self.constant


def is_pure(instruction: Instruction) -> bool:
    """Does it compute its result from its operands alone, with no other effect?"""
    return (
        instruction.base in _PURE
        and bool(instruction.writes)
        and "cc" not in instruction.modifiers
        and not any(isinstance(operand, Special) and _CHANGING.search(operand.name) for operand in instruction.operands)
    )


class Values:
    """Evaluates instructions, one after another; `of` maps registers to what they hold."""

    def __init__(self, aligned: Mapping[int, int] | None = None) -> None:
        """aligned: of registers that nobody has written yet: their values are multiples of 2^this."""
        self.of: dict[int, Value] = {}
        self.aligned = aligned or {}
        self._unknowns: dict[Hashable, int] = {}
        self._alignment: list[int] = []
        self._found: dict[int, int] = {}  # unknown -> the register that held it at the start

    def unknown(self, key: Hashable, alignment: int, bits: int) -> Value:
        number = self._unknowns.setdefault(key, len(self._alignment))
        if number == len(self._alignment):
            self._alignment.append(alignment)
        return Value(((number, 1),), 0, bits)

    def alignment(self, value: Value) -> int:
        """The value is a multiple of 2^this."""
        parts = [_zeros(factor) + self._alignment[unknown] for unknown, factor in value.terms]
        return min([*parts, _zeros(value.constant)])

    def register(self, number: int, bits: int) -> Value:
        value = self.of.get(number)
        if value is None:
            value = self.unknown(("register", number, bits), self.aligned.get(number, 0), bits)
            self._found[value.terms[0][0]] = number
            self.of[number] = value
        return value if value.bits == bits else self.unknown(("as", bits, value), 0, bits)

    def at_start(self, unknown: int) -> int | None:
        """The register that held it when the code began."""
        return self._found.get(unknown)

    def run(self, instruction: Instruction) -> None:
        """Note what the instruction writes."""
        value = self.result(instruction)
        for place, register in enumerate(instruction.writes):
            if value is not None and len(instruction.writes) == 1:
                self.of[register] = value
            else:
                self.of[register] = self.unknown(("new", len(self._alignment), place), 0, 0)

    def result(self, instruction: Instruction) -> Value | None:
        """The value of the one register that the instruction writes; None when nothing is known of it."""
        # what a value is taken apart into, some of it perhaps dropped, is none of its parts by itself
        whole = len(instruction.writes) == 1 and isinstance(instruction.operands[0], Reg)
        if instruction.guard is not None or not whole or not is_pure(instruction):
            return None
        words = instruction.modifiers
        bits = _BITS.get(words[-1], 0) if words else 0
        rule = _RULES.get(instruction.base)
        found = rule(self, instruction, words, bits) if rule is not None else None
        return found or self._opaque(instruction, _result_bits(instruction))

    def operand(self, operand: Operand, bits: int) -> Value | None:
        if isinstance(operand, Reg):
            return self.register(operand.id, bits)
        if isinstance(operand, Imm) and isinstance(operand.value, int):
            return _value({}, operand.value, bits)
        if isinstance(operand, Sym):
            return self._plus(self.unknown(("symbol", operand.name), SYMBOL_ALIGNED, bits), operand.offset)
        return self.unknown(("special", operand.name), 0, bits) if isinstance(operand, Special) else None

    def _opaque(self, instruction: Instruction, bits: int) -> Value:
        """The same operation on the same values."""
        inputs = tuple(
            self.of.get(operand.id, ("register", operand.id)) if isinstance(operand, Reg) else operand
            for operand in instruction.operands[1:]
        )
        return self.unknown((instruction.opcode, inputs), self._alignment_of(instruction), bits)

    def _alignment_of(self, instruction: Instruction) -> int:
        """Of a result that is no sum: zeros that logic and shifts leave at its end."""
        bits = _BITS.get(instruction.modifiers[-1], 0) if instruction.modifiers else 0
        values = [self.operand(operand, bits) for operand in instruction.operands[1:]] if bits else []
        zeros = [self.alignment(value) if value is not None else 0 for value in values]
        if not zeros:
            return 0
        if instruction.base == "and":
            return max(zeros)
        if instruction.base in ("or", "xor", "min", "max"):
            return min(zeros)
        if instruction.base == "selp":
            return min(zeros[:2])
        if instruction.base == "mul" and "lo" in instruction.modifiers:
            return min(sum(zeros), ALIGNED)
        return 0

    @staticmethod
    def _plus(value: Value, constant: int) -> Value:
        return Value(value.terms, _wrapped(value.constant + constant, value.bits), value.bits)

    def pair(self, instruction: Instruction, bits: int) -> tuple[Value, Value] | None:
        """The first two sources."""
        if not bits or len(instruction.operands) < 3:
            return None
        first, second = (self.operand(operand, bits) for operand in instruction.operands[1:3])
        return None if first is None or second is None else (first, second)


def _result_bits(instruction: Instruction) -> int:
    """Of an integer, as wide as the type of the result; of a comparison, as what is compared; 0 for other types."""
    types = types_of(instruction.modifiers)
    if instruction.base in _COUNTS:
        return 32
    if not types:
        return 0
    bits = _BITS.get(types[0] if instruction.base in _TO_FIRST else types[-1], 0)
    return 2 * bits if "wide" in instruction.modifiers else bits


def _zeros(value: int) -> int:
    """Zero bits at the end."""
    return ALIGNED if value == 0 else min((value & -value).bit_length() - 1, ALIGNED)


def _wrapped(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if bits and value >> (bits - 1) else value


def _value(terms: Mapping[int, int], constant: int, bits: int) -> Value:
    kept = tuple(sorted((unknown, w) for unknown, factor in terms.items() if (w := _wrapped(factor, bits))))
    return Value(kept, _wrapped(constant, bits), bits)


def _sum(a: Value, b: Value, times: int = 1) -> Value:
    terms = dict(a.terms)
    for unknown, factor in b.terms:
        terms[unknown] = terms.get(unknown, 0) + times * factor
    return _value(terms, a.constant + times * b.constant, a.bits)


def _product(values: Values, a: Value, b: Value) -> Value:
    if b.known is not None:
        return _sum(_value({}, 0, a.bits), a, b.known)
    if a.known is not None:
        return _sum(_value({}, 0, a.bits), b, a.known)
    aligned = min(values.alignment(a) + values.alignment(b), ALIGNED)
    return values.unknown(("product", *sorted((a, b))), aligned, a.bits)


Rule = Callable[[Values, Instruction, tuple[str, ...], int], "Value | None"]


def _mov(values: Values, instruction: Instruction, words: tuple[str, ...], bits: int) -> Value | None:
    return values.operand(instruction.operands[1], bits) if bits else None


def _add(values: Values, instruction: Instruction, words: tuple[str, ...], bits: int) -> Value | None:
    pair = values.pair(instruction, bits)
    if pair is None or "sat" in words:
        return None
    return _sum(*pair, times=-1 if instruction.base == "sub" else 1)


def _neg(values: Values, instruction: Instruction, words: tuple[str, ...], bits: int) -> Value | None:
    value = values.operand(instruction.operands[1], bits) if bits else None
    return None if value is None else _sum(_value({}, 0, bits), value, -1)


def _mul(values: Values, instruction: Instruction, words: tuple[str, ...], bits: int) -> Value | None:
    if "wide" in words:
        return _wide(values, instruction, words, bits)
    pair = values.pair(instruction, bits) if "lo" in words else None
    if pair is None:
        return None
    product = _product(values, *pair)
    if instruction.base == "mul":
        return product
    addend = values.operand(instruction.operands[3], bits)
    return None if addend is None else _sum(product, addend)


def _wide(values: Values, instruction: Instruction, words: tuple[str, ...], bits: int) -> Value | None:
    pair = values.pair(instruction, 32) if bits == 32 else None
    if pair is None:
        return None
    product = _product(values, *(_extended(values, value, words[-1][0]) for value in pair))
    if instruction.base == "mul":
        return product
    addend = values.operand(instruction.operands[3], 64)
    return None if addend is None else _sum(product, addend)


def _extended(values: Values, value: Value, sign: str) -> Value:
    """A 32-bit value in 64 bits. An extended sum is not the sum of what is extended: it might have overflown."""
    if value.known is not None:
        return _value({}, value.known if sign == "s" else value.known & 0xFFFFFFFF, 64)
    return values.unknown(("extended", sign, value), values.alignment(value), 64)


def _shl(values: Values, instruction: Instruction, words: tuple[str, ...], bits: int) -> Value | None:
    amount = instruction.operands[2]
    value = values.operand(instruction.operands[1], bits) if bits else None
    if value is None or not isinstance(amount, Imm) or not isinstance(amount.value, int):
        return None
    return _sum(_value({}, 0, bits), value, 1 << amount.value if 0 <= amount.value < bits else 0)


def _logic(values: Values, instruction: Instruction, words: tuple[str, ...], bits: int) -> Value | None:
    pair = values.pair(instruction, bits)
    if pair is None:
        return None
    a, b = pair
    if a.known is not None and b.known is not None:
        kind = instruction.base
        found = a.known & b.known if kind == "and" else a.known | b.known if kind == "or" else a.known ^ b.known
        return _value({}, found, bits)
    if instruction.base == "and":
        return None
    for value, other in (pair, (b, a)):  # bits that the other has zero: a sum
        if other.known is not None and 0 <= other.known < 1 << values.alignment(value):
            return _sum(value, other)
    return None


def _shr(values: Values, instruction: Instruction, words: tuple[str, ...], bits: int) -> Value | None:
    pair = values.pair(instruction, bits)
    if pair is None or pair[0].known is None or pair[1].known is None:
        return None
    value = pair[0].known if words[-1][0] == "s" else pair[0].known & ((1 << bits) - 1)
    return _value({}, value >> min(pair[1].known & 0xFFFFFFFF, bits - 1 if value < 0 else bits), bits)


def _setp(values: Values, instruction: Instruction, words: tuple[str, ...], bits: int) -> Value | None:
    pair = values.pair(instruction, bits) if len(words) == 2 else None
    if pair is None or pair[0].known is None or pair[1].known is None:
        return None
    a, b = (v.known if words[1][0] == "s" else (v.known or 0) & ((1 << bits) - 1) for v in pair)
    assert a is not None and b is not None
    found = {"eq": a == b, "ne": a != b, "lt": a < b, "lo": a < b, "le": a <= b, "ls": a <= b}
    found |= {"gt": a > b, "hi": a > b, "ge": a >= b, "hs": a >= b}
    return _value({}, int(found[words[0]]), 2) if words[0] in found else None


def _cvt(values: Values, instruction: Instruction, words: tuple[str, ...], bits: int) -> Value | None:
    to = _BITS.get(words[0], 0) if len(words) == 2 else 0
    value = values.operand(instruction.operands[1], bits) if bits and to else None
    if value is None:
        return None
    if to == bits:
        return value
    if to > bits:
        return _extended(values, value, words[1][0])
    return _value(dict(value.terms), value.constant, to)


def _cvta(values: Values, instruction: Instruction, words: tuple[str, ...], bits: int) -> Value | None:
    return values.operand(instruction.operands[1], bits) if bits and "global" in words else None


_RULES: dict[str, Rule] = {
    "mov": _mov,
    "add": _add,
    "sub": _add,
    "neg": _neg,
    "mul": _mul,
    "mad": _mul,
    "shl": _shl,
    "and": _logic,
    "or": _logic,
    "xor": _logic,
    "shr": _shr,
    "setp": _setp,
    "cvt": _cvt,
    "cvta": _cvta,
}
