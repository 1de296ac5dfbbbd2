"""The table of `validate cluster`: geometric mean errors by group and machine, beside the limits aimed for."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby

from ppt_gpu.report.text.columns import columns
from ppt_gpu.validate.tables.rows import Row


@dataclass(frozen=True)
class Group:
    """Errors of some rows: e = ln(predicted / reference)."""

    group: str
    machine: str  # "all": every machine of the group
    cases: int
    error: float  # exp(mean |e|) - 1
    bias: float  # exp(mean e) - 1
    worst: float  # predicted / reference - 1 of the largest |e|
    limit: float | None


def groups(rows: Sequence[Row], limits: Mapping[str, float]) -> list[Group]:
    """A line a group and machine, in order of appearance, and one over all machines of a group."""
    found = []
    for name in dict.fromkeys(row.mode for row in rows):
        members = [row for row in rows if row.mode == name]
        for machine in dict.fromkeys(row.gpu for row in members):
            found.append(_group(name, machine, [row for row in members if row.gpu == machine], None))
        found.append(_group(name, "all", members, limits.get(name)))
    return found


def _group(name: str, machine: str, rows: Sequence[Row], limit: float | None) -> Group:
    logs = [math.log(row.predicted / row.reference) for row in rows]
    worst = max(rows, key=lambda row: abs(math.log(row.predicted / row.reference)))
    mean = math.exp(sum(map(abs, logs)) / len(logs)) - 1
    return Group(name, machine, len(rows), mean, math.exp(sum(logs) / len(logs)) - 1, worst.error, limit)


def to_json(rows: Sequence[Row], limits: Mapping[str, float]) -> str:
    document = {
        "schema": 1,
        "set": "cluster",
        "rows": [asdict(row) | {"error": row.error} for row in rows],
        "summary": [asdict(group) for group in groups(rows, limits)],
    }
    return json.dumps(document, indent=2) + "\n"


def to_text(rows: Sequence[Row], limits: Mapping[str, float]) -> str:
    lines: list[str] = []
    for machine, own in groupby(rows, key=lambda row: row.gpu):
        table = [(machine, "reference", "predicted", "", "error")]
        for row in own:
            table.append((row.case, f"{row.reference:,.5g}", f"{row.predicted:,.5g}", row.unit, f"{row.error:+.1%}"))
        lines += [*columns(table), ""]
    lines += ["cluster, geometric mean errors: exp(mean |ln(predicted / reference)|) - 1", ""]
    summary = [("group", "machine", "cases", "error", "bias", "worst", "limit")]
    for each in groups(rows, limits):
        errors = (f"{each.error:.1%}", f"{each.bias:+.1%}", f"{each.worst:+.1%}")
        limit = "" if each.limit is None else f"{each.limit:.0%}"
        summary.append((each.group, each.machine, str(each.cases), *errors, limit))
    lines += columns(summary, left=2)
    return "\n".join(lines) + "\n"
