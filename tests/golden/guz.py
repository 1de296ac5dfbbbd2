"""Many cores or many threads: the unified model of Guz et al. (CAL 2009), with its valley between cache and threads."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.multicore.base.suite import miss_rate
from ppt_gpu.multicore.base.upper_bound import utilisation
from ppt_gpu.multicore.base.values import Values, require


@dataclass(frozen=True)
class Machine:
    """A chip of `elements` processing elements that share one cache. Defaults: as remembered from the paper."""

    elements: int = 1024
    clock: float = 1e9  # Hz
    cpi: float = 1.0
    loads: float = 0.2  # memory instructions per instruction
    cache: float = 16 * 2.0**20  # B
    alpha: float = 7.0
    beta: float = 50 * 2.0**10  # B; the unit is inferred: bytes would leave no valley
    cache_latency: float = 1.0  # cycles
    memory_latency: float = 200.0  # cycles
    bandwidth: float = np.inf  # B/s
    operand: float = 4.0  # B a memory instruction moves


@dataclass(frozen=True)
class Outcome:
    """The model's terms at a number of threads."""

    hit_rate: NDArray[np.float64]
    access_time: NDArray[np.float64]  # cycles
    utilisation: NDArray[np.float64]
    unlimited: NDArray[np.float64]  # instructions/s without a limit of bandwidth
    performance: NDArray[np.float64]  # instructions/s


def outcome(machine: Machine, threads: Values) -> Outcome:
    """All terms for `threads` threads on the chip (an array gives the curve). Raises PptError below one thread."""
    threads = require("the number of threads", threads, least=1)
    missing = miss_rate(machine.cache, machine.alpha, machine.beta, sharers=threads)
    hits = 1.0 - missing
    t = hits * machine.cache_latency + missing * machine.memory_latency
    eta = utilisation(threads / machine.elements, t, machine.loads, machine.cpi)
    unlimited = machine.elements * machine.clock / machine.cpi * eta
    limit = machine.bandwidth / (machine.loads * machine.operand * missing)
    return Outcome(hits, np.asarray(t), eta, np.asarray(unlimited), np.asarray(np.minimum(unlimited, limit)))
