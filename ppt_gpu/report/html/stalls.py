"""Where warps spend their time: the CPI stack, and what each of its parts means."""

from __future__ import annotations

from collections.abc import Sequence

from ppt_gpu.report.html.palette import stall
from ppt_gpu.report.html.svg import Frame, picture
from ppt_gpu.report.html.tags import Markup, join, table, tag
from ppt_gpu.report.result.result import LaunchResult
from ppt_gpu.report.result.stall_reasons import meaning
from ppt_gpu.report.text.numbers import value_of

STACK = Frame(1000, 34)


def cpi(launch: LaunchResult) -> float:
    """Cycles that a resident warp takes for an instruction, on average."""
    return int(launch.extra["warp_cycles"]) / max(value_of(launch, "sim.warp_instructions"), 1.0)


def stalls(launch: LaunchResult) -> Markup:
    """The stack as a bar and as a table."""
    whole = cpi(launch)
    shares = [(reason, share) for reason, share in sorted(launch.stalls, key=lambda item: -item[1]) if share > 0.0005]
    rows: list[tuple[str, ...]] = [
        (join(swatch(reason), reason), f"{share:.1%}", f"{share * whole:.3g}", meaning(reason))
        for reason, share in shares
    ]
    heads = (("reason", "nowrap"), ("share", "right"), ("cycles", "right"), ("the warp", "wide"))
    caption = f"A resident warp takes {whole:.3g} cycles for an instruction, on average; this is how it spends them."
    return join(_bar(shares, whole), table(heads, rows, caption=caption, class_="told"))


def swatch(reason: str) -> Markup:
    """A square in the reason's colour."""
    return tag("span", class_="swatch", style=f"background:{stall(reason)}", aria_hidden="true")


def _bar(shares: Sequence[tuple[str, float]], whole: float) -> Markup:
    drawn, at = [], 0.0
    for reason, share in shares:
        width = share * STACK.width
        drawn.append(rectangle(at, 0, max(width - 1.5, 0.5), 34, reason, f"{reason}: {share:.1%}"))
        at += width
    title = f"CPI stack of {whole:.3g} cycles per instruction: " + ", ".join(
        f"{reason} {share:.0%}" for reason, share in shares[:5]
    )
    return tag("figure", picture(STACK, title, *drawn, stretched=True), class_="stack")


def rectangle(x: float, y: float, width: float, height: float, reason: str, title: str) -> Markup:
    return tag("rect", tag("title", title), x=x, y=y, width=width, height=height, style=f"fill:{stall(reason)}")
