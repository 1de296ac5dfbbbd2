"""The fastest symmetric chip of known cores for each kernel and node (Blem, figures 4.17, 4.18 and 5.6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.multicore.base.device_scaling import DeviceScaling, Node
from ppt_gpu.multicore.dark_silicon.known_cores import KINDS, KnownCore, KnownCores, fits
from ppt_gpu.multicore.dark_silicon.projection import geomean

Array = NDArray[np.float64]


class ChipTime(Protocol):
    """Seconds that each kernel takes on a chip of `count` cores `core` at `node`; infinite where it cannot run."""

    def __call__(self, core: KnownCore, node: Node, count: int) -> Array: ...


@dataclass(frozen=True)
class KnownChips:
    """The fastest chips of one node and kind of core; arrays over the kernels."""

    node: str
    kind: str
    speedup: Array  # over the baseline chip at the first node
    cores: tuple[str, ...]  # the chosen core
    count: Array
    dark: Array
    power_limited: NDArray[np.bool_]

    @property
    def geomean(self) -> float:
        """Of the speedups."""
        return geomean(self.speedup)


@dataclass(frozen=True)
class KnownProjection:
    """What `project_known` found."""

    known: KnownCores
    kernels: tuple[str, ...]
    scaling: DeviceScaling
    model: str
    chips: tuple[KnownChips, ...]

    def at(self, node: str, kind: str) -> KnownChips:
        """The chips of a node and a kind of core."""
        return next(chips for chips in self.chips if (chips.node, chips.kind) == (node, kind))


def project_known(
    known: KnownCores,
    kernels: Sequence[str],
    scaling: DeviceScaling,
    model: str,
    time: ChipTime,
    base: ChipTime | None = None,
) -> KnownProjection:
    """The fastest chip of S-cores and of M-cores for each kernel, by `time`; of equal ones the first core.

    `model` says what predicts the time; `base` does for the baseline chip, if not `time`. Raises PptError where no core
    of a kind fits the budget of a node.
    """
    before = (base or time)(known.baseline, scaling.nodes[0], known.baseline_cores)
    found = []
    for kind in (kind for kind in KINDS if known.of(kind)):
        rooms = fits(known, scaling, kind)
        for node in scaling.nodes:
            here = [fit for fit in rooms if fit.node == node.name]
            times = [time(fit.core, node, fit.count) if fit.count else np.full(len(kernels), np.inf) for fit in here]
            speedup = before / np.array(times)
            best = speedup.argmax(axis=0)
            chosen = [here[index] for index in best]
            found.append(
                KnownChips(
                    node.name,
                    kind,
                    speedup.max(axis=0),
                    tuple(fit.core.name for fit in chosen),
                    np.array([float(fit.count) for fit in chosen]),
                    np.array([fit.dark for fit in chosen]),
                    np.array([fit.power_limited for fit in chosen]),
                )
            )
    return KnownProjection(known, tuple(kernels), scaling, model, tuple(found))
