"""The text form of the intermediate representation: TOML, to be read and edited by hand, and read back strictly."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ppt_gpu.common.errors import PptError, did_you_mean
from ppt_gpu.multicore.base.operations import CLASSES
from ppt_gpu.multicore.representation.ir import Amount, Ir, IrError
from ppt_gpu.spec.toml_reader import (
    Checked,
    Document,
    Keyed,
    ListOf,
    Number,
    Quantity,
    Table,
    Text,
    check,
    parse_toml,
)

VERSION = 1


def _known_class(name: str) -> tuple[str, str | None] | None:
    return None if name in CLASSES else (f"unknown operation '{name}'", did_you_mean(name, CLASSES))


def _window(name: str) -> tuple[str, str | None] | None:
    return None if name.isdecimal() and int(name) > 0 else (f"'{name}' is no window, such as 64", None)


def _distance(name: str) -> tuple[str, str | None] | None:
    good = name.isdecimal() or name == "irregular"
    return None if good else (f"'{name}' is no distance: a number of elements, or irregular", None)


_AMOUNT = Number(minimum=0)


def _bytes(**more: Any) -> Quantity:
    return Quantity(dimension="bytes", plain=True, minimum=0, **more)


_SHARE = Number(minimum=0, maximum=1)
SCHEMA = Table(
    fields={
        "version": Number(integer=True, minimum=VERSION, maximum=VERSION),
        "name": Text(),
        "origin": Text(),
        "notes": ListOf(item=Text(), default=()),
        "work": Table(
            fields={
                "threads": Number(above=0),
                "width": Number(integer=True, minimum=1),
                "group_threads": Number(integer=True, minimum=0, default=0),
                "inner_loops": Number(minimum=0, default=0.0),
                "parallel": Number(minimum=0, maximum=1, default=1.0),
                "mispredicted": Number(minimum=0, maximum=1, default=None),
            }
        ),
        "operations": Keyed(item=Table(fields={"threads": _AMOUNT, "groups": _AMOUNT}), key=_known_class),
        "ilp": Keyed(item=Number(minimum=1), key=_window, default={}),
        "memory": Table(fields={"footprint": _bytes(), "scratch": _bytes(default=0.0), "element": _bytes()}),
        "strides": Keyed(item=_SHARE, key=_distance, default={}),
    }
)


def write_ir(ir: Ir) -> str:
    """`ir` as text that `parse_ir` reads back to an equal one."""
    work = {
        "threads": ir.threads,
        "width": ir.width,
        "group_threads": ir.group_threads,
        "inner_loops": ir.inner_loops,
        "parallel": ir.parallel,
    }
    if ir.mispredicted is not None:
        work["mispredicted"] = ir.mispredicted
    lines = [
        "# What a program does, whatever machine it was measured on (docs/port.md).",
        f"version = {VERSION}",
        f"name = {_quoted(ir.name)}",
        f"origin = {_quoted(ir.origin)}",
        *(["notes = [", *(f"    {_quoted(note)}," for note in ir.notes), "]"] if ir.notes else []),
        "",
        "[work]  # pieces that could run side by side, and how the source groups them",
        *_pairs(work),
        "",
        "[operations]  # executions by threads, and by groups of threads",
        *(
            f"{name} = {{ threads = {_number(a.threads)}, groups = {_number(a.groups)} }}"
            for name, a in ir.operations.items()
        ),
        "",
        "[ilp]  # window = operations of a thread that could start in a cycle",
        *_pairs({str(window): value for window, value in ir.ilp.items()}),
        "",
        "[memory]  # bytes",
        *_pairs({"footprint": ir.footprint, "scratch": ir.scratch, "element": ir.element}),
        "",
        "[strides]  # elements between neighbouring threads = share of the accesses",
        *_pairs(ir.strides),
    ]
    return "\n".join(lines) + "\n"


def _pairs(values: Mapping[str, float]) -> list[str]:
    return [f"{name} = {_number(value)}" for name, value in values.items()]


def _number(value: float) -> str:
    """Exact, and without a point where it is whole."""
    return str(int(value)) if float(value).is_integer() and abs(value) < 2**53 else repr(float(value))


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007F")


def read_ir(path: str | Path) -> Ir:
    """The representation in the file `path`. Raises PptError, or InputErrors with every mistake."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise PptError(f"cannot read: {reason}", path=path) from None
    return parse_ir(text, str(path))


def parse_ir(text: str, path: str = "representation") -> Ir:
    """The representation that `text` states; `path` is shown in messages."""
    document: Document = parse_toml(text, path)
    checked: Checked = check(document, SCHEMA)
    values: dict[str, Any] = checked.finish()
    work, memory = values["work"], values["memory"]
    try:
        return Ir(
            name=values["name"],
            origin=values["origin"],
            notes=values["notes"],
            operations={name: Amount(**each) for name, each in values["operations"].items()},
            ilp={int(window): ilp for window, ilp in values["ilp"].items()},
            strides=values["strides"],
            **work,
            **memory,
        )
    except IrError as error:
        checked.problem(error.at, error.message, error.hint)
        checked.finish()
        raise
