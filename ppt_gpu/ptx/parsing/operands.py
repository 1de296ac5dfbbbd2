"""Operands: from their text to `ppt_gpu.ptx.module` operands and the registers in them."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from ppt_gpu.common.errors import did_you_mean
from ppt_gpu.ptx.module import Mem, Minus, Neg, Operand, Pair, Part, Reg, Sink, Special, Sym, Vec, items_of
from ppt_gpu.ptx.parsing.drafts import MemDraft
from ppt_gpu.ptx.parsing.expressions import constant
from ppt_gpu.ptx.parsing.lexer import NAME, number
from ppt_gpu.ptx.parsing.names import Entry, register_entry
from ppt_gpu.ptx.parsing.scope import Scope
from ppt_gpu.ptx.specials import SPECIALS, VECTORS

_NAME = re.compile(NAME, re.ASCII)
_ADDRESS = re.compile(rf"({NAME})\s*((?:[-+]\s*[-+]?\s*\w+\s*)*)", re.ASCII)
_SIMPLE_ADDRESS = re.compile(r"\[([\w$%]+)(?:\+(-?(?:0|[1-9][0-9]{0,18})))?\]", re.ASCII)
_SUM = re.compile(rf"({NAME})\s*([-+].+)", re.ASCII | re.DOTALL)
_ABSOLUTE = re.compile(r"-?\d\w*\s*(?:[-+]\s*\w+\s*)*", re.ASCII)
_TERM = re.compile(r"([-+])\s*([-+]?)\s*(\w+)", re.ASCII)
_SELECTOR = re.compile(r"(.+)\.((?:b[0-7]{1,4}|h[0-3]{1,2}))", re.ASCII)
_PIECE = re.compile(r"\[[^\]]*\]|\{[^}]*\}|\([^)]*\)|[^,\[\]{}()]+|.", re.DOTALL)
_BRACKETED_COMMA = re.compile(r"\[[^\],]*,")
_DECIMAL_DIGITS = re.compile(r"[-+]?[0-9]+")
_COLOURS = {".r": "x", ".g": "y", ".b": "z", ".a": "w"}  # other names of a vector register's elements
_SINK = Sink()
#: %tid alone is its four elements, which mov.v4 moves
_SPECIAL_ENTRIES: dict[str, Entry] = {
    f"%{name}": (Vec(tuple(Special(f"{name}.{axis}") for axis in "xyzw")) if name in VECTORS else Special(name), ())
    for name in SPECIALS
}


class BadOperand(Exception):
    """An operand is wrong: what, the text it is about, and a hint."""

    def __init__(self, message: str, text: str, hint: str | None = None) -> None:
        self.message = message
        self.text = text
        self.hint = hint
        super().__init__(message)


def split(text: str) -> list[str]:
    """Cut at the commas outside brackets, braces and parentheses. No operands: an empty list."""
    parts = text.split(", ")
    nested = "{" in text or "(" in text or ("[" in text and _BRACKETED_COMMA.search(text) is not None)
    if not nested:
        if len(parts) - 1 != text.count(","):
            parts = text.split(",")
        return parts if len(parts) > 1 or (text and not text.isspace()) else []
    parts, current = [], ""
    for piece in _PIECE.findall(text):
        if piece == ",":
            parts.append(current)
            current = ""
        else:
            current += piece
    parts.append(current)
    return parts


class OperandReader:
    """Reads operands in one module. `is_global` knows its symbols; others go into `unknown` for later."""

    def __init__(self, is_global: Callable[[str], bool], unknown: dict[str, None]) -> None:
        self.is_global = is_global
        self.unknown = unknown

    def read(self, text: str, scope: Scope) -> Entry:
        """The operand and its registers. Raises BadOperand. Call through `scope.entries`, which remembers it."""
        if text[:1] == "[":
            simple = _SIMPLE_ADDRESS.fullmatch(text)
            if simple is not None:
                name, offset = simple.groups()
                register = scope.registers.get(name)
                if register is None:
                    register = scope.register(name)
                if register is not None:
                    base, ids = register_entry(register)
                    made = MemDraft(base, int(offset or 0), ())
                    made.__class__ = Mem
                    return made, ids
            return self._memory(text, scope)
        if text.strip() != text:
            return scope.entries[text.strip()]
        if not text:
            raise BadOperand("an operand is missing", text)
        first = text[0]
        if first == "{" or first == "(":
            if first == "(" and (text[-1] != ")" or text.count("(") > 1) and (value := constant(text)) is not None:
                return value, ()
            return self._pair(text, scope) if "|" in text and first == "{" else self._vector(text, scope)
        if text == "_":
            return _SINK, ()
        if first == "!":
            value = constant(text)
            return (value, ()) if value is not None else self._negated(text, scope)
        if first.isdigit() or first in "+.~":
            return _literal(text)
        if "|" in text and (first != "-" or "%" in text):
            return self._pair(text, scope)
        if first == "-" and text[1:].lstrip()[:1] == "%":
            inner, ids = scope.entries[text[1:].lstrip()]
            if not isinstance(inner, Reg | Part):
                raise BadOperand(f"'{_short(text)}' is no operand", text)
            return Minus(inner), ids
        if first == "-":
            return _literal(text)
        if "," in text:
            raise BadOperand(f"'{_short(text)}' is no operand", text)
        return self._named(text, scope)

    def _named(self, text: str, scope: Scope) -> Entry:
        register = scope.register(text)
        if register is not None:
            return register_entry(register)
        if text in _SPECIAL_ENTRIES:
            return _SPECIAL_ENTRIES[text]
        if text[:7] == "WARP_SZ" and (value := constant(text)) is not None:
            return value, ()
        elements = scope.vector(text)
        if elements:
            ids = tuple(scope.register(f"{text}.{axis}") or 0 for axis in "xyzw"[:elements])
            return Vec(tuple(Reg(i) for i in ids)), ids
        match = _ADDRESS.fullmatch(text)
        if match is not None and (text[0] != "%" or scope.symbol(text) or self.is_global(text)):
            return Sym(self._symbol(match[1], scope), self._offset(match[2], text)), ()
        selected = _SELECTOR.fullmatch(text)
        if selected is not None and (register := scope.register(selected[1])) is not None:
            return Part(Reg(register), selected[2]), (register,)
        if text[-2:] in _COLOURS and (register := scope.register(text[:-1] + _COLOURS[text[-2:]])) is not None:
            return register_entry(register)
        summed = self._summed(text, scope)
        if summed is not None and scope.register(summed[0]) is None:
            return Sym(self._symbol(summed[0], scope), summed[1]), ()
        raise self._unknown_name(text, scope)

    def _unknown_name(self, text: str, scope: Scope) -> BadOperand:
        if "\n" in text or _NAME.fullmatch(text.partition(".")[0]) is None:
            return BadOperand(f"'{_short(text)}' is no operand", text)
        if text[0] == "%":
            hint = scope.nearest_register(text) or did_you_mean(text[1:], SPECIALS)
            return BadOperand(f"register '{_short(text)}' is not declared", text, hint)
        return BadOperand(f"'{_short(text)}' is no operand", text)

    def _summed(self, text: str, scope: Scope) -> tuple[str, int] | None:
        """The name and the offset of name+expression, such as `table+4*8`."""
        match = _SUM.fullmatch(text)
        offset = constant("0" + match[2]) if match is not None else None
        if match is None or offset is None or not isinstance(offset.value, int):
            return None
        known = scope.register(match[1]) is not None or scope.symbol(match[1]) or self.is_global(match[1])
        return (match[1], (offset.value + (1 << 63)) % (1 << 64) - (1 << 63)) if known else None

    def _symbol(self, name: str, scope: Scope) -> str:
        unique = scope.symbol(name)
        if unique is not None:
            return unique
        if not self.is_global(name):
            self.unknown[name] = None
        return name

    def _offset(self, terms: str, text: str) -> int:
        total = 0
        for sign, inner, digits in _TERM.findall(terms):
            value = number(digits)
            if value is None or not isinstance(value.value, int):
                raise BadOperand(f"'{_short(digits)}' is no offset: expected an integer", text)
            total += -value.value if (sign == "-") != (inner == "-") else value.value
        return total

    def _negated(self, text: str, scope: Scope) -> Entry:
        register = scope.register(text[1:].strip())
        if register is None:
            raise self._unknown_name(text[1:].strip(), scope)
        kind = scope.names.registers[register].type
        if kind != "pred":
            raise BadOperand(f"'!' negates predicates, and '{_short(text[1:].strip())}' is a .{kind}", text)
        return Neg(Reg(register)), (register,)

    def _pair(self, text: str, scope: Scope) -> Entry:
        first, _, second = text.rpartition("|")
        if "|" in first:
            raise BadOperand("a destination pair has two parts: expected d|p", text)
        left, right = scope.entries[first], scope.entries[second]
        return Pair(left[0], right[0]), left[1] + right[1]

    def _items(self, text: str, scope: Scope) -> tuple[list[Operand], tuple[int, ...]]:
        operands: list[Operand] = []
        registers: tuple[int, ...] = ()
        for part in split(text):
            operand, ids = scope.entries[part]
            if isinstance(operand, Mem) or (isinstance(operand, Vec) and "{" in part):
                raise BadOperand(f"'{_short(part.strip())}' cannot stand inside another operand", part)
            operands.append(alone(operand, part))
            registers += ids
        return operands, registers

    def _vector(self, text: str, scope: Scope) -> Entry:
        close = "}" if text[0] == "{" else ")"
        if text[-1] != close:
            raise BadOperand(f"expected '{close}' at the end of '{_short(text)}'", text)
        operands, registers = self._items(text[1:-1], scope)
        return Vec(tuple(operands)), registers

    def _memory(self, text: str, scope: Scope) -> Entry:
        text = text.rstrip().removesuffix(".unified").rstrip()
        if text[-1] != "]":
            raise BadOperand(f"expected ']' at the end of '{_short(text)}'", text)
        parts = split(text[1:-1])
        if not parts:
            raise BadOperand("an address is missing in '[]'", text)
        address, offset, registers = self._address(parts[0].strip(), scope)
        indices: list[Operand] = []
        for part in parts[1:]:
            operand, ids = scope.entries[part]
            if isinstance(operand, Mem):
                raise BadOperand(f"'{_short(part.strip())}' cannot stand inside an address", part)
            indices += items_of(operand)
            registers += ids
        return Mem(address, offset, tuple(indices)), registers

    def _address(self, text: str, scope: Scope) -> tuple[Reg | Sym | None, int, tuple[int, ...]]:
        absolute = _ABSOLUTE.fullmatch(text)
        if absolute is not None:
            return None, self._offset("+" + text, text), ()
        match = _ADDRESS.fullmatch(text)
        if match is None:
            selected = scope.register(text)  # v.x: an element of a vector register
            if selected is not None:
                return Reg(selected), 0, (selected,)
            summed = self._summed(text, scope)
            if summed is not None:
                register = scope.register(summed[0])
                if register is not None:
                    return Reg(register), summed[1], (register,)
                return Sym(self._symbol(summed[0], scope)), summed[1], ()
            value = constant(text)
            if value is not None and isinstance(value.value, int):
                return None, value.value, ()
            hint = "[register], [register+offset], [symbol+offset] and [integer] are"
            raise BadOperand(f"'{_short(text)}' is no address", text, hint)
        name, offset = match[1], self._offset(match[2], text)
        register = scope.register(name)
        if register is not None:
            return Reg(register), offset, (register,)
        if name[0] == "%" and scope.symbol(name) is None and not self.is_global(name):
            raise self._unknown_name(name, scope)
        return Sym(self._symbol(name, scope)), offset, ()


def alone(operand: Operand, text: str) -> Operand:
    """The number in parentheses such as `(5)`, which are a list only in a call; other operands as they are."""
    if isinstance(operand, Vec) and text.lstrip()[:1] == "(" and len(operand.items) == 1:
        return operand.items[0]
    return operand


@lru_cache(maxsize=4096)
def _literal(text: str) -> Entry:
    value = number(text)
    if value is None:
        value = constant(text)
    if value is None and _DECIMAL_DIGITS.fullmatch(text):
        raise BadOperand(f"'{_short(text)}' does not fit in 64 bits", text)
    if value is None:
        raise BadOperand(f"'{_short(text)}' is no number", text, "12, 0x1F, 1.5, 0f3F800000 and 0d... are")
    if isinstance(value.value, int) and not -(1 << 63) <= value.value < 1 << 64:
        raise BadOperand(f"'{_short(text)}' does not fit in 64 bits", text)
    return value, ()


def _short(text: str) -> str:
    line = text.split("\n", 1)[0]
    return line if len(line) <= 60 else line[:57] + "..."


def located(error: BadOperand, text: str, start: int) -> int:
    """The position of the offending operand in a statement whose operands start at `start`."""
    found = text.find(error.text.strip()) if error.text else -1
    return start + max(found, 0)


__all__ = ["BadOperand", "OperandReader", "alone", "located", "split"]
