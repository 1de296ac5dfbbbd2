"""sweep: a kernel over a grid of parameters of the GPU and of the launch, in processes or under mpirun."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from ppt_gpu.cluster.engine.mpi import one_ends_all, processes
from ppt_gpu.commands.studies import read_study, run_of
from ppt_gpu.common.errors import PptError, did_you_mean
from ppt_gpu.common.outputs import write_whole
from ppt_gpu.explore.case import check_metrics
from ppt_gpu.explore.sweep import Sweep, sweep
from ppt_gpu.report.commands import sweep as report
from ppt_gpu.report.commands.sweep_figure import sweep_figure
from ppt_gpu.report.figures.common import check_target, save

KINDS = (".csv", ".json")


def run(arguments: argparse.Namespace) -> str:
    mpi = processes()
    with one_ends_all(mpi):
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
        check_target(arguments.plot)


def _written(arguments: argparse.Namespace, found: Sweep, journal: Path | None) -> str:
    """What is printed; the files are written, and the journal is not needed any more."""
    space = found.space
    rows: list[report.Row] = [(row.point.values, row.found.values, row.found.error) for row in found.rows]
    values = {parameter.key: parameter.values for parameter in space.parameters}

    def text(as_json: bool) -> str:
        if not as_json:
            return report.to_csv(space.keys, found.metrics, rows)
        conditions = [condition.text for condition in space.conditions]
        return report.to_json(found.workload, found.gpu, values, conditions, found.metrics, rows)

    if arguments.plot:
        title = f"{found.workload} on {found.gpu}"
        save(sweep_figure(title, values, found.metrics[0], [row for row in rows if not row[2]]), arguments.plot)
    if not arguments.to or journal is None:
        return text(arguments.json)
    write_whole(arguments.to, text(Path(arguments.to).suffix == ".json").encode("utf-8", "surrogateescape"))
    journal.unlink(missing_ok=True)
    wrong = len(rows) - len(found.good())
    return f"{arguments.to}: {len(rows)} rows{f', {wrong} of them could not be predicted' if wrong else ''}\n"
