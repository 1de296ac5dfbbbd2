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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ppt_gpu.common.errors import InputErrors, PptError, did_you_mean, nearest
from ppt_gpu.spec.gpu import Source
from ppt_gpu.spec.toml_document import Document, parse_override, parse_toml, read_toml
from ppt_gpu.spec.toml_scan import Path, Place, dotted
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


@dataclass
class Checked:
    """What `check` found: values, sources by dotted path, and the errors so far."""

    document: Document
    values: dict[str, Any] = field(default_factory=dict)
    #: of every value that was given: its name, where its text stands, and the source that the file gives
    given: dict[str, tuple[Path, Path, str]] = field(default_factory=dict)
    errors: list[PptError] = field(default_factory=list)

    @cached_property
    def sources(self) -> dict[str, Source]:
        """Where each value that was given comes from, by dotted path."""
        found = {}
        for name, (path, text, origin) in self.given.items():
            place = self.document.place(path)
            found[name] = Source(name, self.document.place(text).text, origin, place.file, place.line)
        return found

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
        elif isinstance(kind.item, Table) and isinstance(each, dict):
            beside = [other for other in value if other != key]
            result[key] = _table(checked, (*path, key), kind.item.fields, each, beside)
        else:
            result[key] = _field(checked, (*path, key), kind.item, each)
    return result


def _table(
    checked: Checked, path: Path, fields: Mapping[str, Field], data: dict[str, Any], beside: Sequence[str] = ()
) -> dict[str, Any]:
    """`beside`: the tables beside it, of those with names of their own, with one of which it may have been confused."""
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
            close = nearest(str(path[-1]), beside) if beside else None
            hint = f"did you mean '{close}'?" if close else None
            checked.problem(path, f"missing {what} {dotted((*path, key))}", hint)
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
    text, origin = path, ""
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
        text = (*path, "value")
        value = value["value"]
    name = dotted(path)
    checked.given[name] = path, text, origin
    try:
        return kind.read(value)
    except Mismatch as error:
        checked.problem(path, f"{name}: {error}", error.hint)
        return None


__all__ = [
    "REQUIRED", "Checked", "Document", "Field", "Flag", "Keyed", "Leaf", "ListOf", "Mismatch", "Number", "OneOf",
    "Path", "Place", "Quantity", "Source", "Table", "TableList", "Text", "check", "dotted", "kind_of",
    "parse_override", "parse_toml", "read_toml", "shown",
]  # fmt: skip
