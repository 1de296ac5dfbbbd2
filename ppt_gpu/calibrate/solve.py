"""One number of a GPU from measured launches: the value with which the simulation takes as long as they did.

The launches of a micro-benchmark depend on one number more than on all others, in one direction. So the sum of the
relative errors over them is brought to zero, by the method of false position between two values (Illinois variant, as
plain secants leave the range where the time stops depending on the number).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from ppt_gpu.calibrate.report import Calibrated

#: a change of the time by less than this share, over the whole range, is none
_FLAT = 1e-3


@dataclass(frozen=True)
class Number:
    """A number of a GPU, in the units of its file. `least` and `most`: where it may lie."""

    path: str  # as --set takes it: "l1.latency", 'op."fp32.fma".latency'
    least: float
    most: float
    step: float = 1.0  # only multiples of this: finer than what launches can tell apart would be a pretence


@dataclass(frozen=True)
class Solved:
    """`value` makes the launches right on average; each alone asks for one of `low` to `high`."""

    value: float
    low: float
    high: float
    residual: float  # mean absolute relative error of the launches at `value`
    determined: bool  # False: the launches take as long whatever the number


def solve(
    number: Number,
    start: float,
    measured: Sequence[float],
    predicted: Callable[[float], Sequence[float]],
    spread: Sequence[float] = (),
) -> Solved:
    """The number that makes `predicted(value)` equal to `measured` on average. `start`: where to look first.

    Both are times of the same launches, in the same unit; `spread`: by which share each measured one may be off.
    """
    may_be_off = spread or [0.0] * len(measured)

    known: dict[float, tuple[float, ...]] = {}

    def errors(value: float) -> tuple[float, ...]:
        if value not in known:
            found = predicted(value)
            known[value] = tuple(ours / theirs - 1.0 for ours, theirs in zip(found, measured, strict=True))
        return known[value]

    def total(value: float) -> float:
        return fmean(errors(value))

    value = _along_a_line(number, start, total)
    if value is None:
        bracket = _bracket(number, start, total)
        if bracket is None:
            return _at_an_end(number, start, total, lambda value: _residual(errors(value)))
        value = _closer(number, *bracket, total)
    return Solved(value, *_span(number, value, known, may_be_off), _residual(errors(value)), True)


def _along_a_line(number: Number, start: float, total: Callable[[float], float]) -> float | None:
    """Latencies add up to the time, so that two values tell the third. None where that is not right to half a step."""
    first = _rounded(number, start)
    second = _rounded(number, first + max(number.step, abs(first) / 8))
    if second == first:
        return None
    slope = (total(second) - total(first)) / (second - first)
    if not slope:
        return None
    value = _rounded(number, first - total(first) / slope)
    return value if abs(total(value)) <= abs(slope) * number.step / 2 else None


def _at_an_end(
    number: Number, start: float, total: Callable[[float], float], residual: Callable[[float], float]
) -> Solved:
    """No value is right: the number is not determined, or the nearest value is the end of its range."""
    ends = number.least, number.most
    if abs(total(ends[0]) - total(ends[1])) < _FLAT:
        return Solved(start, *ends, residual(_rounded(number, start)), False)
    best = min(ends, key=lambda end: abs(total(end)))
    return Solved(best, best, best, residual(best), True)


def calibrated(
    number: Number,
    unit: str,
    before: float,
    measured: Sequence[float],
    predicted: Callable[[float], Sequence[float]],
    rests_on: Sequence[str],
    spread: Sequence[float] = (),
) -> Calibrated:
    """The number found by `solve`, with what it rests on. `before`: its value so far, where the search begins."""
    found = solve(number, before, measured, predicted, spread)
    numbers = found.value, unit, before, found.low, found.high, found.residual
    return Calibrated(number.path, *numbers, tuple(rests_on), found.determined)


def _residual(errors: Sequence[float]) -> float:
    return fmean(map(abs, errors))


def _rounded(number: Number, value: float) -> float:
    return min(max(round(value / number.step) * number.step, number.least), number.most)


def _bracket(number: Number, start: float, total: Callable[[float], float]) -> tuple[float, float] | None:
    """Two values whose errors have different signs, growing away from `start`; None where there are none."""
    start = _rounded(number, start)
    first = total(start)
    if first == 0.0:
        return start, start
    width = max(number.step, abs(start) / 8)
    low = high = start
    while low > number.least or high < number.most:
        low, high = _rounded(number, start - width), _rounded(number, start + width)
        for end in (low, high):
            if total(end) * first <= 0.0:
                return start, end
        width *= 4
    return None


def _closer(number: Number, a: float, b: float, total: Callable[[float], float]) -> float:
    """Between two values with errors of different signs, the one whose error is zero, to within a step."""
    at_a, at_b = total(a), total(b)
    kept = 0
    while abs(b - a) > 1.5 * number.step and at_a and at_b:
        middle = _rounded(number, (a * at_b - b * at_a) / (at_b - at_a))
        if min(abs(middle - a), abs(middle - b)) < number.step / 2:
            middle = _rounded(number, (a + b) / 2)
        found = total(middle)
        if found * at_b > 0.0:
            b, at_b, at_a, kept = middle, found, (at_a / 2 if kept == 1 else at_a), 1
        else:
            a, at_a, at_b, kept = middle, found, (at_b / 2 if kept == 2 else at_b), 2
    return a if abs(total(a)) <= abs(total(b)) else b


def _span(
    number: Number, value: float, known: Mapping[float, Sequence[float]], spread: Sequence[float]
) -> tuple[float, float]:
    """The values that single launches ask for, the errors taken as straight lines near `value`.

    `known`: errors by value. The nearest other one gives the slope.
    """
    beside = min((other for other in known if other != value), key=lambda other: abs(other - value), default=value)
    asked = [value]
    for here, there, off in zip(known[value], known[beside], spread, strict=True):
        slope = (there - here) / (beside - value) if beside != value else 0.0
        if abs(slope * (number.most - number.least)) > _FLAT:
            ends = (value - (here + sign * off) / slope for sign in (-1, 1))
            asked += [min(max(end, number.least), number.most) for end in ends]
    return min(asked), max(asked)
