"""`port`: predictions on the other side, as text and as one JSON document."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from textwrap import wrap
from typing import Any

from ppt_gpu.common.units import format_bytes, format_count, format_time
from ppt_gpu.multicore.core_models.m_core import MTime
from ppt_gpu.multicore.port.accuracy import Accuracy
from ppt_gpu.multicore.port.port import Ported
from ppt_gpu.multicore.port.sensitivity import STEP, Sensitivity, sensitivities

SCHEMA = 1
WIDTH = 80
#: a launch's prediction and how often it runs
Counted = tuple[Ported, int]


def render(ported: Sequence[Counted], *, explain: bool = False, sensitivity: bool = False) -> str:
    """The terminal report."""
    lines: list[str] = []
    for each, count in ported:
        lines += _one(each, count)
        if sensitivity:
            lines += _sensitivity_lines(sensitivities(each))
        if explain:
            lines += ["", *(f"  {step.line()}" for step in each.result.steps)]
        lines.append("")
    if sum(count for _, count in ported) > 1:
        lines += [f"all launches on {ported[0][0].target}: {format_time(total_time(ported))}", ""]
    return "\n".join(lines[:-1]) + "\n"


def total_time(ported: Sequence[Counted]) -> float:
    """Seconds of all launches."""
    return sum(each.time * count for each, count in ported)


def _one(ported: Ported, count: int) -> list[str]:
    result = ported.result
    times = f", one of {count} runs" if count != 1 else ""
    lines = [f"{ported.program} on {ported.target}{times}"]
    if ported.ir is not None:
        lines.append(f"  from        {ported.ir.origin}")
    lines.append(f"  time        {format_time(ported.time)} = {format_count(result.cycles)} cycles")
    if isinstance(result, MTime):
        lines += _gpu_lines(result, ported)
    else:
        shares = sorted(result.parts.items(), key=lambda item: -item[1])
        total = sum(result.parts.values()) or 1.0
        shown = ", ".join(f"{name} {part / total:.0%}" for name, part in shares if part / total >= 0.005)
        lines.append(f"  parts       {shown}")
    if ported.generic is not None:
        lines.append(f"  generic     {format_time(ported.generic)} on one core, by the interval model alone")
    if ported.measured:
        lines.append(f"  measured    {format_time(ported.measured)} {_against(ported)}")
    lines += _accuracy_lines(ported.accuracy, ported.time)
    lines += [f"  {'notes' if not at else '':12}{note}" for at, note in enumerate(result.notes)]
    return lines


def _gpu_lines(result: MTime, ported: Ported) -> list[str]:
    grid = f"{format_count(result.blocks)} blocks of {result.block} threads"
    searched = f", the fastest of {len(ported.tried)} sizes" if ported.tried else ""
    return [
        f"  launch      {grid}{searched}; {result.resident_warps:g} warps on each of {result.active_sms} SMs",
        f"  limited by  {result.limiter}",
    ]


def _against(ported: Ported) -> str:
    """How the prediction stands to the time measured on the source."""
    assert ported.measured
    ratio = ported.measured / ported.time
    if ported.ir is None:
        return f"(this run: predicted {ported.time / ported.measured - 1:+.0%})"
    return f"on the source, {ratio:.3g} times the prediction"


def _accuracy_lines(found: Accuracy, time: float) -> list[str]:
    parts = []
    if found.low is not None and found.high is not None:
        parts.append(f"{found.low:+.0%} to {found.high:+.0%}")
    if found.mean is not None:
        parts.append(f"mean {found.mean:+.0%}")
    if found.mean_absolute is not None:
        parts.append(f"mean absolute {found.mean_absolute:.0%}")
    where = f" ({found.source})" if found.source else ""
    errors = ", ".join([*parts, *([found.note] if found.note else [])])
    said = f"  error       of speedups in Blem's tests, {found.kind}{where}: {errors}"
    lines = wrap(said, WIDTH, subsequent_indent=" " * 14)
    times = found.times(time)
    if times:
        lines.append(f"              with such errors it takes {format_time(times[0])} to {format_time(times[1])}")
    return lines


def _sensitivity_lines(found: Sequence[Sensitivity]) -> list[str]:
    def text(ratio: float | None) -> str:
        return f"{ratio:10.3f}" if ratio is not None else f"{'-':>10}"

    head = f"  {'input':16}{'value':>12}{f'-{STEP:.0%}':>10}{f'+{STEP:.0%}':>10}  time over the time above"
    return ["", head, *(f"  {each.name:16}{each.value:12.4g}{text(each.lower)}{text(each.higher)}" for each in found)]


def to_json(ported: Sequence[Counted], *, explain: bool = False, sensitivity: bool = False) -> str:
    """The same as one JSON document."""
    runs = [_document(each, count, explain, sensitivity) for each, count in ported]
    return json.dumps({"schema": SCHEMA, "time_s": total_time(ported), "launches": runs}, indent=2) + "\n"


def _document(ported: Ported, count: int, explain: bool, sensitivity: bool) -> dict[str, Any]:
    result = ported.result
    found: dict[str, Any] = {
        "program": ported.program,
        "target": ported.target,
        "runs": count,
        "time_s": ported.time,
        "cycles": result.cycles,
        "limiter": result.limiter,
        "accuracy": asdict(ported.accuracy),
        "inputs": {name: value for name, value in asdict(ported.inputs).items() if name != "notes"},
        "notes": list(result.notes),
    }
    if isinstance(result, MTime):
        found |= {"block": result.block, "blocks": result.blocks, "resident_warps": result.resident_warps}
        found |= {"active_sms": result.active_sms, "tried": dict(ported.tried)}
    else:
        found["parts"] = dict(result.parts)
    if ported.generic is not None:
        found["generic_s"] = ported.generic
    if ported.measured:
        found["measured_s"] = ported.measured
    if ported.ir is not None:
        found["footprint"] = format_bytes(ported.ir.footprint)
    if explain:
        found["steps"] = [asdict(step) for step in result.steps]
    if sensitivity:
        found["sensitivity"] = [asdict(each) for each in sensitivities(ported)]
    return found
