"""Progress on standard error: what is being done, how far it is and how long it will take, where a person looks.

The command line turns it on, when standard error is a terminal; nobody else sees anything. Work only counts what it has
finished; a thread writes the line, so that compiled loops cost nothing.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import TypeVar

SILENT = 1.0  # s: what takes less says nothing
AGAIN = 0.5  # s between two changes of the line

T = TypeVar("T")


class Progress:
    """`with Progress("rows", 100) as progress: progress.done()` after each part; without a number, just what it is."""

    def __init__(self, what: str, total: int = 0, finished: int = 0, counted: Callable[[], int] | None = None) -> None:
        """`finished` parts were done earlier and took no time. `counted` is asked how many are, if nobody tells."""
        self.what, self.total, self.counted = what, total, counted
        self.finished: float = finished
        self.earlier: float = finished
        self.began = time.monotonic()

    def __enter__(self) -> Progress:
        _open.append(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _open.remove(self)

    def done(self, parts: int = 1) -> None:
        """So many more parts are finished."""
        self.finished += parts

    def to(self, finished: int) -> None:
        """So many parts are finished now."""
        self.finished = finished

    def text(self, now: float) -> str:
        """ "12 of 100 rows, 1:05 left", by the time of what was finished here."""
        self.look()
        return _text([self], now)

    def look(self) -> None:
        """See how far it is; called before it is shown."""
        if self.counted:
            self.finished = self.counted()


_open: list[Progress] = []  # the outermost first


def parts(items: Sequence[T], what: str) -> Iterator[T]:
    """The items one after another, as the parts of a Progress."""
    with Progress(what, len(items)) as progress:
        for item in items:
            yield item
            progress.done()


def clock(seconds: float) -> str:
    """65 -> "1:05"."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def line(what: str, seconds: float, now: float, width: int) -> str:
    """What is shown of a command that has run for so long: all that is open, the outermost first.

    What several threads do of a kind counts as one.
    """
    kinds: dict[str, list[Progress]] = {}
    for progress in list(_open):
        progress.look()
        if progress.total != 1:
            kinds.setdefault(progress.what, []).append(progress)
    texts = [_text(alike, now) for alike in kinds.values()]
    return " | ".join([f"{what} {clock(seconds)}", *texts])[: width - 1]


def _text(alike: Sequence[Progress], now: float) -> str:
    """The text of work of a kind that goes on at the same time, by the one that began first."""
    total, finished = sum(one.total for one in alike), sum(one.finished for one in alike)
    if not total:
        return alike[0].what
    here = finished - sum(one.earlier for one in alike)
    spent = now - min(one.began for one in alike)
    left = f", {clock(spent / here * (total - finished))} left" if here > 0 else ""
    return f"{int(finished):,} of {total:,} {alike[0].what}{left}"


@contextmanager
def shown(what: str) -> Iterator[None]:
    """Show the progress of the command `what` while it runs, if standard error is a terminal."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield
        return
    writer = _Writer(what)
    writer.thread.start()
    try:
        yield
    finally:
        writer.stop()


class _Writer:
    """The thread that writes the line, and takes it away in the end."""

    def __init__(self, what: str) -> None:
        self.what, self.began, self.width = what, time.monotonic(), 0
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._run, name="progress", daemon=True)

    def _run(self) -> None:
        wait = SILENT
        while not self.ended.wait(wait):
            now = time.monotonic()
            self.write(line(self.what, now - self.began, now, shutil.get_terminal_size().columns))
            wait = AGAIN

    def write(self, text: str) -> None:
        sys.stderr.write("\r" + text.ljust(self.width))
        sys.stderr.flush()
        self.width = len(text)

    def stop(self) -> None:
        self.ended.set()
        self.thread.join()
        if self.width:
            sys.stderr.write("\r" + " " * self.width + "\r")
            sys.stderr.flush()
