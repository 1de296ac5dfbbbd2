"""what-if: which single change of the GPU helps most."""

from __future__ import annotations

import argparse
import json
from typing import Any

from ppt_gpu.commands.opened import open_from
from ppt_gpu.commands.options.arguments import terminal
from ppt_gpu.commands.studies import run_of
from ppt_gpu.common.errors import PptError
from ppt_gpu.common.units import format_time
from ppt_gpu.explore.hardware_keys import shown_value
from ppt_gpu.explore.what_if import WhatIf, what_if
from ppt_gpu.report.text.text import shown, table

NARROW = 76  # columns of a terminal, below which the table has no times
SEEN = 0.0005  # a smaller change of the time is none


def render(found: WhatIf, *, width: int, color: bool) -> str:
    """What helps most first; what changes nothing in one line."""
    seen = [each for each in found.effects if abs(each.speedup - 1) >= SEEN or abs(each.elasticity or 0.0) >= SEEN]
    narrow = width < NARROW
    columns = ("parameter", "from", "to", *(() if narrow else ("time",)), "speed-up", "elasticity")
    rows = table(*((name, "right" if name != "parameter" else "left") for name in columns))
    for effect in seen:
        change = effect.change
        slope = "" if effect.elasticity is None else f"{effect.elasticity + 0.0:.2f}"
        time = () if narrow else (format_time(effect.time),)
        values = (shown_value(change.key, value) for value in (change.before, change.after))
        rows.add_row(change.key, *values, *time, f"{effect.speedup:.2f}x", slope)
    parts: list[Any] = [
        f"{found.workload} on {found.gpu}: {format_time(found.time)}; one change at a time, each simulated", rows
    ]  # fmt: skip
    without = [each.change.key for each in found.effects if each not in seen]
    if without:
        parts.append(f"no effect: {', '.join(without)}")
    if found.fixed:
        parts.append(f"cannot change alone: {', '.join(found.fixed)}")
    parts.append("elasticity: percent of time for a percent more of the parameter")
    return shown(*parts, width=width, color=color)


def to_json(found: WhatIf) -> str:
    """Values in base units, times in s."""
    document = {
        "schema": 1,
        "workload": found.workload,
        "gpu": found.gpu,
        "time_s": found.time,
        "effects": [
            {
                "parameter": effect.change.key,
                "from": effect.change.before,
                "to": effect.change.after,
                "time_s": effect.time,
                "speedup": effect.speedup,
                "elasticity": effect.elasticity,
            }
            for effect in found.effects
        ],
        "cannot_change_alone": list(found.fixed),
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
    return to_json(found) if arguments.json else render(found, **terminal())
