"""Reading a GPU: file, base files, command-line overrides, ISA, rules; and the list of the shipped ones."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from ppt_gpu.common.errors import InputErrors, PptError
from ppt_gpu.spec.files import check_with_base, find, isa_name, shipped, shipped_names
from ppt_gpu.spec.gpu import (
    CodeCache,
    Collectors,
    ConstantCache,
    Dram,
    Gpu,
    Host,
    Interconnect,
    Isa,
    L1Cache,
    L2Cache,
    LaterSources,
    MemoryPipe,
    Op,
    Pipe,
    SharedMemory,
    Sm,
    Source,
)
from ppt_gpu.spec.gpu_rules import check_rules
from ppt_gpu.spec.gpu_schema import GPU
from ppt_gpu.spec.isa import IsaFile, OpEntry, read_isa
from ppt_gpu.spec.toml_reader import Checked, dotted, read_toml


@dataclass(frozen=True)
class GpuEntry:
    """A line of the list of GPUs."""

    name: str
    title: str
    compute_capability: str
    path: Path


def list_gpus() -> list[GpuEntry]:
    """The shipped GPUs by name. Reads only the head of each file. Raises PptError for a head that is not TOML."""
    return [GpuEntry(name, *_head(path), path) for name, path in shipped("gpus").items()]


def _head(path: Path) -> tuple[str, str]:
    """Title and compute capability: they stand before the first table, in the file or in its base."""
    lines = path.read_text(encoding="utf-8").splitlines()
    end = next((number for number, line in enumerate(lines) if line.startswith("[")), len(lines))
    try:
        head = tomllib.loads("\n".join(lines[:end]))
    except tomllib.TOMLDecodeError:
        head = read_toml(path).data  # says what is wrong, with its line
    base = str(head.get("base", ""))
    found = {key: _bare(head.get(key)) for key in ("title", "compute_capability")}
    if base and not found["compute_capability"]:
        found["compute_capability"] = _head(find("gpus", base, near=path.parent))[1]
    return found["title"] or path.stem, found["compute_capability"]


def _bare(value: Any) -> str:
    return str(value.get("value", "")) if isinstance(value, dict) else str(value or "")


def load_gpu(name: str | Path, overrides: Sequence[str] = ()) -> Gpu:
    """The GPU `name`: a shipped one ("k40", "Tesla K40"), or a path to a .toml file.

    `overrides` are texts such as "sm.count=30" or "dram.bandwidth=1 TB/s", laid over the file in their order.
    Raises PptError for an unknown name, a file that cannot be read, a bad base or override, and InputErrors with every
    error of the values.
    """
    path = find("gpus", str(name), titles=lambda: {entry.title: entry.name for entry in list_gpus()})
    checked = check_with_base(path, "gpus", GPU, overrides)
    isa = _isa(checked, path)
    pipes = _pipes(checked)
    ops = _ops(checked, isa, pipes)
    check_rules(checked, pipes, ops)
    values = checked.finish()
    assert isa is not None  # else checked had an error
    return _gpu(
        path,
        values,
        pipes,
        isa.with_ops(ops),
        LaterSources(partial(_sources, checked, isa)),
    )


def _gpu(path: Path, values: dict[str, Any], pipes: dict[str, Pipe], isa: Isa, sources: LaterSources) -> Gpu:
    major, minor = values["compute_capability"].split(".")
    return Gpu(
        name=path.stem,
        title=values["title"] or path.stem,
        chip=values["chip"],
        compute_capability=(int(major), int(minor)),
        sm=Sm(**values["sm"]),
        pipes=pipes,
        isa=isa,
        shared=SharedMemory(**values["shared"]),
        l1=L1Cache(**values["l1"]),
        l2=L2Cache(**values["l2"]),
        dram=Dram(**values["dram"]),
        interconnect=Interconnect(**values["interconnect"]),
        memory=MemoryPipe(**values["memory"]),
        host=Host(**values["host"]),
        code=CodeCache(**values["code"]),
        constants=ConstantCache(**values["constants"]),
        collectors=Collectors(**values["collectors"]),
        perfect_memory=values["perfect_memory"],
        notes=values["notes"],
        sources=sources,
    )


def _isa(checked: Checked, path: Path) -> IsaFile | None:
    """The ISA that the file names, or that of its compute capability. None after an error."""
    capability, name = checked.get("compute_capability"), checked.get("isa")
    if capability is None or name is None:
        return None
    stem = isa_name(capability)
    if not name and stem not in shipped_names("isa"):
        known = ", ".join(each for each in shipped_names("isa") if each.startswith("sm_"))
        message = f"compute_capability: there is no ISA file for {capability}"
        checked.problem(("compute_capability",), message, f'name the nearest one with isa = "...": {known}')
        return None
    try:
        return read_isa(find("isa", name or stem, near=path.parent))
    except InputErrors as error:
        checked.errors += error.errors
    except PptError as error:
        if error.path:
            checked.errors.append(error)
        else:
            checked.problem(("isa",), f"isa: {error.message}", error.hint)
    return None


def _pipes(checked: Checked) -> dict[str, Pipe]:
    """The pipes whose values are good; the others have their errors already."""
    pipes: dict[str, Pipe] = {}
    for name, values in (checked.get("pipes") or {}).items():
        lanes, scope = checked.get("pipes", name, "lanes"), checked.get("pipes", name, "scope")
        schedulers = checked.get("sm", "schedulers") or 1
        if not lanes or not scope:
            continue
        sharing = schedulers if scope == "scheduler" else 1
        units = values["units"] or max(1, lanes // (32 * sharing))
        ii = values["ii"] or -(-32 * units * sharing // lanes)
        pipes[name] = Pipe(name, lanes, scope, units, ii, values["collectors"], values["queue"])
    return pipes


def _ops(checked: Checked, isa: IsaFile | None, pipes: dict[str, Pipe]) -> dict[str, Op]:
    """The ISA's operations under the file's own [op] tables, which may change single values."""
    if isa is None:
        return {}
    entries = dict(isa.entries)
    for name, values in sorted((checked.get("op") or {}).items()):
        like = name
        while like not in entries:
            like = like.rpartition(".")[0]
            if not like:
                break
        if like:
            changes = {key: value for key, value in (values or {}).items() if value not in (None, "")}
            entries[name] = replace(entries[like], name=name, **changes)
        elif not values or values["pipe"] is None or values["latency"] is None:
            checked.problem(("op", name), f"{dotted(('op', name))}: a new operation needs pipe and latency")
        else:
            entries[name] = OpEntry(name, values["pipe"], values["latency"], values["ii"], values["source"])
    return {name: entry.on(pipes[entry.pipe].ii if entry.pipe in pipes else 1) for name, entry in entries.items()}


def _sources(checked: Checked, isa: IsaFile) -> dict[str, Source]:
    """Sources of the file's own values, then of the ISA's operations that the file does not change."""
    own: dict[str, Source] = {}
    for path, source in checked.sources.items():
        if path.startswith("op.") and path.endswith((".source", ".pipe")):
            continue
        text = source.source
        if path.startswith("op."):
            text = text or checked.sources.get(path.rpartition(".")[0] + ".source", source).text
        elif source.file.startswith("--set"):
            text = "command line"
        own[path] = replace(source, source=text)
    return own | {path: source for path, source in isa.sources.items() if path not in own}


def canonical(gpu: Gpu) -> dict[str, Any]:
    """Everything about a GPU that a prediction may depend on, as plain data: no titles, notes, sources, file names."""
    data = dataclasses.asdict(replace(gpu, sources={}))
    for key in ("name", "title", "notes", "sources"):
        del data[key]
    for op in data["isa"]["ops"].values():
        del op["source"]
    return data


def fingerprint(gpu: Gpu) -> str:
    """SHA-256 over the canonical data, in hexadecimal: the same for GPUs that predict the same. For caches."""
    return hashlib.sha256(json.dumps(canonical(gpu), sort_keys=True).encode()).hexdigest()
