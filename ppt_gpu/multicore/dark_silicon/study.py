"""A study: everything that a projection assumes of cores, caches, memory, budget and method, each with its source.

Area and power of a core by its score: the Pareto frontiers of ISCA'11, or those of measured points.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.errors import PptError
from ppt_gpu.multicore.base.values import Values
from ppt_gpu.multicore.dark_silicon.chip import ROUNDINGS, Budget
from ppt_gpu.spec.files import check_with_base, find
from ppt_gpu.spec.gpu import Source
from ppt_gpu.spec.toml_reader import (
    Checked,
    Leaf,
    ListOf,
    Number,
    Quantity,
    Table,
    Text,
)


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


#: what a gain in clock does: the core's clock rises and memory is further away in cycles, or all gets faster
CLOCK_GAINS = ("clock", "performance")
#: what the parallel fraction is a share of: the instructions, or the baseline's time (equation 2.1 as printed)
SPEEDUPS = ("work", "literal")
SHARINGS = ("even", "none")

_COUNT = Number(minimum=1, maximum=1e6, integer=True)
_POSITIVE = Number(above=0, maximum=1e6)
_CYCLES = Quantity(dimension="cycles", plain=True, above=0)
_CLOCK = Quantity(dimension="frequency", above=0)
_BYTES = Quantity(dimension="bytes", plain=True, above=0)
_TERMS = ListOf(item=Number(), min_items=1)
_MEASURED = ListOf(item=ListOf(item=_POSITIVE, min_items=3, max_items=3), min_items=2, default=())
_CORE: dict[str, Leaf] = {"cpi": _POSITIVE, "l1": _BYTES, "l1_latency": _CYCLES, "threads": _COUNT}
_TABLES: dict[str, dict[str, Leaf]] = {
    "budget": {"area": Quantity(dimension="area", above=0), "power": Quantity(dimension="power", above=0)},
    "frontier": {
        "area": _TERMS, "power": _TERMS, "lowest": _POSITIVE, "highest": _POSITIVE,
        "points": Number(minimum=2, maximum=2000, integer=True), "measured": _MEASURED,
    },
    "s_core": {"slowest": _CLOCK, "fastest": _CLOCK, **_CORE},
    "m_core": {"score": _POSITIVE, "lanes": _COUNT, "clock": _CLOCK, **_CORE},
    "memory": {
        "l2": _BYTES, "l2_growth": _POSITIVE, "l2_latency": _CYCLES, "latency": _CYCLES,
        "bandwidth": Quantity(dimension="bytes/s", above=0), "line": _BYTES,
    },
    "composed": {"overhead": Number(minimum=0, maximum=10)},
    "baseline": {"cores": _COUNT, "score": _POSITIVE},
    "method": {
        "clock_gain": Text(choices=CLOCK_GAINS), "speedup": Text(choices=SPEEDUPS),
        "sharing": Text(choices=SHARINGS), "rounding": Text(choices=ROUNDINGS),
    },
}  # fmt: skip
_PARTS = {name: Table(fields=fields) for name, fields in _TABLES.items()}
SCHEMA = Table(fields={"title": Text(), "base": Text(default=""), **_PARTS})


@dataclass(frozen=True)
class SCores:
    """Single-threaded cores (or of few threads): Hz at the frontier's ends, CPI_exe of the fastest, L1 of each."""

    slowest: float
    fastest: float
    cpi: float
    l1: float
    l1_latency: float
    threads: int


@dataclass(frozen=True)
class MCore:
    """The many-threaded core: area and power as an S-core of `score`; clock, CPI_exe and threads of one lane."""

    score: float
    lanes: int
    clock: float
    cpi: float
    l1: float
    l1_latency: float
    threads: int


@dataclass(frozen=True)
class Memory:
    """The shared L2 (B, growing by `l2_growth` a node) and memory; `latency` in cycles of the fastest S-core."""

    l2: float
    l2_growth: float
    l2_latency: float
    latency: float
    bandwidth: float
    line: float


@dataclass(frozen=True)
class Study:
    """All assumptions of a projection; `sources` by dotted path, such as "memory.latency"."""

    title: str
    budget: Budget
    frontier: Frontier | MeasuredFrontier
    points: int
    s_core: SCores
    m_core: MCore
    memory: Memory
    overhead: float
    baseline_cores: int
    baseline_score: float
    clock_gain: str
    speedup: str
    sharing: str
    rounding: str
    sources: Mapping[str, Source]


def load_study(name: str = "isca11", overrides: Sequence[str] = ()) -> Study:
    """The shipped study `name` or a .toml file, under `overrides` such as "memory.bandwidth=400 GB/s".

    Raises PptError or InputErrors with everything that is wrong.
    """
    checked = check_with_base(find("studies", name), "studies", SCHEMA, overrides)
    frontier = _frontier(checked)
    _check_rules(checked, frontier)
    values = checked.finish()
    assert frontier is not None  # else checked had an error
    method = values["method"]
    return Study(
        values["title"],
        Budget(**values["budget"]),
        frontier,
        values["frontier"]["points"],
        SCores(**values["s_core"]),
        MCore(**values["m_core"]),
        Memory(**values["memory"]),
        values["composed"]["overhead"],
        values["baseline"]["cores"],
        values["baseline"]["score"],
        method["clock_gain"],
        method["speedup"],
        method["sharing"],
        method["rounding"],
        checked.sources,
    )


def _frontier(checked: Checked) -> Frontier | MeasuredFrontier | None:
    """The curves: through measured cores where there are some, else polynomials. None after an error."""
    curve = checked.get("frontier")
    if not curve or any(value is None for value in curve.values()):
        return None
    if curve["measured"]:
        try:
            return measured_frontier(curve["measured"])
        except PptError as error:
            checked.problem(("frontier", "measured"), f"frontier.measured: {error.message}", error.hint)
            return None
    low, high = curve["lowest"], curve["highest"]
    if low >= high:
        paths = [("frontier", "lowest"), ("frontier", "highest")]
        checked.contradiction(paths, f"the frontier goes from score {low:g} to {high:g}")
        return None
    return Frontier(curve["area"], curve["power"], low, high)


def _check_rules(checked: Checked, frontier: Frontier | MeasuredFrontier | None) -> None:
    if frontier is not None:
        low, high = frontier.low, frontier.high
        for path in (("m_core", "score"), ("baseline", "score")):
            score = checked.get(*path)
            if score is not None and not low <= score <= high:
                message = f"{'.'.join(path)}: {score:g} is not on the frontier, which goes from {low:g} to {high:g}"
                checked.contradiction([path, ("frontier",)], message)
    slow, fast = checked.get("s_core", "slowest"), checked.get("s_core", "fastest")
    if slow is not None and fast is not None and slow > fast:
        paths = [("s_core", "slowest"), ("s_core", "fastest")]
        checked.contradiction(paths, f"s_core: the slowest core has {slow:g} Hz and the fastest {fast:g} Hz")
