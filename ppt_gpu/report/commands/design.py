"""`design`: options with their costs and times, as a table, as one JSON document and as a figure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ppt_gpu.common.units import format_time
from ppt_gpu.report.text.text import shown, table


class Line(NamedTuple):
    """A configuration: its parameters as text, its cost, its time in s or None, and why it has none."""

    values: Mapping[str, str]
    cost: float
    time: float | None
    error: str
    in_front: bool
    is_best: bool


def render(
    workload: str, gpu: str, target: float, lines: Sequence[Line], total: int, file: str, *, width: int, color: bool
) -> str:
    """The answer, the front, and the file that describes the GPU."""
    best = next(line for line in lines if line.is_best)
    assert best.time is not None
    keys = list(best.values)
    rows = table(*((key, "right") for key in keys), ("cost", "right"), ("time", "right"), ("", "left"))
    for line in lines:
        if line.in_front or line.is_best:
            time = format_time(line.time or 0.0)
            rows.add_row(
                *(line.values[key] for key in keys), f"{line.cost:,.4g}", time, "cheapest" if line.is_best else ""
            )
    done = f"{len(lines)} of {total} configurations were simulated"
    verdict = f"{workload} in {format_time(target)}: the cheapest GPU based on {gpu} costs {best.cost:,.4g} and takes "
    of_front = f"{done}; none of these is cheaper and faster than another:"
    parts: list[Any] = [verdict + format_time(best.time), of_front, rows, file.rstrip()]
    return shown(*parts, width=width, color=color)


def to_json(workload: str, gpu: str, target: float, lines: Sequence[Line], total: int, file: str) -> str:
    """Times in s; `file`: the text of the GPU file."""
    best = next(line for line in lines if line.is_best)
    document = {
        "schema": 1,
        "workload": workload,
        "gpu": gpu,
        "target_s": target,
        "configurations": total,
        "best": _entry(best),
        "front": [_entry(line) for line in lines if line.in_front],
        "simulated": [_entry(line) for line in lines],
        "file": file,
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _entry(line: Line) -> dict[str, Any]:
    found = {"error": line.error} if line.time is None else {"time_s": line.time}
    return {"parameters": dict(line.values), "cost": line.cost, **found}


def front_figure(title: str, target: float, lines: Sequence[Line]) -> Any:
    """Time over cost: every option that was simulated, the front as a line, the target dashed."""
    from ppt_gpu.report.figures.common import COLOURS, STYLE, pyplot

    plt = pyplot()
    good = [line for line in lines if line.time is not None]
    front = [line for line in good if line.in_front]
    best = next(line for line in good if line.is_best)
    with plt.rc_context(STYLE):
        figure, axis = plt.subplots(figsize=(6.5, 3.8))
        axis.plot([one.cost for one in good], [(one.time or 0) * 1e3 for one in good], "o", color=COLOURS[-1], ms=3)
        axis.step([one.cost for one in front], [(one.time or 0) * 1e3 for one in front], "o-", where="post",
                  color=COLOURS[0], label="Pareto front")  # fmt: skip
        axis.plot(
            [best.cost], [(best.time or 0) * 1e3], "D", color=COLOURS[1], label="cheapest that reaches the target"
        )
        axis.axhline(target * 1e3, ls="--", color=COLOURS[1], lw=1, label="target")
        axis.set(xlabel="cost", ylabel="time in ms", title=title)
        axis.set_ylim(bottom=0)
        axis.legend(fontsize=7)
        figure.tight_layout()
    return figure
