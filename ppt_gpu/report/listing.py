"""Lists of names with a text each: two columns, the text wrapped behind its name. Loads nothing."""

from __future__ import annotations

from collections.abc import Iterable
from textwrap import wrap


def listing(rows: Iterable[tuple[str, str]], width: int) -> str:
    """A line a row, or several where the text is longer than `width` leaves."""
    found = list(rows)
    names = max((len(name) for name, _ in found), default=0)
    lines: list[str] = []
    for name, text in found:
        pieces = wrap(text, max(width - names - 2, 20), break_long_words=False, break_on_hyphens=False) or [""]
        lines.append(f"{name:{names}}  {pieces[0]}".rstrip())
        lines += [" " * (names + 2) + piece for piece in pieces[1:]]
    return "".join(f"{line}\n" for line in lines)
