"""cluster: an application on many GPUs, hosts and a network; in parallel under mpirun."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from textwrap import wrap
from typing import Any

from ppt_gpu.cluster.application import application_path, load_application
from ppt_gpu.cluster.engine.critical_path import ranks_on, shares
from ppt_gpu.cluster.engine.history import Split
from ppt_gpu.cluster.engine.mpi import one_ends_all, processes
from ppt_gpu.cluster.engine.outcome import Outcome
from ppt_gpu.cluster.engine.simulate import simulate
from ppt_gpu.cluster.engine.world import Program, Settings
from ppt_gpu.cluster.load import load_machine
from ppt_gpu.cluster.model.machine import PS_PER_S
from ppt_gpu.cluster.studies import Effect, Size, scaling, sensitivity
from ppt_gpu.cluster_kernels import PredictedKernels
from ppt_gpu.common.errors import PptError
from ppt_gpu.common.outputs import check_outputs
from ppt_gpu.common.progress import parts
from ppt_gpu.common.units import format_time
from ppt_gpu.report.figures.cluster import scaling_figure
from ppt_gpu.report.figures.common import check_target, save
from ppt_gpu.report.timeline import trace_events
from ppt_gpu.report.timeline.cluster import timeline
from ppt_gpu.spec.files import files_of as hardware_files

SCHEMA = 1
RANKS_SHOWN = 16
TURNS_SHOWN = 12
#: the parts of a rank's time, what each is
PARTS = {
    "compute": "kernels or the host compute",
    "exposed": "messages or collectives, and nothing computes",
    "hidden": "part of compute: messages or collectives behind it",
    "copies": "copies, and neither of these",
    "idle": "none of these: waits for others, or host overheads",
}


@dataclass(frozen=True)
class ClusterRun:
    """What is reported."""

    application: str
    parameters: Mapping[str, Any]
    machine: str
    nodes: int
    outcome: Outcome
    effects: Sequence[Effect] = ()
    sizes: Sequence[Size] = ()
    strong: bool = False
    notes: Sequence[str] = field(default=())


def document(run: ClusterRun) -> dict[str, Any]:
    """Everything as plain data; times in s."""
    outcome = run.outcome
    found: dict[str, Any] = {
        "schema": SCHEMA,
        "application": run.application,
        "parameters": dict(run.parameters),
        "machine": run.machine,
        "nodes": run.nodes,
        "ranks": outcome.size,
        "time_s": _seconds(outcome.time),
        "iteration_s": None if outcome.iteration is None else _seconds(outcome.iteration),
        "simulated": outcome.note,
        "messages": outcome.messages * outcome.stands_for,
        "kernels": [{"name": name, "time_s": _seconds(time)} for name, time in outcome.kernels.items()],
        "split": [
            {"rank": rank.number} | {f"{name}_s": _seconds(time) for name, time in rank.split._asdict().items()}
            for rank in outcome.ranks
            if rank.split is not None
        ],
        "critical_path": [
            {"kind": share.kind, "label": share.label, "time_s": _seconds(share.time), "steps": share.steps}
            for share in (shares(outcome.path, outcome.time) if outcome.path else ())
        ],
        "critical_ranks": ranks_on(outcome.path),
        "sensitivity": [asdict(effect) for effect in run.effects],
        "scaling": [asdict(size) for size in run.sizes],
    }
    if outcome.sha256:
        found["sha256"] = outcome.sha256
    return found


def to_json(run: ClusterRun) -> str:
    """`document` as text; same run, same bytes."""
    return json.dumps(document(run), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def render(run: ClusterRun) -> str:
    """The report as text."""
    outcome = run.outcome
    title = f"{run.application} on {run.machine}, {run.nodes} nodes, {outcome.size} ranks"
    lines = [f"{title}: {_time(outcome.time)}"]
    if outcome.iteration is not None:
        lines.append(f"  {_time(outcome.iteration)} an iteration")
    if run.parameters:
        lines.append("  " + ", ".join(f"{name}={value}" for name, value in run.parameters.items()))
    lines += [f"  {outcome.note}", *(f"  {note}" for note in run.notes)]
    if outcome.sha256:
        lines.append(f"  sha256 {outcome.sha256}")
    if outcome.kernels:
        lines += _section("Kernels", [(name, _time(time)) for name, time in outcome.kernels.items()])
    lines += _split(outcome)
    lines += _path(outcome)
    lines += _effects(run.effects)
    lines += _sizes(run.sizes, run.strong)
    return "\n".join(lines) + "\n"


def _split(outcome: Outcome) -> list[str]:
    splits = [(rank.number, rank.split) for rank in outcome.ranks if rank.split is not None]
    if not splits:
        return []
    mean = Split(*(sum(values) // len(splits) for values in zip(*(split for _, split in splits), strict=True)))
    whole = max(1, outcome.time)
    lines = ["", "Time of a rank (mean)"]
    lines += [
        f"  {name:8} {_time(value):>10} {value / whole:6.1%}  {PARTS[name]}" for name, value in mean._asdict().items()
    ]
    if len(splits) > 1:
        lines += ["", "  " + "rank".rjust(8) + "".join(f"{name:>12}" for name in PARTS)]
        for number, split in splits[:RANKS_SHOWN]:
            lines.append(f"  {number:8}" + "".join(f"{_time(value):>12}" for value in split))
        if len(splits) > RANKS_SHOWN:
            lines.append(f"  and {len(splits) - RANKS_SHOWN} more: --json has them all")
    return lines


def _path(outcome: Outcome) -> list[str]:
    if not outcome.path:
        return []
    rows = []
    for share in shares(outcome.path, outcome.time):
        name = f"{share.kind} {share.label}".strip()
        rows.append((name, f"{_time(share.time)}  {share.time / max(1, outcome.time):6.1%}  {share.steps} x"))
    turns = ranks_on(outcome.path)
    shown = " -> ".join(map(str, turns[:TURNS_SHOWN])) + (" ..." if len(turns) > TURNS_SHOWN else "")
    return [*_section("Critical path", rows), f"  through ranks {shown}"]


def _effects(effects: Sequence[Effect]) -> list[str]:
    if not effects:
        return []
    works = [effect for effect in effects if effect.change]
    idle = [effect.parameter for effect in effects if not effect.change]
    rows = [(effect.parameter, f"{effect.change:+.3%}") for effect in works]
    lines = _section("Sensitivity: each parameter 10 % greater changes the time by", rows)
    if idle:
        lines += wrap(f"no effect: {', '.join(idle)}", 79, initial_indent="  ", subsequent_indent="    ")
    return lines


def _sizes(sizes: Sequence[Size], strong: bool) -> list[str]:
    if len(sizes) < 2:
        return []
    lines = ["", f"{'Strong' if strong else 'Weak'} scaling", "     nodes     ranks        time  speed-up  efficiency"]
    for size in sizes:
        time = format_time(size.time)
        lines.append(f"  {size.nodes:8} {size.ranks:9} {time:>11} {size.speedup:9.3f} {size.efficiency:11.1%}")
    return lines


def _section(title: str, rows: Sequence[tuple[str, str]]) -> list[str]:
    width = max((len(name) for name, _ in rows), default=0)
    return ["", title, *(f"  {name:{width}}  {value}" for name, value in rows)]


def _seconds(time: float) -> float:
    return time / PS_PER_S


def _time(time: float) -> str:
    return format_time(time / PS_PER_S)


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
