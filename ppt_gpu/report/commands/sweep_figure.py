"""Figures of sweeps: curves over the first parameter, one for each value of the others; or a heat map of two."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ppt_gpu.common.errors import PptError
from ppt_gpu.report.commands.sweep import Row, unit_of
from ppt_gpu.report.figures.common import COLOURS, STYLE, pyplot

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
