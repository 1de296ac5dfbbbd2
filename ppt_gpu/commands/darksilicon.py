"""darksilicon and upperbound: what whole chips can do, node by node, and how that moves with one assumption."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ppt_gpu.commands import known_chips
from ppt_gpu.commands.arguments import AddCommand, add_set
from ppt_gpu.common.errors import PptError

if TYPE_CHECKING:
    from ppt_gpu.multicore.base.suite import Suite
    from ppt_gpu.multicore.dark_silicon.study import Study


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
    dark.add_argument(
        "--figure",
        default="3.4",
        help="which of Blem's figures: 3.4 (default), 3.5 (both sweeps), 4.16 (known cores that fit), or kernels on "
        "known cores by the upper-bound (4.17) and the custom models (4.18), inputs off at random (5.6)",
    )
    dark.add_argument("--cores", default="blem", metavar="NAME|FILE", help="known cores of 4.16 to 5.6 (default: blem)")
    dark.add_argument(
        "--kernel",
        action="append",
        default=[],
        metavar="WORKLOAD",
        help="a kernel of 4.17 to 5.6, as for predict; may be repeated (default: eight samples)",
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
    from ppt_gpu.common.outputs import check_outputs
    from ppt_gpu.inputs import files_of, open_workload
    from ppt_gpu.report.figures.common import check_target
    from ppt_gpu.spec.files import files_of as hardware_files

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
    from ppt_gpu.multicore.base.device_scaling import load_scaling
    from ppt_gpu.multicore.dark_silicon.sweeps import run_sweep
    from ppt_gpu.report.commands.dark_silicon import sweep_text, sweeps_document

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
        from ppt_gpu.report.figures.common import save
        from ppt_gpu.report.figures.dark_silicon import sweeps

        save(sweeps(swept), arguments.plot)
    return sweeps_document(swept) if arguments.json else "\n".join(sweep_text(each) for each in swept)


def _inputs(arguments: argparse.Namespace) -> tuple[Study, Suite]:
    from dataclasses import replace

    from ppt_gpu.multicore.base.suite import load_suite
    from ppt_gpu.multicore.dark_silicon.chip import parse_budget
    from ppt_gpu.multicore.dark_silicon.study import load_study

    _check_plot(arguments)
    study = load_study(arguments.study, arguments.set)
    if arguments.budget:
        study = replace(study, budget=parse_budget(arguments.budget, study.budget))
    suite = load_suite(arguments.suite)
    return study, suite.only(arguments.benchmark) if arguments.benchmark else suite


def run(arguments: argparse.Namespace) -> str:
    from ppt_gpu.multicore.base.device_scaling import load_scaling
    from ppt_gpu.multicore.dark_silicon.projection import project
    from ppt_gpu.multicore.dark_silicon.topology import ORGANISATIONS, TOPOLOGIES, organisation_named, topology_named
    from ppt_gpu.report.commands.dark_silicon import projection_document, projection_text

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
        from ppt_gpu.report.figures.common import save
        from ppt_gpu.report.figures.dark_silicon import speedups

        save(speedups(projections), arguments.plot)
    return projection_document(projections) if arguments.json else projection_text(projections)


def run_sweeps(arguments: argparse.Namespace) -> str:
    from ppt_gpu.multicore.base.device_scaling import load_scaling
    from ppt_gpu.multicore.dark_silicon.sweeps import run_sweep
    from ppt_gpu.multicore.dark_silicon.topology import organisation_named, topology_named
    from ppt_gpu.report.commands.dark_silicon import sweep_text, sweeps_document

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
        from ppt_gpu.report.figures.common import save
        from ppt_gpu.report.figures.dark_silicon import sweeps

        save(sweeps([swept]), arguments.plot)
    return sweeps_document([swept]) if arguments.json else sweep_text(swept)
