"""Figures 6 to 9 of the PPT paper redone: seconds by size, a column an application, a row a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ppt_gpu.report.figures.common import COLOURS, STYLE, pyplot, save
from ppt_gpu.validate.papers.ppt import APPLICATIONS, GPUS, PROJECTED, REFERENCE, Case
from ppt_gpu.validate.papers.ppt_text import FIGURES


def draw(cases: Sequence[Case], path: str) -> None:
    """One panel an application and GPU; the projected GPU's beside the one that it is held against."""
    plt = pyplot()
    gpus = [gpu for gpu in GPUS if any(case.gpu == gpu for case in cases)]
    names = [one.name for one in APPLICATIONS if any(case.application == one.name for case in cases)]
    with plt.rc_context(STYLE):
        size = 3.2 * len(names), 2.3 * len(gpus)
        figure, axes = plt.subplots(len(gpus), len(names), figsize=size, squeeze=False)
        for row, gpu in zip(axes, gpus, strict=True):
            for axis, name in zip(row, names, strict=True):
                own = [case for case in cases if case.application == name]
                if gpu == PROJECTED:
                    _line(axis, [case for case in own if case.gpu == REFERENCE], f"{REFERENCE}, simulation", COLOURS[2])
                _panel(axis, [case for case in own if case.gpu == gpu])
                axis.set_title(f"{name}, {gpu} ({FIGURES[gpu]})", fontsize=8)
        axes[0][0].legend(fontsize=7)
        axes[-1][-1].legend(fontsize=7)
        for axis in axes[-1]:
            axis.set_xlabel("side")
        for axis in axes[:, 0]:
            axis.set_ylabel("seconds")
        figure.tight_layout()
    save(figure, path)


def _panel(axis: Any, cases: Sequence[Case]) -> None:
    _line(axis, cases, "simulation", COLOURS[0])
    _line(axis, cases, "PPT GPU module", COLOURS[1], module=True)
    for case in cases:
        if case.simulation is None:
            axis.annotate(
                "out of memory", (case.size, 0.02), xycoords=("data", "axes fraction"), fontsize=6, ha="right"
            )
            axis.axvline(case.size, color=COLOURS[7], lw=0.8, ls=":")


def _line(axis: Any, cases: Sequence[Case], label: str, colour: str, module: bool = False) -> None:
    shown = [(case.size, case.module if module else case.simulation) for case in cases if case.simulation is not None]
    axis.set_xscale("log", base=2)
    axis.set_yscale("log")
    axis.plot([size for size, _ in shown], [time for _, time in shown], "o-", ms=3, lw=1, color=colour, label=label)
