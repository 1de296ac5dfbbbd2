"""The hardware file of a calibrated GPU: its base, and the numbers found, each with where it comes from."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ppt_gpu.calibrate.report import Calibrated
from ppt_gpu.common.outputs import write_whole
from ppt_gpu.spec import load_gpu
from ppt_gpu.spec.toml_scan import quoted
from ppt_gpu.validate.silicon.capture import Capture


def write_hardware(path: str | Path, base: str | Path, capture: Capture, found: Sequence[Calibrated]) -> None:
    """Write a file that `load_gpu` reads. PptError when it cannot be written; then nothing is."""
    target = Path(path)
    with tempfile.TemporaryDirectory() as folder:
        draft = Path(folder) / "draft.toml"
        there = os.path.abspath(base) if Path(base).suffix == ".toml" else str(base)
        draft.write_text(hardware_text(there, capture, found), encoding="utf-8")
        load_gpu(draft)
    write_whole(target, hardware_text(_base_from(base, target), capture, found).encode())


def _base_from(base: str | Path, target: Path) -> str:
    """The base as the new file has to name it: shipped ones by name, others relative to the new file."""
    if Path(base).suffix != ".toml":
        return str(base)
    return Path(os.path.relpath(base, target.parent)).as_posix()


def hardware_text(base: str, capture: Capture, found: Sequence[Calibrated]) -> str:
    """The text of the file: one table a part of the GPU, only what the capture determines."""
    facts = capture.facts
    title = f"{facts['gpu']}, calibrated"
    made = f"{Path(capture.path).name}, {facts.get('date', 'no date')}, driver {facts.get('driver', 'unknown')}"
    lines = [f"base = {quoted(base)}", f"title = {quoted(title)}", f"notes = {quoted(f'ppt-gpu calibrate, {made}')}"]
    tables: dict[str, list[str]] = {}
    for one in found:
        if one.determined:
            table, _, key = one.path.rpartition(".")
            tables.setdefault(table, []).append(
                f"{key} = {{ value = {_value(one)}, source = {quoted(_source(one, made))} }}"
            )
    for table, entries in tables.items():
        lines += ["", f"[{table}]", *entries]
    return "\n".join(lines) + "\n"


def _value(one: Calibrated) -> str:
    number = f"{one.value:.6g}" if one.value < 1e6 else f"{one.value:.0f}"
    return quoted(f"{number} {one.unit}") if one.unit else number


def _source(one: Calibrated, made: str) -> str:
    unit = f" {one.unit}" if one.unit else ""
    return f"calibrated ({made}): {one.confidence}{unit}, residual {one.residual:.1%}; {', '.join(one.rests_on)}"
