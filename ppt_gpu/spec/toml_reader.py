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

from ppt_gpu.spec.gpu import Source
from ppt_gpu.spec.toml_check import Checked, check
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

__all__ = [
    "REQUIRED", "Checked", "Document", "Field", "Flag", "Keyed", "Leaf", "ListOf", "Mismatch", "Number", "OneOf",
    "Path", "Place", "Quantity", "Source", "Table", "TableList", "Text", "check", "dotted", "kind_of",
    "parse_override", "parse_toml", "read_toml", "shown",
]  # fmt: skip
