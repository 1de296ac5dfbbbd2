"""How the number was made, and how sure it is; and every metric with its definition."""

from __future__ import annotations

from ppt_gpu.common.units import format_count
from ppt_gpu.report.html.tags import Markup, join, table, tag
from ppt_gpu.report.result.detail import Detail
from ppt_gpu.report.result.result import LaunchResult
from ppt_gpu.report.text.numbers import metric_text, value_of, value_text

#: measurements of the host, which differ from run to run
HOST = ("sim.wall",)


def made(launch: LaunchResult, detail: Detail) -> Markup:
    """What was simulated, what follows from it, and what is not known."""
    terms = tag(
        "dl",
        *(join(tag("dt", name), tag("dd", value)) for name, value in sureness(launch, detail)),
        class_="made",
    )
    lines = [tag("li", text) for text in launch.assumptions]
    lines += [tag("li", f"Warning: {text}", class_="warning") for text in launch.warnings]
    closed = [tag("li", text) for text in launch.analysis]
    return join(
        terms,
        tag("h3", "Assumptions"),
        tag("ul", *lines, class_="made"),
        tag("details", tag("summary", "Roofline and Little's law with numbers"), tag("ul", *closed, class_="analysis")),
        tag("details", tag("summary", "All metrics"), metrics(launch)),
    )


def sureness(launch: LaunchResult, detail: Detail) -> list[tuple[str, str]]:
    """Where errors may come from, and how large they are where that is known."""
    blocks, whole = value_of(launch, "sim.blocks"), value_of(launch, "grid.blocks")
    simulated = (
        f"{format_count(blocks)} of {format_count(whole)} blocks, {metric_text(launch, 'sim.warp_instructions')}"
    )
    found = [("Simulated", f"{simulated}, on one SM, event by event")]
    if detail.exact:
        found.append(("Extrapolation", "none: all blocks of the busiest SM were simulated"))
    else:
        error = float(launch.extra.get("extrapolation_error", 0.0))
        steady = f", mean wave known to {detail.convergence:.1%}" if detail.convergence else ""
        found.append(
            ("Extrapolation", f"by {value_of(launch, 'sim.extrapolation'):.3g}{steady}; estimated error {error:.1%}")
        )
    if any(item.tag == "blocks.surveyed" for item in launch.metrics):
        surveyed, varied = metric_text(launch, "blocks.surveyed"), metric_text(launch, "blocks.variation")
        error_of = metric_text(launch, "blocks.sampling_error")
        found.append(("Blocks looked at", f"{surveyed}; their work varies by {varied}, sampling error {error_of}"))
    top = max(launch.bounds, key=lambda bound: bound.cycles, default=None)
    cycles = value_of(launch, "kernel.cycles")
    if top is not None and cycles:
        found.append(("No run is faster than", f"{format_count(top.cycles)} cycles ({top.resource})"))
    rest = "what the model of the GPU leaves out; ppt-gpu validate holds it against measured and simulated times"
    found.append(("Not in these errors", rest))
    if launch.extra.get("expected_error"):
        found.append(("Expected error", str(launch.extra["expected_error"])))
    return found


def metrics(launch: LaunchResult) -> Markup:
    rows: list[tuple[str, ...]] = [
        (item.tag, value_text(item), item.name, item.definition, item.source)
        for item in launch.metrics
        if item.tag not in HOST
    ]
    heads = (("tag", "nowrap"), ("value", "right"), ("name", ""), ("definition", "wide"), ("source", ""))
    return table(heads, rows, caption="Every number of this launch, with its definition and source.")
