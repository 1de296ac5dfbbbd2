"""Strict TOML: every value typed, every error of a file found in one pass, each with file, line and column.

Example::

    from ppt_gpu.spec.toml_reader import Keyed, Number, Quantity, Table, Text, check, read_toml

    SCHEMA = Table(fields={
        "name": Text(),                                             # required: no default
        "clock": Quantity(dimension="frequency", above=0),          # clock = "745 MHz"  -> 745e6
        "size": Quantity(dimension="bytes", plain=True, integer=True, minimum=0, default=0),
        "pipes": Keyed(item=Table(fields={"lanes": Number(integer=True, minimum=1)})),
    })
    document = read_toml("gpu.toml")                 # PptError with line and column for a syntax error
    checked = check(document, SCHEMA)                # nothing is raised yet
    if checked.values.get("size", 0) > 4096:         # rules between values join the same list of errors
        checked.contradiction([("size",)], "the size is more than 4096")
    values = checked.finish()                        # InputErrors with all errors, or the values
    checked.sources["clock"].source                  # clock = { value = "745 MHz", source = "data sheet" }
    checked.place(("pipes", "fp32", "lanes")).line   # where it stands, for later messages

Any leaf may be written bare or as `{ value = ..., source = "..." }`. Values that are wrong are left out of
`values` (None) so that rules between values must look before they compare: `checked.get(path)` gives None then.
"""

from __future__ import annotations

import copy
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any

from ppt_gpu.errors import InputErrors, PptError, did_you_mean
from ppt_gpu.spec.gpu import Source
from ppt_gpu.spec.toml_scan import Path, Place, Scanner, dotted, scan
from ppt_gpu.spec.toml_schema import (
    REQUIRED,
    Field,
    Flag,
    Keyed,
    Leaf,
    ListOf,
    Mismatch,
    Number,
    OneOf,
    Quantity,
    Table,
    TableList,
    Text,
    kind_of,
    shown,
)

__all__ = [
    "REQUIRED", "Checked", "Document", "Field", "Flag", "Keyed", "Leaf", "ListOf", "Mismatch", "Number", "OneOf",
    "Path", "Place", "Quantity", "Source", "Table", "TableList", "Text", "check", "dotted", "parse_override",
    "parse_toml", "read_toml",
]  # fmt: skip


@dataclass
class Document:
    """The data of a TOML file and where each part of it is written."""

    file: str
    data: dict[str, Any]
    places: dict[Path, Place]

    def place(self, path: Path) -> Place:
        """Where `path` is written, or else the nearest table around it."""
        while path and path not in self.places:
            path = path[:-1]
        return self.places.get(path, Place(self.file, 1))

    def merged(self, top: Document) -> Document:
        """This document with `top` laid over it: tables merge key by key, everything else is replaced."""
        data, places = copy.deepcopy(self.data), dict(self.places)
        _merge(data, top.data, (), places)
        # a command-line override (no file) leaves the tables around its value where they are
        places.update({path: place for path, place in top.places.items() if top.file or path not in places})
        return Document(top.file or self.file, data, places)


def _merge(low: dict[str, Any], top: dict[str, Any], path: Path, places: dict[Path, Place]) -> None:
    for key, value in top.items():
        here = (*path, key)
        old = low.get(key)
        # a table with the key "value" is one leaf: a new value must not keep the old value's source
        if isinstance(old, dict) and isinstance(value, dict) and "value" not in old and "value" not in value:
            _merge(old, value, here, places)
            continue
        low[key] = copy.deepcopy(value)
        for gone in [each for each in places if each[: len(here)] == here]:
            del places[gone]


def read_toml(path: str | FilePath) -> Document:
    """Read a TOML file. Raises PptError for a file that cannot be read and for syntax errors, with line and column."""
    try:
        raw = FilePath(path).read_bytes()
    except OSError as error:
        raise PptError(f"cannot read the file: {error.strerror}", path=path) from None
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise PptError("the file is not UTF-8 text", path=path, line=line) from None
    return parse_toml(text, str(path))


def parse_toml(text: str, file: str) -> Document:
    """The document in `text`; `file` is used in messages. Raises PptError for a syntax error."""
    text = text.replace("\r\n", "\n")
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message, line, column = str(error), text.count("\n") + 1, None
        at = re.search(r" \(at (?:line (\d+), column (\d+)|end of document)\)$", message)
        if at:
            message = message[: at.start()]
            if at.group(1):
                line, column = int(at.group(1)), int(at.group(2))
        message = f"not valid TOML: {message[:1].lower()}{message[1:]}"
        raise PptError(message, path=file, line=line, column=column) from None
    return Document(file, data, scan(text, file))


def parse_override(text: str, option: str = "--set") -> Document:
    """A document of one value from "sm.count=30" or "dram.bandwidth=1 TB/s" (quotes around strings may be left out).

    Errors in the value will name `option` and the text instead of a file and line. Raises PptError for a bad key.
    """
    label = f"{option} {text}"
    name, equals, written = text.partition("=")
    scanner = Scanner(name, label)
    try:
        path = scanner.key()
    except ValueError:
        path = ()
    if not equals or not path or scanner.at != len(name) or not written.strip():
        raise PptError("expected KEY=VALUE, such as sm.count=30 or dram.bandwidth=1 TB/s", path=label)
    try:
        value = tomllib.loads(f"v = {written.strip()}")["v"]
    except tomllib.TOMLDecodeError:
        value = written.strip()
    places: dict[Path, Place] = {}
    data: Any = value
    for depth in range(len(path), 0, -1):
        data = {path[depth - 1]: data}
        places[path[:depth]] = Place(label, 0, 0, written.strip())
    return Document("", data, places)


@dataclass
class Checked:
    """What `check` found: values, sources by dotted path, and the errors so far."""

    document: Document
    values: dict[str, Any] = field(default_factory=dict)
    sources: dict[str, Source] = field(default_factory=dict)
    errors: list[PptError] = field(default_factory=list)

    def problem(self, path: Path, message: str, hint: str | None = None) -> None:
        """Add an error at the place of `path`."""
        place = self.document.place(path)
        self.errors.append(
            PptError(message, path=place.file, line=place.line or None, column=place.column or None, hint=hint)
        )

    def contradiction(self, paths: Sequence[Path], message: str, hint: str | None = None) -> None:
        """Add an error at the one of `paths` that was written last: on the command line, in the file, in its base."""

        def age(path: Path) -> int:
            place = self.document.place(path)
            return 0 if not place.line else 1 if place.file == self.document.file else 2

        self.problem(min(paths, key=age), message, hint)

    def place(self, path: Path) -> Place:
        """Where `path` is written, or else the nearest table around it."""
        return self.document.place(path)

    def get(self, *path: str | int) -> Any:
        """The value at `path`, or None where it is absent or was wrong."""
        value: Any = self.values
        for part in path:
            try:
                value = value[part]
            except (KeyError, IndexError, TypeError):
                return None
        return value

    def finish(self) -> dict[str, Any]:
        """The values, or InputErrors with every error, ordered by file and line."""
        if self.errors:
            raise InputErrors(sorted(self.errors, key=lambda e: (e.path or "", e.line or 0, e.column or 0)))
        return self.values


def check(document: Document, schema: Table) -> Checked:
    """Check `document` against `schema`: unknown, missing and wrong keys, types, units, ranges. Raises nothing."""
    checked = Checked(document)
    checked.values = _table(checked, (), schema.fields, document.data)
    return checked


def _field(checked: Checked, path: Path, kind: Field, value: Any) -> Any:
    if isinstance(kind, Leaf):
        return _leaf(checked, path, kind, value)
    if isinstance(kind, TableList):
        return _table_list(checked, path, kind, value)
    if not isinstance(value, dict):
        checked.problem(path, f"{dotted(path)}: expected a table, not {kind_of(value)} {shown(value)}")
        return None
    if isinstance(kind, Table):
        return _table(checked, path, kind.fields, value)
    assert isinstance(kind, Keyed)
    result = {}
    for key, each in value.items():
        bad = kind.key(key) if kind.key else None
        if bad:
            checked.problem((*path, key), bad[0], bad[1])
        else:
            result[key] = _field(checked, (*path, key), kind.item, each)
    return result


def _table(checked: Checked, path: Path, fields: Mapping[str, Field], data: dict[str, Any]) -> dict[str, Any]:
    for key in data:
        if key not in fields:
            here = (*path, key)
            what = "key" if not isinstance(data[key], dict) or "value" in data[key] else "table"
            checked.problem(here, f"unknown {what} {dotted(here)}", did_you_mean(key, fields))
    values: dict[str, Any] = {}
    for key, kind in fields.items():
        if key in data:
            values[key] = _field(checked, (*path, key), kind, data[key])
        elif kind.default is not REQUIRED:
            values[key] = copy.copy(kind.default)
        else:
            what = "key" if isinstance(kind, Leaf) else "table"
            checked.problem(path, f"missing {what} {dotted((*path, key))}")
            values[key] = None
    return values


def _table_list(checked: Checked, path: Path, kind: TableList, value: Any) -> Any:
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        name = dotted(path)
        checked.problem(path, f"{name}: expected tables ([[{name}]]), not {kind_of(value)} {shown(value)}")
        return None
    if len(value) < kind.min_items:
        checked.problem(path, f"{dotted(path)}: expected at least {kind.min_items} tables, not {len(value)}")
    return [_table(checked, (*path, index), kind.item.fields, each) for index, each in enumerate(value)]


def _leaf(checked: Checked, path: Path, kind: Leaf, value: Any) -> Any:
    place, origin = checked.document.place(path), ""
    text = place.text
    if isinstance(value, dict):
        for key in value:
            if key not in ("value", "source"):
                hint = did_you_mean(key, ("value", "source"))
                checked.problem((*path, key), f"unknown key {dotted((*path, key))}", hint)
        if not isinstance(value.get("source", ""), str):
            checked.problem((*path, "source"), f"{dotted(path)}: the source must be a string")
        if "value" not in value:
            checked.problem(path, f'{dotted(path)}: expected a value or {{ value = ..., source = "..." }}')
            return None
        origin = str(value.get("source", ""))
        text = checked.document.place((*path, "value")).text
        value = value["value"]
    name = dotted(path)
    checked.sources[name] = Source(name, text, origin, place.file, place.line)
    try:
        return kind.read(value)
    except Mismatch as error:
        checked.problem(path, f"{name}: {error}", error.hint)
        return None
