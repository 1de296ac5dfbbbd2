"""sweep: a kernel over a grid of parameters of the GPU and of the launch, in processes or under mpirun."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from ppt_gpu.commands.arguments import AddCommand, add_workload
from ppt_gpu.commands.study_arguments import add_choices, add_run, read_study, run_of
from ppt_gpu.common.errors import PptError, did_you_mean

if TYPE_CHECKING:
    from ppt_gpu.explore.sweep import Sweep

KINDS = (".csv", ".json")


def add(command: AddCommand) -> None:
    sweep = command("sweep", run, "Predict a kernel over a grid of parameters; carry on after being stopped.")
    add_workload(sweep)
    add_choices(sweep, "a parameter and its values: sm.count=8:64:8, dram.bandwidth='288 GB/s,576 GB/s', block=64,128")
    sweep.add_argument(
        "--metric",
        action="append",
        metavar="TAG",
        help="a column: time, a metric (`explain` lists them), stall.REASON, or 2:TAG of the second launch; repeatable "
        "(default: time, kernel.cycles, limiter)",
    )
    sweep.add_argument("--sample", type=int, metavar="N", help="only N of the configurations, at random by --seed")
    sweep.add_argument("-o", "--to", metavar="FILE", help="write .csv or .json; FILE.journal lets the sweep carry on")
    sweep.add_argument("--plot", metavar="FILE", help="draw the first metric: .png, .svg or .pdf")
    add_run(sweep)


def run(arguments: argparse.Namespace) -> str:
    from ppt_gpu.cluster.engine.mpi import one_ends_all, processes

    mpi = processes()
    with one_ends_all(mpi):
        from ppt_gpu.explore.case import check_metrics
        from ppt_gpu.explore.sweep import sweep

        _check_kinds(arguments)
        journal = _journal(arguments.to) if arguments.to else None
        study = read_study(arguments, arguments.to, journal, arguments.plot)
        metrics = tuple(dict.fromkeys(arguments.metric or ("time", "kernel.cycles", "limiter")))
        check_metrics(metrics, len(study.workload.launches))
        if arguments.sample is not None and arguments.sample < 1:
            raise PptError(f"--sample {arguments.sample}: expected a positive number")
        found = sweep(
            study.workload,
            arguments.gpu,
            study.space,
            metrics,
            run_of(arguments, mpi, journal),
            sample=arguments.sample,
            seed=arguments.seed,
        )
        if mpi is not None and mpi.rank:
            return ""
        return _written(arguments, found, journal)


def _journal(to: str) -> Path:
    """The journal beside the result; of a symbolic link what it leads to, so that the link stays."""
    name = f"{to}.journal"
    return Path(os.path.realpath(name) if os.path.islink(name) else name)


def _check_kinds(arguments: argparse.Namespace) -> None:
    if arguments.to and Path(arguments.to).suffix not in KINDS:
        suffix = Path(arguments.to).suffix
        raise PptError(
            f"-o {arguments.to}: unknown kind of file", hint=did_you_mean(suffix, KINDS) or "FILE.csv or FILE.json"
        )
    if arguments.plot:
        from ppt_gpu.report.figures.common import check_target

        check_target(arguments.plot)


def _written(arguments: argparse.Namespace, found: Sweep, journal: Path | None) -> str:
    """What is printed; the files are written, and the journal is not needed any more."""
    from ppt_gpu.common.outputs import write_whole
    from ppt_gpu.report.commands import sweep as report

    space = found.space
    rows: list[report.Row] = [(row.point.values, row.found.values, row.found.error) for row in found.rows]
    values = {parameter.key: parameter.values for parameter in space.parameters}

    def text(as_json: bool) -> str:
        if not as_json:
            return report.to_csv(space.keys, found.metrics, rows)
        conditions = [condition.text for condition in space.conditions]
        return report.to_json(found.workload, found.gpu, values, conditions, found.metrics, rows)

    if arguments.plot:
        from ppt_gpu.report.commands.sweep_figure import sweep_figure
        from ppt_gpu.report.figures.common import save

        title = f"{found.workload} on {found.gpu}"
        save(sweep_figure(title, values, found.metrics[0], [row for row in rows if not row[2]]), arguments.plot)
    if not arguments.to or journal is None:
        return text(arguments.json)
    write_whole(arguments.to, text(Path(arguments.to).suffix == ".json").encode("utf-8", "surrogateescape"))
    journal.unlink(missing_ok=True)
    wrong = len(rows) - len(found.good())
    return f"{arguments.to}: {len(rows)} rows{f', {wrong} of them could not be predicted' if wrong else ''}\n"
