"""Queues for MSHRs and DRAM: GPUMech's contention model (paper 000, section IV-B, Eqs. 17-23).

An interval's requests of all warps of a core come together. MSHRs serve them in batches of a miss latency each; DRAM is
an M/D/1 queue, capped at half of what can be before a request. For a utilisation of 1 and more the cap is used: the
printed minimum would be negative (docs/models.md).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class MshrDelay:
    """Of every interval, in cycles."""

    batches: Array  # mean number of the batch that a request is served in
    queueing: Array  # Eq. 19
    delay: Array  # Eq. 20


def mshr_delay(core_requests: Array, mshrs: int, miss_latency: float, memory_insts: Array) -> MshrDelay:
    """Eqs. 19, 20. core_requests (Eq. 18): of all warps in each interval; memory_insts: of one warp."""
    n = np.asarray(core_requests, np.float64)
    batches = mean_batch(n, mshrs)
    queueing = miss_latency * (batches - 1.0)
    return MshrDelay(batches, queueing, np.where(n > mshrs, queueing * np.asarray(memory_insts, np.float64), 0.0))


def mean_batch(requests: Array, size: int) -> Array:
    """Mean of ceil(j / size) over j = 1 ... n, in closed form; 1 for n = 0. n may be a fraction."""
    n = np.maximum(np.asarray(requests, np.float64), 0.0)
    full = np.floor(n / size)
    rest = n - full * size
    total = size * full * (full + 1.0) / 2.0 + rest * (full + 1.0)
    found: Array = np.where(n > 0, total / np.maximum(n, 1e-300), 1.0)
    return found


@dataclass(frozen=True)
class BandwidthDelay:
    """Of every interval, in cycles."""

    service: float  # cycles of one request at the DRAM
    arrivals: Array  # Eq. 23, requests a cycle
    utilisation: Array  # Eq. 22
    cap: Array
    delay: Array  # Eq. 21


def bandwidth_delay(core_requests: Array, cores: int, cycles: Array, service: float) -> BandwidthDelay:
    """Eqs. 21-23. core_requests: that reach DRAM, of all warps of a core; cycles: of each interval alone."""
    requests = np.asarray(core_requests, np.float64) * cores
    arrivals = np.where(requests > 0, requests / np.maximum(np.asarray(cycles, np.float64), 1e-300), 0.0)
    utilisation = arrivals * service
    cap = service * requests / 2.0
    room = np.maximum(1.0 - utilisation, 1e-300)
    queue = np.minimum(arrivals * service**2 / (2.0 * room), cap)
    return BandwidthDelay(service, arrivals, utilisation, cap, np.where(utilisation >= 1.0, cap, queue))
