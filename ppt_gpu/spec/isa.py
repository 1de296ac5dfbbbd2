"""Reading an ISA file: machine operations with their timing, and what PTX opcodes become."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from ppt_gpu.common.errors import did_you_mean
from ppt_gpu.spec.files import find, read_with_base, shipped_names
from ppt_gpu.spec.gpu import TASK_CLASSES, Isa, LaterSources, Op, Source
from ppt_gpu.spec.gpu_schema import ISA
from ppt_gpu.spec.toml_reader import Checked, check, dotted

_ITEM = re.compile(r"([\w.]+)(?:\s*\*\s*([1-9]\d*))?")


@dataclass(frozen=True)
class OpEntry:
    """An operation as the file gives it: `ii` None stands for the initiation interval of the pipe."""

    name: str
    pipe: str
    latency: int
    ii: int | None
    source: str

    def on(self, pipe_ii: int) -> Op:
        """The operation on a pipe with this full-rate initiation interval."""
        return Op(self.name, self.pipe, self.latency, self.ii or pipe_ii, self.source)


@dataclass(frozen=True)
class IsaFile:
    name: str
    entries: dict[str, OpEntry]
    expand: dict[str, tuple[str, ...]]
    fuse: dict[str, tuple[str, ...]]
    unnamed: dict[str, tuple[str, ...]]
    sources: Mapping[str, Source]
    scheduled: bool
    sm_registers: int
    sm_threads: int

    def with_ops(self, ops: Mapping[str, Op]) -> Isa:
        """The ISA, with the timing of its operations on the pipes of a GPU."""
        return Isa(
            self.name, ops, self.expand, self.scheduled, self.fuse, self.unnamed, self.sm_registers, self.sm_threads
        )  # fmt: skip


def load_isa(name: str | Path) -> Isa:
    """The ISA `name` ("sm_70"), or of a file. Where an operation has no `ii` of its own it is 1.

    A Gpu's `isa` has the initiation intervals of its pipes filled in instead. Raises PptError, InputErrors.
    """
    isa = read_isa(find("isa", str(name)))
    ops = {key: entry.on(1) for key, entry in isa.entries.items()}
    return isa.with_ops(ops)


def isa_of(target: str) -> Isa:
    """The ISA of an architecture ("sm_75", "sm_90a"), or the newest shipped one before it; the oldest before all."""
    wanted = int(re.sub(r"\D", "", target) or 0)
    known = sorted(int(name[3:]) for name in shipped_names("isa") if name.startswith("sm_"))
    return load_isa(f"sm_{max([capability for capability in known if capability <= wanted] or known[:1])}")


def read_isa(path: Path) -> IsaFile:
    """The ISA in a file, read once as long as the file does not change. Raises PptError, InputErrors."""
    return _read(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=8)
def _read(path: Path, _modified: int) -> IsaFile:
    checked = check(read_with_base(path, "isa"), ISA)
    values = checked.values
    ops = values["op"] or {}
    for name in TASK_CLASSES:
        if not _resolves(name, ops):
            checked.problem(("op",), f'[op] has no entry for the task class "{name}"')
    expand, fuse, unnamed = (
        {key: _expansion(checked, table, key, items, ops) for key, items in (values[table] or {}).items() if items}
        for table in ("expand", "fuse", "unnamed")
    )
    for table, free in (("expand", expand), ("fuse", fuse)):
        free |= {key: () for key, items in (values[table] or {}).items() if items is not None and not items}
    checked.finish()
    entries = {name: _entry(name, op) for name, op in ops.items()}
    name, sources = values["name"] or path.stem, LaterSources(partial(_sources, checked, entries))
    return IsaFile(
        name, entries, expand, fuse, unnamed, sources, bool(values["scheduled"]),
        values["sm_registers"], values["sm_threads"],
    )  # fmt: skip


def _entry(name: str, op: dict[str, Any]) -> OpEntry:
    return OpEntry(name, op["pipe"], op["latency"], op["ii"], op["source"])


def _resolves(name: str, ops: dict[str, Any]) -> bool:
    while name and name not in ops:
        name = name.rpartition(".")[0]
    return bool(name)


def _expansion(
    checked: Checked, table: str, opcode: str, items: tuple[str, ...], ops: dict[str, Any]
) -> tuple[str, ...]:
    result: list[str] = []
    for item in items:
        if not item and len(items) == 1:
            continue
        match = _ITEM.fullmatch(item.strip())
        if not match:
            checked.problem(
                (table, opcode), f'{table}."{opcode}": "{item}" is not of the form "operation" or "operation*3"'
            )
        elif not _resolves(match[1], ops):
            hint = did_you_mean(match[1], ops)
            checked.problem((table, opcode), f'{table}."{opcode}": unknown operation "{match[1]}"', hint)
        else:
            result += [match[1]] * int(match[2] or 1)
    return tuple(result)


def _sources(checked: Checked, entries: dict[str, OpEntry]) -> dict[str, Source]:
    """One source a number: the operation's source stands for its latency and initiation interval."""
    result = {}
    for name, entry in entries.items():
        for key in ("latency", "ii"):
            path = dotted(("op", name, key))
            if path in checked.sources:
                found = checked.sources[path]
                result[path] = replace(found, source=found.source or entry.source)
    return result
