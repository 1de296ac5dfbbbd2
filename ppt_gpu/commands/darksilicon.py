"""darksilicon and upperbound: what whole chips can do, node by node, and how that moves with one assumption."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ppt_gpu.commands.arguments import AddCommand, add_set

if TYPE_CHECKING:
    from ppt_gpu.multicore.study import Study
    from ppt_gpu.multicore.suite import Suite


def add(command: AddCommand) -> None:
    dark = command("darksilicon", run, "Project the fastest chips within a budget of area and power, node by node.")
    _add_inputs(dark)
    dark.add_argument(
        "--scaling",
        action="append",
        metavar="NAME|FILE",
        help="device scaling: itrs, conservative, foundry_speed, foundry_power, or a .toml or .csv of your own; may be "
        "repeated (default: conservative and itrs)",
    )
    dark.add_argument("--node", action="append", default=[], help="only this technology node; may be repeated")
    dark.add_argument("--organisation", action="append", default=[], help="only cpu or gpu chips")
    dark.add_argument(
        "--topology", action="append", default=[], help="only symmetric, asymmetric, dynamic or composed chips"
    )
    sweep = command(
        "upperbound", run_sweeps, "Sweep one assumption of the projection: area, power, L2, bandwidth, SMT."
    )
    sweep.add_argument("sweep", help="area, power, l2-share, bandwidth, smt or parallel")
    sweep.add_argument("values", nargs="*", type=float, help="values of the sweep (default: its usual ones)")
    _add_inputs(sweep)
    sweep.add_argument("--scaling", default="itrs", metavar="NAME|FILE", help="device scaling (default: itrs)")
    sweep.add_argument("--node", default="45nm", help="technology node (default: 45nm)")
    sweep.add_argument("--organisation", default="cpu", help="cpu (default) or gpu")
    sweep.add_argument("--topology", default="symmetric", help="symmetric (default), asymmetric, dynamic or composed")


def _add_inputs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--suite", default="parsec", metavar="NAME|FILE", help="benchmarks (default: parsec)")
    parser.add_argument("--benchmark", help="only this benchmark of the suite")
    parser.add_argument("--study", default="isca11", metavar="NAME|FILE", help="assumptions (default: isca11)")
    parser.add_argument("--budget", metavar="W,MM2", help='what the cores may take, such as "125 W,111 mm2"')
    parser.add_argument("--plot", metavar="FILE", help="draw the speedups: .png, .svg or .pdf")
    add_set(parser)


def _inputs(arguments: argparse.Namespace) -> tuple[Study, Suite]:
    from dataclasses import replace

    from ppt_gpu.multicore.chip import parse_budget
    from ppt_gpu.multicore.study import load_study
    from ppt_gpu.multicore.suite import load_suite

    if arguments.plot:
        from ppt_gpu.report.figures import check_target

        check_target(arguments.plot)
    study = load_study(arguments.study, arguments.set)
    if arguments.budget:
        study = replace(study, budget=parse_budget(arguments.budget, study.budget))
    suite = load_suite(arguments.suite)
    return study, suite.only(arguments.benchmark) if arguments.benchmark else suite


def run(arguments: argparse.Namespace) -> str:
    from ppt_gpu.multicore.device_scaling import load_scaling
    from ppt_gpu.multicore.projection import project
    from ppt_gpu.multicore.topology import ORGANISATIONS, TOPOLOGIES, organisation_named, topology_named
    from ppt_gpu.report.dark_silicon import projection_document, projection_text

    study, suite = _inputs(arguments)
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
        from ppt_gpu.report.dark_silicon_figures import speedups
        from ppt_gpu.report.figures import save

        save(speedups(projections), arguments.plot)
    return projection_document(projections) if arguments.json else projection_text(projections)


def run_sweeps(arguments: argparse.Namespace) -> str:
    from ppt_gpu.multicore.device_scaling import load_scaling
    from ppt_gpu.multicore.sweeps import run_sweep
    from ppt_gpu.multicore.topology import organisation_named, topology_named
    from ppt_gpu.report.dark_silicon import sweep_document, sweep_text

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
        from ppt_gpu.report.dark_silicon_figures import sweeps
        from ppt_gpu.report.figures import save

        save(sweeps([swept]), arguments.plot)
    return sweep_document(swept) if arguments.json else sweep_text(swept)
