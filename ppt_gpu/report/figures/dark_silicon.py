"""Figures of projections and sweeps, in the form of Blem's figures 3.4 and 3.5."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ppt_gpu.multicore.dark_silicon.projection import Projection, geomean
from ppt_gpu.multicore.dark_silicon.sweeps import Swept
from ppt_gpu.report.figures.common import COLOURS, STYLE, pyplot

_MARKERS = {"symmetric": "o", "asymmetric": "^", "dynamic": "s", "composed": "D"}
_COLOUR = {"cpu": COLOURS[0], "gpu": COLOURS[2]}


def speedups(projections: Sequence[Projection]) -> Any:
    """Figure 3.4: every benchmark on the fastest chip of every organisation and topology, over the nodes."""
    plt = pyplot()
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(
            1, len(projections), figsize=(4.6 * len(projections) + 1, 4.2), sharey=True, squeeze=False
        )
        for axis, projection in zip(axes[0], projections, strict=True):
            _panel(axis, projection)
        axes[0][0].set_ylabel(f"speedup over {_baseline(projections[0])}")
        axes[0][-1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


def _baseline(projection: Projection) -> str:
    study = projection.study
    return f"{study.baseline_cores} cores of score {study.baseline_score:g} at {projection.scaling.nodes[0].name}"


def _panel(axis: Any, projection: Projection) -> None:
    nodes = [node.name for node in projection.scaling.nodes if projection.at(node.name)]
    kinds = list(dict.fromkeys((chip.organisation, chip.topology) for chip in projection.chips))
    for place, (organisation, topology) in enumerate(kinds):
        offset = 0.08 * (place - (len(kinds) - 1) / 2)
        chips = [c for c in projection.chips if (c.organisation, c.topology) == (organisation, topology)]
        axis.scatter(
            np.repeat(np.arange(len(nodes)) + offset, len(projection.suite.names)),
            np.concatenate([chip.speedup for chip in chips]),
            s=11,
            marker=_MARKERS[topology],
            facecolors="none" if topology != "symmetric" else _COLOUR[organisation],
            edgecolors=_COLOUR[organisation],
            linewidths=0.7,
            label=f"{organisation.upper()} {topology}",
        )
    best = [geomean([each.speedup for each in projection.best(node)]) for node in nodes]
    axis.plot(range(len(nodes)), best, color=COLOURS[1], linewidth=1.8, label="geometric mean of the fastest")
    axis.annotate(f"{best[-1]:.1f}", (len(nodes) - 0.55, best[-1]), va="center", color=COLOURS[1], fontweight="bold")
    axis.set_xlim(-0.5, len(nodes) - 0.1)
    axis.plot(
        range(len(nodes)), 2.0 ** np.arange(len(nodes)), "--", color="#000000", linewidth=1, label="doubling a node"
    )
    axis.set_yscale("log", base=2)
    axis.yaxis.set_major_formatter("{x:g}")
    axis.set_xticks(range(len(nodes)), [name.removesuffix("nm") for name in nodes])
    axis.set_xlabel("technology node, nm")
    axis.set_title(_title(projection.scaling.title), fontsize=9)


def _title(text: str) -> str:
    return text.split(",")[0]


def sweeps(swept: Sequence[Swept]) -> Any:
    """Figure 3.5: one panel a sweep, one line a benchmark, their geometric mean in black."""
    plt = pyplot()
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(1, len(swept), figsize=(4.4 * len(swept) + 1.4, 3.9), squeeze=False)
        for axis, each in zip(axes[0], swept, strict=True):
            _sweep_panel(axis, each)
        axes[0][0].set_ylabel("speedup over the baseline")
        axes[0][-1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.02), fontsize=8)
    return figure


def _sweep_panel(axis: Any, swept: Swept) -> None:
    styles = ("-", "--", ":")
    for row, name in enumerate(swept.names):
        colour, style = COLOURS[row % 6], styles[row // 6 % 3]
        axis.plot(swept.values, swept.speedup[row], style, color=colour, linewidth=1.2, label=name)
    mean = [geomean(column) for column in swept.speedup.T]
    axis.plot(swept.values, mean, color="#000000", linewidth=2, label="geometric mean")
    axis.set_xlabel(f"{swept.sweep.label}{f', {swept.sweep.unit}' if swept.sweep.unit else ''}")
    axis.set_title(f"{swept.organisation.upper()} {swept.topology} at {swept.node}", fontsize=9)
    axis.set_ylim(bottom=0)
