"""Reading S-cores from hardware/cores/*.toml: strict, every error at once, each number with its source."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from ppt_gpu.common.errors import did_you_mean
from ppt_gpu.multicore.base.core import CacheLevel, CoreOperation, SCore
from ppt_gpu.multicore.base.operations import CLASSES
from ppt_gpu.spec.files import check_with_base, find, shipped
from ppt_gpu.spec.toml_reader import (
    Checked,
    Flag,
    Keyed,
    Leaf,
    Mismatch,
    Number,
    Quantity,
    Table,
    Text,
    shown,
)

_TERM = re.compile(r"(?:(\d+)\*)?p([0-9]+)")


@dataclass(frozen=True, kw_only=True)
class MicroOps(Leaf):
    """Micro-ops with their ports, as instruction tables write them: "p015", "p23 + p4", "2*p0"; "" for none."""

    def read(self, value: Any) -> tuple[tuple[int, ...], ...]:
        """The ports of each micro-op. Raises Mismatch."""
        if not isinstance(value, str):
            raise Mismatch(f'expected micro-ops such as "p23 + p4", not {shown(value)}')
        found: list[tuple[int, ...]] = []
        for term in value.replace(" ", "").split("+") if value.strip() else ():
            match = _TERM.fullmatch(term)
            if not match:
                raise Mismatch(f'{shown(value)} is no list of micro-ops such as "p015" or "2*p0 + p5"')
            found += [tuple(sorted({int(port) for port in match[2]}))] * int(match[1] or 1)
        return tuple(found)


def _whole(minimum: int, maximum: int) -> Number:
    return Number(minimum=minimum, maximum=maximum, integer=True)


def _bytes(minimum: int = 1) -> Quantity:
    return Quantity(dimension="bytes", plain=True, integer=True, minimum=minimum, maximum=2**50)


def _cycles(**more: Any) -> Quantity:
    return Quantity(dimension="cycles", plain=True, minimum=0, maximum=1e6, **more)


def _known_class(name: str) -> tuple[str, str | None] | None:
    return None if name in CLASSES else (f"unknown operation '{name}'", did_you_mean(name, CLASSES))


_CACHE = Table(fields={"size": _bytes(), "latency": _cycles()})
SCHEMA = Table(
    fields={
        "base": Text(default=""),
        "title": Text(default=""),
        "notes": Text(default=""),
        "core": Table(
            fields={
                "out_of_order": Flag(),
                "clock": Quantity(dimension="frequency", minimum=1e6, maximum=1e11),
                "instruction_width": _whole(1, 16),
                "issue_width": _whole(1, 32),
                "window": _whole(1, 4096),
                "ports": _whole(1, 10),
                "vector_bytes": _bytes(4),
                "outstanding_misses": _whole(1, 1024),
                "vector_memory_cycles": _cycles(),
                "drain": _cycles(),
                "front_end": _cycles(),
            }
        ),
        "l1": _CACHE,
        "l2": _CACHE,
        "l3": Table(fields=_CACHE.fields, default=None),
        "memory": Table(
            fields={
                "line": _bytes(4),
                "latency": Quantity(dimension="time", above=0, maximum=1.0),
                "bandwidth": Quantity(dimension="bytes/s", minimum=1.0, maximum=1e18),
            }
        ),
        "tlb": Table(
            fields={
                "page": _bytes(),
                "data_entries": _whole(1, 1 << 20),
                "instruction_latency": _cycles(),
                "data_latency": _cycles(),
            }
        ),
        "chip": Table(
            fields={
                "cores": _whole(1, 4096),
                "power": Number(above=0),
                "area": Number(above=0),
                "specmark": Number(above=0),
            }
        ),
        "op": Keyed(
            item=Table(fields={"latency": _cycles(), "uops": MicroOps(), "blocking": _cycles(default=0.0)}),
            key=_known_class,
        ),
    }
)


def list_cores() -> list[str]:
    """Names of the shipped cores."""
    return list(shipped("cores"))


def load_core(name: str | Path, overrides: Sequence[str] = ()) -> SCore:
    """The core `name`: a shipped one ("sandybridge"), or a path to a .toml file.

    `overrides` are texts such as "core.clock=3 GHz". Raises PptError for an unknown name, InputErrors with every error.
    """
    path = find("cores", str(name))
    checked = check_with_base(path, "cores", SCHEMA, overrides)
    _check_rules(checked)
    return _core(path, checked.finish(), checked)


def _check_rules(checked: Checked) -> None:
    operations, ports = checked.get("op") or {}, checked.get("core", "ports")
    for name in CLASSES:
        if name not in operations and checked.get("op") is not None:
            checked.problem(("op",), f"missing operation [op.{name}]: {CLASSES[name]}")
    if ports is not None:
        _check_ports(checked, operations, ports)
    narrow, wide = checked.get("core", "instruction_width"), checked.get("core", "issue_width")
    if narrow and wide and wide < narrow:
        paths = [("core", "issue_width"), ("core", "instruction_width")]
        checked.contradiction(paths, f"the issue width of {wide} micro-ops is below the {narrow} instructions decoded")
    _check_caches(checked)


def _check_ports(checked: Checked, operations: Mapping[str, Any], ports: int) -> None:
    """Every port that an operation names is there. One error a place: `ports` may contradict many operations."""
    told = set()
    for name, values in operations.items():
        highest = max((uop[-1] for uop in (values or {}).get("uops") or ()), default=0)
        if highest < ports:
            continue
        paths = [("op", name, "uops"), ("core", "ports")]
        places = [checked.place(path) for path in paths]
        at = min(places, key=lambda place: place.file != checked.document.file)
        if at not in told:
            told.add(at)
            checked.contradiction(paths, f"op.{name}.uops: port {highest} of a core with {ports} ports")


def _check_caches(checked: Checked) -> None:
    levels = [level for level in ("l1", "l2", "l3") if checked.get(level)]
    for near, far in pairwise(levels):
        for key in ("size", "latency"):
            one, other = checked.get(near, key), checked.get(far, key)
            if one is not None and other is not None and other < one:
                paths = [(far, key), (near, key)]
                checked.contradiction(paths, f"{far}.{key} {other:g} is below {near}.{key} {one:g}")


def _core(path: Path, values: dict[str, Any], checked: Checked) -> SCore:
    core, memory, tlb, chip = values["core"], values["memory"], values["tlb"], values["chip"]
    operations: Mapping[str, CoreOperation] = {
        name: CoreOperation(each["latency"], each["uops"], each["blocking"]) for name, each in values["op"].items()
    }
    return SCore(
        name=path.stem,
        title=values["title"] or path.stem,
        **core,
        l1=CacheLevel(**values["l1"]),
        l2=CacheLevel(**values["l2"]),
        l3=CacheLevel(**values["l3"]) if values["l3"] else None,
        line=memory["line"],
        memory_latency=memory["latency"],
        bandwidth=memory["bandwidth"],
        page_bytes=tlb["page"],
        dtlb_entries=tlb["data_entries"],
        itlb_latency=tlb["instruction_latency"],
        dtlb_latency=tlb["data_latency"],
        operations=operations,
        **chip,
        notes=values["notes"],
        sources=checked.sources,
    )
