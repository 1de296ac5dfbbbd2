"""Scatter plots of a validation: predictions and their errors over references, a column a mode, a colour a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ppt_gpu.report.figures.common import COLOURS, STYLE, pyplot, save
from ppt_gpu.validate.tables.rows import Row

#: predicted / reference between which the grey band lies: a quarter too fast to a quarter too slow
BAND = (0.8, 1.25)
#: errors axes reach at least so far, as a ratio
LEAST = 1.5
#: as a ratio: axes that reach further have room for a few ticks only
FINE = 1.9
_UNITS = {"us": "µs"}


def draw(rows: Sequence[Row], path: str) -> None:
    """Write the figure: above, both on logarithmic axes with the line where they are equal; below, their ratios."""
    modes, gpus = (list(dict.fromkeys(key)) for key in zip(*((row.mode, row.gpu) for row in rows), strict=True))
    plt = pyplot()
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(
            2, len(modes), figsize=(3.6 * len(modes) + 0.4, 5.4), squeeze=False, height_ratios=(3, 2), sharex="col",
            layout="constrained",
        )  # fmt: skip
        for column, mode in zip(axes.T, modes, strict=True):
            _column(column[0], column[1], mode, [row for row in rows if row.mode == mode], gpus)
        axes[0][0].set_ylabel("predicted")
        axes[1][0].set_ylabel("predicted / reference")
    save(figure, path)


def _column(above: Any, below: Any, mode: str, rows: Sequence[Row], gpus: Sequence[str]) -> None:
    values = [value for row in rows for value in (row.reference, row.predicted)]
    ends = [min(values) / 1.3, max(values) * 1.3]
    unit = _UNITS.get(rows[0].unit, rows[0].unit)
    for axis, line in ((above, ends), (below, [1.0, 1.0])):
        axis.fill_between(ends, [BAND[0] * y for y in line], [BAND[1] * y for y in line], color="#EEEEEE", zorder=0)
        axis.plot(ends, line, color="#8C8C8C", linewidth=0.8)
    for number, gpu in enumerate(gpus):
        members = [row for row in rows if row.gpu == gpu]
        look = {"s": 9, "linewidth": 0, "alpha": 0.6, "color": COLOURS[number % len(COLOURS)], "label": gpu}
        if members:
            x = [row.reference for row in members]
            above.scatter(x, [row.predicted for row in members], **look)
            below.scatter(x, [row.predicted / row.reference for row in members], **look)
    above.set(xscale="log", yscale="log", xlim=ends, ylim=ends, title=f"{mode}, {unit}")
    above.legend(handletextpad=0.1, borderpad=0)
    _ratios(below, rows)
    below.set_xlabel("reference")


def _ratios(axis: Any, rows: Sequence[Row]) -> None:
    """A logarithmic axis as far as the errors go, the same up and down, with errors in per cent."""
    reach = max(LEAST, *(max(1 + row.error, 1 / (1 + row.error)) for row in rows)) * 1.08
    axis.set(yscale="log", ylim=(1 / reach, reach))
    between = (0.7, 1.5) if reach < FINE else (0.1, 0.2, 0.3, 0.5, 2.0, 3.0, 5.0, 10.0)
    ticks = sorted(tick for tick in (1.0, *BAND, *between) if 1 / reach < tick < reach)
    axis.set_yticks(ticks, [f"{tick - 1:+.0%}" if tick != 1 else "0%" for tick in ticks])
    axis.minorticks_off()
