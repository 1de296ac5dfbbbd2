"""Lists of names with a text each: the last column is text, wrapped behind the others. Loads nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from textwrap import wrap


def listing(rows: Iterable[Sequence[str]], width: int, longest: Sequence[int] = (40,)) -> str:
    """A line a row, or several where the text is longer than `width` leaves.

    A column is as wide as its longest cell, as its entry of `longest` at most: the text of a row with longer ones
    begins below it.
    """
    found = list(rows)
    sizes = [
        min(most, max(map(len, cells)))
        for most, cells in zip(longest, zip(*(row[:-1] for row in found), strict=True), strict=bool(found))
    ]
    start = sum(sizes) + 2 * len(sizes)
    broken = partial(wrap, break_long_words=False, break_on_hyphens=False)
    lines: list[str] = []
    for *cells, text in found:
        head = "".join(f"{cell:{size}}  " for cell, size in zip(cells, sizes, strict=True))
        pieces = broken(text, max(width - start, 20)) or [""]
        if len(head) > start:
            lines += broken(head, width, subsequent_indent="    ")
            head = " " * start
        lines += [head + pieces[0], *(" " * start + piece for piece in pieces[1:])]
    return "".join(f"{line.rstrip()}\n" for line in lines)
