"""Figures of chips of known cores, in the form of Blem's figures 4.16, 4.17, 4.18 and 5.6."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ppt_gpu.multicore.base.device_scaling import DeviceScaling
from ppt_gpu.multicore.dark_silicon.known_cores import KnownCores, fits
from ppt_gpu.multicore.dark_silicon.known_projection import KnownProjection
from ppt_gpu.report.figures.common import COLOURS, STYLE, pyplot

#: light and dark shade by kind of core: area limited, power limited
_SHADES = {"s": ("#9ECAE1", "#08519C"), "m": ("#A1D99B", "#006D2C")}
_LINES = {"s": COLOURS[0], "m": COLOURS[2]}
_NAMES = {"s": "S-cores", "m": "M-cores"}


def core_counts(known: KnownCores, tables: Sequence[DeviceScaling]) -> Any:
    """Figure 4.16: cores that fit at each node, dark bars where power limits them."""
    plt = pyplot()
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(len(tables), 1, figsize=(9.5, 3.1 * len(tables)), squeeze=False)
        for axis, table in zip(axes[:, 0], tables, strict=True):
            _counts(axis, known, table)
        handles = [
            plt.Rectangle((0, 0), 1, 1, color=shade, label=f"{_NAMES[kind]}, {limit} limited")
            for kind, shades in _SHADES.items()
            for shade, limit in zip(shades, ("area", "power"), strict=True)
            if known.of(kind)
        ]
        axes[0, 0].legend(handles=handles, loc="upper left", ncols=2, fontsize=8)
        figure.tight_layout()
    return figure


def _counts(axis: Any, known: KnownCores, table: DeviceScaling) -> None:
    width = 0.84 / len(known.cores)
    order = {core.name: place for place, core in enumerate(known.cores)}
    nodes = {node.name: place for place, node in enumerate(table.nodes)}
    for fit in fits(known, table):
        if not fit.count:
            continue
        x = nodes[fit.node] + (order[fit.core.name] - (len(order) - 1) / 2) * width
        axis.bar(x, fit.count, width * 0.92, color=_SHADES[fit.core.kind][fit.power_limited])
        axis.annotate(str(fit.count), (x, fit.count), (0, 1), textcoords="offset points", ha="center", fontsize=5.5)
        if nodes[fit.node] == 0:
            axis.annotate(
                fit.core.name, (x, 1.06), ha="center", va="bottom", fontsize=6, rotation=90, color="white"
                if fit.power_limited else "black",
            )  # fmt: skip
    axis.set_yscale("log", base=2)
    axis.yaxis.set_major_formatter("{x:g}")
    axis.set_ylim(1, 2048)
    axis.set_xticks(range(len(nodes)), [name.removesuffix("nm") for name in nodes])
    axis.grid(axis="x", visible=False)
    axis.set_xlabel("technology node, nm")
    axis.set_ylabel("cores")
    axis.set_title(table.title.split(",")[0], fontsize=9)


def projections(found: Sequence[KnownProjection]) -> Any:
    """Figures 4.17, 4.18 and 5.6: speedup, cores and dark share of the fastest chips of S- and of M-cores."""
    plt = pyplot()
    rows = (
        ("speedup over the baseline", "speedup", True),
        ("cores of the fastest chip", "count", True),
        ("dark share of the area, %", "dark", False),
    )
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(
            3, len(found), figsize=(4.3 * len(found) + 0.4, 7.4), sharex="col", sharey="row", squeeze=False
        )
        for column, projection in enumerate(found):
            for row, (label, key, log) in enumerate(rows):
                axis = axes[row, column]
                _row(axis, projection, key, log)
                if column == 0:
                    axis.set_ylabel(label)
            axes[0, column].set_title(projection.scaling.title.split(",")[0], fontsize=9)
            axes[-1, column].set_xlabel("technology node, nm")
        axes[0, 0].legend(loc="upper left", fontsize=8)
        figure.suptitle(found[0].model, fontsize=10)
        figure.tight_layout()
    return figure


def _row(axis: Any, projection: KnownProjection, key: str, log: bool) -> None:
    nodes = [node.name for node in projection.scaling.nodes]
    for shift, kind in ((-0.07, "s"), (0.07, "m")):
        chips = [chip for chip in projection.chips if chip.kind == kind]
        if not chips:
            continue
        values = np.array([getattr(chip, key) for chip in chips]) * (1.0 if log else 100.0)
        middle = np.exp(np.log(values).mean(axis=1)) if log else values.mean(axis=1)
        x = np.arange(len(nodes)) + shift
        axis.vlines(x, values.min(axis=1), values.max(axis=1), color=_LINES[kind], linewidth=1)
        mean = "geometric mean" if log else "mean"
        axis.plot(x, middle, "o-", color=_LINES[kind], markersize=4, label=f"{_NAMES[kind]}: {mean} and range")
        axis.scatter(np.repeat(x, values.shape[1]), values.ravel(), s=5, color=_LINES[kind], alpha=0.5)
    if log:
        axis.set_yscale("log", base=2)
        axis.yaxis.set_major_formatter("{x:g}")
    else:
        axis.set_ylim(0, 100)
    axis.set_xticks(range(len(nodes)), [name.removesuffix("nm") for name in nodes])
