"""The set `micro`: bandwidths, latencies and rates of many GPUs as published, each held against the simulation.

What is published stands in validation/micro/published.csv, with its source and what it is worth: measured by others,
a vendor's document, or recalled (from memory). `ppt_gpu.validate.silicon.micro_quantities` predicts.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache

from ppt_gpu.common.errors import PptError, did_you_mean
from ppt_gpu.common.paths import data_dir
from ppt_gpu.common.progress import parts
from ppt_gpu.report.text.columns import columns
from ppt_gpu.spec import load_gpu
from ppt_gpu.validate.silicon.capture_runs import csv_rows
from ppt_gpu.validate.silicon.micro_quantities import QUANTITIES, Target
from ppt_gpu.validate.tables.cells import positive_number
from ppt_gpu.validate.tables.rows import Row, is_asked, summaries

COLUMNS = ("quantity", "gpu", "clock_mhz", "value", "quality", "source", "note")
QUALITIES = ("measured", "vendor", "recalled")


@dataclass(frozen=True)
class Published:
    """A number that others give for a GPU."""

    quantity: str
    target: Target
    value: float  # in the unit of the quantity
    quality: str
    source: str  # id of hardware/SOURCES.md
    note: str


def published(texts: Sequence[str] = ()) -> list[Published]:
    """All, or those whose "GPU QUANTITY" contains one of `texts`. PptError for a line that makes no sense."""
    path = data_dir("validation") / "micro" / "published.csv"
    found = []
    for number, row in csv_rows(path.read_text(encoding="utf-8").splitlines(), str(path), COLUMNS):
        try:
            for name, known in (("quantity", tuple(QUANTITIES)), ("quality", QUALITIES)):
                if row[name] not in known:
                    raise PptError(f"unknown {name} '{row[name]}'", hint=did_you_mean(row[name], known))
            clock = positive_number(row, "clock_mhz") if row["clock_mhz"] else 0.0
            target, value = Target(row["gpu"], clock), positive_number(row, "value")
        except PptError as error:
            raise PptError(error.message, path=str(path), line=number, hint=error.hint) from error
        found.append(Published(row["quantity"], target, value, row["quality"], row["source"], row["note"]))
    return [one for one in found if is_asked(f"{one.target.name} {one.quantity}", texts)]


@cache
def predicted(quantity: str, target: Target) -> float:
    """What the simulation has for it. PptError for what the GPU cannot run."""
    return QUANTITIES[quantity].predict(target)


def pairs(texts: Sequence[str] = ()) -> list[tuple[Published, Row]]:
    """Every published number that `texts` choose, beside the prediction. PptError for an unknown GPU."""
    chosen = published(texts)
    for one in chosen:
        load_gpu(one.target.name)
    return [
        (
            one,
            Row(
                one.quantity, one.target.name, one.quality, "steady", one.value,
                predicted(one.quantity, one.target), QUANTITIES[one.quantity].unit,
            ),
        )
        for one in parts(chosen, "quantities")
    ]  # fmt: skip


def to_text(found: Sequence[tuple[Published, Row]]) -> str:
    """A table of all, and the errors by quality."""
    table = [("quantity", "gpu", "published", "predicted", "error", "unit", "source")]
    for one, row in found:
        source = one.source if one.quality == "measured" else f"{one.source}, {one.quality}"
        table.append(
            (row.case, row.gpu, f"{row.reference:.4g}", f"{row.predicted:.4g}", f"{row.error:+.1%}", row.unit, source)
        )
    errors = [("quality", "numbers", "mean |e|", "median", "worst", "bias")]
    by_quality = sorted((Row(**asdict(row) | {"gpu": ""}) for _, row in found), key=lambda r: QUALITIES.index(r.mode))
    for s in summaries(by_quality):
        shares = (f"{s.mean:.1%}", f"{s.median:.1%}", f"{s.worst:.1%}", f"{s.bias:+.1%}")
        errors.append((s.mode, str(s.cases), *shares))
    return "\n".join([*columns(table, left=2), "", *columns(errors, left=1)]) + "\n"


def to_json(found: Sequence[tuple[Published, Row]]) -> str:
    """The same, with the notes."""
    rows = [
        asdict(row) | {"error": row.error, "source": one.source, "clock_mhz": one.target.clock, "note": one.note}
        for one, row in found
    ]
    return json.dumps({"schema": 1, "set": "micro", "rows": rows}, indent=2) + "\n"
