"""Sections of the terminal report that are shown when asked for: warps over time, instructions by pipes, a metric."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ppt_gpu.common.errors import PptError, did_you_mean
from ppt_gpu.report.result.detail import pressures
from ppt_gpu.report.result.metrics import REGISTRY
from ppt_gpu.report.result.result import LaunchResult
from ppt_gpu.report.result.stall_reasons import LETTERS, NOBODY
from ppt_gpu.report.text.numbers import value_text
from ppt_gpu.report.text.tables import table, whole
from ppt_gpu.sm.program.result import STALL_REASONS

if TYPE_CHECKING:
    from ppt_gpu.sm.reference.recording import Recording

#: a section of a launch, for so many columns: its title and content; None where there is nothing to show
Section = Callable[[LaunchResult, int], tuple[str, RenderableType] | None]

WARPS = 16
INDENT, GAP = 2, 2
SOURCE = 20  # columns of the source beside pipes, at least


def warps(launch: LaunchResult, width: int) -> tuple[str, RenderableType] | None:
    """A row a warp, a column some cycles: the letter of the reason with most of them."""
    from ppt_gpu.report.timeline.timeline import window_text

    recording = launch.recording
    if recording is None:
        return None
    slots = np.unique(recording.spans[:, 0]).tolist()[:WARPS]
    label = max(len(f"warp {slot}") for slot in slots)
    columns = max(width - INDENT - label - 2, 10)
    per_column = -(-(recording.end - recording.first) // columns)
    found = {slot: letters(recording, slot, per_column) for slot in slots}
    lines = [f"{f'warp {slot}':{label}}  {row}" for slot, row in found.items()]
    used = {letter for row in found.values() for letter in row}
    legend = "  ".join(f"{letter} {reason}" for reason, letter in LETTERS.items() if letter in used)
    each = "one cycle" if per_column == 1 else f"{per_column} cycles"
    note = f"A letter is {each}, by the reason that most of them have: {window_text(recording)}."
    content = Group(*(Text(line, no_wrap=True, overflow="crop") for line in lines), Text(legend), Text(note))
    return "Warps over time", content


def letters(recording: Recording, slot: int, per_column: int) -> str:
    """The row of a warp slot, without the blanks at its end."""
    cycles = recording.end - recording.first
    counts = np.zeros((-(-cycles // per_column), len(STALL_REASONS)), np.int64)
    for _, _, _, first, length, reason in recording.spans[recording.spans[:, 0] == slot].tolist():
        at = np.arange(first - recording.first, first - recording.first + length) // per_column
        np.add.at(counts, (at, reason), 1)
    reasons = [LETTERS[STALL_REASONS[int(row.argmax())]] if row.any() else NOBODY for row in counts]
    return "".join(reasons).rstrip(NOBODY)


def pressure(launch: LaunchResult, width: int) -> tuple[str, RenderableType] | None:
    """Every executed line, and its share of the unit cycles of each pipe that the kernel uses."""
    detail = launch.detail
    if detail is None:
        return None
    used = [index for index, pipe in enumerate(detail.pipes) if pipe.busy]
    lines = pressures(detail)
    issued = f"{sum(line.issued for line in lines):,}"
    each = max((len(f"{row.shares[index]:.1%}") for row in lines for index in used), default=0)
    beside = [max(len("line"), *(len(str(row.line)) for row in lines)), max(len("issued"), len(issued)), SOURCE]
    wide = [max(len(detail.pipes[index].name), each, len("100.0%")) + GAP for index in used]
    room = width - INDENT - sum(beside) - len(beside) * GAP
    parts: list[RenderableType] = []
    for some in _that_fit(wide, room):
        names = [detail.pipes[used[place]].name for place in some]
        rows: Table = table(
            ("line", "right"), ("issued", "right"), *((name, "right") for name in names), ("source", "left")
        )
        whole(rows, "line", "issued", *names)
        rows.columns[-1].no_wrap = True
        rows.columns[-1].overflow = "ellipsis"
        # Given, or else all columns that are never wrapped are cut off alike.
        rows.columns[-1].max_width = max(SOURCE + room - sum(wide[place] for place in some), SOURCE)
        for row in lines:
            shares = (f"{row.shares[used[place]]:.1%}" if row.shares[used[place]] else "" for place in some)
            rows.add_row(str(row.line), f"{row.issued:,}", *shares, " ".join(row.text.split()))
        sums = (f"{detail.pipes[used[place]].share(detail.sm_cycles):.1%}" for place in some)
        rows.add_row("all", issued, *sums, "", style="bold")
        parts += [Text(""), rows] if parts else [rows]
    return "Pressure on pipes: share of the unit cycles while the SM has blocks", Group(*parts)


def _that_fit(widths: Sequence[int], room: int) -> list[list[int]]:
    """Columns of these widths, by place, in as many tables as none being cut off takes; each has one or more."""
    tables: list[list[int]] = [[]]
    for place, width in enumerate(widths):
        if tables[-1] and sum(widths[other] for other in tables[-1]) + width > room:
            tables.append([])
        tables[-1].append(place)
    return tables


def explained(tag: str) -> Section:
    """A metric with its definition. PptError for a name that is no metric."""
    if tag not in REGISTRY:
        from ppt_gpu.models.registry import models

        known = [model.name for model in models()]
        hint = f"ppt-gpu compare WORKLOAD --gpu GPU --explain {tag}" if tag in known else did_you_mean(tag, REGISTRY)
        raise PptError(f"--explain {tag}: no such metric", hint=hint or "`ppt-gpu explain` lists them all")

    def section(launch: LaunchResult, width: int) -> tuple[str, RenderableType] | None:
        item = next((metric for metric in launch.metrics if metric.tag == tag), None)
        rows = table(("", "left"), ("", "left"), header=False)
        rows.add_row("value", "this launch has none" if item is None else value_text(item))
        known = REGISTRY[tag]
        rows.add_row("definition", known.text)
        rows.add_row("source", known.source)
        return f"{tag}: {known.name}", rows

    return section
