"""What blocks of different length wait for memory that all SMs share, over the course of a launch.

Blocks are dispatched as if memory had no limit: in a time that goes on as fast as latencies and the SMs themselves let
them (virtual time). How much of L2 and DRAM the blocks that run at a moment ask for, u, 1 being all that there is, says
how much longer that moment takes: by (1 + u^p)^(1/p), which is 1 where memory idles, u where nothing else counts, and
rounder in between the lower p is. Blocks wait for memory alike, so their order stays; and at the end of a launch, when
a few long blocks are left, these wait for latencies only, as nobody else asks for anything.

p is a property of the kernel: how well its warps overlap what memory has to move with all else. It is found from two
simulations of the same blocks on one SM, one with its share of the bandwidth, one with no limit: stretched like this,
the one without is as long as the other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.spec.gpu import Gpu

#: p at least, when all waits for memory come on top of everything else, and at most, when nearly none does
LEAST, MOST = 1.0, 20.0


def unlimited(gpu: Gpu, sms: int) -> Gpu:
    """`gpu` for one of `sms` SMs that may use what all of them have of the L2 and of DRAM, of each as much."""
    dram = replace(gpu.dram, bandwidth=gpu.dram.bandwidth * sms, rows_per_ns=gpu.dram.rows_per_ns * sms)
    return replace(gpu, dram=dram, l2=replace(gpu.l2, bandwidth=gpu.l2.bandwidth * sms))


@dataclass(frozen=True)
class Course:
    """Of blocks that ran without waiting for bandwidth: what they asked of memory, from moment to moment."""

    first: float  # cycles until the first of them started
    use: NDArray[np.float64]  # [n] what they ask for between two moments at which a block starts or ends; 1: all
    lasts: NDArray[np.float64]  # [n] cycles from one to the next

    def stretched(self, p: float, earlier: float = 0.0) -> float:
        """Cycles until all blocks have ended.

        `earlier`: cycles in which memory would move what blocks asked for that ran before the first of these.
        """
        before = float((self.first**p + earlier**p) ** (1.0 / p))
        return before + float((self.lasts * (1.0 + self.use**p) ** (1.0 / p)).sum())

    def overlap(self, cycles: float) -> float:
        """The p with which these blocks take `cycles`; LEAST to MOST."""
        low, high = LEAST, MOST
        for _ in range(40):
            middle = (low + high) / 2.0
            low, high = (middle, high) if self.stretched(middle) > cycles else (low, middle)
        return low


def course(start: NDArray[np.float64], end: NDArray[np.float64], demand: NDArray[np.float64]) -> Course:
    """Of blocks that without waiting for bandwidth run from `start` to `end`, [B] each.

    demand: [B] cycles in which memory would move what each block asks for; it asks evenly while it runs.
    """
    times = np.concatenate((start, end))
    rate = demand / np.maximum(end - start, 1.0)
    order = np.argsort(times, kind="stable")
    use = np.cumsum(np.concatenate((rate, -rate))[order])[:-1].clip(0.0)
    return Course(float(start.min()), use, np.diff(times[order]))
