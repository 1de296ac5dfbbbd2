"""cluster: an application on many GPUs, hosts and a network; in parallel under mpirun."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ppt_gpu.cluster.application import application_path, load_application
from ppt_gpu.cluster.engine.mpi import one_ends_all, processes
from ppt_gpu.cluster.engine.outcome import Outcome
from ppt_gpu.cluster.engine.simulate import simulate
from ppt_gpu.cluster.engine.world import Program, Settings
from ppt_gpu.cluster.load import load_machine
from ppt_gpu.cluster.studies import scaling, sensitivity
from ppt_gpu.cluster_kernels import PredictedKernels
from ppt_gpu.common.errors import PptError
from ppt_gpu.common.outputs import check_outputs
from ppt_gpu.common.progress import parts
from ppt_gpu.report.commands.cluster import ClusterRun, render, to_json
from ppt_gpu.report.figures.cluster import scaling_figure
from ppt_gpu.report.figures.common import check_target, save
from ppt_gpu.report.timeline import trace_events
from ppt_gpu.report.timeline.cluster import timeline
from ppt_gpu.spec.files import files_of as hardware_files


def run(arguments: argparse.Namespace) -> str:
    mpi = processes()
    with one_ends_all(mpi):
        found = _simulate(arguments, mpi)
    return found if mpi is None or mpi.rank == 0 else ""


def _simulate(arguments: argparse.Namespace, mpi: Any) -> str:
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
        trace_events.check_target(arguments.timeline)
    if arguments.plot:
        check_target(arguments.plot)
        if len(arguments.nodes or ()) < 2:
            raise PptError(f"--plot {arguments.plot}: scaling needs several node counts", hint="such as --nodes 1,2,4")


def _write_files(arguments: argparse.Namespace, reported: Any) -> None:
    if arguments.timeline:
        trace_events.write(arguments.timeline, timeline(reported.outcome, arguments.ranks))
    if arguments.plot:
        title = f"{reported.application} on {reported.machine}"
        save(scaling_figure(title, reported.sizes, reported.strong), arguments.plot)


def _application(arguments: argparse.Namespace, number: int, of: int, files: set[Path]) -> tuple[Any, Any]:
    """The application for run `number` of `of`, and its settings. `files` gets those that its kernels are read from."""
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
