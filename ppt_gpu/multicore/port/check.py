"""`check` for the files of chips beyond one SM: cores, chips, representations, counters, studies and tables."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ppt_gpu.multicore.base.core_file import load_core
from ppt_gpu.multicore.base.device_scaling import load_scaling
from ppt_gpu.multicore.base.suite import load_suite
from ppt_gpu.multicore.base.target import is_core
from ppt_gpu.multicore.dark_silicon.known_cores import load_known_cores
from ppt_gpu.multicore.dark_silicon.study import load_study
from ppt_gpu.multicore.representation.counter_files import HEADER, read_counters
from ppt_gpu.multicore.representation.counters import kind_of
from ppt_gpu.multicore.representation.ir_text import read_ir
from ppt_gpu.multicore.representation.perf_stat import is_perf
from ppt_gpu.spec.toml_reader import read_toml


def check_file(path: str | Path) -> list[str] | None:
    """Read `path` strictly where it is such a file, and say what it holds; None where it is none.

    Raises PptError or InputErrors with everything that is wrong with it.
    """
    path = Path(path)
    if not path.is_file():
        return None
    if path.suffix == ".toml":
        found = _core if is_core(path) else _of_toml(read_toml(path).data)
        return found(path) if found else None
    if path.suffix in (".csv", ".txt", ".perf") and _are_counters(path):
        return _counters(path)
    return None


def _of_toml(data: dict[str, Any]) -> Callable[[Path], list[str]] | None:
    """The reader of a TOML file with these keys, which is no core."""
    readers: dict[str, Callable[[Path], list[str]]] = {
        "core": _chip, "operations": _representation, "frontier": _study, "benchmark": _suite, "node": _scaling,
    }  # fmt: skip
    return next((reader for key, reader in readers.items() if key in data), None)


def _are_counters(path: Path) -> bool:
    """Whether the text is one that counters are read from: perf's, or a CSV whose first cell is a counter's name."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False
    rows = (row for row in csv.reader(text.splitlines()) if row and not row[0].lstrip().startswith("#"))
    first = next((row[0].strip() for row in rows if row[0].strip()), "")
    return is_perf(text) or first.lower() == HEADER[0] or kind_of(first) is not None


def _core(path: Path) -> list[str]:
    core = load_core(str(path))
    order = "out of order" if core.out_of_order else "in order"
    return [f"{path}: CPU core '{core.name}', {order}, {core.issue_width} micro-ops a cycle on {core.ports} ports"]


def _chip(path: Path) -> list[str]:
    return [f"{path}: chips of {len(load_known_cores(str(path)).cores)} known cores"]


def _representation(path: Path) -> list[str]:
    ir = read_ir(path)
    return [
        f"{path}: representation of '{ir.name}', {ir.threads:g} threads, {len(ir.operations)} classes of operations"
    ]


def _study(path: Path) -> list[str]:
    study = load_study(str(path))
    return [f"{path}: study of chips, {len(study.sources)} assumptions"]


def _suite(path: Path) -> list[str]:
    return [f"{path}: suite of {len(load_suite(str(path)).names)} benchmarks"]


def _scaling(path: Path) -> list[str]:
    return [f"{path}: device scaling over {len(load_scaling(str(path)).nodes)} nodes"]


def _counters(path: Path) -> list[str]:
    counters = read_counters(path)
    unused = f"; not used: {', '.join(counters.ignored)}" if counters.ignored else ""
    return [f"{path}: {len(counters.values)} counters of a CPU run{unused}"]
