"""Plain tables for 80 columns: columns as wide as their cells; wider tables in bands, one below the other."""

from __future__ import annotations

from collections.abc import Sequence

WIDTH = 80


def columns(rows: Sequence[Sequence[str]], *, left: int = 1, keys: int = 1, last_left: bool = False) -> list[str]:
    """Lines of a table. The first `left` columns, and with `last_left` the last, are left-aligned; the others right.

    A table of more than 80 columns is cut into bands; each has the first `keys` columns again.
    """
    widths = _widths(rows)
    lefts = {*range(left), *([len(widths) - 1] if last_left else [])}
    lines: list[str] = []
    for band in _bands(widths, keys):
        lines += [""] if lines else []
        for row in rows:
            cells = (
                f"{row[at]:{widths[at]}}" if at in lefts else f"{row[at]:>{widths[at]}}" for at in (*range(keys), *band)
            )
            lines.append("  ".join(cells).rstrip())
    return lines


def fits(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the table needs no bands."""
    widths = _widths(rows)
    return sum(widths) + 2 * (len(widths) - 1) <= WIDTH


def _widths(rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(len, cells)) for cells in zip(*rows, strict=True)]


def _bands(widths: Sequence[int], keys: int) -> list[list[int]]:
    """The columns behind the keys, as many to a band as there is room for."""
    room = WIDTH - sum(width + 2 for width in widths[:keys]) + 2
    bands: list[list[int]] = [[]]
    used = 0
    for at, width in enumerate(widths[keys:], keys):
        if bands[-1] and used + width + 2 > room:
            bands.append([])
            used = 0
        bands[-1].append(at)
        used += width + 2
    return bands
