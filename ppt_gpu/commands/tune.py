"""tune: the fastest form of a kernel: block sizes, registers, macros, files."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from ppt_gpu.commands.opened import open_from
from ppt_gpu.commands.options.arguments import terminal
from ppt_gpu.commands.studies import run_of
from ppt_gpu.common.units import format_time
from ppt_gpu.explore.candidates import values_text
from ppt_gpu.explore.same_results import OTHER, UNKNOWN
from ppt_gpu.explore.tune import Form, Tuned, Wanted, tune
from ppt_gpu.report.text.text import shown, table

SHOWN = 12  # forms in the table
REASONS = 2  # forms that cannot run, each with its reason


class Line(NamedTuple):
    """One form: its name, what it needs, its time in s (None: it cannot run), and remarks."""

    name: str
    time: float | None
    occupancy: float | None
    registers: int | None
    limiter: str
    remarks: tuple[str, ...]
    is_base: bool
    is_best: bool


def render(title: str, lines: Sequence[Line], notes: Sequence[str], *, width: int, color: bool) -> str:
    """The best first."""
    base = next(line for line in lines if line.is_base)
    best = next(line for line in lines if line.is_best)
    assert base.time is not None and best.time is not None
    good = [line for line in lines if line.time is not None]
    if best is base and good[0] is base:
        verdict = f"{title}: the given form is the best of {len(lines)}: {format_time(base.time)}"
    elif best is base:
        verdict = (
            f"{title}: the given form stays, {format_time(base.time)}: of {len(lines)} none with the same results is "
        )
        verdict += "clearly faster"
    else:
        verdict = f"{title}: {best.name}: {base.time / best.time:.2f}x, {format_time(best.time)} instead of "
        verdict += format_time(base.time)
    rows = table(("form", "left"), ("time", "right"), ("gain", "right"), ("occupancy", "right"), ("registers", "right"),
                 ("remarks", "left"))  # fmt: skip
    for line in dict.fromkeys((*good[:SHOWN], base, best)):
        assert line.time is not None
        rows.add_row(line.name, format_time(line.time), f"{base.time / line.time:.2f}x", f"{line.occupancy or 0:.0%}",
                     str(line.registers), "; ".join(line.remarks))  # fmt: skip
    parts: list[Any] = [verdict, rows]
    if len(good) > SHOWN:
        parts.append(f"and {len(good) - SHOWN} slower ones (--json lists them)")
    wrong = [line for line in lines if line.time is None]
    parts += [f"cannot run: {line.name}: {'; '.join(line.remarks)}" for line in wrong[:REASONS]]
    if len(wrong) > REASONS:
        parts.append(f"{len(wrong) - REASONS} more cannot run: {', '.join(line.name for line in wrong[REASONS:])}")
    return shown(*parts, *notes, width=width, color=color)


def to_json(workload: str, gpu: str, lines: Sequence[Line], gain: float, notes: Sequence[str]) -> str:
    """Times in s; `gain`: time of the given form by that of the best."""
    document = {
        "schema": 1,
        "workload": workload,
        "gpu": gpu,
        "best": next(line.name for line in lines if line.is_best),
        "gain": gain,
        "notes": list(notes),
        "forms": [
            {
                "name": line.name,
                "time_s": line.time,
                "occupancy": line.occupancy,
                "registers": line.registers,
                "limiter": line.limiter,
                "remarks": list(line.remarks),
            }
            for line in lines
        ],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


GIVEN = "as given"


def run(arguments: argparse.Namespace) -> str:
    wanted = Wanted(arguments.set, arguments.let, arguments.where, arguments.variant)
    found = tune(open_from(arguments), arguments.gpu, arguments.gpu_set, wanted, run_of(arguments))
    lines, notes = _lines(found), _notes(found)
    if arguments.json:
        return to_json(found.workload, found.gpu, lines, found.gain, notes)
    return render(f"{found.workload} on {found.gpu}", lines, notes, **terminal())


def _lines(found: Tuned) -> list[Line]:
    lines = []
    for form in found.forms:
        time, occupancy, registers, limiter = form.found.values or (None, None, None, "")
        lines.append(
            Line(
                _name(form),
                None if time is None else float(time),
                None if occupancy is None else float(occupancy),
                None if registers is None else int(registers),
                str(limiter),
                _remarks(form),
                form.candidate is found.base.candidate,
                form.candidate is found.best.candidate,
            )
        )
    return lines


def _name(form: Form) -> str:
    parts = [part for part in (form.candidate.variant, values_text(form.candidate.values)) if part]
    return ", ".join(parts) or GIVEN


def _remarks(form: Form) -> tuple[str, ...]:
    if form.found.error:
        return (form.found.error,)
    said = () if form.verdict is None else (_verdict(form),)
    return (*([form.candidate.note] if form.candidate.note else []), *said)


def _verdict(form: Form) -> str:
    assert form.verdict is not None

    kind, text = form.verdict.kind, form.verdict.text
    return f"{kind}: {text}" if kind in (OTHER, UNKNOWN) else text


def _notes(found: Tuned) -> list[str]:
    """What a reader must know of the numbers."""
    notes = []
    if any("block" in key for form in found.forms for key in form.candidate.values):
        notes.append("the grid follows the block: along each axis as many blocks as the threads of the launch fill")
    if any(form.candidate.spills > 0 for form in found.forms):
        notes.append("forms with spills are not chosen: local memory for spilled registers is not simulated")
    verdict = found.best.verdict
    if verdict is not None:
        notes.append("results are those of the whole grid, run on the CPU, beside those of the given form")
    return notes
