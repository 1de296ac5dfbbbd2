"""Sweeps: one prediction for each configuration, in any number of processes, to be carried on after being killed."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from ppt_gpu.cluster.engine.mpi import Mpi
from ppt_gpu.common.errors import PptError
from ppt_gpu.common.progress import Progress
from ppt_gpu.explore.case import Case, Cell, Measured, Options, case_of, measure
from ppt_gpu.explore.journal import Journal, study_identity
from ppt_gpu.explore.space import Point, Space
from ppt_gpu.explore.workers import Job, compute
from ppt_gpu.workload.workload import Workload


@dataclass(frozen=True)
class SweepRow:
    """A configuration and what was found: the metrics in the order asked for, or why there are none."""

    point: Point
    found: Measured


@dataclass(frozen=True)
class Sweep:
    """A finished sweep."""

    workload: str
    gpu: str
    space: Space
    metrics: tuple[str, ...]
    rows: tuple[SweepRow, ...]  # in the order of the grid

    def good(self) -> list[SweepRow]:
        """The rows that could be predicted."""
        return [row for row in self.rows if not row.found.error]


@dataclass(frozen=True)
class Run:
    """How predictions of a study are made: options of each, processes, and the journal if there is one."""

    options: Options = field(default_factory=Options)
    processes: int = 1
    mpi: Mpi | None = None
    journal: Path | None = None


def sweep(
    workload: Workload,
    gpu: str,
    space: Space,
    metrics: Sequence[str],
    run: Run,
    *,
    sample: int | None = None,
    seed: int = 0,
) -> Sweep:
    """The metrics of every configuration of `space`, or of `sample` of them. Under mpirun all ranks call this.

    With a journal, rows that it holds are not computed again; remove it when the result is written. Raises PptError
    when there is no configuration, or none that can be predicted.
    """
    points = list(space.points(sample, seed))
    if not points:
        raise PptError("no configuration is left", hint="--where drops all of them")
    study = study_identity(workload, gpu, space, (), tuple(metrics), run.options, sample, seed)
    first = run.mpi is None or run.mpi.rank == 0
    cases = [case_of(workload, gpu, (), point, metrics, run.options) for point in points]
    with ExitStack() as stack:
        journal = stack.enter_context(Journal(run.journal, study)) if run.journal is not None and first else None
        found = measured(cases, [point.number for point in points], run, journal)
    rows = tuple(SweepRow(point, each) for point, each in zip(points, found, strict=True)) if first else ()
    if first and all(row.found.error for row in rows):
        raise PptError(f"none of {len(rows)} configurations can be predicted: {rows[0].found.error}")
    return Sweep(workload.name, gpu, space, tuple(metrics), rows)


def measured(
    cases: Sequence[Case],
    numbers: Sequence[int],
    run: Run,
    journal: Journal | None = None,
    what: str = "configurations",
) -> list[Measured]:
    """What `measure` finds for each case; `numbers` name them in the journal. Of ranks only 0 is told."""
    known: dict[int, Measured] = {}
    if journal is not None:
        known = {number: _of_row(row) for number, row in journal.rows.items()}
    jobs = [
        Job(number, (case.launch, _same_traces(case)), case)
        for number, case in zip(numbers, cases, strict=True)
        if number not in known
    ]
    with Progress(what, len(cases), len(cases) - len(jobs)) as progress:

        def done(job: Job, found: Measured) -> None:
            known[job.number] = found
            if journal is not None:
                journal.add(job.number, _to_row(found))
            progress.done()

        compute(jobs, measure, done, run.processes, run.mpi)
    return [known[number] for number in numbers] if run.mpi is None or run.mpi.rank == 0 else []


def _same_traces(case: Case) -> tuple[str, tuple[str, ...]]:
    """What besides the launch decides on functional runs: the kernel's file, and for what it is compiled."""
    compiled = tuple(text for text in case.overrides if text.startswith("compute_capability"))
    return case.workload.ptx_path, compiled


def _to_row(found: Measured) -> dict[str, Cell | list[Cell]]:
    return {"error": found.error} if found.error else {"values": list(found.values)}


def _of_row(row: dict[str, object]) -> Measured:
    values = row.get("values", [])
    assert isinstance(values, list)
    return Measured(tuple(values), str(row.get("error", "")))
