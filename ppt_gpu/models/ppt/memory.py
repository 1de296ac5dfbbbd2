"""Global memory in the models of the PPT family: a latency that grows with load (2015), mean access times (2019, 2021).

2015: github.com/lanl/PPT, accelerators.py of that year. 2019: PPT-GPU (Arafa et al., CAL 2019). 2021: PPT-GPU (Arafa et
al., SC 2021; github.com/NMSU-PEARL/PPT-GPU).
"""

from __future__ import annotations

from dataclasses import dataclass

from ppt_gpu.common.errors import PptError
from ppt_gpu.spec.gpu import Gpu


@dataclass(frozen=True)
class LoadedMemory:
    """An access waits longer, in proportion, the more than `free` others are pending; at `most` it is refused."""

    unloaded: int  # cycles
    loaded: int
    free: int  # accesses of one SM
    most: int


#: of the released code, by the name of the shipped GPU; measured by its authors
PUBLISHED = {
    "m2090": LoadedMemory(140, 800, 4, 12),
    "k40": LoadedMemory(230, 1000, 10, 40),
    "k6000": LoadedMemory(230, 1000, 10, 44),
    "pascal_ppt": LoadedMemory(230, 1000, 30, 120),
}


def loaded_memory(gpu: Gpu) -> tuple[LoadedMemory, bool]:
    """(the memory of `gpu`, whether it is published).

    Inferred where it is not: Little's law gives the accesses of a line that the SM's share of the bandwidth keeps in
    flight, latency x bandwidth / (SMs x line). With the published latencies that is 46 for the K40 (published: 40), 38
    for the K6000 (44), 125 for the projected Pascal (120), 19 for the M2090 (12). A quarter of them go unhindered, and
    the latency grows to 1000 / 230 of the unloaded one, as on the K40.
    """
    if gpu.name in PUBLISHED:
        return PUBLISHED[gpu.name], True
    latency = gpu.dram.latency
    most = max(round(latency * gpu.dram_bytes_per_cycle / gpu.sm.count / gpu.l2.line), 1)
    return LoadedMemory(latency, round(latency * 1000 / 230), most // 4, most), False


def ppt_memory_cycles(pending: int, latency: tuple[float, float], capacity: tuple[int, int]) -> tuple[bool, float]:
    """(accepted, cycles) of a global access while `pending` others are outstanding.

    `latency` = (unloaded, loaded) cycles; above `capacity[0]` pending accesses the latency grows by a share of the
    difference, at `capacity[1]` the access is refused.
    """
    low, high = latency
    free, most = capacity
    return pending < most, low + max(pending - free, 0) / most * (high - low)


def pending_latency(pending: int, memory: LoadedMemory) -> int:
    """`ppt_memory_cycles` of an accepted access in whole cycles, rounded up."""
    rise = max(pending - memory.free, 0) * (memory.loaded - memory.unloaded)
    return memory.unloaded + -(-rise // memory.most)


def mean_access_time(hit_rate: float, l2: float, l2_to_dram: float) -> float:
    """PPT-GPU 2019: AMT = P_hit L2 + (1 - P_hit) (L2 + L2 to DRAM), the latency of every global access, cycles."""
    if not 0 <= hit_rate <= 1:
        raise PptError(f"a hit rate of {hit_rate:g}")
    return hit_rate * l2 + (1 - hit_rate) * (l2 + l2_to_dram)


@dataclass(frozen=True)
class Traffic:
    """Transactions of a launch's memory instructions. PPT-GPU 2021."""

    requests: float  # memory instructions
    loads: float  # transactions
    stores: float
    l1_hit_rate: float  # of loads
    l2_hit_rate: float
    divergence: float  # transactions of an instruction, mean

    @property
    def l2(self) -> float:
        """What loads miss in the L1, and all stores."""
        return self.loads * (1 - self.l1_hit_rate) + self.stores

    @property
    def dram(self) -> float:
        return self.l2 * (1 - self.l2_hit_rate)


@dataclass(frozen=True)
class AccessTimes:
    """Cycles. `l2_service`, `dram_service`: one transaction on the network and at the DRAM."""

    l1: float
    l2: float
    dram: float
    l2_service: float
    dram_service: float
    channels: int


def access_time(traffic: Traffic, times: AccessTimes) -> float:
    """PPT-GPU 2021: mean cycles of a memory instruction.

    The slowest of L1, L2 and DRAM, each transaction after transaction (below the L1 as many side by side as there are
    channels, if accesses diverge that much), and the time of the transactions at the DRAM. That of the network is added
    where it is longer than an unloaded access.
    """
    if traffic.requests <= 0:
        return 0.0
    parallel = _side_by_side(traffic.divergence, times.channels)
    slowest = max(traffic.loads * times.l1, traffic.l2 * times.l2 / parallel, traffic.dram * times.dram / parallel)
    network = traffic.l2 * times.l2_service / parallel
    total = slowest + traffic.dram * times.dram_service / parallel
    if network > times.l2 + times.dram:
        total += network
    return float(-(-total // traffic.requests))


def _side_by_side(divergence: float, channels: int) -> float:
    return min(divergence, channels) if divergence >= min(channels, 17) else 1.0
