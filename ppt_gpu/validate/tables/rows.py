"""Rows of a validation and their summary: signed error of each; mean absolute error and rank correlation of groups.

Cells of measured tables are read strictly.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby

import numpy as np

from ppt_gpu.common.errors import PptError
from ppt_gpu.report.text.columns import columns, fits


def positive_number(row: Mapping[str, str], name: str) -> float:
    """The number in column `name` of a row. PptError where it is none, not finite, or not above zero."""
    try:
        value = float(row[name])
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise PptError(f"{name} is '{row[name]}', expected a positive number")
    return value


def is_asked(name: str, texts: Sequence[str]) -> bool:
    """Whether a case is asked for: its name contains one of `texts`, or there are none."""
    return not texts or any(text in name for text in texts)


@dataclass(frozen=True)
class Row:
    case: str
    gpu: str
    mode: str
    level: str
    reference: float
    predicted: float
    unit: str
    limiter: str = ""  # kind of limit, where the set says it (ppt_gpu.report.result.limiter)

    @property
    def error(self) -> float:
        """Signed relative error: predicted / reference - 1."""
        return self.predicted / self.reference - 1.0


@dataclass(frozen=True)
class Summary:
    gpu: str
    mode: str
    cases: int
    mean: float  # mean absolute relative error
    median: float
    worst: float
    bias: float  # mean signed error
    tau: float  # Kendall's tau-b of predictions and references; 1 where there is nothing to order


def summaries(rows: Sequence[Row]) -> list[Summary]:
    """One summary for every (gpu, mode), in order of appearance, and one over all."""
    keys = list(dict.fromkeys((row.gpu, row.mode) for row in rows))
    groups = [(gpu, mode, [r for r in rows if (r.gpu, r.mode) == (gpu, mode)]) for gpu, mode in keys]
    if len(groups) > 1:
        groups.append(("all", "all", list(rows)))
    return [_summary(gpu, mode, members) for gpu, mode, members in groups]


def _summary(gpu: str, mode: str, rows: Sequence[Row]) -> Summary:
    errors = [row.error for row in rows]
    sizes = [abs(error) for error in errors]
    return Summary(
        gpu=gpu,
        mode=mode,
        cases=len(rows),
        mean=statistics.mean(sizes),
        median=statistics.median(sizes),
        worst=max(sizes),
        bias=statistics.mean(errors),
        tau=kendall_tau([row.reference for row in rows], [row.predicted for row in rows]),
    )


def kendall_tau(first: Sequence[float], second: Sequence[float]) -> float:
    """Kendall's tau-b of two sequences of one length (Kendall 1945): 1 for the same order, -1 for the opposite one.

    Pairs with ties count in neither direction. 1 where all of one sequence are equal.
    """
    steps = [np.sign(np.subtract.outer(np.asarray(values), np.asarray(values))) for values in (first, second)]
    pairs = float(np.sqrt(np.abs(steps[0]).sum() * np.abs(steps[1]).sum()))
    return float((steps[0] * steps[1]).sum()) / pairs if pairs else 1.0


def to_json(name: str, rows: Sequence[Row]) -> str:
    document = {
        "schema": 1,
        "set": name,
        "rows": [asdict(row) | {"error": row.error} for row in rows],
        "summary": [asdict(summary) for summary in summaries(rows)],
    }
    return json.dumps(document, indent=2) + "\n"


def to_text(name: str, rows: Sequence[Row]) -> str:
    lines = _cases(rows)
    lines += ["", f"{name}, errors of {rows[0].unit} predicted against the reference", ""]
    return "\n".join([*lines, *summary_lines(rows)]) + "\n"


def _cases(rows: Sequence[Row]) -> list[str]:
    """A table of all rows; where that is too wide, one for each run of rows of one GPU, mode and level."""
    numbers = [(f"{row.reference:,.0f}", f"{row.predicted:,.0f}", f"{row.error:+.1%}") for row in rows]
    places = [(row.gpu, row.mode, row.level) for row in rows]
    heads = ("reference", "predicted", "error")
    whole = [("case", "gpu", "mode", "level", *heads)]
    whole += [(row.case, *place, *found) for row, place, found in zip(rows, places, numbers, strict=True)]
    if fits(whole):
        return columns(whole, left=4)
    lines: list[str] = []
    for place, members in groupby(range(len(rows)), key=lambda number: places[number]):
        part = [("case", *heads), *((rows[number].case, *numbers[number]) for number in members)]
        lines += [", ".join(place), *(f"  {line}" for line in columns(part)), ""]
    return lines[:-1]


def summary_lines(rows: Sequence[Row]) -> list[str]:
    """The summaries as a table, with its head."""
    found = [("gpu", "mode", "cases", "mean |e|", "median", "worst", "bias", "tau")]
    for s in summaries(rows):
        errors = (f"{s.mean:.1%}", f"{s.median:.1%}", f"{s.worst:.1%}", f"{s.bias:+.1%}", f"{s.tau:.3f}")
        found.append((s.gpu, s.mode, str(s.cases), *errors))
    return columns(found, left=2)
