"""The study of the analytical models as text and JSON, the paper's figures beside ours."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ppt_gpu.report.text.columns import columns
from ppt_gpu.validate.models.speed import Speed
from ppt_gpu.validate.models.study import (
    MACHINE,
    PAPER,
    PAPER_BELOW,
    POLICIES,
    SWEEPS,
    TABLE_II,
    Accuracy,
    Stack,
    accuracies,
)
from ppt_gpu.validate.tables import rows as case_rows
from ppt_gpu.validate.tables.rows import Row


def document(part: str, **content: Any) -> str:
    """One JSON document."""
    return json.dumps({"schema": 1, "set": "models", "part": part, "gpu": MACHINE, **content}, indent=2) + "\n"


def accuracy_json(rows: Sequence[Row]) -> str:
    """As every validation set; with the errors by model and the paper's."""
    found = json.loads(case_rows.to_json("models", rows))
    found["accuracy"] = [asdict(item) for item in accuracies(rows)]
    found["paper"] = {model: dict(zip(POLICIES, errors, strict=True)) for model, errors in PAPER.items()}
    return json.dumps(found, indent=2) + "\n"


def accuracy_text(rows: Sequence[Row]) -> str:
    """Signed errors of every case under each policy (Fig. 11, 12), then by model."""
    parts = [_cases(rows, policy) for policy in POLICIES]
    found = accuracies(rows)
    table = [("model", *("mean", "paper", "median", "< 20 %", "paper"), *("gto mean", "paper", "median", "< 20 %"))]
    for model in dict.fromkeys(item.model for item in found):
        lrr, gto = (next(x for x in found if (x.model, x.policy) == (model, policy)) for policy in POLICIES)
        stated = PAPER.get(model)
        paper = [f"{value:.1%}" for value in stated] if stated else ["", ""]
        below = f"{PAPER_BELOW[model]:.0%}" if model in PAPER_BELOW else ""
        robin = (f"{lrr.mean:.1%}", paper[0], f"{lrr.median:.1%}", f"{lrr.below:.0%}", below)
        greedy = (f"{gto.mean:.1%}", paper[1], f"{gto.median:.1%}", f"{gto.below:.0%}")
        table.append((model, *robin, *greedy))
    count = len({row.case for row in rows})
    title = f"Mean error of {count} launches against the simulation on {MACHINE}, round robin, then greedy-then-oldest"
    return "\n\n".join([*parts, title + "\n\n" + "\n".join(columns(table))]) + "\n"


def _cases(rows: Sequence[Row], policy: str) -> str:
    """Signed errors of the models of Table II."""
    table: list[tuple[str, ...]] = [(policy, "cycles", *TABLE_II)]
    by_case: dict[str, dict[str, Row]] = {}
    for row in rows:
        if row.mode.startswith(f"{policy} "):
            by_case.setdefault(row.case, {})[row.mode.split()[1]] = row
    for case, models in by_case.items():
        cycles = next(iter(models.values())).reference
        errors = (f"{models[name].error:+.1%}" if name in models else "" for name in TABLE_II)
        table.append((case, f"{cycles:,.0f}", *errors))
    return "\n".join(columns(table))


def representatives_text(rows: Sequence[Row]) -> str:
    """Signed errors of GPUMech by the way to choose the representative warp, and their means."""
    modes = list(dict.fromkeys(row.mode for row in rows))
    if not modes:
        return "In none of the launches do the ways to choose the representative warp differ.\n"
    lines = ["GPUMech's error by the way to choose the representative warp, where it matters (Fig. 7), round robin", ""]
    width = max(len(row.case) for row in rows)
    lines.append(f"{'case':{width}} " + " ".join(f"{mode.split()[1]:>12}" for mode in modes))
    for case in dict.fromkeys(row.case for row in rows):
        errors = {row.mode: row.error for row in rows if row.case == case}
        lines.append(f"{case:{width}} " + " ".join(f"{errors[mode]:+12.1%}" for mode in modes))
    means = {item.model: item.mean for item in accuracies(rows)}
    lines.append(f"{'mean |error|':{width}} " + " ".join(f"{means[mode.split()[1]]:12.1%}" for mode in modes))
    return "\n".join(lines) + "\n"


def representatives_json(rows: Sequence[Row]) -> str:
    return document("representative", rows=[asdict(row) | {"error": row.error} for row in rows])


def sweep_text(name: str, found: dict[int, list[Accuracy]]) -> str:
    """Mean errors by model and value."""
    chosen = SWEEPS[name]
    table: list[tuple[str, ...]] = [(chosen.unit, *TABLE_II)]
    for value, items in found.items():
        means = {item.model: item.mean for item in items}
        table.append((str(value), *(f"{means[model]:.1%}" for model in TABLE_II)))
    return "\n".join([f"Mean error by {chosen.title}, round robin", "", *columns(table, left=0)]) + "\n"


def sweep_json(name: str, found: dict[int, list[Accuracy]]) -> str:
    points = [{"value": value, "accuracy": [asdict(item) for item in items]} for value, items in found.items()]
    return document(name, unit=SWEEPS[name].unit, points=points)


def stacks_text(found: Sequence[Stack]) -> str:
    """One line a configuration."""
    names = [name for name, _ in found[0].parts]
    head = f"{'case':16} {'warps':>5} {'simulated':>9} {'GPUMech':>8}  " + " ".join(f"{name:>6}" for name in names)
    lines = ["CPI by the simulated CPI of 8 warps: simulation, GPUMech, and its stack (Fig. 16)", "", head]
    for one in found:
        parts = " ".join(f"{part:6.3f}" for _, part in one.parts)
        lines.append(f"{one.case:16} {one.warps:5} {one.simulated:9.3f} {one.predicted:8.3f}  {parts}")
    return "\n".join(lines) + "\n"


def stacks_json(found: Sequence[Stack]) -> str:
    return document("stacks", stacks=[asdict(one) for one in found])


def speed_text(found: Sequence[Speed]) -> str:
    """CPU milliseconds of each case; the ratio over all, and its median."""
    lines = [f"{'case':18} {'warp insts':>11} {'SM loop':>9} {'caches':>9} {'model':>9} {'ratio':>7}"]
    for one in found:
        times = " ".join(f"{seconds * 1e3:9.2f}" for seconds in (one.simulation, one.caches, one.model))
        lines.append(f"{one.case:18} {one.instructions:11,} {times} {one.ratio:7.1f}")
    total = sum(one.simulation for one in found) / sum(one.caches + one.model for one in found)
    middle = sorted(one.ratio for one in found)[len(found) // 2]
    lines += [
        "",
        f"CPU ms for the same blocks. All together: the model is {total:.1f} times as fast; median {middle:.1f}.",
    ]
    return "\n".join(lines) + "\n"


def speed_json(found: Sequence[Speed]) -> str:
    return document("speed", cases=[asdict(one) | {"ratio": one.ratio} for one in found])
