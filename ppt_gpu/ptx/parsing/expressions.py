"""Constant expressions: `(3*4+1)<<2`, `-7/2`, `5>3?7:9`, in 64 bits, as the PTX ISA says ("Constant Expressions")."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import NamedTuple

from ppt_gpu.ptx.module import Imm
from ppt_gpu.ptx.parsing.lexer import number

_MASK = (1 << 64) - 1
_TOKEN = re.compile(
    r"\s*(?:(?P<cast>\(\s*\.[su]64\s*\))|(?P<word>\.?\d(?:[eE][-+]\d|[\w.])*|WARP_SZ\b)"
    r"|(?P<operator><<|>>|<=|>=|==|!=|&&|\|\||[-+*/%<>&^|?:!~()]))",
    re.ASCII,
)
#: an expression as a whole, quickly: nothing that is not its alphabet
_ALPHABET = re.compile(r"[\w\s.()*/%<>=!&^|?:+~-]+", re.ASCII)
_PRECEDENCE = {
    operator: level
    for level, group in enumerate(("||", "&&", "|", "^", "&", "== !=", "< > <= >=", "<< >>", "+ -", "* / %"))
    for operator in group.split()
}
_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge,
}  # fmt: skip
_DEEPEST = 100  # levels of parentheses


class _Value(NamedTuple):
    value: int | float
    unsigned: bool = False


class _NoExpression(Exception):
    pass


def constant(text: str) -> Imm | None:
    """The value of a constant expression, or None where `text` is none (a type mismatch, a division by 0)."""
    if _ALPHABET.fullmatch(text) is None:
        return None
    try:
        parser = _Parser(text)
        found = parser.choice()
        if parser.token:
            return None
    except _NoExpression:
        return None
    return Imm(found.value)


class _Parser:
    """Precedence climbing over one text; `token` is the next one, "" at the end."""

    def __init__(self, text: str) -> None:
        self._text, self._at, self._depth = text, 0, 0
        self.token, self._kind = "", ""
        self._next()

    def _next(self) -> str:
        """Step over the present token, and return it."""
        taken = self.token
        found = _TOKEN.match(self._text, self._at)
        if found is None:
            if self._text[self._at :].strip():
                raise _NoExpression
            self.token = self._kind = ""
        else:
            self._at, self._kind = found.end(), found.lastgroup or ""
            self.token = found[self._kind]
        return taken

    def choice(self) -> _Value:
        """An expression, up to `condition ? this : that`."""
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _NoExpression
        condition = self._binary(0)
        if self.token == "?":
            self._next()
            this = self.choice()
            if self._next() != ":":
                raise _NoExpression
            that = self.choice()
            if isinstance(this.value, float) != isinstance(that.value, float):
                raise _NoExpression
            chosen = this if _integer(condition) else that
            condition = (
                chosen if isinstance(chosen.value, float) else _wrapped(chosen.value, this.unsigned | that.unsigned)
            )
        self._depth -= 1
        return condition

    def _binary(self, level: int) -> _Value:
        left = self._unary()
        while (found := _PRECEDENCE.get(self.token, -1)) >= level:
            left = _combined(self._next(), left, self._binary(found + 1))
        return left

    def _unary(self) -> _Value:
        prefixes = []
        while self._kind == "cast" or (self.token and self.token in "+-!~"):
            prefixes.append(self._next())
        found = self._primary()
        for prefix in reversed(prefixes):
            found = _prefixed(prefix, found)
        return found

    def _primary(self) -> _Value:
        if self.token == "(":
            self._next()
            inside = self.choice()
            if self._next() != ")":
                raise _NoExpression
            return inside
        if self._kind != "word":
            raise _NoExpression
        word = self._next()
        if word == "WARP_SZ":
            return _Value(32)
        literal = number(word)
        if literal is None:
            raise _NoExpression
        if isinstance(literal.value, float):
            return _Value(literal.value)
        return _Value(literal.value, literal.value >= 1 << 63 or word[-1] in "uU")


def _integer(operand: _Value) -> int:
    if isinstance(operand.value, float):
        raise _NoExpression
    return operand.value


def _wrapped(value: int, unsigned: bool) -> _Value:
    value &= _MASK
    return _Value(value if unsigned or value < 1 << 63 else value - (1 << 64), unsigned)


def _prefixed(prefix: str, operand: _Value) -> _Value:
    if prefix == "+":
        return operand
    if prefix == "-":
        if isinstance(operand.value, float):
            return _Value(-operand.value)
        return _wrapped(-operand.value, operand.unsigned)
    value = _integer(operand)
    if prefix == "!":
        return _Value(int(value == 0))
    return _wrapped(~value if prefix == "~" else value, ".s64" not in prefix)


def _combined(sign: str, left: _Value, right: _Value) -> _Value:
    """One binary operation. Integers become unsigned where one of them is; % reads them so."""
    a, b = left.value, right.value
    if isinstance(a, float) or isinstance(b, float):
        return _of_floats(sign, a, b)
    if sign in ("&&", "||"):
        return _Value(int(bool(a) and bool(b) if sign == "&&" else bool(a) or bool(b)))
    if sign in ("<<", ">>"):
        return _wrapped(a << (b & 63) if sign == "<<" else a >> (b & 63), left.unsigned)
    unsigned = left.unsigned or right.unsigned
    if sign in ("&", "|", "^"):
        return _wrapped({"&": a & b, "|": a | b, "^": a ^ b}[sign], unsigned)
    if unsigned or sign == "%":
        a, b = a & _MASK, b & _MASK
    if sign in _COMPARISONS:
        return _Value(int(_COMPARISONS[sign](a, b)))
    if sign in "/%":
        if b == 0:
            raise _NoExpression
        if sign == "%":
            return _wrapped(a % b, False)
        quotient = abs(a) // abs(b)
        return _wrapped(quotient if (a < 0) == (b < 0) else -quotient, unsigned)
    return _wrapped({"+": a + b, "-": a - b, "*": a * b}[sign], unsigned)


def _of_floats(sign: str, a: int | float, b: int | float) -> _Value:
    if not (isinstance(a, float) and isinstance(b, float)):
        raise _NoExpression
    if sign in _COMPARISONS:
        return _Value(int(_COMPARISONS[sign](a, b)))
    try:
        operation = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}[sign]
        return _Value(float(operation(a, b)))
    except (KeyError, ZeroDivisionError, OverflowError):
        raise _NoExpression from None
