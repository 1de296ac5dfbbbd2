"""darksilicon and upperbound: what whole chips can do, node by node, and how that moves with one assumption."""

from __future__ import annotations

import argparse
import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from textwrap import wrap
from typing import Any

import numpy as np

from ppt_gpu.commands import known_chips
from ppt_gpu.common.errors import PptError
from ppt_gpu.common.outputs import check_outputs
from ppt_gpu.inputs import files_of, open_workload
from ppt_gpu.multicore.base.device_scaling import load_scaling
from ppt_gpu.multicore.base.suite import Suite, load_suite
from ppt_gpu.multicore.dark_silicon.chip import parse_budget
from ppt_gpu.multicore.dark_silicon.projection import Best, Projection, geomean, project
from ppt_gpu.multicore.dark_silicon.search import Chips
from ppt_gpu.multicore.dark_silicon.study import Study, load_study
from ppt_gpu.multicore.dark_silicon.sweeps import Swept, run_sweep
from ppt_gpu.multicore.dark_silicon.topology import ORGANISATIONS, TOPOLOGIES, organisation_named, topology_named
from ppt_gpu.report.figures.common import check_target, save
from ppt_gpu.report.figures.dark_silicon import speedups, sweeps
from ppt_gpu.report.text.columns import WIDTH, columns
from ppt_gpu.spec.files import files_of as hardware_files

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


def _check_figure(arguments: argparse.Namespace) -> None:
    """The figure is one of those there are, and no option is given that it has no use for."""
    figures = ("3.4", "3.5", *known_chips.FIGURES)
    if arguments.figure not in figures:
        raise PptError(f"unknown figure '{arguments.figure}'", hint=f"expected one of: {', '.join(figures)}")
    known = arguments.figure in known_chips.FIGURES
    sweeps = arguments.figure == "3.5"
    useless = {
        "--kernel": arguments.kernel and (not known or arguments.figure == "4.16"),
        "--cores": arguments.cores != "blem" and not known,
        "--suite": arguments.suite != "parsec" and known,
        "--benchmark": arguments.benchmark and known,
        "--study": arguments.study != "isca11" and known and arguments.figure != "4.17",
        "--set": arguments.set and known and arguments.figure != "4.17",
        "--node": arguments.node and (known or sweeps),
        "--organisation": arguments.organisation and (known or sweeps),
        "--topology": arguments.topology and (known or sweeps),
    }
    given = [name for name, bad in useless.items() if bad]
    if given:
        raise PptError(f"{', '.join(given)}: figure {arguments.figure} has no use for it")


def _check_plot(arguments: argparse.Namespace) -> None:
    """PptError for a picture that cannot be drawn, before anything is computed."""
    if not arguments.plot:
        return
    check_target(arguments.plot)
    scalings = arguments.scaling if isinstance(arguments.scaling, list) else [arguments.scaling or ""]
    named = [("suites", arguments.suite), ("studies", arguments.study), *(("scaling", each) for each in scalings)]
    if arguments.command == "darksilicon":
        named.append(("chips", arguments.cores))
    read = [file for kind, name in named for file in hardware_files(kind, name)]
    kernels = arguments.kernel if arguments.command == "darksilicon" else ()
    read += [file for kernel in kernels for file in files_of(open_workload(kernel))]
    check_outputs([arguments.plot], lambda: (*read, *scalings))


def _both_sweeps(arguments: argparse.Namespace, study: Study, suite: Suite) -> str:
    """Figure 3.5: L2 share of symmetric CPU chips and bandwidth of symmetric GPU chips, at the first node."""
    names = arguments.scaling or ("itrs",)
    if len(names) > 1:
        raise PptError(f"figure 3.5 shows one scaling, not {len(names)}")
    table = load_scaling(names[0])
    first = table.nodes[0].name
    swept = [
        run_sweep(name, study, suite, table, first, organisation, "symmetric")
        for name, organisation in (("l2-share", "cpu"), ("bandwidth", "gpu"))
    ]
    if arguments.plot:
        save(sweeps(swept), arguments.plot)
    return sweeps_document(swept) if arguments.json else "\n".join(sweep_text(each) for each in swept)


def _inputs(arguments: argparse.Namespace) -> tuple[Study, Suite]:
    _check_plot(arguments)
    study = load_study(arguments.study, arguments.set)
    if arguments.budget:
        study = replace(study, budget=parse_budget(arguments.budget, study.budget))
    suite = load_suite(arguments.suite)
    return study, suite.only(arguments.benchmark) if arguments.benchmark else suite


def run(arguments: argparse.Namespace) -> str:
    _check_figure(arguments)
    if arguments.figure in known_chips.FIGURES:
        _check_plot(arguments)
        names = arguments.scaling or ("conservative", "itrs")
        return known_chips.run(arguments, [load_scaling(name) for name in names])
    study, suite = _inputs(arguments)
    if arguments.figure == "3.5":
        return _both_sweeps(arguments, study, suite)
    organisations = [organisation_named(name) for name in arguments.organisation] or ORGANISATIONS
    topologies = [topology_named(name) for name in arguments.topology] or TOPOLOGIES
    tables = [load_scaling(name) for name in arguments.scaling or ("conservative", "itrs")]
    projections = [
        project(
            study,
            suite,
            table,
            organisations=organisations,
            topologies=topologies,
            nodes=[table.node(name).name for name in arguments.node],
        )
        for table in tables
    ]
    if arguments.plot:
        save(speedups(projections), arguments.plot)
    return projection_document(projections) if arguments.json else projection_text(projections)


def run_sweeps(arguments: argparse.Namespace) -> str:
    study, suite = _inputs(arguments)
    swept = run_sweep(
        arguments.sweep,
        study,
        suite,
        load_scaling(arguments.scaling),
        arguments.node,
        organisation_named(arguments.organisation),
        topology_named(arguments.topology),
        arguments.values,
    )
    if arguments.plot:
        save(sweeps([swept]), arguments.plot)
    return sweeps_document([swept]) if arguments.json else sweep_text(swept)
