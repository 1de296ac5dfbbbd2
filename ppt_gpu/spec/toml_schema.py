"""The types that a TOML file may be checked against. See ppt_gpu.spec.toml_reader for the door and an example."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ppt_gpu.common import units
from ppt_gpu.common.errors import did_you_mean


class _Required:
    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED: Any = _Required()


class Mismatch(Exception):
    """A value that does not fit its type."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        self.hint = hint
        super().__init__(message)


def kind_of(value: object) -> str:
    """What a user calls a TOML value: 'a string', 'a table'."""
    kinds: list[tuple[type, str]] = [(bool, "a boolean"), (int, "an integer"), (float, "a number")]
    kinds += [(str, "a string"), (list, "a list"), (dict, "a table")]
    return next((name for kind, name in kinds if isinstance(value, kind)), type(value).__name__)


def shown(value: object) -> str:
    """A value as in a TOML file, shortened, for messages."""
    text = f'"{value}"' if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)
    return text if len(text) <= 60 else text[:57] + "..."


@dataclass(frozen=True, kw_only=True)
class Field:
    """A key of a table. Without `default` the key must be there."""

    default: Any = field(default=REQUIRED)


@dataclass(frozen=True, kw_only=True)
class Leaf(Field):
    """A value: may be written bare or as `{ value = ..., source = "..." }`."""

    def read(self, value: Any) -> Any:
        """The value in base units. Raises Mismatch."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class Number(Leaf):
    """A number without unit, from `minimum` to `maximum`, both allowed unless `above` (exclusive minimum) is set."""

    minimum: float | None = None
    maximum: float | None = None
    above: float | None = None
    integer: bool = False

    def read(self, value: Any) -> int | float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            wanted = "an integer" if self.integer else "a number"
            raise Mismatch(f"expected {wanted}, not {kind_of(value)} {shown(value)}")
        return self.bounded(value, shown(value))

    def bounded(self, value: int | float, text: str) -> int | float:
        """`value` if it is finite, whole where it must be, and in range; `text` is shown in messages."""
        if value != value or value in (float("inf"), float("-inf")):
            raise Mismatch(f"expected a finite number, not {text}")
        if self.integer and value != int(value):
            raise Mismatch(f"expected an integer, not {text}")
        low = (self.minimum is not None and value < self.minimum) or (self.above is not None and value <= self.above)
        high = self.maximum is not None and value > self.maximum
        if low or high:
            raise Mismatch(f"{text} is out of range, expected {self.range_text()}")
        return int(value) if self.integer else float(value)

    def range_text(self) -> str:
        """'at least 1 and at most 8'."""
        bounds = (("more than", self.above), ("at least", self.minimum), ("at most", self.maximum))
        return " and ".join(f"{words} {self.bound_text(bound)}" for words, bound in bounds if bound is not None)

    def bound_text(self, bound: float) -> str:
        return str(int(bound)) if self.integer else f"{bound:g}"


#: how a bound is shown, by dimension
_BOUND_TEXT: dict[str, Callable[[float], str]] = {
    "bytes": units.format_bytes,
    "bytes/s": units.format_rate,
    "cycles": "{:g} cycles".format,
    "bytes/cycle": "{:g} B/cycle".format,
    "frequency": units.format_frequency,
    "time": units.format_time,
}


@dataclass(frozen=True, kw_only=True)
class Quantity(Number):
    """A number with a unit in a string ("48 KiB"), in the base unit of `dimension` (a key of units.EXAMPLES).

    `plain`: a number without unit is allowed too and counts base units (bytes, cycles). Bounds are in base units.
    """

    dimension: str
    plain: bool = False

    def read(self, value: Any) -> int | float:
        if isinstance(value, str):
            try:
                return self.bounded(units.parse_quantity(value, self.dimension), shown(value))
            except ValueError as error:
                raise Mismatch(str(error)) from None
        if self.plain and not isinstance(value, bool) and isinstance(value, int | float):
            return self.bounded(value, shown(value))
        example = units.EXAMPLES[self.dimension]
        raise Mismatch(f'expected a quantity such as "{example}", not {kind_of(value)} {shown(value)}')

    def bound_text(self, bound: float) -> str:
        return _BOUND_TEXT.get(self.dimension, "{:g}".format)(bound)


@dataclass(frozen=True, kw_only=True)
class Text(Leaf):
    """A string: one of `choices`, or matching the regular expression `pattern` (described by `expected`)."""

    choices: tuple[str, ...] = ()
    pattern: str = ""
    expected: str = ""

    def read(self, value: Any) -> str:
        if not isinstance(value, str):
            raise Mismatch(f"expected a string, not {kind_of(value)} {shown(value)}")
        if self.choices and value not in self.choices:
            raise Mismatch(f"unknown value {shown(value)}", did_you_mean(value, self.choices))
        if self.pattern and not re.fullmatch(self.pattern, value):
            raise Mismatch(f"{shown(value)} is not {self.expected or 'of the form ' + self.pattern}")
        return value


@dataclass(frozen=True, kw_only=True)
class Flag(Leaf):
    """true or false."""

    def read(self, value: Any) -> bool:
        if not isinstance(value, bool):
            raise Mismatch(f"expected true or false, not {kind_of(value)} {shown(value)}")
        return value


@dataclass(frozen=True, kw_only=True)
class ListOf(Leaf):
    """A list of leaves, as a tuple. `single`: one bare value stands for a list of one."""

    item: Leaf
    min_items: int = 0
    max_items: int | None = None
    single: bool = False

    def read(self, value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list):
            if not self.single:
                raise Mismatch(f"expected a list, not {kind_of(value)} {shown(value)}")
            value = [value]
        most = len(value) if self.max_items is None else self.max_items
        if not self.min_items <= len(value) <= most:
            bounds = f"{self.min_items} to {self.max_items}" if self.max_items is not None else f">= {self.min_items}"
            bounds = str(self.min_items) if self.min_items == self.max_items else bounds
            raise Mismatch(f"expected {bounds} items, not {len(value)}")
        return tuple(self.item.read(each) for each in value)


@dataclass(frozen=True, kw_only=True)
class OneOf(Leaf):
    """The first of several leaf types that accepts the value; `expected` names them in the message."""

    leaves: tuple[Leaf, ...]
    expected: str

    def read(self, value: Any) -> Any:
        for leaf in self.leaves:
            try:
                return leaf.read(value)
            except Mismatch:
                continue
        raise Mismatch(f"expected {self.expected}, not {kind_of(value)} {shown(value)}")


@dataclass(frozen=True, kw_only=True)
class Table(Field):
    """A table with known keys. Absent optional tables give their `default` (None, or {} filled with defaults)."""

    fields: Mapping[str, Field]


@dataclass(frozen=True, kw_only=True)
class TableList(Field):
    """An array of tables ([[launch]]), or an array of inline tables. Gives a list of dicts."""

    item: Table
    min_items: int = 0


@dataclass(frozen=True, kw_only=True)
class Keyed(Field):
    """A table whose keys are free names ([op."fp32.fma"]), all with the same type of value. Gives a dict.

    `key` returns an error text (and optional hint) for a bad name, or None.
    """

    item: Field
    key: Callable[[str], tuple[str, str | None] | None] | None = None
