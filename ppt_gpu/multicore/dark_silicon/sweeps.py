"""Sweeps of one assumption (Blem, section 3.3): area, power, L2 share, bandwidth, SMT threads, parallel fraction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.errors import PptError, did_you_mean
from ppt_gpu.multicore.base.device_scaling import DeviceScaling
from ppt_gpu.multicore.base.suite import Suite
from ppt_gpu.multicore.dark_silicon.chip import Budget
from ppt_gpu.multicore.dark_silicon.search import Chips, search
from ppt_gpu.multicore.dark_silicon.study import Study

#: share of the chip's area that the study's L2 takes beside the cores' budget ("30 % cache area" is the reference)
L2_SHARE = 0.30


@dataclass(frozen=True)
class Sweep:
    """One kind of sweep: what changes, in which unit, its usual values, and the study and suite at a value."""

    name: str
    label: str
    unit: str
    values: tuple[float, ...]
    least: float
    most: float
    change: Callable[[Study, Suite, float], tuple[Study, Suite]]


def _area(study: Study, suite: Suite, value: float) -> tuple[Study, Suite]:
    return replace(study, budget=Budget(value, study.budget.power)), suite


def _power(study: Study, suite: Suite, value: float) -> tuple[Study, Suite]:
    return replace(study, budget=Budget(study.budget.area, value)), suite


def _l2_share(study: Study, suite: Suite, value: float) -> tuple[Study, Suite]:
    """The area of cores and L2 together stays; the study's budget and L2 are those at L2_SHARE."""
    together = study.budget.area / (1.0 - L2_SHARE)
    budget = Budget(max(together * (1.0 - value), 1e-9), study.budget.power)
    return replace(study, budget=budget, memory=replace(study.memory, l2=study.memory.l2 * value / L2_SHARE)), suite


def _bandwidth(study: Study, suite: Suite, value: float) -> tuple[Study, Suite]:
    return replace(study, memory=replace(study.memory, bandwidth=value * 1e9)), suite


def _smt(study: Study, suite: Suite, value: float) -> tuple[Study, Suite]:
    return replace(study, s_core=replace(study.s_core, threads=int(value))), suite


def _parallel(study: Study, suite: Suite, value: float) -> tuple[Study, Suite]:
    return study, replace(suite, parallel=np.full(len(suite.names), value))


_SHARES = tuple(float(each) for each in np.round(np.linspace(0.0, 0.95, 20), 2))
_SWEEPS = (
    Sweep("area", "area of the cores", "mm2", (55.5, 80, 111, 160, 222, 333, 444), 0, 1e6, _area),
    Sweep("power", "power of the cores", "W", (31.25, 62.5, 125, 250, 500, 1000), 0, 1e6, _power),
    Sweep("l2-share", "share of the area for the L2", "", _SHARES, 0, 1, _l2_share),
    Sweep("bandwidth", "memory bandwidth", "GB/s", (50, 100, 200, 300, 400, 600, 800, 1000), 0, 1e9, _bandwidth),
    Sweep("smt", "threads of an S-core", "", (1, 2, 4, 8), 1, 1024, _smt),
    Sweep("parallel", "parallel fraction", "", (0.75, 0.9, 0.95, 0.99, 0.999, 0.9999, 1.0), 0, 1, _parallel),
)
SWEEPS = {sweep.name: sweep for sweep in _SWEEPS}


@dataclass(frozen=True)
class Swept:
    """Speedups over the unchanged study's baseline, [benchmark, value]; not a number where not one core fits."""

    sweep: Sweep
    node: str
    organisation: str
    topology: str
    names: tuple[str, ...]
    values: tuple[float, ...]
    speedup: NDArray[np.float64]
    cores: NDArray[np.float64]
    dark: NDArray[np.float64]


def sweep_named(name: str) -> Sweep:
    """One of SWEEPS. Raises PptError with the nearest name."""
    if name not in SWEEPS:
        raise PptError(f"unknown sweep '{name}'", hint=did_you_mean(name, SWEEPS))
    return SWEEPS[name]


def run_sweep(
    name: str,
    study: Study,
    suite: Suite,
    scaling: DeviceScaling,
    node: str,
    organisation: str,
    topology: str,
    values: Sequence[float] = (),
) -> Swept:
    """The fastest chips at `node` for each of `values` (default: the sweep's usual ones).

    Raises PptError for an unknown sweep or node, a value out of range, and budgets below one core for all values.
    """
    sweep = sweep_named(name)
    chosen = scaling.node(node)
    used = tuple(values or sweep.values)
    for value in used:
        if not (sweep.least <= value <= sweep.most) or (value == 0 and sweep.name != "l2-share" and sweep.least == 0):
            raise PptError(f"{sweep.name}: {value:g} is out of range", hint=f"from {sweep.least:g} to {sweep.most:g}")
        if sweep.name == "smt" and value != int(value):
            raise PptError(f"smt: {value:g} threads", hint="a whole number")
    found: list[Chips | None] = []
    first: PptError | None = None
    for value in used:
        changed, benchmarks = sweep.change(study, suite, value)
        try:
            found += search(
                changed,
                benchmarks,
                scaling,
                organisations=(organisation,),
                topologies=(topology,),
                nodes=(chosen.name,),
                reference=study,
            )
        except PptError as error:
            first = first or error
            found.append(None)
    if first is not None and all(chips is None for chips in found):
        raise first
    missing = np.full(len(suite.names), np.nan)

    def column(key: str) -> NDArray[np.float64]:
        return np.array([missing if chips is None else getattr(chips, key) for chips in found]).T

    return Swept(
        sweep, chosen.name, organisation, topology, suite.names, used,
        column("speedup"), column("cores"), column("dark"),
    )  # fmt: skip
