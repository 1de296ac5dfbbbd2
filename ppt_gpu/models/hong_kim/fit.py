"""Mem_LD and the departure delays of a machine, fitted to measured kernels (Hong and Kim, section 5.1).

The three parameters are those with which the MWP-CWP model comes closest to the measured cycles: least root mean
square of the logarithm of estimated over measured. The search is a grid over all three, laid again and again around
its best point; the model is cheap, and least squares by derivatives would stop at the edges of its cases.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

from ppt_gpu.common.errors import PptError
from ppt_gpu.models.hong_kim.hong_kim import hong_kim_cycles
from ppt_gpu.models.hong_kim.inputs import HongKimInputs

#: least and largest value looked at, cycles
RANGES = {"mem_ld": (20.0, 5000.0), "dep_uncoal": (0.1, 500.0), "dep_coal": (0.1, 500.0)}
_FIRST_POINTS, _POINTS = 11, 3  # along each axis of the first grid, and of the others
_GRIDS = 60
_SHRINK = 0.6  # of a grid to the next
#: relative change of the model's error below which a parameter counts as not determined
_SAME = 1e-3


@dataclass(frozen=True)
class Measurement:
    """A measured kernel. The three parameters in `inputs` are ignored."""

    name: str
    inputs: HongKimInputs
    cycles: float  # of the SM clock

    def __post_init__(self) -> None:
        if not (math.isfinite(self.cycles) and self.cycles > 0):
            raise PptError(f"{self.name}: measured cycles must be more than 0, not {self.cycles:g}")


@dataclass(frozen=True)
class MemoryFit:
    """The parameters, how good they are, and how far each could lie elsewhere."""

    mem_ld: float  # cycles
    dep_uncoal: float  # cycles
    dep_coal: float  # cycles
    error: float  # root mean square of ln(estimated / measured)
    ranges: dict[str, tuple[float, float]]  # of each parameter, the others fixed, where the error is the same

    def determined(self, name: str) -> bool:
        """Do the measurements say what this parameter is, within 25 % each way?"""
        low, high = self.ranges[name]
        return low > getattr(self, name) / 1.25 and high < getattr(self, name) * 1.25


def fit_memory(measurements: Sequence[Measurement]) -> MemoryFit:
    """The parameters of the machine on which the kernels were measured. PptError without a memory instruction."""
    if not any(each.inputs.mem_insts for each in measurements):
        raise PptError("no measured kernel has a memory instruction", hint="measure Mb2 to Mb7, coalesced and not")
    fit = _Fit(measurements)
    best = {name: math.sqrt(low * high) for name, (low, high) in RANGES.items()}
    reach = {name: math.log(high / low) / 2 for name, (low, high) in RANGES.items()}
    for grid in range(_GRIDS):
        points = _POINTS if grid else _FIRST_POINTS
        axes = {name: _around(name, best[name], reach[name], points) for name in RANGES}
        best = min((dict(zip(RANGES, point, strict=True)) for point in product(*axes.values())), key=fit.error)
        for name, axis in axes.items():  # a grid whose best point is at its edge moves before it shrinks
            edge = best[name] in (axis[0], axis[-1]) and best[name] not in RANGES[name]
            reach[name] *= 1.0 if edge and grid else _SHRINK if grid else 2 / (_FIRST_POINTS - 1)
    ranges = {name: fit.range_of(name, best) for name in RANGES}
    return MemoryFit(**best, error=fit.error(best), ranges=ranges)


def _around(name: str, middle: float, reach: float, points: int) -> list[float]:
    """Points of a grid around `middle`, evenly by ratio, inside the range of the parameter."""
    low, high = RANGES[name]
    steps = [middle * math.exp(reach * (2 * i / (points - 1) - 1)) for i in range(points)]
    return sorted({min(max(step, low), high) for step in steps})


class _Fit:
    """The model's error against the measurements; what does not depend on a parameter is calculated once."""

    def __init__(self, measurements: Sequence[Measurement]) -> None:
        self.measurements = measurements
        self.known: dict[tuple[int, float, float, float], float] = {}

    @cached_property
    def count(self) -> int:
        return len(self.measurements)

    def error(self, at: dict[str, float]) -> float:
        return math.sqrt(sum(self._off(number, at) ** 2 for number in range(self.count)) / self.count)

    def _off(self, number: int, at: dict[str, float]) -> float:
        given = self.measurements[number].inputs
        uncoal = at["dep_uncoal"] if given.uncoal_mem_insts else 0.0
        coal = at["dep_coal"] if given.coal_mem_insts else 0.0
        key = (number, at["mem_ld"] if given.mem_insts else 1.0, uncoal, coal)
        if key not in self.known:
            inputs = replace(given, mem_ld=key[1], dep_uncoal=uncoal, dep_coal=coal)
            self.known[key] = math.log(hong_kim_cycles(inputs) / self.measurements[number].cycles)
        return self.known[key]

    def range_of(self, name: str, best: dict[str, float]) -> tuple[float, float]:
        """From where to where the parameter may go, the others fixed, without changing the error."""
        limit = self.error(best) + _SAME
        ends = []
        for end in RANGES[name]:
            inside, outside = best[name], end
            if self.error({**best, name: end}) <= limit:
                inside = end
            for _ in range(40 if inside != end else 0):
                middle = math.sqrt(inside * outside)
                if self.error({**best, name: middle}) <= limit:
                    inside = middle
                else:
                    outside = middle
            ends.append(inside)
        return ends[0], ends[1]
