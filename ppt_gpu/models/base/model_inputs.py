"""What every analytical model reads: the streams of the warps, and how their memory operations are answered."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ppt_gpu.models.base.cache_outcomes import CacheOutcomes, cache_outcomes
from ppt_gpu.models.base.operation_latency import OperationLatency, operation_latency
from ppt_gpu.models.base.warp_streams import WarpStreams


@dataclass(frozen=True, eq=False)
class ModelInputs(WarpStreams):
    """One launch on one GPU. What costs more than a look at the streams is reckoned when a model first asks."""

    @cached_property
    def caches(self) -> CacheOutcomes:
        """Which level of L1, L2 and DRAM answers each memory operation, from a functional simulation."""
        return cache_outcomes(self)

    @cached_property
    def latencies(self) -> OperationLatency:
        """Mean latency of every operation, and what it asks of MSHRs, L2 and DRAM."""
        return operation_latency(self, self.caches)
