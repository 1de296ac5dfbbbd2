"""The head of the page, and of each launch: how long, what limits it, how far that is from what the GPU can do."""

from __future__ import annotations

from ppt_gpu.common.units import format_count, format_frequency, format_rate, format_time
from ppt_gpu.ptx.linking.mangling import short_name
from ppt_gpu.report.html.tags import Markup, bar, join, table, tag
from ppt_gpu.report.result.result import LaunchResult, Result
from ppt_gpu.report.text.numbers import metric_text, percent, value_of


def head(result: Result) -> Markup:
    """Title, verdict and key figures of the longest launch."""
    main = result.main
    return join(
        tag("h1", f"{result.workload} on {result.gpu}: {format_time(result.time)}"),
        tag("p", "Limited by ", tag("strong", str(main.value("limiter"))), ".", class_="verdict"),
        tag("p", f"Of the longest launch, {short_name(main.kernel)}:") if len(result.launches) > 1 else Markup(),
        key_figures(main),
        application(result) if len(result.spans) > 1 else Markup(),
    )


def facts(launch: LaunchResult) -> Markup:
    """Which kernel, on which grid, and how its time comes about."""
    grid, block = ("x".join(str(size) for size in launch.extra[key]) for key in ("grid", "block"))
    cycles, clock = value_of(launch, "kernel.cycles"), value_of(launch, "gpu.clock")
    return tag(
        "p",
        tag("strong", short_name(launch.kernel)),
        f", {grid} blocks of {block} threads: {format_count(cycles)} cycles at {format_frequency(clock)}, "
        f"and {metric_text(launch, 'kernel.launch_overhead')} to launch.",
    )


def key_figures(launch: LaunchResult) -> Markup:
    """A few numbers that say most."""
    cycles = value_of(launch, "kernel.cycles")
    top = max(launch.bounds, key=lambda bound: bound.cycles, default=None)
    figures = [("Kernel time", metric_text(launch, "kernel.time"), f"{format_count(cycles)} cycles")]
    if top is not None and cycles:
        figures.append(("Speed of light", percent(top.cycles / cycles), top.resource))
    if value_of(launch, "roofline.flops"):
        attainable = format_rate(value_of(launch, "roofline.attainable"), "FLOP/s")
        figures.append(("Arithmetic", metric_text(launch, "roofline.achieved"), f"of {attainable} attainable"))
    moved = metric_text(launch, "memory.dram_throughput")
    figures.append(("DRAM", moved, f"L2 hit rate {metric_text(launch, 'memory.l2_hit_rate')}"))
    warps = launch.value("occupancy.warps_per_sm")
    figures.append(("Occupancy", percent(value_of(launch, "occupancy.fraction")), f"{warps} warps per SM"))
    figures.append(("Issued", f"{value_of(launch, 'sm.ipc'):.3g} per cycle", "warp instructions of one SM"))
    items = (
        tag("li", tag("span", name, class_="name"), tag("strong", value), tag("span", more, class_="note"))
        for name, value, more in figures
    )
    return tag("ul", *items, class_="figures")


def application(result: Result) -> Markup:
    """Copies and launches in the order in which they run."""
    rows = []
    for part in result.spans:
        name = short_name(part.name) if part.launch >= 0 else part.name
        repeat = int(result.launches[part.launch].extra.get("repeat", 1)) if part.launch >= 0 else 1
        length = part.end - part.start
        share = length / result.time if result.time else 0.0
        times = f", {format_count(repeat)} times" if repeat > 1 else ""
        rows.append((name + times, format_time(part.start), format_time(length), percent(share), bar(share)))
    heads = (("step", ""), ("begins at", "right"), ("takes", "right"), ("share", "right"), ("", "bars"))
    found = table(heads, rows, caption="Copies and launches in order; launch overhead that nothing hides lies between.")
    return tag("section", tag("h2", "Application", id="application"), tag("div", found, class_="card"))


def speed_of_light(launch: LaunchResult) -> Markup:
    """Every bound: no run can be faster, whatever else happens."""
    cycles = value_of(launch, "kernel.cycles")
    rows = []
    for bound in sorted(launch.bounds, key=lambda bound: -bound.cycles):
        share = bound.cycles / cycles if cycles else 0.0
        least = f"{format_count(bound.cycles)} cycles"
        full = "bar full" if share >= 0.75 else "bar"
        rows.append((bound.resource, percent(share), bar(share, full), least, bound.equation, bound.terms))
    heads = (("resource", "nowrap"), ("used", "right"), ("", "bars"), ("at least", "right"), ("equation", "wide"),
             ("with numbers", "wide"))  # fmt: skip
    return table(heads, rows, caption="What each resource needs at least, and so how much of it the kernel uses.")
