"""The source with its hot spots: what each line costs, why warps wait there, and which pipes it occupies."""

from __future__ import annotations

from collections.abc import Sequence

from ppt_gpu.common.units import format_count
from ppt_gpu.report.html.stalls import rectangle
from ppt_gpu.report.html.tags import Markup, bar, join, scroller, table, tag
from ppt_gpu.report.result.detail import Detail, SourceLine, pressures
from ppt_gpu.report.result.result import LaunchResult
from ppt_gpu.report.text.numbers import percent
from ppt_gpu.sm.program.result import STALL_REASONS

HOTTEST = 5
WIDTH = 100.0  # of a stripe
TOP_PIPES = 12


def source(launch: LaunchResult, detail: Detail, prefix: str) -> Markup:
    """Links to the hottest lines, the source, and the use of the pipes. `prefix`: of the ids of lines."""
    whole = sum(line.warp_cycles for line in detail.source) or 1
    most = max((line.warp_cycles for line in detail.source), default=0) or 1
    hottest = sorted((line for line in detail.source if line.issued), key=lambda line: -line.warp_cycles)[:HOTTEST]
    links = join(*(join(Markup(", ") if i else Markup(), _jump(line, whole, prefix)) for i, line in enumerate(hottest)))
    heads = ("line", "cycles", "why", "issued", "source")
    classes = ("right", "right", "stripe", "right issued", None)
    head = tag("tr", *(tag("th", h, scope="col", class_=c) for h, c in zip(heads, classes, strict=True)))
    rows = (_row(line, whole, most, prefix) for line in detail.source)
    code = tag("table", tag("thead", head), tag("tbody", *rows), class_="source")
    title = f"Source of {launch.kernel}, with warp cycles, stall reasons and issues of each line"
    words = (
        "Warp cycles are those that resident warps spend until they have issued the line. The stripe is as long as the "
        "line is hot; its colours are the stall reasons."
    )
    return join(tag("p", "Hottest lines: ", links, "."), tag("p", words, class_="note"), scroller(code, title, "code"))


def _jump(line: SourceLine, whole: int, prefix: str) -> Markup:
    return tag("a", f"{line.line} ({percent(line.warp_cycles / whole)})", href=f"#{prefix}{line.line}")


def _row(line: SourceLine, whole: int, most: int, prefix: str) -> Markup:
    number, text = tag("th", str(line.line), scope="row", class_="right"), tag("td", line.text.expandtabs(4))
    if not line.issued:
        return tag("tr", number, tag("td"), tag("td"), tag("td", class_="issued"), text, class_="idle")
    return tag(
        "tr",
        number,
        tag("td", f"{line.warp_cycles / whole:.1%}", class_="right"),
        tag("td", _stripe(line, most), class_="stripe"),
        tag("td", format_count(line.issued), class_="right issued"),
        text,
        id=f"{prefix}{line.line}",
    )


def _stripe(line: SourceLine, most: int) -> Markup:
    """The stall reasons of a line, as long as it is hot."""
    parts = sorted(((n, reason) for n, reason in zip(line.stalls, STALL_REASONS, strict=True) if n), reverse=True)
    total = line.warp_cycles or 1
    told = ", ".join(f"{reason} {n / total:.0%}" for n, reason in parts[:4])
    told = told or "no warp cycles"  # it issued beside another instruction
    drawn, at = [], 0.0
    for n, reason in parts:
        width = WIDTH * n / most
        if width >= 0.3:
            drawn.append(rectangle(at, 0, width, 10, reason, f"{reason}: {n / total:.0%}"))
        at += width
    return tag("svg", tag("title", told), *drawn, viewBox=f"0 0 {WIDTH:g} 10", preserveAspectRatio="none", role="img",
               aria_label=told)  # fmt: skip


def pipes(detail: Detail) -> Markup:
    """How busy each pipe is, and which lines keep it so."""
    rows: list[tuple[str, ...]] = []
    for pipe in detail.pipes:
        share = pipe.share(detail.sm_cycles)
        rows.append((pipe.name, str(pipe.units), percent(share), bar(share, "bar full" if share >= 0.75 else "bar")))
    heads = (("pipe", ""), ("units", "right"), ("busy", "right"), ("", "bars"))
    busy = table(heads, rows, caption="Share of the unit cycles in which units are busy, while the SM has blocks.")
    return join(busy, _pressure(detail))


def _pressure(detail: Detail) -> Markup:
    """Lines by the pipes that they occupy, hottest first."""
    found = pressures(detail)
    used = [index for index, pipe in enumerate(detail.pipes) if pipe.busy]
    top = sorted(found, key=lambda row: -max(row.shares, default=0.0))[:TOP_PIPES]
    if not top or not used:
        return Markup()
    heads = (("line", "right"), *((detail.pipes[i].name, "right") for i in used), ("source", "nowrap"))
    rows = [(str(row.line), *_cells(row.shares, used), " ".join(row.text.split())) for row in top]
    caption = "The lines that press most on a pipe: share of its unit cycles."
    return tag("details", tag("summary", "Pressure of lines on pipes"), table(heads, rows, caption=caption))


def _cells(shares: Sequence[float], used: Sequence[int]) -> list[str]:
    return [f"{shares[index]:.1%}" if shares[index] else "" for index in used]
