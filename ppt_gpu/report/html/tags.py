"""HTML and SVG elements from Python: text is escaped unless it is markup already."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

#: elements without content, which HTML does not close
VOID = frozenset(("br", "hr", "input", "link", "meta"))


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def tag(name: str, /, *children: str, **attributes: str | float | bool | None) -> Markup:
    """An element. `class_` is class, `aria_label` aria-label; True: no value; None, False: no attribute."""
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in VOID:
        return Markup(f"<{name}{written}>")
    return Markup(f"<{name}{written}>{join(*children)}</{name}>")


def join(*children: str) -> Markup:
    """Children one after another."""
    return Markup("".join(child if isinstance(child, Markup) else escape(child, quote=False) for child in children))


def _attribute(key: str, value: str | float | bool | None) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    if value is True:
        return f" {name}"
    text = value if isinstance(value, str) else number(value)
    return f' {name}="{escape(text)}"'


def number(value: float) -> str:
    """A coordinate: two decimals at most."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def table(
    heads: Sequence[tuple[str, str]], rows: Sequence[tuple[str, ...]], *, caption: str, class_: str = ""
) -> Markup:
    """A table in a frame that scrolls: `heads` as (name, class of the column); the first cell of a row names it."""
    head = tag("tr", *(tag("th", name, scope="col", class_=kind or None) for name, kind in heads))
    body = []
    for row in rows:
        first = tag("th", row[0], scope="row", class_=heads[0][1] or None)
        rest = (tag("td", cell, class_=kind or None) for cell, (_, kind) in zip(row[1:], heads[1:], strict=True))
        body.append(tag("tr", first, *rest))
    whole = tag(
        "table", tag("caption", tag("span", caption)), tag("thead", head), tag("tbody", *body), class_=class_ or None
    )
    return scroller(whole, caption)


def scroller(content: Markup, label: str, class_: str = "scroll") -> Markup:
    """Content that may be wider than the page: it scrolls in a frame, by keyboard too."""
    return tag("div", content, class_=class_, role="region", aria_label=label, tabindex="0")


def bar(share: float, class_: str = "bar") -> Markup:
    """A bar of `share` of its frame; the number stands beside it, so screen readers pass over it."""
    width = 100 * max(0.0, min(share, 1.0))
    return tag("span", tag("span", style=f"width:{number(width)}%"), class_=class_, aria_hidden="true")
