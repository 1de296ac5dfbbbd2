"""Scatter plots of a validation: predictions over references, a panel for each mode, a colour for each GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ppt_gpu.report.figures import COLOURS, STYLE, pyplot, save
from ppt_gpu.validate.rows import Row

#: shares of the reference between which the grey band lies
BAND = (0.8, 1.25)


def draw(rows: Sequence[Row], path: str) -> None:
    """Write the figure: logarithmic axes, the line where both are equal, and a band of 20 % below to 25 % above it."""
    modes, gpus = (list(dict.fromkeys(key)) for key in zip(*((row.mode, row.gpu) for row in rows), strict=True))
    plt = pyplot()
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(1, len(modes), figsize=(4.2 * len(modes), 4.0), squeeze=False)
        for axis, mode in zip(axes[0], modes, strict=True):
            _panel(axis, mode, [row for row in rows if row.mode == mode], gpus)
        figure.tight_layout()
    save(figure, path)


def _panel(axis: Any, mode: str, rows: Sequence[Row], gpus: Sequence[str]) -> None:
    values = [value for row in rows for value in (row.reference, row.predicted)]
    ends = [min(values) / 1.3, max(values) * 1.3]
    axis.fill_between(ends, [BAND[0] * x for x in ends], [BAND[1] * x for x in ends], color="#EEEEEE", zorder=0)
    axis.plot(ends, ends, color="#8C8C8C", linewidth=0.8)
    for number, gpu in enumerate(gpus):
        members = [row for row in rows if row.gpu == gpu]
        if members:
            axis.scatter(
                [row.reference for row in members], [row.predicted for row in members], s=9, linewidth=0, alpha=0.7,
                color=COLOURS[number % len(COLOURS)], label=gpu,
            )  # fmt: skip
    axis.set(xscale="log", yscale="log", xlim=ends, ylim=ends, title=mode)
    axis.set_xlabel(f"reference, {rows[0].unit}")
    axis.set_ylabel(f"predicted, {rows[0].unit}")
    axis.legend()
