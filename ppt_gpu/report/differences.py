"""`compare a.json b.json`: the differences of two saved results as text and as one JSON document."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from rich.console import RenderableType

from ppt_gpu.common.units import format_bytes, format_count, format_frequency, format_rate, format_time
from ppt_gpu.report.text.tables import shown, table

_SHOWN: Mapping[str, Callable[[float], str]] = {
    "s": format_time,
    "B": format_bytes,
    "Hz": format_frequency,
    "B/s": format_rate,
    "FLOP/s": lambda value: format_rate(value, "FLOP/s"),
    "cycles": format_count,
    "instructions": format_count,
    "ratio": "{:.1%}".format,
}


class Row(NamedTuple):
    """A number of both results, and their ratio where they have one."""

    name: str
    unit: str
    before: Any
    after: Any
    ratio: float | None


class Part(NamedTuple):
    """What differs of one launch: rows by title ("metrics", "warp cycles by reason", "bounds")."""

    kernel: str
    tables: Mapping[str, Sequence[Row]]


def render(
    of: tuple[str, str],
    times: tuple[float, float],
    parts: Sequence[Part],
    notes: Sequence[str],
    *,
    width: int,
    color: bool,
) -> str:
    """Times first, then what differs, launch by launch."""
    before, after = times
    faster = f"{before / after:.2f}x as fast" if after else "no time"
    names = of[0] if of[0] == of[1] else f"{of[0]}, then {of[1]}"
    found: list[RenderableType] = [f"{names}: {format_time(before)} -> {format_time(after)}, {faster}"]
    for part in parts:
        different = {title: rows for title, rows in part.tables.items() if rows}
        found.append(f"\n{part.kernel}: {'' if different else 'no difference'}".rstrip(" "))
        for title, rows in different.items():
            made = table((title, "left"), ("first", "right"), ("second", "right"), ("change", "right"))
            for row in rows:
                made.add_row(row.name, _value(row.before, row.unit), _value(row.after, row.unit), _change(row))
            found.append(made)
    return shown(*found, *notes, width=width, color=color)


def to_json(
    names: tuple[str, str], of: tuple[str, str], times: tuple[float, float], parts: Sequence[Part], notes: Sequence[str]
) -> str:
    """Only what differs; ratios are second / first."""
    document = {
        "schema": 1,
        "first": {"file": names[0], "of": of[0], "time_s": times[0]},
        "second": {"file": names[1], "of": of[1], "time_s": times[1]},
        "launches": [
            {"kernel": part.kernel, **{title: [row._asdict() for row in rows] for title, rows in part.tables.items()}}
            for part in parts
        ],
        "notes": list(notes),
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _change(row: Row) -> str:
    """In percent; of a share in percentage points."""
    if row.unit == "ratio" and not isinstance(row.before, str | None) and not isinstance(row.after, str | None):
        return f"{(row.after - row.before) * 100:+.1f} points"
    return "" if row.ratio is None else f"{row.ratio - 1:+.1%}"


def _value(value: Any, unit: str) -> str:
    if value is None or isinstance(value, str):
        return value or "none"
    show = _SHOWN.get(unit)
    return show(value) if show is not None else f"{value:,.4g}"
