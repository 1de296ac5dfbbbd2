"""what-if: which single change of the GPU helps most."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from ppt_gpu.commands.opened import open_from
from ppt_gpu.commands.options.arguments import terminal
from ppt_gpu.commands.studies import run_of
from ppt_gpu.common.errors import PptError
from ppt_gpu.common.units import format_time
from ppt_gpu.explore.hardware_keys import shown_value
from ppt_gpu.explore.what_if import what_if
from ppt_gpu.report.text.text import shown, table

NARROW = 76  # columns of a terminal, below which the table has no times
SEEN = 0.0005  # a smaller change of the time is none


class Line(NamedTuple):
    """One parameter: values as text, as shown to people, and in base units."""

    key: str
    before: str
    after: str
    numbers: tuple[Any, Any]
    time: float  # s
    speedup: float
    elasticity: float | None


def render(
    workload: str, gpu: str, time: float, lines: Sequence[Line], fixed: Sequence[str], *, width: int, color: bool
) -> str:
    """What helps most first; what changes nothing in one line."""
    seen = [line for line in lines if abs(line.speedup - 1) >= SEEN or abs(line.elasticity or 0.0) >= SEEN]
    narrow = width < NARROW
    columns = ("parameter", "from", "to", *(() if narrow else ("time",)), "speed-up", "elasticity")
    rows = table(*((name, "right" if name != "parameter" else "left") for name in columns))
    for line in seen:
        slope = "" if line.elasticity is None else f"{line.elasticity + 0.0:.2f}"
        time_text = () if narrow else (format_time(line.time),)
        rows.add_row(line.key, line.before, line.after, *time_text, f"{line.speedup:.2f}x", slope)
    parts: list[Any] = [f"{workload} on {gpu}: {format_time(time)}; one change at a time, each simulated", rows]
    without = [line.key for line in lines if line not in seen]
    if without:
        parts.append(f"no effect: {', '.join(without)}")
    if fixed:
        parts.append(f"cannot change alone: {', '.join(fixed)}")
    parts.append("elasticity: percent of time for a percent more of the parameter")
    return shown(*parts, width=width, color=color)


def to_json(workload: str, gpu: str, time: float, lines: Sequence[Line], fixed: Sequence[str]) -> str:
    """Values in base units, times in s."""
    document = {
        "schema": 1,
        "workload": workload,
        "gpu": gpu,
        "time_s": time,
        "effects": [
            {
                "parameter": line.key,
                "from": line.numbers[0],
                "to": line.numbers[1],
                "time_s": line.time,
                "speedup": line.speedup,
                "elasticity": line.elasticity,
            }
            for line in lines
        ],
        "cannot_change_alone": list(fixed),
    }
    return json.dumps(document, indent=2) + "\n"


def run(arguments: argparse.Namespace) -> str:
    if not 1 < arguments.factor <= 100:
        raise PptError(f"--factor {arguments.factor:g}: expected more than 1 and at most 100")
    if not 0.001 <= arguments.step <= 1:
        raise PptError(f"--step {arguments.step:g}: expected 0.001 to 1")
    found = what_if(
        open_from(arguments),
        arguments.gpu,
        arguments.set,
        run_of(arguments),
        only=arguments.parameter,
        factor=arguments.factor,
        step=arguments.step,
    )
    lines = [
        Line(
            effect.change.key,
            shown_value(effect.change.key, effect.change.before),
            shown_value(effect.change.key, effect.change.after),
            (effect.change.before, effect.change.after),
            effect.time,
            effect.speedup,
            effect.elasticity,
        )
        for effect in found.effects
    ]
    if arguments.json:
        return to_json(found.workload, found.gpu, found.time, lines, found.fixed)
    return render(found.workload, found.gpu, found.time, lines, found.fixed, **terminal())
