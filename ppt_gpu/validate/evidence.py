"""The evidence behind expected errors: predictions of measured launches, grouped by generation of GPUs and limit.

`python -m ppt_gpu.validate.evidence` predicts every row of the set `measured` and writes what the reports read,
validation/measured/evidence.json. Run it when the model or a GPU's parameters have changed.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ppt_gpu.files import write_whole
from ppt_gpu.paths import data_dir
from ppt_gpu.report.expected_error import Group, generation_of
from ppt_gpu.spec import load_gpu
from ppt_gpu.validate.rows import Row, summaries


def groups(rows: Sequence[Row]) -> list[Group]:
    """Rows by generation and kind of limit, in order of both."""
    of_gpu = {name: generation_of(load_gpu(name).compute_capability) for name in dict.fromkeys(row.gpu for row in rows)}
    members: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        members.setdefault((of_gpu[row.gpu], row.limiter), []).append(abs(row.error))
    return [
        Group(generation, limit, len(sizes), *_rounded(statistics.mean(sizes), statistics.median(sizes), max(sizes)))
        for (generation, limit), sizes in sorted(members.items())
    ]


def document(rows: Sequence[Row]) -> str:
    """The file's text, with where it comes from: command, sets, and the summary that `validate measured` prints."""
    content = {
        "schema": 1,
        "made by": "python -m ppt_gpu.validate.evidence",
        "from": "validation/measured/*.csv (PROVENANCE.md), predicted with the shipped hardware files",
        "groups": [asdict(group) for group in groups(rows)],
        "sets": [_round_all(asdict(summary)) for summary in summaries(rows)],
    }
    return json.dumps(content, indent=1) + "\n"


def path() -> Path:
    return data_dir("validation") / "measured" / "evidence.json"


def _round_all(values: dict[str, Any]) -> dict[str, Any]:
    return {key: round(value, 4) if isinstance(value, float) else value for key, value in values.items()}


def _rounded(*values: float) -> list[float]:
    return [round(value, 4) for value in values]


if __name__ == "__main__":
    from ppt_gpu.validate.measured import rows as measured_rows

    write_whole(path(), document(measured_rows()).encode())
    print(f"written: {path()}")
