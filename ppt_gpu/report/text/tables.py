"""Tables of the terminal: without lines, as wide as the terminal allows, and bars in them."""

from __future__ import annotations

from io import StringIO

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

BAR, SHORT_BAR = 20, 6


def shown(*parts: RenderableType, width: int, color: bool) -> str:
    """Renderables as text, one below the other, `width` columns wide, with ANSI colours if `color`."""
    stream = StringIO()
    console = Console(
        file=stream, width=width, force_terminal=color, no_color=not color, highlight=False, legacy_windows=False
    )
    for part in parts:
        console.print(part, markup=False)
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines()) + "\n"


def table(*columns: tuple[str, str], header: bool = True) -> Table:
    """A table without lines: columns as (name, justification)."""
    made = Table(box=None, padding=(0, 2, 0, 0), show_header=header, header_style="dim", pad_edge=False)
    for name, justify in columns:
        made.add_column(name, justify=justify, overflow="fold")  # type: ignore[arg-type]
    return made


def whole(rows: Table, *names: str) -> None:
    """Columns of these names are never wrapped."""
    for column in rows.columns:
        column.no_wrap = column.no_wrap or column.header in names


class Bar:
    """A share as a bar, `longest` columns long or as long as there is room."""

    def __init__(self, share: float, longest: int = BAR) -> None:
        self.share, self.longest = max(0.0, min(share, 1.0)), longest

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(min(SHORT_BAR, options.max_width), min(self.longest, options.max_width))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        length = min(self.longest, options.max_width)
        filled = round(self.share * length)
        yield Text("█" * filled + "·" * (length - filled))
