"""The figure of a scaling table: time and efficiency by the number of nodes."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, log10
from typing import Any

from ppt_gpu.cluster.studies import Size
from ppt_gpu.report.figures.common import COLOURS, STYLE, pyplot


def scaling_figure(title: str, sizes: Sequence[Size], strong: bool) -> Any:
    """Left the time, with the ideal dashed; right the efficiency."""
    plt = pyplot()
    nodes = [size.nodes for size in sizes]
    first = sizes[0]
    ideal = [first.time * first.nodes / count if strong else first.time for count in nodes]
    with plt.rc_context(STYLE):
        figure, (left, right) = plt.subplots(1, 2, figsize=(8.5, 3.2))
        left.loglog(nodes, [size.time * 1e3 for size in sizes], "o-", color=COLOURS[0], label="simulated")
        left.loglog(nodes, [time * 1e3 for time in ideal], "--", color=COLOURS[-1], label="ideal")
        left.set(xlabel="nodes", ylabel="time in ms", title=title)
        left.legend()
        right.semilogx(nodes, [size.efficiency * 100 for size in sizes], "o-", color=COLOURS[1])
        right.set(xlabel="nodes", ylabel="efficiency in %", title="strong scaling" if strong else "weak scaling")
        right.set_ylim(0, 105)
        for axis in (left, right):
            axis.set_xticks(nodes, [str(count) for count in nodes])
            axis.minorticks_off()
        times = [time * 1e3 for time in (*ideal, *(size.time for size in sizes))]
        ticks = decade_ticks(min(times), max(times))
        left.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        figure.tight_layout()
    return figure


def decade_ticks(low: float, high: float) -> list[float]:
    """1, 2 and 5 times powers of ten, from the last below `low` to the first above `high`."""
    steps = [digit * 10.0**power for power in range(floor(log10(low)), floor(log10(high)) + 2) for digit in (1, 2, 5)]
    first = max(index for index, step in enumerate(steps) if step <= low)
    last = min(index for index, step in enumerate(steps) if step >= high)
    return steps[first : last + 1]
