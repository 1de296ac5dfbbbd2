"""What a paper states in words beside what this program finds: statements, and how they move with what was assumed."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from textwrap import wrap

from ppt_gpu.report.text.columns import WIDTH, columns
from ppt_gpu.validate.tables.rows import is_asked


@dataclass(frozen=True)
class Statement:
    """A number that a document prints, and ours under the shipped assumptions."""

    case: str
    where: str
    printed: float
    ours: float
    unit: str  # "x" (times), "%", "cores", ""

    @property
    def error(self) -> float:
        """Signed relative error; of shares the difference in points of a hundred."""
        if self.unit == "%":
            return (self.ours - self.printed) / 100.0
        return self.ours / self.printed - 1.0


@dataclass(frozen=True)
class Sensitivity:
    """One change of an assumption that the documents leave open, and what becomes of the figures in `columns`."""

    change: str
    figures: tuple[float, ...]


@dataclass(frozen=True)
class Comparison:
    """A titled group of statements."""

    title: str
    statements: tuple[Statement, ...]


def with_text(groups: Sequence[Comparison], texts: Sequence[str]) -> list[Comparison]:
    """The statements whose case has one of `texts`, all for none; groups without one are left out."""
    chosen = [
        Comparison(group.title, tuple(row for row in group.statements if is_asked(row.case, texts))) for group in groups
    ]
    return [group for group in chosen if group.statements]


def shown(value: float, unit: str) -> str:
    """2.5 -> '2.50x'; shares in percent; whole numbers as such."""
    if math.isnan(value):
        return "-"
    if unit == "%":
        return f"{value:.0f} %"
    if unit == "x":
        return f"{value:.2f}x"
    return f"{value:.0f}" + (f" {unit}" if unit else "")


def to_text(comparisons: Sequence[Comparison], names: Sequence[str], sensitivities: Sequence[Sensitivity]) -> str:
    """Tables of the statements, then the sensitivities; `names` are of their figures."""
    rows = [row for group in comparisons for row in group.statements]
    where = max(len(row.where) for row in rows)
    lines: list[str] = []
    for group in comparisons:
        lines += [*wrap(group.title, WIDTH), f"  {'printed':>9} {'ours':>9} {'off by':>8}  {'where':{where}}"]
        for row in group.statements:
            off = f"{row.error:+.0%}" if row.unit != "%" else f"{100 * row.error:+.0f} pt"
            numbers = f"  {shown(row.printed, row.unit):>9} {shown(row.ours, row.unit):>9} {off:>8}"
            first, *more = wrap(row.case, WIDTH - len(numbers) - where - 4)
            lines.append(f"{numbers}  {row.where:{where}}  {first}")
            lines += [" " * (len(numbers) + where + 4) + line for line in more]
        lines.append("")
    if sensitivities:
        lines += ["How the figures move with what the documents leave open", ""]
        moved = [(each.change, *(f"{value:.2f}" for value in each.figures)) for each in sensitivities]
        lines += columns([("", *names), *moved])
    return "\n".join(line.rstrip() for line in lines) + "\n"


def to_json(
    name: str, comparisons: Sequence[Comparison], columns: Sequence[str], sensitivities: Sequence[Sensitivity]
) -> str:
    """The same as one JSON document with `rows` and `summary` as every validation has them."""
    rows = [
        {
            **asdict(row),
            "case": row.case,
            "gpu": "",
            "mode": group.title,
            "level": "analytic",
            "reference": row.printed,
            "predicted": row.ours,
            "error": row.error,
        }
        for group in comparisons
        for row in group.statements
    ]
    summary = [
        {
            "mode": group.title,
            "cases": len(group.statements),
            "mean": sum(abs(row.error) for row in group.statements) / len(group.statements),
        }
        for group in comparisons
    ]
    moved = [{"change": each.change, **dict(zip(columns, each.figures, strict=True))} for each in sensitivities]
    document = {"schema": 1, "set": name, "rows": rows, "summary": summary, "sensitivity": moved}
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
