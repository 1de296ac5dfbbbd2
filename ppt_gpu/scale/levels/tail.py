"""What the busiest SMs of a launch gain from those that have less to do.

One SM is simulated with its share of the bandwidth and room of L2 and DRAM, which are the chip's: with n of a grid's N
blocks n/N of them (`GridSpread.busiest_share`), as requests are served in the order in which they come and the SM makes
n/N of them. So a launch that memory limits takes as long as the traffic of the whole grid at full bandwidth, and one
that waits for latencies as long as its busiest SM alone.
"""

from __future__ import annotations

from ppt_gpu.sm.program.result import SmResult
from ppt_gpu.spec.gpu import Gpu


def memory_load(result: SmResult, gpu: Gpu, active_sms: int) -> float:
    """Share of the simulated time, 0 to 1, in which this SM's slice of the busier of L2 and DRAM was serving."""
    dram = gpu.dram_bytes_per_cycle * gpu.dram.efficiency / active_sms
    reads, writes = result.dram_read_bytes, result.dram_write_bytes
    mixed = 2.0 * gpu.dram.turnaround * reads * writes / max(reads + writes, 1)
    return max(min((reads + writes + mixed) / dram / max(result.cycles, 1), 1.0), l2_load(result, gpu, active_sms))


def l2_load(result: SmResult, gpu: Gpu, active_sms: int) -> float:
    """Share of the simulated time, 0 to 1, in which this SM's share of the way to the L2 was busy."""
    moved = result.l2_read_bytes + result.l2_write_bytes
    return min(moved * active_sms / gpu.l2_way(active_sms) / max(result.cycles, 1), 1.0)
