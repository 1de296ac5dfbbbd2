"""`compare`: the simulation of a launch and every analytical model on the same input, as data, text and JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from ppt_gpu.common.units import format_count, format_time
from ppt_gpu.models.base.model import Estimate
from ppt_gpu.models.caches.hit_rates import HitRates
from ppt_gpu.models.registry import find_model
from ppt_gpu.ptx.linking.mangling import short_name
from ppt_gpu.report.text.tables import shown, table, whole

SCHEMA = 1
SIMULATION = "simulation"


@dataclass(frozen=True)
class Row:
    """The simulation, or a model. Without launch overhead."""

    name: str
    title: str
    time_s: float | None  # None: the model does not apply
    cycles: float | None  # SM cycles
    cpi: float | None  # SM cycles of the busiest SM by its warp instructions
    limiter: str
    wall_s: float  # of work on the CPU
    difference: float | None  # of the time from the simulation's, a ratio; None where there is nothing to compare
    reason: str = ""  # why the model does not apply
    estimate: Estimate | None = None


@dataclass(frozen=True)
class LaunchComparison:
    """One launch."""

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    rows: tuple[Row, ...]  # the simulation first
    shared_wall_s: float  # of work that all models share: dependencies, functional simulation of the caches
    kept: bool  # the simulation was taken from the store
    floor_cycles: float  # nothing is faster: issue slots and bandwidths (roofline)
    hit_rates: tuple[HitRates, ...] = ()  # of the caches where asked for, the simulation first

    @property
    def below_floor(self) -> tuple[str, ...]:
        """Models that promise less than issue slots and bandwidths allow."""
        least = self.floor_cycles * (1.0 - 1e-9)
        return tuple(row.name for row in self.rows if row.cycles is not None and row.cycles < least)

    def row(self, name: str) -> Row:
        """The row of that name. KeyError when there is none."""
        return {row.name: row for row in self.rows}[name]


@dataclass(frozen=True)
class Comparison:
    """All launches of a workload on one GPU."""

    workload: str
    gpu: str
    policy: str
    literal: bool
    launches: tuple[LaunchComparison, ...]

    @property
    def main(self) -> LaunchComparison:
        """The launch that takes longest, the first of equals."""
        return max(self.launches, key=lambda launch: launch.rows[0].time_s or 0.0)


def row_document(row: Row, steps: bool = False) -> dict[str, Any]:
    """A row as plain data; with `steps` the calculation too."""
    found = {name: value for name, value in vars(row).items() if name != "estimate"}
    if row.estimate is not None:
        found["stack"] = [{"cause": cause, "cpi": cpi} for cause, cpi in row.estimate.stack]
        found["notes"] = list(row.estimate.notes)
        if steps:
            found["steps"] = [asdict(step) for step in row.estimate.steps]
    return found


def launch_document(launch: LaunchComparison, explain: str | None) -> dict[str, Any]:
    return {
        "kernel": launch.kernel,
        "grid": list(launch.grid),
        "block": list(launch.block),
        "shared_wall_s": launch.shared_wall_s,
        "floor_cycles": launch.floor_cycles,
        "models": [row_document(row, row.name == explain) for row in launch.rows],
        **({"hit_rates": [asdict(rates) for rates in launch.hit_rates]} if launch.hit_rates else {}),
    }


def to_json(found: Comparison, explain: str | None = None) -> str:
    """One document; `kernel` and `models` at the top are those of the longest launch."""
    main = launch_document(found.main, explain)
    document = {
        "schema": SCHEMA,
        "workload": found.workload,
        "gpu": found.gpu,
        "policy": found.policy,
        "literal": found.literal,
        **main,
        "launches": [launch_document(launch, explain) for launch in found.launches],
    }
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def render(found: Comparison, *, explain: str | None = None, width: int = 120, color: bool = False) -> str:
    """The table of the longest launch, or of each when there are several; and one model equation by equation."""
    parts: list[Any] = []
    for number, launch in enumerate(found.launches, 1):
        name = f"{found.workload} on {found.gpu}" + (f", launch {number}" if len(found.launches) > 1 else "")
        grid, block = ("x".join(map(str, size)) for size in (launch.grid, launch.block))
        form = ", equations as printed" if found.literal else ""
        parts.append(f"{name}: {short_name(launch.kernel)}, grid {grid}, block {block}, policy {found.policy}{form}")
        parts += [_table(launch), *_notes(launch)]
        if launch.hit_rates:
            parts += ["", _hit_rates(launch)]
        if explain:
            parts += ["", *_explained(launch.row(explain))]
        parts.append("")
    return shown(*parts[:-1], width=width, color=color)


def _table(launch: LaunchComparison) -> Any:
    names = ("model", "time", "cycles", "CPI", "difference", "work", "limited by")
    found = table(*((name, "left" if name in ("model", "limited by") else "right") for name in names))
    whole(found, *names[:-1])
    for row in launch.rows:
        if row.time_s is None or row.cycles is None or row.cpi is None:
            found.add_row(row.name, "", "", "", "", f"{row.wall_s * 1e3:.1f} ms", f"does not apply: {row.reason}")
            continue
        difference = "" if row.difference is None or row.name == SIMULATION else f"{row.difference:+.1%}"
        found.add_row(
            row.name, format_time(row.time_s), format_count(row.cycles), f"{row.cpi:.3g}", difference,
            f"{row.wall_s * 1e3:.1f} ms", row.limiter,
        )  # fmt: skip
    return found


def _hit_rates(launch: LaunchComparison) -> Any:
    found = table(("hit rates", "left"), ("L1", "right"), ("L2", "right"), ("", "left"))
    for rates in launch.hit_rates:
        shares = ("" if rate is None else f"{rate:.1%}" for rate in (rates.l1, rates.l2))
        found.add_row(rates.model, *shares, "; ".join(rates.notes))
    return found


def _notes(launch: LaunchComparison) -> list[str]:
    kept = "; the simulation was taken from the store" if launch.kept else ""
    lines = [f"work: CPU time. All models share {launch.shared_wall_s * 1e3:.1f} ms: dependencies, caches{kept}."]
    if launch.below_floor:
        least = f"{format_count(launch.floor_cycles)} cycles that issue slots and bandwidths take at least"
        lines.append(f"Below the {least}: {', '.join(launch.below_floor)}.")
    for row in launch.rows:
        if row.estimate is not None:
            lines += [f"{row.name}: {note}" for note in row.estimate.notes]
    return lines


def _explained(row: Row) -> list[str]:
    if row.estimate is None:
        return [f"{row.name}: ppt-gpu predict shows what the simulation rests on"]
    return find_model(row.name).report(row.estimate)
