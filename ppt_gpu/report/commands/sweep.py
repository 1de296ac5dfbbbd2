"""`sweep`: rows as CSV and as one JSON document."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

from ppt_gpu.report.result.metrics import REGISTRY

ERROR = "error"  # the column of configurations that cannot be predicted, where there are any
Row = tuple[Mapping[str, str], Sequence[Any], str]  # parameters, metrics, error


def to_csv(keys: Sequence[str], metrics: Sequence[str], rows: Sequence[Row]) -> str:
    """A line for each row after one of names; numbers as they are read back exactly."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    wrong = any(error for _, _, error in rows)
    writer.writerow([*keys, *metrics, *([ERROR] if wrong else [])])
    for values, found, error in rows:
        cells = [repr(cell) if isinstance(cell, float) else cell for cell in found] or [""] * len(metrics)
        writer.writerow([*(values[key] for key in keys), *cells, *([error] if wrong else [])])
    return stream.getvalue()


def to_json(
    workload: str, gpu: str, parameters: Mapping[str, Sequence[str]], conditions: Sequence[str],
    metrics: Sequence[str], rows: Sequence[Row],
) -> str:  # fmt: skip
    """The whole sweep; a row has its parameters as text and its metrics as numbers, or an error."""
    document = {
        "schema": 1,
        "workload": workload,
        "gpu": gpu,
        "parameters": {key: list(values) for key, values in parameters.items()},
        "where": list(conditions),
        "metrics": [{"tag": tag, "unit": unit_of(tag)} for tag in metrics],
        "rows": [
            {
                "parameters": dict(values),
                **({"error": error} if error else {"metrics": dict(zip(metrics, found, strict=True))}),
            }
            for values, found, error in rows
        ],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def unit_of(tag: str) -> str:
    """The unit of a column."""
    tag = tag.rpartition(":")[2]
    if tag in REGISTRY:
        return REGISTRY[tag].unit
    return "s" if tag == "time" else "ratio"
