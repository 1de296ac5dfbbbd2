"""How fast an SM serves each of n resident blocks, and how long simulated blocks are by that measure.

f(n) is the speed of a block among n, relative to one among R, a full SM: f(R) = 1. It is measured: the same blocks
are simulated with 1, 2, 4, ... R slots, and f(n) = mean residence among R / mean residence among n, with residence
linear in n in between. A block's length is the service that it got, integral of f(n(t)) dt over its residence: its
residence on a full SM. Serving blocks of those lengths again (ppt_gpu.scale.levels.dispatch) gives the simulated times
back.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.threads import ordered
from ppt_gpu.sm.program.result import SmResult


def speeds(simulate: Callable[[int], SmResult], resident: int) -> NDArray[np.float64]:
    """[R] f(1) ... f(R), never rising. `simulate(n)` runs the same blocks, about R of them, in n slots; in threads."""
    if resident == 1:
        return np.ones(1)
    counts = sorted({*(1 << k for k in range(resident.bit_length()) if 1 << k < resident), resident})
    results = ordered(simulate, counts)
    residence = np.array([float(np.mean(result.block_end - result.block_start)) for result in results])
    residence = np.maximum.accumulate(np.maximum(residence, 1.0))
    at = np.arange(1, resident + 1)
    return residence[-1] / np.interp(at, counts, residence)


def lengths(result: SmResult, speed: NDArray[np.float64]) -> NDArray[np.float64]:
    """[B] the length of each simulated block, cycles at full residency."""
    times = np.concatenate((result.block_start, result.block_end))
    change = np.concatenate((np.ones(len(result.block_start), np.int64), -np.ones(len(result.block_end), np.int64)))
    moments, position = np.unique(times, return_inverse=True)
    held = np.cumsum(np.bincount(position, weights=change, minlength=len(moments))).astype(np.int64)
    rate = np.where(held > 0, speed[(held - 1).clip(0, len(speed) - 1)], 0.0)
    served = np.concatenate(([0.0], np.cumsum(rate[:-1] * np.diff(moments))))
    blocks = len(result.block_start)
    return served[position[blocks:]] - served[position[:blocks]]
