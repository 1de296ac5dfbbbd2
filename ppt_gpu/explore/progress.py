"""Progress of something that has many parts: a line on standard error with the time left, where a person looks."""

from __future__ import annotations

import sys
import time
from types import TracebackType

SILENT = 1.0  # s: what takes less says nothing
AGAIN = 0.2  # s between two changes of the line


class Progress:
    """`with Progress("rows", 100) as progress: progress.done()` after each part."""

    def __init__(self, what: str, total: int, finished: int = 0) -> None:
        """`finished` parts were done earlier, and took no time."""
        self.what, self.total, self.finished, self.earlier = what, total, finished, finished
        self.began = self.shown = time.monotonic()
        self.width = 0
        self.visible = sys.stderr.isatty()

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._write("")

    def done(self) -> None:
        """One more part is finished."""
        self.finished += 1
        now = time.monotonic()
        if not self.visible or now - self.began < SILENT or now - self.shown < AGAIN:
            return
        self.shown = now
        self._write(progress_line(self.what, self.finished, self.total, self.earlier, now - self.began))

    def _write(self, line: str) -> None:
        if self.visible and (line or self.width):
            sys.stderr.write("\r" + line.ljust(self.width) + ("" if line else "\r"))
            sys.stderr.flush()
            self.width = len(line)


def progress_line(what: str, finished: int, total: int, earlier: int, seconds: float) -> str:
    """ "12 of 100 rows, 1:05 left"; the time by what was finished in `seconds`, beyond the `earlier` ones."""
    left = seconds / max(finished - earlier, 1) * (total - finished)
    minutes, rest = divmod(round(left), 60)
    hours, minutes = divmod(minutes, 60)
    clock = f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
    return f"{finished} of {total} {what}, {clock} left"
