"""A projection: the fastest chips of all nodes, and what they come to over a suite of benchmarks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.multicore.base.device_scaling import DeviceScaling
from ppt_gpu.multicore.base.suite import Suite
from ppt_gpu.multicore.dark_silicon.search import Chips, search
from ppt_gpu.multicore.dark_silicon.study import Study
from ppt_gpu.multicore.dark_silicon.topology import ORGANISATIONS, TOPOLOGIES


@dataclass(frozen=True)
class Best:
    """The fastest chip for one benchmark at one node."""

    benchmark: str
    organisation: str
    topology: str
    speedup: float
    cores: float
    dark: float
    light: float
    heavy: float  # not a number in symmetric chips
    limit: str  # of the parallel part: "bandwidth", or of the number of cores: "power", "area"


@dataclass(frozen=True)
class Projection:
    """What `search` found under `study`, for `suite` and `scaling`."""

    study: Study
    suite: Suite
    scaling: DeviceScaling
    chips: tuple[Chips, ...]

    def at(self, node: str) -> list[Chips]:
        """The chips of one node, by organisation and topology."""
        return [chip for chip in self.chips if chip.node == node]

    def best(self, node: str) -> list[Best]:
        """The fastest chip for each benchmark; of equal ones the first organisation and topology."""
        chips = self.at(node)
        speedups = np.array([np.where(np.isnan(chip.speedup), -np.inf, chip.speedup) for chip in chips])
        return [
            _best(name, chips[int(winner)], row)
            for row, (name, winner) in enumerate(zip(self.suite.names, speedups.argmax(axis=0), strict=True))
        ]


def _best(name: str, chip: Chips, row: int) -> Best:
    limit = "bandwidth" if chip.bandwidth_limited[row] else "power" if chip.power_limited[row] else "area"
    speedup, cores, dark, light, heavy = (
        float(values[row]) for values in (chip.speedup, chip.cores, chip.dark, chip.light, chip.heavy)
    )
    return Best(name, chip.organisation, chip.topology, speedup, cores, dark, light, heavy, limit)


def geomean(values: Sequence[float] | NDArray[np.float64]) -> float:
    """Geometric mean of positive numbers; not a number where one is missing."""
    return float(np.exp(np.mean(np.log(np.asarray(values, dtype=float)))))


def project(
    study: Study,
    suite: Suite,
    scaling: DeviceScaling,
    *,
    organisations: Sequence[str] = ORGANISATIONS,
    topologies: Sequence[str] = TOPOLOGIES,
    nodes: Sequence[str] = (),
) -> Projection:
    """The projection of `suite` at the named `nodes` (default: all). Raises PptError as `search` does."""
    chips = search(study, suite, scaling, organisations=organisations, topologies=topologies, nodes=nodes)
    return Projection(study, suite, scaling, tuple(chips))
