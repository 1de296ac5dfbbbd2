"""darksilicon and upperbound: what whole chips can do, node by node, and how that moves with one assumption."""

from __future__ import annotations

import argparse
from dataclasses import replace

from ppt_gpu.commands import known_chips
from ppt_gpu.common.errors import PptError
from ppt_gpu.common.outputs import check_outputs
from ppt_gpu.inputs import files_of, open_workload
from ppt_gpu.multicore.base.device_scaling import load_scaling
from ppt_gpu.multicore.base.suite import Suite, load_suite
from ppt_gpu.multicore.dark_silicon.chip import parse_budget
from ppt_gpu.multicore.dark_silicon.projection import project
from ppt_gpu.multicore.dark_silicon.study import Study, load_study
from ppt_gpu.multicore.dark_silicon.sweeps import run_sweep
from ppt_gpu.multicore.dark_silicon.topology import ORGANISATIONS, TOPOLOGIES, organisation_named, topology_named
from ppt_gpu.report.commands.dark_silicon import projection_document, projection_text, sweep_text, sweeps_document
from ppt_gpu.report.figures.common import check_target, save
from ppt_gpu.report.figures.dark_silicon import speedups, sweeps
from ppt_gpu.spec.files import files_of as hardware_files


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
