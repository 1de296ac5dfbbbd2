"""tune: the fastest form of a kernel: block sizes, registers, macros, files."""

from __future__ import annotations

import argparse

from ppt_gpu.commands.opened import open_from
from ppt_gpu.commands.options.arguments import terminal
from ppt_gpu.commands.studies import run_of
from ppt_gpu.explore.candidates import values_text
from ppt_gpu.explore.same_results import OTHER, UNKNOWN
from ppt_gpu.explore.tune import Form, Tuned, Wanted, tune
from ppt_gpu.report.commands.tune import Line, render, to_json

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
