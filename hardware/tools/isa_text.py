"""The text of the ISA files that make_isa.py writes: operations are one line each, a number with its source."""

from __future__ import annotations

import re
from itertools import groupby

from rows import Row


def compact(operations: list[str]) -> str:
    runs = [(name, len(list(group))) for name, group in groupby(operations)]
    return ", ".join(f'"{name}*{count}"' if count > 1 else f'"{name}"' for name, count in runs)


def key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else f'"{name}"'


def text(
    name: str,
    note: str,
    rows: list[Row],
    expand: dict[str, list[str]],
    fuse: dict[str, list[str]] | None = None,
    added: dict[str, list[str]] | None = None,
) -> str:
    """The TOML file. Operations are one line each, so that a line is a number with its source.

    fuse: where the GPU runs what ptxas makes of PTX, not PTX itself.
    """
    lines = ["# Made by hardware/tools/make_isa.py; change the tables there."]
    lines += [f'name = "{name}"', f'notes = "{note}"', *(["scheduled = true"] if fuse is not None else [])]
    lines += [*sm_of(name), "", "[op]"]
    lines += [line_of(row) for row in rows]
    if expand:
        lines += ["", "[expand]"]
        lines += [f"{key(opcode)} = [{compact(operations)}]" for opcode, operations in expand.items()]
    if fuse:
        lines += ["", "[fuse]"]
        lines += [f"{key(pattern)} = [{compact(operations)}]" for pattern, operations in fuse.items()]
    if added:
        lines += ["", "[unnamed]"]
        lines += [f"{key(what)} = [{compact(operations)}]" for what, operations in sorted(added.items())]
    return "\n".join(lines) + "\n"


def line_of(row: Row) -> str:
    ii = "" if row.ii is None else f", ii = {row.ii}"
    source = row.source.replace("\\", "\\\\").replace('"', '\\"')
    return f'{key(row.name)} = {{ pipe = "{row.pipe}", latency = {row.latency}{ii}, source = "{source}" }}'


def over(base: str, changed: list[Row], known: list[Row], note: str = "", more: tuple[str, ...] = ()) -> str:
    """An ISA file over another: the rows of `changed` that differ from `known`, those of the base."""
    rows = [row for row in changed if row not in known]
    head = ["# Made by hardware/tools/make_isa.py; change the tables there.", f'base = "{base}"']
    head += [*([f'notes = "{note}"'] if note else []), *more]
    return "\n".join([*head, *(["", "[op]"] if rows else []), *(line_of(row) for row in rows)]) + "\n"


def sm_of(name: str) -> list[str]:
    """What the compiler takes an SM of "sm_86" to hold, where its register counts show it (machine/registers.py)."""
    threads = {"sm_75": 1024, "sm_86": 1536, "sm_89": 1536, "sm_120": 1536}.get(name, 2048)
    if not name.startswith("sm_") or int(name[3:]) < 30:
        return []
    return [
        "# CUDA C++ Programming Guide, Technical Specifications per Compute Capability",
        "sm_registers = 65536",
        f"sm_threads = {threads}",
    ]
