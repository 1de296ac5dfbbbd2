"""The report as one HTML page that needs nothing else: styles, pictures and script stand in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from ppt_gpu.common.errors import PptError
from ppt_gpu.common.units import format_time
from ppt_gpu.ptx.linking.mangling import short_name
from ppt_gpu.report.html.memory import memory
from ppt_gpu.report.html.occupancy import occupancy
from ppt_gpu.report.html.palette import variables
from ppt_gpu.report.html.provenance import made
from ppt_gpu.report.html.roofline import roofline
from ppt_gpu.report.html.source import pipes, source
from ppt_gpu.report.html.stalls import stalls
from ppt_gpu.report.html.tags import Markup, join, table, tag
from ppt_gpu.report.html.verdict import facts, head, key_figures, speed_of_light
from ppt_gpu.report.html.warps import warps
from ppt_gpu.report.result.detail import Detail
from ppt_gpu.report.result.result import LaunchResult, Result, Suggestion

#: launches with sections of their own: those that take longest
LAUNCHES = 8
SUFFIXES = (".html", ".htm")
HERE = Path(__file__).parent
NOTHING = "None of the changes that were simulated makes it faster by 2 % or more."


def advice(suggestions: Sequence[Suggestion]) -> Markup:
    """The suggestions, the best first."""
    if not suggestions:
        return tag("p", NOTHING)
    heads = (("gain", "nowrap"), ("time", "right"), ("by", "wide"))
    rows = [(f"{one.gain:.2f}x", format_time(one.time), _by(one)) for one in suggestions]
    return table(heads, rows, caption="Each of these changes was simulated.", class_="told")


def _by(one: Suggestion) -> str:
    return f"{one.text} ({one.remark})" if one.remark else one.text


def check_target(path: str) -> None:
    """Raises PptError for a file name with another ending."""
    if Path(path).suffix not in SUFFIXES:
        raise PptError(
            f"--html {path}: unknown kind of file", hint=f"expected a name ending in {' or '.join(SUFFIXES)}"
        )


def to_html(result: Result) -> str:
    """The page: a pure function of the result, without the time that the prediction took."""
    shown = _shown(result)
    links = [("verdict", "Verdict")]
    if len(result.spans) > 1:
        links.append(("application", "Application"))
    parts = []
    if result.advice is not None:
        links.append(("advice", "Advice"))
        parts.append(_section("h2", "advice", "Advice", advice(result.advice)))
    for number, launch in shown:
        sections = _sections(launch, number, len(shown) > 1)
        links += [(anchor, title) for anchor, title, _ in sections] if len(shown) == 1 else [
            (f"launch{number}", short_name(launch.kernel))
        ]  # fmt: skip
        if len(shown) > 1:
            parts.append(tag("h2", f"Launch {number + 1}: {short_name(launch.kernel)}", id=f"launch{number}"))
            parts.append(key_figures(launch))
        parts.append(facts(launch))
        level = "h3" if len(shown) > 1 else "h2"
        parts += [_section(level, anchor, title, content) for anchor, title, content in sections]
    left = len(result.launches) - len(shown)
    if left:
        parts.append(tag("p", f"{left} more launches take less time and are not shown.", class_="note"))
    body = tag("main", tag("div", head(result), id="verdict"), *parts, id="content")
    return _page(result, join(_top(links), body))


def _section(level: str, anchor: str, title: str, content: Markup) -> Markup:
    return tag("section", tag(level, title, id=anchor), tag("div", content, class_="card"))


def _shown(result: Result) -> list[tuple[int, LaunchResult]]:
    """The launches that take longest, with their numbers, in order."""

    def whole(item: tuple[int, LaunchResult]) -> float:
        return -float(item[1].value("kernel.time")) * int(item[1].extra.get("repeat", 1))

    return sorted(sorted(enumerate(result.launches), key=whole)[:LAUNCHES])


def _sections(launch: LaunchResult, number: int, several: bool) -> list[tuple[str, str, Markup]]:
    """(id, title, content)."""
    prefix = f"launch{number}-" if several else ""
    found: list[tuple[str, str, Callable[[], Markup]]] = [("bounds", "Speed of light", lambda: speed_of_light(launch))]
    detail, recording = launch.detail, launch.recording
    found.append(("stalls", "Stall reasons", lambda: stalls(launch)))
    if detail is not None:
        found += _drawn(launch, detail, prefix)
    if recording is not None:
        found.append(("warps", "Warps over time", lambda: warps(recording, f"{prefix}timeline")))
    if detail is not None:
        found.append(("made", "How this number was made", lambda: made(launch, detail)))
    return [(prefix + anchor, title, content()) for anchor, title, content in found]


def _drawn(launch: LaunchResult, detail: Detail, prefix: str) -> list[tuple[str, str, Callable[[], Markup]]]:
    return [
        ("roofline", "Roofline", lambda: roofline(detail.roofs)),
        ("memory", "Memory", lambda: memory(launch, detail)),
        ("occupancy", "Occupancy", lambda: occupancy(launch, detail)),
        ("source", "Source", lambda: source(launch, detail, f"{prefix}line")),
        ("pipes", "Pipes", lambda: pipes(detail)),
    ]


def _top(links: list[tuple[str, str]]) -> Markup:
    """What stays at the top: links to the sections, and the choice of the theme where scripts run."""
    items = (tag("li", tag("a", title, href=f"#{anchor}")) for anchor, title in links)
    button = tag("button", "Dark", id="theme", type="button", hidden=True)
    bar = tag("div", tag("nav", tag("ul", *items), aria_label="Sections"), button)
    return join(tag("a", "To the report", href="#content", class_="skip"), tag("header", bar, class_="top"))


def _page(result: Result, body: Markup) -> str:
    title = f"{result.workload} on {result.gpu}: {format_time(result.time)}"
    icon = "data:,"  # none, so that browsers ask for none
    document = tag(
        "html",
        tag(
            "head",
            tag("meta", charset="utf-8"),
            tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
            tag("meta", name="color-scheme", content="light dark"),
            tag("link", rel="icon", href=icon),
            tag("title", title),
            tag("style", Markup(_style())),
        ),
        tag("body", body, _foot(result), tag("script", Markup((HERE / "page.js").read_text(encoding="utf-8")))),
        lang="en",
    )
    return f"<!DOCTYPE html>\n{document}\n"


def _style() -> str:
    """The colours of both themes, by the system's choice or the reader's, and the rules."""
    dark = variables(1)
    colours = (
        f":root{{color-scheme:light;{variables(0)}}}\n"
        f"@media (prefers-color-scheme:dark){{:root:not([data-theme=light]){{color-scheme:dark;{dark}}}}}\n"
        f":root[data-theme=dark]{{color-scheme:dark;{dark}}}\n"
    )
    return colours + (HERE / "page.css").read_text(encoding="utf-8")


def _foot(result: Result) -> Markup:
    text = f"Predicted by ppt_gpu without a GPU, at level {result.level}. Times are simulated, not measured."
    return tag("footer", text)
