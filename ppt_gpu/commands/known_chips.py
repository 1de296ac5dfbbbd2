"""darksilicon --figure 4.16, 4.17, 4.18 or 5.6: symmetric chips of cores that exist, for kernels of one's own."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ppt_gpu.multicore.base.device_scaling import DeviceScaling
from ppt_gpu.multicore.dark_silicon.chip import parse_budget
from ppt_gpu.multicore.dark_silicon.known_cores import Fit, KnownCores, fits, load_known_cores
from ppt_gpu.multicore.dark_silicon.known_projection import KnownChips, KnownProjection
from ppt_gpu.multicore.dark_silicon.projection import geomean
from ppt_gpu.multicore.dark_silicon.study import load_study
from ppt_gpu.programs import KERNELS, programs_of, project_figure
from ppt_gpu.report.figures.common import save
from ppt_gpu.report.figures.known_cores import core_counts, projections

if TYPE_CHECKING:
    from ppt_gpu.multicore.base.device_scaling import DeviceScaling


_NAMES = {"s": "S-cores", "m": "M-cores"}


def counts_text(known: KnownCores, tables: Sequence[DeviceScaling]) -> str:
    """How many of each core fit at each node; power-limited ones with a star."""
    lines = [f"{known.title}: cores within {known.budget} (* power limits, else area)"]
    for table in tables:
        lines += ["", table.title, "  " + f"{'node':6} " + " ".join(f"{core.name:>6}" for core in known.cores)]
        found = fits(known, table)
        for node in table.nodes:
            here = [fit for fit in found if fit.node == node.name]
            cells = " ".join(f"{f'{fit.count}*' if fit.power_limited else fit.count:>6}" for fit in here)
            lines.append(f"  {node.name:6} {cells}")
    return "\n".join(lines) + "\n"


def counts_document(known: KnownCores, tables: Sequence[DeviceScaling]) -> str:
    """The same as one JSON document."""

    def row(fit: Fit) -> dict[str, Any]:
        return {**vars(fit), "core": fit.core.name}

    document = {
        "schema": 1,
        "chips": known.title,
        "budget": {"area_mm2": known.budget.area, "power_w": known.budget.power},
        "scalings": [{"scaling": table.name, "fits": [row(fit) for fit in fits(known, table)]} for table in tables],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def known_text(projections: Sequence[KnownProjection]) -> str:
    """Speedup, cores and dark share by node and kind of core; then each kernel at the last node."""
    first = projections[0]
    known = first.known
    lines = [
        f"{known.title}: {len(first.kernels)} kernels within {known.budget}, {first.model}",
        f"speedups over {known.baseline_cores} {known.baseline.name} at {first.scaling.nodes[0].name}",
    ]
    for projection in projections:
        lines += ["", projection.scaling.title]
        lines.append(
            f"  {'node':6} {'cores':8} {'speedup':>8} {'least':>7} {'most':>7} {'count':>6} {'dark':>5}  chosen"
        )
        lines += [_line(chips) for chips in _in_order(projection)]
        lines += ["", *_last(projection)]
    return "\n".join(lines) + "\n"


def _in_order(projection: KnownProjection) -> list[KnownChips]:
    return [chips for node in projection.scaling.nodes for chips in projection.chips if chips.node == node.name]


def _line(chips: KnownChips) -> str:
    chosen = ", ".join(f"{name} {count}" for name, count in sorted(Counter(chips.cores).items()))
    return (
        f"  {chips.node:6} {_NAMES[chips.kind]:8} {chips.geomean:8.2f} {chips.speedup.min():7.2f} "
        f"{chips.speedup.max():7.2f} {geomean(chips.count):6.1f} {np.mean(chips.dark):5.0%}  {chosen}"
    )


def _last(projection: KnownProjection) -> list[str]:
    node = projection.scaling.nodes[-1].name
    width = max(len(name) for name in (*projection.kernels, f"at {node}"))
    here = [chips for chips in projection.chips if chips.node == node]
    lines = [f"  {f'at {node}':{width}} " + " ".join(f"{_NAMES[chips.kind]:>18}" for chips in here)]
    for row, name in enumerate(projection.kernels):
        cells = (f"{chips.speedup[row]:8.2f} {chips.count[row]:4.0f} {chips.cores[row]:4}" for chips in here)
        lines.append(f"  {name:{width}} " + " ".join(f"{cell:>18}" for cell in cells))
    return lines


def known_document(projections: Sequence[KnownProjection]) -> str:
    """Every chip as one JSON document."""
    first = projections[0]

    def row(chips: KnownChips) -> dict[str, Any]:
        return {
            "node": chips.node,
            "kind": chips.kind,
            "geomean": chips.geomean,
            "speedup": [float(value) for value in chips.speedup],
            "core": list(chips.cores),
            "count": [int(value) for value in chips.count],
            "dark": [float(value) for value in chips.dark],
            "power_limited": [bool(value) for value in chips.power_limited],
        }

    document = {
        "schema": 1,
        "chips": first.known.title,
        "model": first.model,
        "kernels": list(first.kernels),
        "budget": {"area_mm2": first.known.budget.area, "power_w": first.known.budget.power},
        "projections": [
            {"scaling": each.scaling.name, "title": each.scaling.title, "chips": [row(c) for c in _in_order(each)]}
            for each in projections
        ],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


FIGURES = ("4.16", "4.17", "4.18", "5.6")


def run(arguments: argparse.Namespace, tables: list[DeviceScaling]) -> str:
    """The text or JSON of a figure; draws it too when wanted."""
    known = load_known_cores(arguments.cores)
    if arguments.budget:
        known = replace(known, budget=parse_budget(arguments.budget, known.budget))
    if arguments.figure == "4.16":
        text = (counts_document if arguments.json else counts_text)(known, tables)
        _draw(arguments, lambda: core_counts(known, tables))
        return text
    study = load_study(arguments.study, arguments.set)
    found = project_figure(arguments.figure, known, tables, programs_of(arguments.kernel or KERNELS), study)
    _draw(arguments, lambda: projections(found))
    return (known_document if arguments.json else known_text)(found)


def _draw(arguments: argparse.Namespace, figure: object) -> None:
    if arguments.plot:
        assert callable(figure)
        save(figure(), arguments.plot)
