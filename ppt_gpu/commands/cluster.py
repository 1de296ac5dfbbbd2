"""cluster: an application on many GPUs, hosts and a network; in parallel under mpirun."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ppt_gpu.commands.arguments import AddCommand, add_set, count
from ppt_gpu.common.errors import PptError
from ppt_gpu.common.progress import parts


def add(command: AddCommand) -> None:
    cluster = command("cluster", run, "Simulate an application on a cluster of GPUs; in parallel under mpirun.")
    cluster.add_argument("application", help="a shipped application's name, a .py file, or a task graph (.json)")
    cluster.add_argument("--machine", required=True, help="a shipped machine's name or a TOML file")
    cluster.add_argument(
        "--nodes", type=counts, metavar="N[,N...]", help="nodes (default: of the machine); several scale"
    )
    cluster.add_argument(
        "-p",
        "--parameter",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a parameter of the application; with several node counts as many values may be given, with commas",
    )
    add_set(cluster)
    cluster.add_argument("--scaling", choices=("weak", "strong"), default="weak", help="what efficiency means")
    cluster.add_argument("--sensitivity", action="store_true", help="say what each parameter of the machine changes")
    cluster.add_argument("--digest", action="store_true", help="SHA-256 over every arrival and event time")
    cluster.add_argument("--full", action="store_true", help="simulate every rank, even if one node stands for all")
    cluster.add_argument("--jitter", type=share, default=0.0, metavar="SHARE", help="kernels take up to so much longer")
    cluster.add_argument("--seed", type=count, default=1, help="of the jitter (default: 1)")
    cluster.add_argument(
        "--placement", choices=("block", "round_robin"), default="block", help="which process simulates which nodes"
    )
    cluster.add_argument(
        "--queue", choices=("windows", "simpy"), default="windows", help="the event queue; simpy is the reference"
    )
    cluster.add_argument(
        "--partitions", type=count, default=1, metavar="N", help="simulate in N parts, as N processes would"
    )
    cluster.add_argument("--timeline", metavar="FILE", help="write the timeline of some ranks (.json, .json.gz)")
    cluster.add_argument("--ranks", type=ranks, default=(0,), metavar="R[,R...]", help="which ranks (default: 0)")
    cluster.add_argument("--plot", metavar="FILE", help="draw the scaling: .png, .svg or .pdf")
    cluster.add_argument("--no-cache", action="store_true", help="predict kernels again, and keep nothing")


def counts(text: str) -> list[int]:
    return [count(part) for part in text.split(",")]


def ranks(text: str) -> tuple[int, ...]:
    if not all(part.isdecimal() for part in text.split(",")):
        raise PptError(f"--ranks {text}: expected numbers with commas between them, such as 0,1,8")
    return tuple(int(part) for part in text.split(","))


def share(text: str) -> float:
    try:
        found = float(text.rstrip("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        found = -1.0
    if not 0 <= found <= 1:
        raise PptError(f"--jitter {text}: expected a share between 0 and 1, such as 0.05 or 5%")
    return found


def run(arguments: argparse.Namespace) -> str:
    from ppt_gpu.cluster.engine.mpi import one_ends_all, processes

    mpi = processes()
    with one_ends_all(mpi):
        found = _simulate(arguments, mpi)
    return found if mpi is None or mpi.rank == 0 else ""


def _simulate(arguments: argparse.Namespace, mpi: Any) -> str:
    from ppt_gpu.cluster.application import application_path
    from ppt_gpu.cluster.engine.outcome import Outcome
    from ppt_gpu.cluster.engine.simulate import simulate
    from ppt_gpu.cluster.engine.world import Program, Settings
    from ppt_gpu.cluster.load import load_machine
    from ppt_gpu.cluster.studies import scaling, sensitivity
    from ppt_gpu.common.outputs import check_outputs
    from ppt_gpu.report.commands.cluster import ClusterRun, render, to_json
    from ppt_gpu.spec.files import files_of as hardware_files

    def once(machine: Any, program: Program, settings: Settings) -> Outcome:
        return simulate(
            machine,
            program,
            settings,
            collapse=not arguments.full,
            queue=arguments.queue,
            partitions=arguments.partitions,
            scheme=arguments.placement,
            processes=mpi,
        )

    _check_kinds(arguments)
    outputs = (arguments.timeline, arguments.plot)
    files = {application_path(arguments.application)}
    check_outputs(outputs, lambda: (*files, *hardware_files("machines", arguments.machine, arguments.set)))
    base = load_machine(arguments.machine, None, arguments.set)
    nodes = arguments.nodes or [base.nodes]
    outcomes = []
    for number, size in enumerate(parts(nodes, "node counts")):
        application, settings = _application(arguments, number, len(nodes), files)
        machine = load_machine(arguments.machine, size, arguments.set)
        outcomes.append((size, once(machine, application.program, settings)))
    effects = sensitivity(once, machine, application.program, settings) if arguments.sensitivity else ()
    reported = ClusterRun(
        application.name,
        application.parameters,
        machine.name,
        nodes[-1],
        outcomes[-1][1],
        effects,
        scaling(outcomes, arguments.scaling == "strong") if len(nodes) > 1 else (),
        arguments.scaling == "strong",
        _notes(arguments),
    )
    if mpi is None or mpi.rank == 0:
        check_outputs(outputs, lambda: files)  # which kernels there are, only the simulation tells
        _write_files(arguments, reported)
    return to_json(reported) if arguments.json else render(reported)


def _notes(arguments: argparse.Namespace) -> list[str]:
    """Strong scaling divides one problem; many applications have parameters that are a rank's share of it."""
    same = not any("," in text for text in arguments.parameter)
    if arguments.scaling == "weak" or len(arguments.nodes or ()) < 2 or not same:
        return []
    return [
        "all node counts ran with the same parameters; what is a rank's share needs",
        "a value for each, as in -p n=512,256",
    ]


def _check_kinds(arguments: argparse.Namespace) -> None:
    if arguments.timeline:
        from ppt_gpu.report.timeline import trace_events

        trace_events.check_target(arguments.timeline)
    if arguments.plot:
        from ppt_gpu.report.figures.common import check_target

        check_target(arguments.plot)
        if len(arguments.nodes or ()) < 2:
            raise PptError(f"--plot {arguments.plot}: scaling needs several node counts", hint="such as --nodes 1,2,4")


def _write_files(arguments: argparse.Namespace, reported: Any) -> None:
    if arguments.timeline:
        from ppt_gpu.report.timeline import trace_events
        from ppt_gpu.report.timeline.cluster import timeline

        trace_events.write(arguments.timeline, timeline(reported.outcome, arguments.ranks))
    if arguments.plot:
        from ppt_gpu.report.figures.cluster import scaling_figure
        from ppt_gpu.report.figures.common import save

        title = f"{reported.application} on {reported.machine}"
        save(scaling_figure(title, reported.sizes, reported.strong), arguments.plot)


def _application(arguments: argparse.Namespace, number: int, of: int, files: set[Path]) -> tuple[Any, Any]:
    """The application for run `number` of `of`, and its settings. `files` gets those that its kernels are read from."""
    from ppt_gpu.cluster.application import load_application
    from ppt_gpu.cluster.engine.world import Settings
    from ppt_gpu.cluster_kernels import PredictedKernels

    application = load_application(arguments.application, [_one(text, number, of) for text in arguments.parameter])
    return application, Settings(
        digest=arguments.digest,
        history=True,
        timeline=arguments.ranks if arguments.timeline else (),
        jitter=arguments.jitter,
        seed=arguments.seed,
        kernel_times=PredictedKernels(application.directory, cache=not arguments.no_cache, files=files),
    )


def _one(text: str, number: int, of: int) -> str:
    """The value of a parameter for run `number` of `of`."""
    name, equals, value = text.partition("=")
    values = value.split(",")
    if of == 1 or len(values) == 1:
        return text
    if len(values) != of:
        raise PptError(f"--parameter {text}: {len(values)} values for {of} node counts")
    return f"{name}{equals}{values[number]}"
