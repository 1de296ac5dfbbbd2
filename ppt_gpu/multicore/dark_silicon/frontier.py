"""Area and power of a core by its score: the Pareto frontiers of ISCA'11, or those of measured points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.errors import PptError
from ppt_gpu.multicore.base.values import Values


@dataclass(frozen=True)
class Frontier:
    """Polynomials in the score (SPECmark), coefficients from the constant upwards, good from `low` to `high`.

    area: mm², power: W, both of one core with its L1 caches, at 45 nm.
    """

    area_terms: tuple[float, ...]
    power_terms: tuple[float, ...]
    low: float
    high: float

    def area(self, score: Values) -> NDArray[np.float64]:
        """mm² at `score`."""
        return np.asarray(np.polynomial.polynomial.polyval(np.asarray(score, dtype=float), self.area_terms))

    def power(self, score: Values) -> NDArray[np.float64]:
        """W at `score`."""
        return np.asarray(np.polynomial.polynomial.polyval(np.asarray(score, dtype=float), self.power_terms))

    def scores(self, points: int) -> NDArray[np.float64]:
        """`points` scores from the lowest to the highest, evenly spaced. Raises PptError below two points."""
        return even_scores(self.low, self.high, points)


@dataclass(frozen=True)
class MeasuredFrontier:
    """Straight lines between the cores that no other beats; the curves of `Frontier` otherwise."""

    area_points: tuple[tuple[float, ...], tuple[float, ...]]  # scores upwards, mm²
    power_points: tuple[tuple[float, ...], tuple[float, ...]]  # scores upwards, W
    low: float
    high: float

    def area(self, score: Values) -> NDArray[np.float64]:
        """mm² at `score`."""
        return np.asarray(np.interp(np.asarray(score, dtype=float), *self.area_points))

    def power(self, score: Values) -> NDArray[np.float64]:
        """W at `score`."""
        return np.asarray(np.interp(np.asarray(score, dtype=float), *self.power_points))

    def scores(self, points: int) -> NDArray[np.float64]:
        """As `Frontier.scores`."""
        return even_scores(self.low, self.high, points)


def even_scores(low: float, high: float, points: int) -> NDArray[np.float64]:
    """`points` scores from `low` to `high`, evenly spaced. Raises PptError below two points."""
    if points < 2:
        raise PptError(f"a frontier of {points} points", hint="at least 2")
    return np.linspace(low, high, points)


def measured_frontier(cores: Sequence[Sequence[float]]) -> MeasuredFrontier:
    """The frontiers of measured cores, each (score, mm², W) at 45 nm; it reaches as far as both curves do.

    Raises PptError for fewer than two cores on either curve.
    """
    scores = [core[0] for core in cores]

    def curve(column: int, name: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
        costs = [core[column] for core in cores]
        chosen = pareto(scores, costs)
        if len(chosen) < 2:
            raise PptError(f"the frontier of {name} has one core: score {scores[chosen[0]]:g} beats all others")
        return tuple(scores[each] for each in chosen), tuple(costs[each] for each in chosen)

    area, power = curve(1, "area"), curve(2, "power")
    return MeasuredFrontier(area, power, max(area[0][0], power[0][0]), max(scores))


def pareto(performance: Sequence[float], cost: Sequence[float]) -> list[int]:
    """Indices of the points that no other beats: none is at least as fast for less, or faster for as much.

    In order of performance. Of equal points the first stays.
    """
    order = sorted(range(len(performance)), key=lambda i: (-performance[i], cost[i], i))
    found: list[int] = []
    cheapest = float("inf")
    for index in order:
        if cost[index] < cheapest:
            found.append(index)
            cheapest = cost[index]
    return found[::-1]
