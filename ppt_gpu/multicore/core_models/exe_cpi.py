"""Algorithm 3.1 of Blem: clock and CPI_exe of a core that is known by its score (SPECmark) only.

The clock is linear in the score, between those of the slowest and the fastest core. CPI_exe of the fastest core is
given; every other core's is such that the ratio of the modelled performances is the ratio of the scores.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.errors import PptError
from ppt_gpu.multicore.base.upper_bound import core_performance
from ppt_gpu.multicore.base.values import Values, require


def clock_at(score: Values, scores: tuple[float, float], clocks: tuple[float, float]) -> NDArray[np.float64]:
    """Hz at `score`, linear between the ends of `scores` (lowest, highest) and of `clocks`, as the text says.

    The listing prints a step per point of the curve instead, which agrees when the points lie evenly in the score.
    """
    (low, high), (slow, fast) = scores, clocks
    if not low < high:
        raise PptError(f"the scores go from {low:g} to {high:g}", hint="the lowest first, and two different ones")
    return np.asarray(slow + (fast - slow) * (np.asarray(score) - low) / (high - low))


def goal(score: Values, best_score: float, best_performance: Values) -> NDArray[np.float64]:
    """Instructions/s that a core of `score` must reach: P_max score / score_max."""
    ratio = require("the score", score, above=0) / require("the highest score", best_score, above=0)
    return np.asarray(ratio * best_performance)


def cpi_closed(clock: Values, wanted: Values, loads: Values, t: Values, *, name: str = "") -> NDArray[np.float64]:
    """CPI_exe of a single-threaded core that reaches `wanted` instructions/s: clock / wanted - t r_ls.

    Closed form of the algorithm's search: P = clock / (CPI + t r_ls) for one thread. `t` holds at `clock`.
    Raises PptError, with the value, where it is not positive: waiting for memory alone takes longer than the goal
    allows. `name` says in the message whose it is.
    """
    cpi = np.asarray(clock / np.asarray(wanted, dtype=float) - t * np.asarray(loads, dtype=float))
    if not np.all(cpi > 0):
        bad = float(cpi[~(cpi > 0)].flat[0]) if cpi.ndim else float(cpi)
        waiting = float(np.max(t * np.asarray(loads, dtype=float)))
        raise PptError(
            f"CPI_exe{f' of {name}' if name else ''} would be {bad:g}: loads and stores alone wait {waiting:g} cycles "
            "an instruction",
            hint="a larger CPI of the fastest core, a smaller range of clocks, or faster memory",
        )
    return cpi


def cpi_search(
    clock: float, wanted: float, loads: float, t: float, *, threads: float = 1.0, start: float = 1.0, rel: float = 1e-12
) -> float:
    """CPI_exe by the algorithm's search: smaller while the core is too slow, larger while it is too fast.

    The steps double until the goal is enclosed, then the interval is halved until it is `rel` of its upper end.
    Raises PptError where no CPI_exe reaches the goal (more than 10^12 times smaller than `start`).
    """

    def too_slow(cpi: float) -> bool:
        return float(core_performance(clock, cpi, threads, loads, t).performance) < wanted

    low = high = start
    while too_slow(low):
        high, low = low, low / 2
        if low < start * 1e-12:
            raise PptError(f"no CPI_exe reaches {wanted:g} instructions/s", hint="memory alone takes longer")
    while not too_slow(high):
        low, high = high, high * 2
    while high - low > rel * high:
        middle = (low + high) / 2
        low, high = (low, middle) if too_slow(middle) else (middle, high)
    return (low + high) / 2
