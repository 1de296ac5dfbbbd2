"""The steps of a calculation as data: each equation with its symbols, the numbers put in, and the result."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

_NAME = re.compile(r"\{([^{}]+)\}")


@dataclass(frozen=True)
class Step:
    """One equation. A given number has no `numbers`, and its `equation` says what it is."""

    symbol: str  # "MWP"
    equation: str  # "min(MWP_woBW, MWP_peak_BW, N)"
    number: str  # of the equation in its source: "(5)"; "" without one
    numbers: str  # "min(2.28125, 28.5156, 20)"
    value: float
    unit: str = ""

    def line(self) -> str:
        """The equation, then the numbers, then the result."""
        head = f"{self.number} " if self.number else ""
        value = f"{number_text(self.value)} {self.unit}".rstrip()
        if not self.numbers:
            return f"{head}{self.symbol} = {value}  ({self.equation})" if self.equation else f"{self.symbol} = {value}"
        middle = "" if self.numbers in (number_text(self.value), self.equation) else f" = {self.numbers}"
        return f"{head}{self.symbol} = {self.equation}{middle} = {value}"


class Steps:
    """Records a calculation. In an equation, `{MWP}` stands for a symbol recorded before:

    >>> steps = Steps()
    >>> n = steps.given("N", 20, "resident warps", unit="warps")
    >>> mwp = steps("MWP", "min(8, {N})", min(8, n), number="(5)", unit="warps")
    >>> print(*(step.line() for step in steps.all), sep="; ")
    N = 20 warps  (resident warps); (5) MWP = min(8, N) = min(8, 20) = 8 warps
    """

    def __init__(self) -> None:
        self.all: list[Step] = []
        self._known: dict[str, float] = {}

    def __call__(self, symbol: str, equation: str, value: float, *, number: str = "", unit: str = "") -> float:
        """Record `symbol` = `equation` = `value`; returns `value`. KeyError when a symbol in braces is unknown."""
        names = _NAME.sub(lambda found: found[1], equation)
        numbers = _NAME.sub(lambda found: number_text(self._known[found[1]]), equation)
        return self._record(Step(symbol, names, number, numbers, float(value), unit))

    def given(self, symbol: str, value: float, meaning: str = "", *, unit: str = "") -> float:
        """Record an input."""
        return self._record(Step(symbol, meaning, "", "", float(value), unit))

    def _record(self, step: Step) -> float:
        if not math.isfinite(step.value):
            raise ValueError(f"{step.symbol} = {step.equation} is {step.value}")
        self.all.append(step)
        self._known[step.symbol] = step.value
        return step.value


def number_text(value: float) -> str:
    """Six significant digits, as all analyses print."""
    return f"{value:.6g}"
