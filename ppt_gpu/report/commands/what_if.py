"""`what-if`: single changes of a GPU, as a table and as one JSON document."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from ppt_gpu.common.units import format_time
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
