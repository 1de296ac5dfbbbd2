"""The plain part of TOML, read fast: keys, tables and values each on a line, numbers and texts without special forms.

Hardware files and workloads are written like that, and Python's own parser, which goes from letter to letter, takes
several times as long. It gets what is written in another way, and all that is an error or not easily told from one.
"""

from __future__ import annotations

import re
from typing import Any, TypeVar

_SPACE = r"[ \t]*"
_CHARACTER = r"[^\x00-\x08\x0a-\x1f\x7f]"
_STRING = r'"([^"\\\x00-\x08\x0a-\x1f\x7f]*)"(?!")'
_BARE = r"[A-Za-z0-9_-]+"
_KEY = rf"(?:({_BARE})|{_STRING}){_SPACE}={_SPACE}"
_PATH = rf"{_BARE}(?:\.{_BARE})*"
_WHOLE = r"[+-]?(?:0|[1-9][0-9]*)"
#: a line up to its value: (bare key, key as a text, table, array of tables)
_START = re.compile(rf"{_SPACE}(?:{_KEY}|\[({_PATH})\]|\[\[({_PATH})\]\])?").match
_END = re.compile(rf"{_SPACE}(?:#{_CHARACTER}*)?(?:\n|\Z)").match
#: (text, number with a point or an exponent, whole number, truth value, bracket)
_VALUE = re.compile(
    rf"(?:{_STRING}|({_WHOLE}(?:\.[0-9]+(?:[eE][+-]?[0-9]+)?|[eE][+-]?[0-9]+))|({_WHOLE})|(true|false)|([\[{{]))"
).match
_PAIR = re.compile(rf"{_SPACE}{_KEY}").match
#: what stands behind a part of an array or an inline table
_MARK = re.compile(rf"{_SPACE}([,\]}}])").match
_AHEAD = re.compile(rf"{_SPACE}(\]?)").match

Table = dict[str, Any]
V = TypeVar("V")


class _NotPlain(Exception):
    """Something else than what is read here."""


def plain_toml(text: str) -> Table | None:
    """The data of a TOML document with line ends "\\n", as `tomllib.loads` has them; None: ask that."""
    try:
        return _document(text)
    except _NotPlain:
        return None


def _document(text: str) -> Table:
    headers = _Headers()
    here, at, end = headers.data, 0, len(text)
    while at < end:
        start = _START(text, at)
        assert start is not None  # it may be empty
        bare, string, table, element = start.groups()
        at = start.end()
        if table is not None:
            here = headers.table(table)
        elif element is not None:
            here = headers.element(element)
        elif bare is not None or string is not None:
            at = _key_value(here, string if bare is None else bare, text, at)
        closed = _END(text, at)
        if closed is None:
            raise _NotPlain
        at = closed.end()
    return headers.data


class _Headers:
    """The tables that headers name. A name is taken once: what else TOML allows is not plain."""

    def __init__(self) -> None:
        self.data: Table = {}
        self.tables: dict[str, Table] = {"": self.data}
        self.arrays: dict[str, list[Table]] = {}

    def table(self, path: str) -> Table:
        """The new table at `path`, and the tables around it."""
        around, _, name = path.rpartition(".")
        above = self.tables[around] if around in self.tables else self.table(around)
        made = above[name] = _unless_taken(above, name, Table())
        self.tables[path] = made
        return made

    def element(self, path: str) -> Table:
        """The next table of the array at `path`. Tables in it may have the names of those in the one before it."""
        if path in self.arrays:
            inner = path + "."
            self.tables = {name: table for name, table in self.tables.items() if not name.startswith(inner)}
            self.arrays = {name: array for name, array in self.arrays.items() if not name.startswith(inner)}
        else:
            around, _, name = path.rpartition(".")
            above = self.tables[around] if around in self.tables else self.table(around)
            self.arrays[path] = above[name] = _unless_taken(above, name, list[Table]())
        made = self.tables[path] = Table()
        self.arrays[path].append(made)
        return made


def _unless_taken(table: Table, key: str, value: V) -> V:
    if key in table:
        raise _NotPlain
    return value


def _key_value(table: Table, key: str, text: str, at: int) -> int:
    """Put the value that begins at `at` into the table. Returns where it ends."""
    value, end = _value(text, at)
    table[key] = _unless_taken(table, key, value)
    return end


def _value(text: str, at: int) -> tuple[Any, int]:
    """The value that begins there, and where it ends."""
    found = _VALUE(text, at)
    if found is None:
        raise _NotPlain
    string, number, whole, truth, bracket = found.groups()
    at = found.end()
    if string is not None:
        return string, at
    if whole is not None:
        return int(whole), at
    if number is not None:
        return float(number), at
    if truth is not None:
        return truth == "true", at
    return _array(text, at) if bracket == "[" else _inline_table(text, at)


def _array(text: str, at: int) -> tuple[list[Any], int]:
    """The rest of an array, on one line. A comma may end it."""
    found: list[Any] = []
    while True:
        ahead = _AHEAD(text, at)
        assert ahead is not None  # it may be empty
        if ahead[1]:
            return found, ahead.end()
        value, at = _value(text, ahead.end())
        found.append(value)
        mark = _MARK(text, at)
        if mark is None or mark[1] == "}":
            raise _NotPlain
        at = mark.end()
        if mark[1] == "]":
            return found, at


def _inline_table(text: str, at: int) -> tuple[Table, int]:
    """The rest of an inline table that is not empty."""
    found: Table = {}
    while True:
        key = _PAIR(text, at)
        if key is None:
            raise _NotPlain
        bare, string = key.groups()
        at = _key_value(found, string if bare is None else bare, text, key.end())
        mark = _MARK(text, at)
        if mark is None or mark[1] == "]":
            raise _NotPlain
        at = mark.end()
        if mark[1] == "}":
            return found, at
