"""design: the cheapest hypothetical GPU on which a workload takes at most a given time."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ppt_gpu.commands.options.arguments import terminal
from ppt_gpu.commands.studies import read_study, run_of
from ppt_gpu.common.errors import PptError
from ppt_gpu.common.outputs import write_whole
from ppt_gpu.common.units import format_time, parse_quantity
from ppt_gpu.explore.design import Designed, design, gpu_file
from ppt_gpu.explore.expression import parse_expression
from ppt_gpu.explore.launch_keys import is_launch_key
from ppt_gpu.report.figures.common import check_target, save
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


def run(arguments: argparse.Namespace) -> str:
    target, file = _time(arguments.target), arguments.gpu_file
    if arguments.plot:
        check_target(arguments.plot)
    if file and Path(file).suffix != ".toml":
        raise PptError(f"-o {file}: a GPU is a .toml file", hint=f"-o {Path(file).stem}.toml")
    cost = parse_expression(arguments.cost, "--cost")
    study = read_study(arguments, file, arguments.plot)
    launch = next((key for key in study.space.keys if is_launch_key(key)), None)
    if launch is not None:
        raise PptError(
            f"--set {launch}: design changes the GPU, not the kernel", hint="ppt-gpu tune changes the kernel"
        )
    if not study.space.keys:
        raise PptError("design needs parameters to choose", hint="such as --set sm.count=8:64:8")
    everything = bool(arguments.all or arguments.plot)
    found = design(study.workload, arguments.gpu, study.space, cost, target, run_of(arguments), everything=everything)
    name = study.workload.name
    text = gpu_file(arguments.gpu, Path(file or ".").parent, found.best, f"{name} in {format_time(target)}")
    lines = _lines(found)
    if file:
        write_whole(file, text.encode())
    if arguments.plot:
        save(front_figure(f"{name} on GPUs based on {arguments.gpu}", target, lines), arguments.plot)
    if arguments.json:
        return to_json(name, arguments.gpu, target, lines, found.total, text)
    return render(name, arguments.gpu, target, lines, found.total, text, **terminal())


def _time(text: str) -> float:
    try:
        seconds = parse_quantity(text, "time")
    except ValueError as error:
        raise PptError(f"--target {text}: {error}") from None
    if seconds <= 0:
        raise PptError(f"--target {text}: expected a time above zero")
    return seconds


def _lines(found: Designed) -> list[Line]:
    front = found.front()
    return [
        Line(
            option.point.values,
            option.cost,
            option.time,
            option.found.error if option.found else "",
            option in front,
            option is found.best,
        )
        for option in found.simulated
    ]
