"""The table of opcodes: parsed, executed with the right results, timed; and the cases that were not."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from ppt_gpu.validate.coverage.run import Outcome


@dataclass
class Row:
    """One base opcode. Forms are whole opcodes, with their modifiers."""

    opcode: str
    instructions: int = 0
    cases: int = 0
    parsed: set[str] = field(default_factory=set)
    executed: set[str] = field(default_factory=set)
    timed: set[str] = field(default_factory=set)
    reason: str = ""  # why some forms were not executed


def rows(outcomes: Sequence[Outcome]) -> list[Row]:
    """One row a base opcode, most frequent first."""
    found: dict[str, Row] = {}
    for one in outcomes:
        for base, forms in _by_base(one.opcodes).items():
            row = found.setdefault(base, Row(base))
            row.cases += 1
            row.instructions += sum(one.opcodes[form] for form in forms)
            row.parsed |= forms
            row.executed |= forms & one.executed
            row.timed |= set() if one.timing else forms
    for row in found.values():
        row.reason = _reason(row, outcomes)
    return sorted(found.values(), key=lambda row: (-row.instructions, row.opcode))


def _by_base(opcodes: Counter[str]) -> dict[str, set[str]]:
    grouped: dict[str, set[str]] = {}
    for opcode in opcodes:
        grouped.setdefault(opcode.partition(".")[0], set()).add(opcode)
    return grouped


def _reason(row: Row, outcomes: Sequence[Outcome]) -> str:
    """Why forms are missing: refused themselves, only in cases that failed, or never reached by any warp."""
    missing = row.parsed - row.executed
    if not missing:
        return ""
    refused = sorted(o.execution for o in outcomes if any(o.execution.startswith(f"'{form}'") for form in missing))
    if refused:
        return refused[0].split(", block")[0]
    failed = [o.case.name for o in outcomes if o.execution and missing & set(o.opcodes)]
    if failed:
        return f"only in {failed[0]}, which failed" if len(failed) == 1 else f"only in {len(failed)} cases that failed"
    return f"no warp comes there: {', '.join(sorted(missing)[:3])}{', ...' if len(missing) > 3 else ''}"


def to_json(outcomes: Sequence[Outcome]) -> str:
    """The rows, and every case, as one document."""
    table = [
        {
            "opcode": row.opcode,
            "instructions": row.instructions,
            "cases": row.cases,
            "parsed": sorted(row.parsed),
            "executed": sorted(row.executed),
            "timed": sorted(row.timed),
            "reason": row.reason,
        }
        for row in rows(outcomes)
    ]
    every = [
        {"case": o.case.name, "execution": o.execution or "right", "timing": o.timing or "predicted"} for o in outcomes
    ]
    return json.dumps({"schema": 1, "set": "coverage", "opcodes": table, "cases": every}, indent=2) + "\n"


def to_text(outcomes: Sequence[Outcome]) -> str:
    """The table for people."""
    table = rows(outcomes)
    lines = ["opcode         instructions  cases  forms  executed  timed  not executed"]
    for row in table:
        lines.append(
            f"{row.opcode:14} {row.instructions:12,} {row.cases:6} {len(row.parsed):6} {len(row.executed):9} "
            f"{len(row.timed):6}  {row.reason}".rstrip()
        )
    parsed, executed, timed = (sum(len(getattr(row, key)) for row in table) for key in ("parsed", "executed", "timed"))
    reached = sum(1 for row in table if row.executed)
    right = sum(1 for o in outcomes if not o.execution)
    predicted = sum(1 for o in outcomes if not o.timing)
    lines += [
        "",
        f"{len(table)} opcodes in {parsed} forms parsed; {reached} opcodes in {executed} forms executed with the right "
        f"results; {timed} forms timed",
        f"{len(outcomes)} kernels: {right} equal to their reference, {predicted} predicted",
    ]
    lines += [f"  not executed: {o.case.name}: {o.execution}" for o in outcomes if o.execution]
    lines += [f"  not timed: {o.case.name}: {o.timing}" for o in outcomes if o.timing and o.timing != o.execution]
    return "\n".join(lines) + "\n"
