"""Expressions over parameters, such as "sm.count*4 <= 256": arithmetic and comparisons, read by a parser, never run.

Names are those of parameters ("sm.count", "block.x", "arguments[3]"); texts are quantities ('288 GB/s', in
base units) or plain words. Functions: min, max, abs, ceil, floor, round, sqrt, log2.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ppt_gpu.common import units
from ppt_gpu.common.errors import PptError, did_you_mean

Value = int | float | str | bool

LONGEST = 2000  # characters of an expression
DEEPEST = 60  # operations within one another
LARGEST = 1e300

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "min": min, "max": max, "abs": abs, "ceil": math.ceil, "floor": math.floor, "round": round, "sqrt": math.sqrt,
    "log2": math.log2,
}  # fmt: skip


def _power(base: float, exponent: float) -> float:
    """In floating point, so that no expression makes an integer that fills the memory."""
    found = float(base) ** float(exponent)
    if isinstance(found, complex):
        raise ValueError("the root of a negative number")
    return int(found) if found == int(found) and abs(found) < 2**53 else found


_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: _power,
}  # fmt: skip
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Not: operator.not_,
}  # fmt: skip
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.Eq: operator.eq, ast.NotEq: operator.ne,
}  # fmt: skip


@dataclass(frozen=True)
class Expression:
    """An expression that was read: evaluate it as often as needed."""

    text: str
    option: str  # "--where", for messages
    names: tuple[str, ...]
    _tree: ast.expr

    def __call__(self, value_of: Callable[[str], Value]) -> Value:
        """The value, names standing for what `value_of` gives. PptError where it has none (1/0, 'gto' + 1)."""
        try:
            return _checked(_evaluate(self._tree, value_of))
        except (TypeError, ValueError, ArithmeticError) as error:
            raise PptError(f"{self.option} {self.text}: {error}") from None


def parse_expression(text: str, option: str) -> Expression:
    """Read an expression. PptError, with the place, for what is none and for everything that is not allowed in one."""
    if len(text) > LONGEST:
        raise PptError(f"{option}: an expression of {len(text)} characters", hint=f"at most {LONGEST}")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        at = f" at column {error.offset}" if isinstance(error, SyntaxError) and error.offset else ""
        hint = "such as sm.count*4 <= 256, or dram.bandwidth <= '300 GB/s'"
        raise PptError(f"{option} {text}: not an expression{at}", hint=hint) from None
    found: list[str] = []
    _check(tree, f"{option} {text}", found, 0)
    return Expression(text.strip(), option, tuple(dict.fromkeys(found)), tree)


def check_names(expressions: Iterable[Expression], known: Iterable[str]) -> None:
    """PptError for a name that is not in `known`, with the nearest one."""
    known = list(known)
    for expression in expressions:
        for name in expression.names:
            if name not in known:
                raise PptError(
                    f"{expression.option} {expression.text}: unknown parameter '{name}'", hint=did_you_mean(name, known)
                )


def text_value(text: str) -> Value:
    """What a text stands for: a number, a quantity in base units, or the word itself."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    for dimension in units.EXAMPLES:
        try:
            return units.parse_quantity(text, dimension)
        except ValueError:
            continue
    return text


def _name(node: ast.expr) -> str | None:
    """The parameter that a name, "a.b" or "a[3]" means."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        inner = _name(node.value)
        return None if inner is None else f"{inner}.{node.attr}"
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and type(node.slice.value) is int:
        inner = _name(node.value)
        return None if inner is None else f"{inner}[{node.slice.value}]"
    return None


def _children(node: ast.expr) -> list[ast.expr] | None:
    """The parts of an allowed operation; None for what is not allowed."""
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        return [node.left, node.right]
    if isinstance(node, ast.UnaryOp) and type(node.op) in _UNARY:
        return [node.operand]
    if isinstance(node, ast.Compare) and all(type(op) in _COMPARE for op in node.ops):
        return [node.left, *node.comparators]
    if isinstance(node, ast.BoolOp):
        return node.values
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords and node.args:
        return None if any(isinstance(one, ast.Starred) for one in node.args) else node.args
    if isinstance(node, ast.Constant) and type(node.value) in (int, float, str, bool):
        return []
    return None


def _check(node: ast.expr, label: str, names: list[str], depth: int) -> None:
    if depth > DEEPEST:
        raise PptError(f"{label}: more than {DEEPEST} operations within one another")
    name = _name(node)
    if name is not None:
        names.append(name)
        return
    parts = _children(node)
    if parts is None:
        what = ast.unparse(node)
        raise PptError(
            f"{label}: '{what if len(what) < 40 else what[:37] + '...'}' is not allowed in an expression",
            hint="numbers, parameters, quantities in quotes, + - * / // % **, comparisons, and, or, not, "
            + ", ".join(FUNCTIONS),
        )
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id not in FUNCTIONS:
        raise PptError(f"{label}: unknown function '{node.func.id}'", hint=did_you_mean(node.func.id, FUNCTIONS))
    for part in parts:
        _check(part, label, names, depth + 1)


def _evaluate(node: ast.expr, value_of: Callable[[str], Value]) -> Value:
    name = _name(node)
    if name is not None:
        return value_of(name)
    if isinstance(node, ast.Constant):
        return text_value(node.value) if isinstance(node.value, str) else node.value  # type: ignore[return-value]
    if isinstance(node, ast.BinOp):
        left, right = _evaluate(node.left, value_of), _evaluate(node.right, value_of)
        return _checked(_BINARY[type(node.op)](_number(left), _number(right)))
    if isinstance(node, ast.UnaryOp):
        inner = _evaluate(node.operand, value_of)
        return _checked(_UNARY[type(node.op)](inner if isinstance(node.op, ast.Not) else _number(inner)))
    if isinstance(node, ast.BoolOp):
        every = isinstance(node.op, ast.And)
        return all(_evaluate(one, value_of) for one in node.values) if every else any(
            _evaluate(one, value_of) for one in node.values
        )  # fmt: skip
    if isinstance(node, ast.Compare):
        return _compared(node, value_of)
    assert isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    return _checked(FUNCTIONS[node.func.id](*(_number(_evaluate(one, value_of)) for one in node.args)))


def _compared(node: ast.Compare, value_of: Callable[[str], Value]) -> bool:
    left = _evaluate(node.left, value_of)
    for op, part in zip(node.ops, node.comparators, strict=True):
        right = _evaluate(part, value_of)
        if isinstance(left, str) != isinstance(right, str):
            raise ValueError(f"cannot compare {left!r} with {right!r}")
        if not _COMPARE[type(op)](left, right):
            return False
        left = right
    return True


def _number(value: Value) -> int | float:
    if isinstance(value, str):
        raise ValueError(f"'{value}' is not a number")
    return value


def _checked(value: Any) -> Value:
    if isinstance(value, int | float) and not abs(value) <= LARGEST:
        raise ValueError("the result is too large")
    found: Value = value
    return found
