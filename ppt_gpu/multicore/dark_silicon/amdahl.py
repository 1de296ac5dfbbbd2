"""Amdahl's law for chips of many cores: Blem's equation 2.1, Hill and Marty (Computer 2008), Pollack's rule."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.errors import PptError
from ppt_gpu.multicore.base.values import Values, require


def speedup(parallel: Values, serial_speedup: Values, parallel_speedup: Values) -> NDArray[np.float64]:
    """Equation 2.1: 1 / ((1-f)/S_1 + f/S_inf), `parallel` being the share f of the baseline's time that is parallel."""
    f = require("the parallel fraction", parallel, least=0, most=1)
    return np.asarray(1.0 / ((1.0 - f) / serial_speedup + f / parallel_speedup))


def relative_speedup(
    parallel: Values, chip: tuple[Values, Values], baseline: tuple[Values, Values]
) -> NDArray[np.float64]:
    """Time on the baseline over time on the chip, each (1-f)/P_1 + f/P_inf; chips are pairs (P_1, P_inf).

    `parallel` is the share f of the *instructions* that are parallel. Equation 2.1 with the same f is something else
    unless the baseline has one core: there f is a share of the baseline's time, of which N cores have done their part.
    """
    f = require("the parallel fraction", parallel, least=0, most=1)
    before = (1.0 - f) / baseline[0] + f / baseline[1]
    return np.asarray(before / ((1.0 - f) / chip[0] + f / chip[1]))


def pollack(area: Values) -> NDArray[np.float64]:
    """Pollack's rule: the performance of a core of `area` base core equivalents (BCE) is its square root."""
    return np.sqrt(require("the area of a core in BCE", area, least=0))


@dataclass(frozen=True)
class HillMarty:
    """Speedups over one BCE of chips of `bces`, with cores of `size` BCE and `parallel` f. All may be arrays."""

    parallel: Values
    bces: Values
    size: Values

    def __post_init__(self) -> None:
        require("the parallel fraction", self.parallel, least=0, most=1)
        require("the size of a core in BCE", self.size, least=1)
        if np.any(np.asarray(self.size) > np.asarray(self.bces)):
            raise PptError(f"a core of {np.max(self.size):g} BCE does not fit a chip of {np.min(self.bces):g}")

    @property
    def symmetric(self) -> NDArray[np.float64]:
        """n/r cores of r BCE: 1 / ((1-f)/perf(r) + f r/(perf(r) n))."""
        big = pollack(self.size)
        return speedup(self.parallel, big, big * self.bces / self.size)

    @property
    def asymmetric(self) -> NDArray[np.float64]:
        """One core of r BCE and n-r of one: 1 / ((1-f)/perf(r) + f/(perf(r) + n - r))."""
        big = pollack(self.size)
        return speedup(self.parallel, big, big + self.bces - self.size)

    @property
    def dynamic(self) -> NDArray[np.float64]:
        """n base cores that can act as one core of r: 1 / ((1-f)/perf(r) + f/n)."""
        return speedup(self.parallel, pollack(self.size), np.asarray(self.bces, dtype=float))


def best_size(topology: str, parallel: float, bces: int, step: float = 0.1) -> tuple[float, float]:
    """(size in BCE, speedup) of the best core size in steps of `step`; the smallest of equals.

    `topology` is "symmetric", "asymmetric" or "dynamic". Raises PptError for a chip below one BCE or another name.
    """
    if topology not in ("symmetric", "asymmetric", "dynamic"):
        raise PptError(f"unknown topology '{topology}' of Hill and Marty", hint="symmetric, asymmetric or dynamic")
    if not (bces >= 1 and step > 0):
        raise PptError(f"a chip of {bces:g} BCE in steps of {step:g}", hint="at least one BCE and a positive step")
    sizes = 1.0 + step * np.arange(math.floor((bces - 1) / step + 1e-9) + 1)
    found = getattr(HillMarty(parallel, float(bces), np.minimum(sizes, bces)), topology)
    best = int(np.argmax(found))
    return float(sizes[best]), float(found[best])
