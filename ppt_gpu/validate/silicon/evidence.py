"""The evidence behind expected errors: predictions of measured launches, grouped by generation of GPUs and limit.

`python -m ppt_gpu.validate.silicon.evidence` predicts every row of the sets `measured` and `published` and writes what
the reports read, validation/evidence.json. Run it when the model or a GPU's parameters have changed: what the change
does not touch is not predicted again, and a run that was killed goes on where it was.

Launches that are no evidence because values were chosen with them in view are in the file, too, and say which values.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Sequence
from dataclasses import asdict, astuple, fields
from pathlib import Path
from typing import Any

from ppt_gpu.common.outputs import write_whole
from ppt_gpu.common.paths import data_dir
from ppt_gpu.common.progress import shown
from ppt_gpu.validate.silicon import measured_cases, published
from ppt_gpu.validate.silicon.evidence_groups import Launch, groups, launches
from ppt_gpu.validate.silicon.measured import predictions, row_of
from ppt_gpu.validate.silicon.measured_cases import Case
from ppt_gpu.validate.tables.rows import Row, summaries


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
