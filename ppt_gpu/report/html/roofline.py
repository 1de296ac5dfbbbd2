"""The roofline with the kernel on it: one roof and one mark for each level of memory."""

from __future__ import annotations

import math

from ppt_gpu.common.units import format_bytes, format_rate
from ppt_gpu.report.html.svg import Frame, Scale, line, path, picture, text
from ppt_gpu.report.html.tags import Markup, join, number, table, tag
from ppt_gpu.report.result.detail import Level, Roofs
from ppt_gpu.report.text.numbers import percent

FRAME = Frame(470, 330, left=62, bottom=44)
SHAPES = {"L1": "triangle", "L2": "square", "DRAM": "circle"}


def roofline(roofs: Roofs) -> Markup:
    """The picture and its numbers; of a kernel without floating-point operations, what the levels moved."""
    caption = "One mark for each level that the kernel used: circle DRAM, square L2, triangle L1."
    if not (roofs.flops and roofs.used):
        why = "no floating-point operation" if not roofs.flops else "no traffic"
        return join(tag("p", f"No roofline: the kernel has {why}.", class_="note"), _levels(roofs))
    figure = tag("figure", _picture(roofs), tag("figcaption", caption))
    return tag("div", figure, _levels(roofs), class_="pair")


def _picture(roofs: Roofs) -> Markup:
    used = roofs.used
    intensities = [roofs.flops / level.bytes for level in used]
    ridges = [roofs.peak / level.bandwidth for level in used]
    x = FRAME.across(min(*intensities, *ridges) / 4, max(*intensities, *ridges) * 4, log=True)
    lowest = min([roofs.achieved, *(level.bandwidth * x.low for level in used)])
    y = FRAME.up(max(lowest, roofs.peak * 1e-7) / 2, roofs.peak * 2.5, log=True)
    names = ("arithmetic intensity in FLOP/B", "FLOP/s")
    drawn = [FRAME.axes(x, y, names, (lambda v: f"{v:g}", lambda v: format_rate(v, "")))]
    drawn.append(line(x(min(ridges)), y(roofs.peak), x(x.high), y(roofs.peak), "roof"))
    peak = f"peak {roofs.kind}: {format_rate(roofs.peak, 'FLOP/s')}"
    drawn.append(text(x(x.high), y(roofs.peak) - 6, peak, None, "end"))
    lowest_roof = min(used, key=lambda level: level.bandwidth)
    drawn += [_roof(level, roofs, x, y, 13 if level is lowest_roof else -5) for level in used]
    drawn += [_mark(level, roofs, x, y) for level in used]
    title = (
        f"Roofline: {format_rate(roofs.achieved, 'FLOP/s')} achieved of a peak of "
        f"{format_rate(roofs.peak, 'FLOP/s')}, at "
        + ", ".join(f"{flops:.3g} FLOP/B of {level.name}" for flops, level in zip(intensities, used, strict=True))
    )
    return picture(FRAME, title, *drawn)


def _roof(level: Level, roofs: Roofs, x: Scale, y: Scale, off: float) -> Markup:
    """The slope of a level, with its name along it, `off` px below it."""
    low = max(x.low, y.low / level.bandwidth)
    ridge = roofs.peak / level.bandwidth
    start, end = (x(low), y(level.roof(low))), (x(ridge), y(roofs.peak))
    share = 0.04
    at = (start[0] + share * (end[0] - start[0]), start[1] + share * (end[1] - start[1]) + off)
    angle = 0.0 if end[0] == start[0] else _angle(start, end)
    label = f"{level.name} {format_rate(level.bandwidth)}"
    turned = f"rotate({number(angle)} {number(at[0])} {number(at[1])})"
    return join(path([start, end], "roof"), text(*at, label, None, None, turned))


def _angle(start: tuple[float, float], end: tuple[float, float]) -> float:
    return math.degrees(math.atan2(end[1] - start[1], end[0] - start[0]))


def _mark(level: Level, roofs: Roofs, x: Scale, y: Scale) -> Markup:
    intensity = roofs.flops / level.bytes
    at, height = x(intensity), y(roofs.achieved)
    roof = min(roofs.peak, level.roof(intensity))
    rates = f"{format_rate(roofs.achieved, 'FLOP/s')} of {format_rate(roof, 'FLOP/s')}"
    name = f"{level.name}: {rates} at {intensity:.3g} FLOP/B"
    guide = line(at, height, at, y(roof), "guide")
    shape = {
        "circle": tag("circle", tag("title", name), cx=at, cy=height, r=6, class_="here"),
        "square": tag("rect", tag("title", name), x=at - 5.5, y=height - 5.5, width=11, height=11, class_="here"),
        "triangle": tag(
            "path",
            tag("title", name),
            d=f"M{number(at)} {number(height - 7)}l7 12h-14z",
            class_="here",
        ),
    }
    return join(guide, shape[SHAPES[level.name]])


def _levels(roofs: Roofs) -> Markup:
    rows: list[tuple[str, ...]] = []
    for level in roofs.levels:
        rate = level.bytes / roofs.seconds if roofs.seconds else 0.0
        used = percent(rate / level.bandwidth) if level.bandwidth else ""
        intensity = f"{roofs.flops / level.bytes:.3g} FLOP/B" if level.bytes and roofs.flops else ""
        rows.append((level.name, format_bytes(level.bytes), format_rate(rate), used, intensity))
    heads = (("level", ""), ("traffic", "right"), ("rate", "right"), ("of peak", "right"), ("intensity", "right"))
    return table(heads, rows, caption="Whole launch, all SMs.")
