"""The evidence behind expected errors: predictions of measured launches, grouped by generation of GPUs and limit.

`python -m ppt_gpu.validate.silicon.evidence` predicts every row of the sets `measured` and `published` and writes what
the reports read, validation/evidence.json. Run it when the model or a GPU's parameters have changed: what the change
does not touch is not predicted again, and a run that was killed goes on where it was.

Launches that are no evidence because values were chosen with them in view are in the file, too, and say which values.

Measured launches beside their predictions, and groups of them that stand for what a prediction may be off by.

A launch is evidence where no value was chosen with its kernel on its GPU in view (validation/measured/chosen.csv).
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, astuple, dataclass, fields
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any

from ppt_gpu.common.outputs import write_whole
from ppt_gpu.common.paths import data_dir
from ppt_gpu.common.progress import shown
from ppt_gpu.report.result.expected_error import ANY, GENERATIONS, KERNELS, SHARE, Group, generation_of
from ppt_gpu.spec import load_gpu
from ppt_gpu.validate.silicon import measured_cases, published
from ppt_gpu.validate.silicon.measured import predictions, row_of
from ppt_gpu.validate.silicon.measured_cases import Case
from ppt_gpu.validate.tables.rows import Row, summaries

_ORDER = [name for _, name in GENERATIONS]


@dataclass(frozen=True)
class Launch:
    """A measured launch beside its prediction, us."""

    set: str
    gpu: str
    kernel: str
    case: str
    limiter: str
    measured: float
    predicted: float
    chosen: str = ""  # values that were chosen with this kernel on this GPU in view: no evidence

    @property
    def generation(self) -> str:
        """Of the GPU."""
        return _generation(self.gpu)

    @property
    def error(self) -> float:
        """Absolute, relative to the measured time."""
        return abs(self.predicted / self.measured - 1)


@cache
def _generation(gpu: str) -> str:
    return generation_of(load_gpu(gpu).compute_capability)


def launches(found: Sequence[tuple[Case, Row]]) -> list[Launch]:
    """Of cases and their predictions; sorted."""
    used: dict[tuple[str, str], set[str]] = {}
    for case, _ in found:
        used.setdefault((case.gpu, case.counted), set()).update(case.chosen.split())
    rounded = (
        Launch(
            set=case.set,
            gpu=case.gpu,
            kernel=case.counted,
            case=case.name,
            limiter=row.limiter,
            measured=float(f"{row.reference:.5g}"),
            predicted=float(f"{row.predicted:.5g}"),
            chosen=" ".join(sorted(used[case.gpu, case.counted])),
        )
        for case, row in found
    )
    return sorted(rounded, key=lambda one: (one.set, one.gpu, one.kernel, one.measured, one.case))


def groups(found: Iterable[Launch]) -> list[Group]:
    """By generation and kind of limit, by limit alone, by generation alone, and all; of launches that are evidence."""
    members: dict[tuple[str, str], list[Launch]] = {}
    for one in found:
        if not one.chosen:
            for generation in (one.generation, ANY):
                for limiter in (one.limiter, ANY):
                    members.setdefault((generation, limiter), []).append(one)
    return [_group(*key, members[key]) for key in sorted(members)]


def _group(generation: str, limiter: str, members: Sequence[Launch]) -> Group:
    kernels = {one.kernel for one in members}
    errors = [(one.error, weight) for one, weight in zip(members, _weights(members), strict=True)]
    return Group(
        generation=generation,
        limiter=limiter,
        launches=len(members),
        kernels=len(kernels),
        gpus=tuple(sorted({one.gpu for one in members})),
        generations=tuple(sorted({one.generation for one in members}, key=_ORDER.index)),
        mean=round(sum(error * weight for error, weight in errors), 4),
        p90=None if len(kernels) < KERNELS else round(_quantile(errors, SHARE * (1 + 1 / len(kernels))), 4),
        worst=round(max(error for error, _ in errors), 4),
    )


def _weights(members: Sequence[Launch]) -> list[float]:
    """Of each launch, 1 together: the same for all kernels, for all GPUs of a kernel, for all launches on one."""
    gpus: dict[str, dict[str, int]] = {}
    for one in members:
        counts = gpus.setdefault(one.kernel, {})
        counts[one.gpu] = counts.get(one.gpu, 0) + 1
    return [1 / (len(gpus) * len(gpus[one.kernel]) * gpus[one.kernel][one.gpu]) for one in members]


def _quantile(weighted: Sequence[tuple[float, float]], share: float) -> float:
    """The least error that weights of at least `share` do not exceed; the largest where rounding leaves none."""
    ordered = sorted(weighted)
    sums = accumulate(weight for _, weight in ordered)
    return next(
        (error for (error, _), total in zip(ordered, sums, strict=True) if total >= share - 1e-9), ordered[-1][0]
    )


def by_kernel(found: Sequence[Launch]) -> list[dict[str, Any]]:
    """Launches, mean and worst absolute error and mean signed error of every kernel on every GPU."""
    members: dict[tuple[str, str, str], list[Launch]] = {}
    for one in found:
        members.setdefault((one.set, one.kernel, one.gpu), []).append(one)
    return [
        {
            "set": kind,
            "kernel": kernel,
            "gpu": gpu,
            "launches": len(some),
            "mean": round(statistics.mean(one.error for one in some), 4),
            "worst": round(max(one.error for one in some), 4),
            "bias": round(statistics.mean(one.predicted / one.measured - 1 for one in some), 4),
        }
        for (kind, kernel, gpu), some in sorted(members.items())
    ]


def document(found: Sequence[tuple[Case, Row]]) -> str:
    """The file's text: where it comes from, the groups, the summaries of its sets, and every launch."""
    rows = launches(found)
    head: dict[str, Any] = {
        "schema": 2,
        "made by": "python -m ppt_gpu.validate.silicon.evidence",
        "from": "validation/measured/*.csv and published/*.csv, predicted with the shipped hardware files; times in us",
        "columns of launches": [field.name for field in fields(Launch)],
    }
    lists: dict[str, list[Any]] = {
        "groups": [asdict(group) for group in groups(rows)],
        "sets": [_rounded(asdict(summary)) for summary in summaries(sorted((row for _, row in found), key=_place))],
        "kernels": by_kernel(rows),
        "launches": [astuple(one) for one in rows],
    }
    parts = [f"{json.dumps(key)}: {json.dumps(text)}" for key, text in head.items()]
    for key, items in lists.items():  # a line each, so that changes can be read
        parts.append(f"{json.dumps(key)}: [\n" + ",\n".join(f"  {json.dumps(item)}" for item in items) + "\n ]")
    return "{\n " + ",\n ".join(parts) + "\n}\n"


def read_launches(text: str) -> list[Launch]:
    """The launches of an evidence file."""
    return [Launch(*one) for one in json.loads(text)["launches"]]


def cases() -> list[Case]:
    """Every measured launch."""
    return [*measured_cases.cases(), *published.cases()]


def path() -> Path:
    return data_dir("validation") / "evidence.json"


def _place(row: Row) -> tuple[str, str, str]:
    return row.mode, row.gpu, row.case


def _rounded(values: dict[str, Any]) -> dict[str, Any]:
    return {key: round(value, 4) if isinstance(value, float) else value for key, value in values.items()}


def main() -> None:
    """Predict, write the file, and say how long it took."""
    parser = argparse.ArgumentParser(
        prog="python -m ppt_gpu.validate.silicon.evidence", description="Write the evidence file."
    )
    parser.add_argument("--processes", type=int, default=1, metavar="N", help="predict in N processes (default: 1)")
    arguments = parser.parse_args()
    began, chosen = time.monotonic(), cases()
    with shown("evidence"):
        found = predictions(chosen, arguments.processes)
    pairs = [(case, row_of(case, one)) for case, one in zip(chosen, found, strict=True)]
    write_whole(path(), document(pairs).encode())
    print(f"{path()}: {len(chosen)} launches in {time.monotonic() - began:.0f} s{_peak()}")


def _peak() -> str:
    """The most memory that a process had, where the system tells."""
    try:
        import resource
    except ImportError:
        return ""
    most = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return f", at most {most >> 10} MiB a process"


if __name__ == "__main__":
    main()
