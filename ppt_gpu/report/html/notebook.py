"""A result in a notebook: verdict, launches, bounds and stall reasons, in the colours of the notebook."""

from __future__ import annotations

from collections.abc import Sequence

from ppt_gpu.common.units import format_count, format_time
from ppt_gpu.ptx.linking.mangling import short_name
from ppt_gpu.report.html.tags import Markup, join, number, tag
from ppt_gpu.report.result.result import LaunchResult, Result
from ppt_gpu.report.text.numbers import metric_text, percent, value_of

LAUNCHES = 12
LEAST = 0.01  # of the largest: what is less is left out


def summary(result: Result) -> str:
    """A fragment without script or style sheet."""
    main = result.main
    head = tag("p", tag("strong", f"{result.workload} on {result.gpu}: {format_time(result.time)}"),
               f", limited by {main.value('limiter')}")  # fmt: skip
    beside = tag("div", _bounds(main), _stalls(main), style="display:flex;gap:2em;flex-wrap:wrap")
    return tag("div", head, _launches(result), beside)


def _launches(result: Result) -> Markup:
    heads = ("kernel", "time", "times", "occupancy", "DRAM", "limited by")
    rows = [
        (
            short_name(launch.kernel),
            metric_text(launch, "kernel.time"),
            format_count(int(launch.extra.get("repeat", 1))),
            percent(value_of(launch, "occupancy.fraction")),
            metric_text(launch, "memory.dram_throughput"),
            str(launch.value("limiter")),
        )
        for launch in result.launches[:LAUNCHES]
    ]
    left = len(result.launches) - len(rows)
    return join(_table(heads, rows), tag("p", f"and {left} more launches") if left else Markup())


def _bounds(launch: LaunchResult) -> Markup:
    cycles = value_of(launch, "kernel.cycles")
    found = sorted(launch.bounds, key=lambda bound: -bound.cycles)
    shares = [(bound.resource, bound.cycles / cycles) for bound in found if cycles and bound.cycles > LEAST * cycles]
    return _table(("resource", "used", ""), [(name, percent(share), _bar(share)) for name, share in shares])


def _stalls(launch: LaunchResult) -> Markup:
    shares = [item for item in sorted(launch.stalls, key=lambda item: -item[1]) if item[1] > LEAST]
    return _table(("warp cycles", "share", ""), [(name, percent(share), _bar(share)) for name, share in shares])


def _table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Markup:
    """Numbers and bars stand in the columns after the first."""
    head = tag("tr", *(tag("th", name, scope="col", style="text-align:left") for name in heads))
    body = (tag("tr", *(tag("td", cell, style="text-align:left") for cell in row)) for row in rows)
    return tag("table", tag("thead", head), tag("tbody", *body))


def _bar(share: float) -> Markup:
    width = number(6 * max(0.0, min(share, 1.0)))
    style = f"display:inline-block;width:{width}em;height:.7em;background:currentColor;opacity:.55"
    return tag("span", style=style, aria_hidden="true")
