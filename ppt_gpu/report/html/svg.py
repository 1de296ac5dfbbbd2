"""Drawing in SVG: scales, axes with ticks, and a picture with a title for those who cannot see it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ppt_gpu.report.html.tags import Markup, join, number, tag


@dataclass(frozen=True)
class Scale:
    """From values to coordinates."""

    low: float
    high: float
    start: float  # coordinate of `low`
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """The coordinate of `value`, of one outside at the edge."""
        inside = max(self.low, min(value, self.high))
        share = (self._at(inside) - self._at(self.low)) / ((self._at(self.high) - self._at(self.low)) or 1.0)
        return self.start + share * (self.end - self.start)

    def _at(self, value: float) -> float:
        return math.log10(value) if self.log else value

    def ticks(self, count: int = 6) -> list[float]:
        """Round values: powers of ten, or steps of 1, 2 or 5 times one."""
        if self.log:
            first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
            step = max(1, -(-(last - first) // count))
            return [10.0**power for power in range(first, last + 1, step)]
        rough = (self.high - self.low) / max(count, 1) or 1.0
        unit = 10.0 ** math.floor(math.log10(rough))
        size = next((factor * unit for factor in (1.0, 2.0, 5.0) if factor * unit >= rough * 0.999), 10 * unit)
        return [index * size for index in range(math.ceil(self.low / size), math.floor(self.high / size + 1e-9) + 1)]


@dataclass(frozen=True)
class Frame:
    """A drawing of `width` x `height` with room for the labels of both axes."""

    width: float
    height: float
    left: float = 56
    right: float = 14
    top: float = 12
    bottom: float = 42

    def across(self, low: float, high: float, log: bool = False) -> Scale:
        return Scale(low, high, self.left, self.width - self.right, log)

    def up(self, low: float, high: float, log: bool = False) -> Scale:
        return Scale(low, high, self.height - self.bottom, self.top, log)

    def axes(
        self,
        x: Scale,
        y: Scale,
        names: tuple[str, str],
        texts: tuple[Callable[[float], str], Callable[[float], str]],
        x_ticks: Sequence[float] | None = None,
    ) -> Markup:
        """Grid lines, ticks with their `texts`, and the names of the axes."""
        floor, parts = self.height - self.bottom, []
        for value in x.ticks() if x_ticks is None else x_ticks:
            at = x(value)
            parts.append(line(at, self.top, at, floor, "grid"))
            parts.append(text(at, floor + 15, texts[0](value), "axis", "middle"))
        for value in y.ticks(5):
            at = y(value)
            parts.append(line(self.left, at, self.width - self.right, at, "grid"))
            parts.append(text(self.left - 6, at + 4, texts[1](value), "axis", "end"))
        middle = (self.left + self.width - self.right) / 2
        parts.append(text(middle, self.height - 6, names[0], "axis", "middle"))
        turned = f"rotate(-90 12 {number((self.top + floor) / 2)})"
        parts.append(text(12, (self.top + floor) / 2, names[1], "axis", "middle", turned))
        return join(*parts)


def picture(frame: Frame, title: str, *content: Markup, stretched: bool = False) -> Markup:
    """The drawing; `title` says what it shows. `stretched`: its width and height are those that the style gives it."""
    return tag(
        "svg", tag("title", title), *content,
        viewBox=f"0 0 {number(frame.width)} {number(frame.height)}", width=frame.width, height=frame.height,
        role="img", aria_label=title, preserveAspectRatio="none" if stretched else None,
    )  # fmt: skip


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Markup:
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def text(
    x: float, y: float, content: str, class_: str | None = None, anchor: str | None = None, transform: str | None = None
) -> Markup:
    return tag("text", content, x=x, y=y, class_=class_, text_anchor=anchor, transform=transform)


def path(points: Sequence[tuple[float, float]], class_: str) -> Markup:
    """A line through `points`."""
    return tag("path", d="M" + "L".join(f"{number(x)} {number(y)}" for x, y in points), class_=class_)


def steps(points: Sequence[tuple[float, float]], end: float, class_: str) -> Markup:
    """A staircase: each point's level up to the next point, the last one's to `end`."""
    x, y = points[0]
    drawn = f"M{number(x)} {number(y)}"
    for x, y in points[1:]:
        drawn += f"H{number(x)}V{number(y)}"
    return tag("path", d=f"{drawn}H{number(end)}", class_=class_)
