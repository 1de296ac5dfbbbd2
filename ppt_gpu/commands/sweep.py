"""sweep: a kernel over a grid of parameters of the GPU and of the launch, in processes or under mpirun."""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ppt_gpu.cluster.engine.mpi import one_ends_all, processes
from ppt_gpu.commands.studies import read_study, run_of
from ppt_gpu.common.errors import PptError, did_you_mean
from ppt_gpu.common.outputs import write_whole
from ppt_gpu.explore.case import check_metrics
from ppt_gpu.explore.sweep import Sweep, sweep
from ppt_gpu.report.figures.common import COLOURS, STYLE, check_target, pyplot, save
from ppt_gpu.report.result.metrics import REGISTRY

CURVES = len(COLOURS)  # more values of the second parameter than these are a heat map


def sweep_figure(title: str, parameters: Mapping[str, Sequence[str]], metric: str, rows: Sequence[Row]) -> Any:
    """The first metric of `rows` over the parameters that have several values. PptError where it is no number."""
    numbers = {tuple(values[key] for key in parameters): found[0] for values, found, _ in rows}
    if not all(isinstance(value, int | float) for value in numbers.values()):
        raise PptError(f"--plot: the metric '{metric}' is no number", hint="give another --metric first")
    varied = [key for key, values in parameters.items() if len(values) > 1] or list(parameters)[:1]
    if not varied:
        raise PptError("--plot: no parameter varies", hint="such as --set sm.count=8:64:8")
    points = [(dict(zip(parameters, place, strict=True)), float(value)) for place, value in numbers.items()]
    unit = unit_of(metric)
    label = f"{metric} in {unit}" if unit else metric
    if len(varied) == 2 and len(parameters[varied[1]]) > CURVES:
        return _heat_map(title, varied, parameters, label, points)
    return _curves(title, varied, parameters, label, points)


def _curves(
    title: str, varied: Sequence[str], parameters: Mapping[str, Sequence[str]], label: str, points: Sequence[Any]
) -> Any:
    plt = pyplot()
    first, others = varied[0], varied[1:]
    lines: dict[tuple[str, ...], list[tuple[int, float]]] = {}
    for values, number in points:
        place = parameters[first].index(values[first])
        lines.setdefault(tuple(values[key] for key in others), []).append((place, number))
    if len(lines) > 2 * CURVES:
        raise PptError(
            f"--plot: {len(lines)} curves cannot be told apart", hint="fewer parameters or values, or --where"
        )
    with plt.rc_context(STYLE):
        figure, axis = plt.subplots(figsize=(6.5, 3.6))
        for number, (combination, line) in enumerate(lines.items()):
            name = ", ".join(f"{key}={value}" for key, value in zip(others, combination, strict=True))
            style = "o-" if number < CURVES else "s--"
            axis.plot(*zip(*sorted(line), strict=True), style, color=COLOURS[number % CURVES], label=name)
        axis.set(xlabel=first, ylabel=label, title=title)
        axis.set_ylim(bottom=0)
        _ticks(axis.set_xticks, parameters[first])
        if others:
            axis.legend(fontsize=7)
        figure.tight_layout()
    return figure


def _heat_map(
    title: str, varied: Sequence[str], parameters: Mapping[str, Sequence[str]], label: str, points: Sequence[Any]
) -> Any:
    plt = pyplot()
    across, up = varied
    grid = [[float("nan")] * len(parameters[across]) for _ in parameters[up]]
    for values, number in points:
        grid[parameters[up].index(values[up])][parameters[across].index(values[across])] = number
    with plt.rc_context(STYLE | {"axes.grid": False}):
        figure, axis = plt.subplots(figsize=(6.5, 4.2))
        image = axis.imshow(grid, origin="lower", aspect="auto", cmap="viridis_r")
        figure.colorbar(image, ax=axis, label=label)
        axis.set(xlabel=across, ylabel=up, title=title)
        _ticks(axis.set_xticks, parameters[across])
        _ticks(axis.set_yticks, parameters[up])
        figure.tight_layout()
    return figure


def _ticks(set_ticks: Any, values: Sequence[str]) -> None:
    """At most a dozen labels."""
    step = -(-len(values) // 12)
    places = range(0, len(values), step)
    set_ticks(list(places), [values[place] for place in places], rotation=30 if max(map(len, values)) > 5 else 0)


ERROR = "error"  # the column of configurations that cannot be predicted, where there are any
Row = tuple[Mapping[str, str], Sequence[Any], str]  # parameters, metrics, error


def to_csv(keys: Sequence[str], metrics: Sequence[str], rows: Sequence[Row]) -> str:
    """A line for each row after one of names; numbers as they are read back exactly."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    wrong = any(error for _, _, error in rows)
    writer.writerow([*keys, *metrics, *([ERROR] if wrong else [])])
    for values, found, error in rows:
        cells = [repr(cell) if isinstance(cell, float) else cell for cell in found] or [""] * len(metrics)
        writer.writerow([*(values[key] for key in keys), *cells, *([error] if wrong else [])])
    return stream.getvalue()


def to_json(
    workload: str, gpu: str, parameters: Mapping[str, Sequence[str]], conditions: Sequence[str],
    metrics: Sequence[str], rows: Sequence[Row],
) -> str:  # fmt: skip
    """The whole sweep; a row has its parameters as text and its metrics as numbers, or an error."""
    document = {
        "schema": 1,
        "workload": workload,
        "gpu": gpu,
        "parameters": {key: list(values) for key, values in parameters.items()},
        "where": list(conditions),
        "metrics": [{"tag": tag, "unit": unit_of(tag)} for tag in metrics],
        "rows": [
            {
                "parameters": dict(values),
                **({"error": error} if error else {"metrics": dict(zip(metrics, found, strict=True))}),
            }
            for values, found, error in rows
        ],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def unit_of(tag: str) -> str:
    """The unit of a column."""
    tag = tag.rpartition(":")[2]
    if tag in REGISTRY:
        return REGISTRY[tag].unit
    return "s" if tag == "time" else "ratio"


KINDS = (".csv", ".json")


def run(arguments: argparse.Namespace) -> str:
    mpi = processes()
    with one_ends_all(mpi):
        _check_kinds(arguments)
        journal = _journal(arguments.to) if arguments.to else None
        study = read_study(arguments, arguments.to, journal, arguments.plot)
        metrics = tuple(dict.fromkeys(arguments.metric or ("time", "kernel.cycles", "limiter")))
        check_metrics(metrics, len(study.workload.launches))
        if arguments.sample is not None and arguments.sample < 1:
            raise PptError(f"--sample {arguments.sample}: expected a positive number")
        found = sweep(
            study.workload,
            arguments.gpu,
            study.space,
            metrics,
            run_of(arguments, mpi, journal),
            sample=arguments.sample,
            seed=arguments.seed,
        )
        if mpi is not None and mpi.rank:
            return ""
        return _written(arguments, found, journal)


def _journal(to: str) -> Path:
    """The journal beside the result; of a symbolic link what it leads to, so that the link stays."""
    name = f"{to}.journal"
    return Path(os.path.realpath(name) if os.path.islink(name) else name)


def _check_kinds(arguments: argparse.Namespace) -> None:
    if arguments.to and Path(arguments.to).suffix not in KINDS:
        suffix = Path(arguments.to).suffix
        raise PptError(
            f"-o {arguments.to}: unknown kind of file", hint=did_you_mean(suffix, KINDS) or "FILE.csv or FILE.json"
        )
    if arguments.plot:
        check_target(arguments.plot)


def _written(arguments: argparse.Namespace, found: Sweep, journal: Path | None) -> str:
    """What is printed; the files are written, and the journal is not needed any more."""
    space = found.space
    rows: list[Row] = [(row.point.values, row.found.values, row.found.error) for row in found.rows]
    values = {parameter.key: parameter.values for parameter in space.parameters}

    def text(as_json: bool) -> str:
        if not as_json:
            return to_csv(space.keys, found.metrics, rows)
        conditions = [condition.text for condition in space.conditions]
        return to_json(found.workload, found.gpu, values, conditions, found.metrics, rows)

    if arguments.plot:
        title = f"{found.workload} on {found.gpu}"
        save(sweep_figure(title, values, found.metrics[0], [row for row in rows if not row[2]]), arguments.plot)
    if not arguments.to or journal is None:
        return text(arguments.json)
    write_whole(arguments.to, text(Path(arguments.to).suffix == ".json").encode("utf-8", "surrogateescape"))
    journal.unlink(missing_ok=True)
    wrong = len(rows) - len(found.good())
    return f"{arguments.to}: {len(rows)} rows{f', {wrong} of them could not be predicted' if wrong else ''}\n"
