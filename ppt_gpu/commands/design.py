"""design: the cheapest hypothetical GPU on which a workload takes at most a given time."""

from __future__ import annotations

import argparse
from pathlib import Path

from ppt_gpu.commands.options.arguments import terminal
from ppt_gpu.commands.studies import read_study, run_of
from ppt_gpu.common.errors import PptError
from ppt_gpu.common.outputs import write_whole
from ppt_gpu.common.units import format_time, parse_quantity
from ppt_gpu.explore.design import Designed, design, gpu_file
from ppt_gpu.explore.expression import parse_expression
from ppt_gpu.explore.launch_keys import is_launch_key
from ppt_gpu.report.commands.design import Line, front_figure, render, to_json
from ppt_gpu.report.figures.common import check_target, save


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
