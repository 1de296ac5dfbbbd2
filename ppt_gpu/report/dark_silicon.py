"""Projections and sweeps of whole chips as text and JSON."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from ppt_gpu.multicore.projection import Best, Projection, geomean
from ppt_gpu.multicore.search import Chips
from ppt_gpu.multicore.sweeps import Swept

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
        lines += ["", projection.scaling.title, *_nodes(projection), "", *_last(projection)]
    return "\n".join(lines) + "\n"


def _nodes(projection: Projection) -> list[str]:
    shown = _shown_nodes(projection)
    columns = [(chip.organisation, chip.topology) for chip in projection.at(shown[0])]
    head = f"  {'node':6} {'speedup':>8} {'cores':>6} {'dark':>5}  "
    lines = [head + " ".join(f"{_short(*column):>9}" for column in columns) + "  fastest for"]
    for node in shown:
        best = projection.best(node)
        wins = Counter(_short(each.organisation, each.topology) for each in best)
        speedups = " ".join(f"{_number(geomean(chip.speedup)):>9}" for chip in projection.at(node))
        cores, dark = geomean([each.cores for each in best]), float(np.mean([each.dark for each in best]))
        lines.append(
            f"  {node:6} {geomean([each.speedup for each in best]):8.2f} {cores:6.1f} {_percent(dark):>5}  {speedups}"
            f"  {', '.join(f'{name} {count}' for name, count in sorted(wins.items(), key=lambda w: (-w[1], w[0])))}"
        )
    return lines


def _last(projection: Projection) -> list[str]:
    node = _shown_nodes(projection)[-1]
    width = max(len(name) for name in projection.suite.names)
    names = f"{'speedup':>8} {'chip':>10} {'cores':>6} {'dark':>5} {'light':>6} {'heavy':>6}  limit"
    return [f"  {f'at {node}':{width}} {names}", *(_line(each, width) for each in projection.best(node))]


def _line(best: Best, width: int) -> str:
    heavy = "" if math.isnan(best.heavy) else f"{best.heavy:.4g}"
    return (
        f"  {best.benchmark:{width}} {best.speedup:8.2f} {_short(best.organisation, best.topology):>10} "
        f"{best.cores:6.1f} {_percent(best.dark):>5} {best.light:6.4g} {heavy:>6}  {best.limit}"
    )


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
    width = max(len(name) for name in (*swept.names, "geometric mean"))
    values = " ".join(f"{value:>7g}" for value in swept.values)
    lines = [
        f"{swept.sweep.label}{unit}: speedup of {swept.organisation} {swept.topology} chips at {swept.node}",
        "",
        f"{'':{width}} {values}",
    ]
    rows = [*zip(swept.names, swept.speedup, strict=True)]
    rows.append(("geometric mean", np.array([geomean(column) for column in swept.speedup.T])))
    lines += [f"{name:{width}} {' '.join(f'{_number(float(value)):>7}' for value in row)}" for name, row in rows]
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
