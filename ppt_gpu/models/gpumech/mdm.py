"""MDM: contention of memory-divergent kernels (Wang, Jahre, Adileh, Eeckhout, MICRO 2020; as GCoM uses it).

A divergent interval, one with more requests than MSHRs, runs in batches: each waits for the miss latency and for the
interconnect and DRAM to serve the requests of all SMs. Others queue behind half of what the SMs send at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.models.base.model_inputs import ModelInputs

Array = NDArray[np.float64]


class Asked(Protocol):
    """What one warp asks of memory in each interval."""

    @property
    def fetched(self) -> Array: ...  # requests that hold an MSHR
    @property
    def l2_read(self) -> Array: ...  # sectors
    @property
    def l2_write(self) -> Array: ...
    @property
    def dram_read(self) -> Array: ...
    @property
    def dram_write(self) -> Array: ...


@dataclass(frozen=True)
class MdmDelay:
    """Of every interval; cycles."""

    divergent: NDArray[np.bool_]
    saturated: NDArray[np.bool_]  # the interconnect is
    queue_noc: Array
    queue_dram: Array
    mshr: Array


def mdm_delay(
    read_misses: Array,
    write_misses: Array,
    l2_miss_rate: Array,
    *,
    warps: int,
    sms: int,
    mshrs: Array | float,
    noc_service: float,
    dram_service: float,
    l2_latency: float,
    dram_latency: float,
    written_through: Array | float = 0.0,
) -> MdmDelay:
    """read_misses, write_misses: requests of one warp in each interval that the L1 does not answer.

    noc_service, dram_service: cycles of the whole chip for a request. dram_latency: beyond the L2's. written_through:
    share of the writes that go to DRAM, 0 for an L2 that keeps them.
    """
    reads, writes = np.asarray(read_misses, np.float64) * warps, np.asarray(write_misses, np.float64) * warps
    divergent = reads > mshrs
    at_once = np.minimum(reads, mshrs)
    latency = l2_latency + l2_miss_rate * dram_latency
    saturated = divergent & (noc_service * (at_once + writes) * sms > l2_latency + dram_latency)
    before = np.where(saturated, 1.0, 0.5)  # of the requests of all SMs, how many are served before
    queue_noc = before * sms * (at_once + writes) * noc_service
    queue_dram = before * sms * (at_once * l2_miss_rate + writes * written_through) * dram_service
    batch = latency + before * sms * at_once * (noc_service + l2_miss_rate * dram_service)
    mshr = np.where(divergent, batch * (np.ceil(reads / mshrs) - 1.0), 0.0)
    return MdmDelay(divergent, saturated, queue_noc, queue_dram, mshr)


def mdm_of(inputs: ModelInputs, core: Asked, warps: int) -> MdmDelay:
    """MDM for the intervals of a warp. Requests count in sectors, MSHRs in as many as their requests ask for."""
    gpu, sector = inputs.gpu, inputs.program.sector_bytes
    size = np.where(core.fetched > 0, core.l2_read / np.maximum(core.fetched, 1e-300), 1.0)
    noc = min(gpu.interconnect.bandwidth * inputs.active_sms, gpu.l2.bandwidth)
    return mdm_delay(
        core.l2_read,
        core.l2_write,
        _share(core.dram_read, core.l2_read),
        warps=warps,
        sms=inputs.active_sms,
        mshrs=gpu.l1.mshrs * size,
        noc_service=sector / noc,
        dram_service=sector / (gpu.dram_bytes_per_cycle * gpu.dram.efficiency),
        l2_latency=gpu.l2.latency,
        dram_latency=max(gpu.dram.latency - gpu.l2.latency, 0),
        written_through=_share(core.dram_write, core.l2_write),
    )


def _share(part: Array, whole: Array) -> Array:
    found: Array = np.where(whole > 0, np.minimum(part / np.maximum(whole, 1e-300), 1.0), 0.0)
    return found
