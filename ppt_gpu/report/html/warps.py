"""The timeline of a few warps: one row a warp, one pixel a cycle, one colour a stall reason."""

from __future__ import annotations

import numpy as np

from ppt_gpu.report.html.palette import stall
from ppt_gpu.report.html.stalls import swatch
from ppt_gpu.report.html.svg import Frame, line, picture, text
from ppt_gpu.report.html.tags import Markup, join, number, scroller, table, tag
from ppt_gpu.report.timeline.timeline import window_text
from ppt_gpu.sm.program.result import STALL_REASONS
from ppt_gpu.sm.reference.recording import Recording

#: warps drawn: those of the lowest slots
WARPS = 12
ROW, GAP, LEFT, TOP = 15, 4, 66, 22


def warps(recording: Recording, figure: str) -> Markup:
    """The picture in a frame that scrolls, buttons that pick out reasons, and the shares as a table."""
    slots = np.unique(recording.spans[:, 0]).tolist()[:WARPS]
    spans = recording.spans[np.isin(recording.spans[:, 0], slots)]
    reasons = sorted({int(reason) for reason in spans[:, 5]}, key=lambda r: -int(spans[spans[:, 5] == r, 4].sum()))
    label = f"Timeline of {len(slots)} warps"
    drawn = tag("div", scroller(_picture(recording, spans, slots, label), label), id=figure, class_="warps")
    words = f"One pixel is one cycle: {window_text(recording)}."
    return join(tag("p", words, class_="note"), drawn, _legend(reasons, figure), _shares(spans, slots, reasons))


def _picture(recording: Recording, spans: np.ndarray, slots: list[int], label: str) -> Markup:
    cycles = recording.end - recording.first
    frame = Frame(LEFT + cycles + 30, TOP + len(slots) * (ROW + GAP) + 4)
    drawn = []
    for at in range(recording.first - recording.first % 100, recording.end, 100):
        if at >= recording.first:
            x = LEFT + at - recording.first
            drawn += [line(x, TOP - 6, x, frame.height, "grid"), text(x + 3, 12, f"{at:,}", "axis")]
    rows = {slot: TOP + index * (ROW + GAP) for index, slot in enumerate(slots)}
    drawn += [text(0, y + 12, f"warp {slot}", "axis") for slot, y in rows.items()]
    for reason in np.unique(spans[:, 5]).tolist():
        drawn.append(_paths(reason, spans[spans[:, 5] == reason], rows, recording.first))
    return picture(frame, f"{label}: cycles {recording.first:,} to {recording.end:,} of one SM", *drawn)


def _paths(reason: int, spans: np.ndarray, rows: dict[int, int], first: int) -> Markup:
    """All spans of one reason, as one path."""
    name = STALL_REASONS[reason]
    pieces = [
        f"M{number(LEFT + start - first)} {rows[slot]}h{length}v{ROW}h-{length}z"
        for slot, _, _, start, length, _ in spans.tolist()
    ]
    return tag("path", tag("title", name), d="".join(pieces), style=f"fill:{stall(name)}", data_reason=name)


def _legend(reasons: list[int], figure: str) -> Markup:
    """Buttons, where scripts run; the names stand in the table below, too."""
    items = (
        tag("li", tag("button", swatch(name), name, type="button", aria_pressed="false", data_reason=name))
        for name in (STALL_REASONS[reason] for reason in reasons)
    )
    return tag("ul", *items, class_="legend", data_filter=figure, hidden=True, aria_label="Pick out stall reasons")


def _shares(spans: np.ndarray, slots: list[int], reasons: list[int]) -> Markup:
    rows: list[tuple[str, ...]] = []
    for slot in slots:
        own = spans[spans[:, 0] == slot]
        whole = int(own[:, 4].sum()) or 1
        shares = (int(own[own[:, 5] == reason, 4].sum()) / whole for reason in reasons)
        rows.append((f"warp {slot}", *(f"{share:.0%}" if share else "" for share in shares)))
    heads = (("", "nowrap"), *((join(swatch(STALL_REASONS[r]), STALL_REASONS[r]), "right") for r in reasons))
    caption = "Share of the cycles of the window that each warp spent."
    return tag("details", tag("summary", "The same as a table"), table(heads, rows, caption=caption))
