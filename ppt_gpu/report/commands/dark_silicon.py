"""Projections and sweeps of whole chips as text and JSON."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from textwrap import wrap
from typing import Any

import numpy as np

from ppt_gpu.multicore.dark_silicon.projection import Best, Projection, geomean
from ppt_gpu.multicore.dark_silicon.search import Chips
from ppt_gpu.multicore.dark_silicon.sweeps import Swept
from ppt_gpu.report.text.columns import WIDTH, columns

_SHORT = {"symmetric": "sym", "asymmetric": "asym", "dynamic": "dyn", "composed": "comp"}


def projection_text(projections: Sequence[Projection]) -> str:
    """A table over the nodes for each scaling, then each benchmark at the last node."""
    first = projections[0]
    study = first.study
    lines = [
        f"{first.suite.title}: {len(first.suite.names)} benchmarks within {study.budget}",
        f"speedups over {study.baseline_cores} cores of score {study.baseline_score:g} at "
        f"{first.scaling.nodes[0].name}, fastest chip of each benchmark",
    ]
    for projection in projections:
        lines += ["", *wrap(projection.scaling.title, WIDTH), *_nodes(projection), "", *_last(projection)]
    return "\n".join(lines) + "\n"


def _nodes(projection: Projection) -> list[str]:
    shown = _shown_nodes(projection)
    chips = [_short(chip.organisation, chip.topology) for chip in projection.at(shown[0])]
    best_chips = [("node", "speedup", "cores", "dark", "fastest for so many")]
    each_chip = [("node", *chips)]
    for node in shown:
        best = projection.best(node)
        wins = Counter(_short(each.organisation, each.topology) for each in best)
        cores, dark = geomean([each.cores for each in best]), float(np.mean([each.dark for each in best]))
        fastest = ", ".join(f"{name} {count}" for name, count in sorted(wins.items(), key=lambda w: (-w[1], w[0])))
        speedup = geomean([each.speedup for each in best])
        best_chips.append((node, f"{speedup:.2f}", f"{cores:.1f}", _percent(dark), fastest))
        each_chip.append((node, *(_number(geomean(chip.speedup)) for chip in projection.at(node))))
    return [*columns(best_chips, last_left=True), "", *columns(each_chip)]


def _last(projection: Projection) -> list[str]:
    node = _shown_nodes(projection)[-1]
    heads = (f"at {node}", "speedup", "chip", "cores", "dark", "light", "heavy", "limit")
    return columns([heads, *map(_cells, projection.best(node))], last_left=True)


def _cells(best: Best) -> tuple[str, ...]:
    heavy = "" if math.isnan(best.heavy) else f"{best.heavy:.4g}"
    chip = _short(best.organisation, best.topology)
    numbers = (f"{best.cores:.1f}", _percent(best.dark), f"{best.light:.4g}", heavy)
    return best.benchmark, f"{best.speedup:.2f}", chip, *numbers, str(best.limit)


def _percent(share: float) -> str:
    return f"{abs(share) if round(share, 2) == 0 else share:.0%}"


def _short(organisation: str, topology: str) -> str:
    return f"{organisation} {_SHORT[topology]}"


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.2f}"


def _shown_nodes(projection: Projection) -> list[str]:
    found = {chip.node for chip in projection.chips}
    return [node.name for node in projection.scaling.nodes if node.name in found]


def projection_document(projections: Sequence[Projection]) -> str:
    """Every chip of every projection as one JSON document; shares as ratios, missing numbers as null."""
    first = projections[0]
    document = {
        "schema": 1,
        "study": first.study.title,
        "suite": first.suite.title,
        "benchmarks": list(first.suite.names),
        "budget": {"area_mm2": first.study.budget.area, "power_w": first.study.budget.power},
        "projections": [_projection(projection) for projection in projections],
        "assumptions": [{"key": s.path, "value": s.text, "source": s.source} for s in first.study.sources.values()],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _projection(projection: Projection) -> dict[str, Any]:
    nodes = _shown_nodes(projection)
    summary = []
    for node in nodes:
        best = projection.best(node)
        summary.append(
            {
                "node": node,
                "speedup": geomean([each.speedup for each in best]),
                "cores": geomean([each.cores for each in best]),
                "dark": float(np.mean([each.dark for each in best])),
                "best": [{**vars(each), "heavy": _plain(each.heavy)} for each in best],
            }
        )
    return {
        "scaling": projection.scaling.name,
        "title": projection.scaling.title,
        "nodes": summary,
        "chips": [_chips(chips) for chips in projection.chips],
    }


def _chips(chips: Chips) -> dict[str, Any]:
    numbers = ("speedup", "cores", "dark", "light", "heavy")
    return {
        "node": chips.node,
        "organisation": chips.organisation,
        "topology": chips.topology,
        **{key: [_plain(float(value)) for value in getattr(chips, key)] for key in numbers},
        "power_limited": [bool(value) for value in chips.power_limited],
        "bandwidth_limited": [bool(value) for value in chips.bandwidth_limited],
    }


def _plain(value: float) -> float | None:
    return value if math.isfinite(value) else None


def sweep_text(swept: Swept) -> str:
    """Speedups by benchmark and value."""
    unit = f" in {swept.sweep.unit}" if swept.sweep.unit else ""
    lines = [
        f"{swept.sweep.label}{unit}: speedup of {swept.organisation} {swept.topology} chips at {swept.node}",
        "",
    ]
    rows = [*zip(swept.names, swept.speedup, strict=True)]
    rows.append(("geometric mean", np.array([geomean(column) for column in swept.speedup.T])))
    table = [(name, *(_number(float(value)) for value in row)) for name, row in rows]
    lines += columns([("", *(f"{value:g}" for value in swept.values)), *table])
    return "\n".join(lines) + "\n"


def sweeps_document(swept: Sequence[Swept]) -> str:
    """Sweeps as one JSON document."""
    return json.dumps({"schema": 1, "sweeps": [_sweep(each) for each in swept]}, indent=2) + "\n"


def _sweep(swept: Swept) -> dict[str, Any]:
    return {
        "sweep": swept.sweep.name,
        "unit": swept.sweep.unit,
        "node": swept.node,
        "organisation": swept.organisation,
        "topology": swept.topology,
        "values": list(swept.values),
        "rows": [
            {
                "benchmark": name,
                **{
                    key: [_plain(float(value)) for value in getattr(swept, key)[row]]
                    for key in ("speedup", "cores", "dark")
                },
            }
            for row, name in enumerate(swept.names)
        ],
    }
