"""The set `measured`: times that others measured on real GPUs, each held against our prediction.

Predictions are kept on disk by everything that they depend on, and made in processes where they are missing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from ppt_gpu.common.progress import Progress
from ppt_gpu.emulator.cache.store import TIME, Store
from ppt_gpu.emulator.cache.trace_cache import forget
from ppt_gpu.emulator.trace.identity import digest, prediction_digest
from ppt_gpu.explore.workers import Job, compute
from ppt_gpu.inputs import open_workload
from ppt_gpu.pipeline import predict
from ppt_gpu.spec import fingerprint, load_gpu
from ppt_gpu.validate.silicon.measured_cases import Case, cases
from ppt_gpu.validate.tables.rows import Row
from ppt_gpu.workload.workload import Workload

_last: list[Any] = []  # what the last prediction of this process shares traces with


@dataclass(frozen=True)
class Predicted:
    """The time of a launch, without its overhead unless the measurement includes it, and the kind of its limit."""

    us: float
    level: str
    limiter: str


def rows(texts: Sequence[str] = (), processes: int = 1) -> list[Row]:
    """Predict the cases that `cases` chooses."""
    return predicted_rows(cases(texts), processes)


def predicted_rows(wanted: Sequence[Case], processes: int = 1) -> list[Row]:
    """Cases beside their predictions."""
    return [row_of(case, found) for case, found in zip(wanted, predictions(wanted, processes), strict=True)]


def row_of(case: Case, found: Predicted) -> Row:
    """A case beside its prediction."""
    return Row(case.name, case.gpu, case.set, found.level, case.time, found.us, "us", found.limiter)


def predictions(wanted: Sequence[Case], processes: int = 1) -> list[Predicted]:
    """The prediction of every case. Those that the store has are not made again; a killed run goes on where it was.

    Raises whatever `predict` raises for the first case that cannot be predicted.
    """
    store = Store()
    names = [_name(case) for case in wanted]
    found = {number: kept for number, name in enumerate(names) if (kept := _kept(store, name)) is not None}
    jobs = [Job(number, _same_traces(case), case) for number, case in enumerate(wanted) if number not in found]
    with Progress("launches", len(wanted), len(found)) as progress:

        def done(job: Job, result: Predicted) -> None:
            name = names[job.number]
            store.write(name, name[:32] + TIME, json.dumps(asdict(result)).encode())
            found[job.number] = result
            progress.done()

        compute(jobs, predicted, done, processes)
    return [found[number] for number in range(len(wanted))]


def predicted(case: Case) -> Predicted:
    """The prediction of one case, of the sum of its launches. Its limit is that of the longest.

    Traces of other launches leave memory first: no later case asks for them.
    """
    launches = [_predicted(one) for one in (case, *case.then)]
    longest = max(launches, key=lambda one: one.us)
    return replace(longest, us=sum(one.us for one in launches))


def _predicted(case: Case) -> Predicted:
    """The prediction of one launch."""
    if _last != [_same_traces(case)]:
        forget()
        _last[:] = [_same_traces(case)]
    workload = open_workload(
        case.path,
        kernel=case.kernel,
        grid=case.grid,
        block=case.block,
        args=case.args,
        dynamic_shared=case.shared,
        registers=case.registers,
    )
    if case.again:
        workload = _after_itself(workload)
    launch = predict(workload, case.gpu, overrides=case.overrides).launches[-1]
    seconds = float(launch.value("kernel.cycles")) / float(launch.value("gpu.clock"))
    if case.launched:
        seconds += float(launch.value("kernel.launch_overhead"))
    return Predicted(seconds * 1e6, launch.level, str(launch.value("limiter.kind")))


def _after_itself(workload: Workload) -> Workload:
    """The launch after one that does the same. A word of shared memory more tells the first from it: launches that are
    the same are predicted once, as the first of them runs."""
    (launch,) = workload.launches
    before = replace(launch, dynamic_shared=launch.dynamic_shared + 4)
    return replace(workload, launches=(before, launch))


def _same_traces(case: Case) -> tuple[Any, ...]:
    return case.module, case.kernel, case.grid, case.block, case.args, case.shared


def _kept(store: Store, name: str) -> Predicted | None:
    return store.read(name, name[:32] + TIME, lambda data, path: Predicted(**json.loads(data)))


def _name(case: Case) -> str:
    """A digest of all that the prediction depends on; not of what was measured."""
    described = {
        key: value for key, value in asdict(case).items() if key not in ("name", "set", "time", "chosen", "form_of")
    }
    program = prediction_digest("validate/silicon/measured.py", "validate/silicon/measured_cases.py")
    return digest(program, described, _gpu(case.gpu, case.overrides), _content(case.path))


@lru_cache(maxsize=256)
def _gpu(name: str, overrides: tuple[str, ...]) -> str:
    return fingerprint(load_gpu(name, overrides))


@cache
def _content(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()
