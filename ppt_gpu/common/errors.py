"""One error type for everything a user can get wrong, printed as one message, exit code 2."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path


class PptError(Exception):
    """Bad input. Says where (file, line, column), what is wrong, and what was expected.

    `str(error)` is the whole text for the user:  ``file:line:column: message`` and, on a second line, the hint.
    """

    def __init__(
        self,
        message: str,
        *,
        path: str | Path | None = None,
        line: int | None = None,
        column: int | None = None,
        hint: str | None = None,
    ) -> None:
        self.message = message
        self.path = None if path is None else str(path)
        self.line = line
        self.column = column
        self.hint = hint
        super().__init__(message)

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.path, self.line, self.column) if part is not None)
        text = f"{place}: {self.message}" if place else self.message
        return f"{text}\n  hint: {self.hint}" if self.hint else text


class InputErrors(PptError):
    """Several errors found in one pass over one file, all shown at once."""

    def __init__(self, errors: list[PptError]) -> None:
        self.errors = errors
        super().__init__(f"{len(errors)} errors")

    def __str__(self) -> str:
        return "\n".join(str(error) for error in self.errors)


class WaitingError(PptError):
    """A block waits for what other blocks do, and none of those that run does it."""


class LackError(PptError):
    """The kernel needs hardware that the GPU does not have."""


class BudgetError(PptError):
    """A budget (instructions, memory, time) ended the run. The message names the budget and how to raise it."""


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate most like `name`, or None when none is close."""
    found = difflib.get_close_matches(name, list(candidates), n=1, cutoff=0.5)
    return found[0] if found else None


def did_you_mean(name: str, candidates: Iterable[str]) -> str | None:
    """A hint with the nearest valid name, or the list of valid names when it is short, or None."""
    names = sorted(candidates)
    close = nearest(name, names)
    if close:
        return f"did you mean '{close}'?"
    return f"expected one of: {', '.join(names)}" if 0 < len(names) <= 20 else None
