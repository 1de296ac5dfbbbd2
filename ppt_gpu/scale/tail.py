"""The end of a launch, when SMs that got fewer blocks have finished and the busiest ones have the memory to themselves.

One SM is simulated with 1/S of the bandwidth of L2 and DRAM. With n_max blocks on the busiest SM and n_mean on average,
and the busiest of the chip's two memory servers used a share u of the time, the part of the time that those servers
set shrinks to what the average SM needs:

    T' = T * (1 - u * (1 - n_mean / n_max))

For u = 1 that is the traffic of the whole grid at full bandwidth; for u = 0 the busiest SM's own time.
"""

from __future__ import annotations

from dataclasses import replace

from ppt_gpu.scale.prediction import KernelPrediction
from ppt_gpu.sm.result import SmResult
from ppt_gpu.spec.gpu import Gpu


def relieve_tail(prediction: KernelPrediction, gpu: Gpu) -> KernelPrediction:
    """`prediction` with the memory bandwidth that idle SMs leave to the busiest."""
    spread = prediction.plan.spread
    excess = 1.0 - spread.grid_blocks / spread.active_sms / spread.max_blocks
    gain = memory_load(prediction.result, gpu, spread.active_sms) * excess
    if gain < 0.001:
        return prediction
    text = f"the SMs with fewer blocks than the busiest leave it their bandwidth at the end: {gain:.1%} less time"
    return replace(prediction, cycles=prediction.cycles * (1.0 - gain), assumptions=(*prediction.assumptions, text))


def memory_load(result: SmResult, gpu: Gpu, active_sms: int) -> float:
    """Share of the simulated time, 0 to 1, in which this SM's slice of the busier of L2 and DRAM was serving."""
    dram = gpu.dram_bytes_per_cycle * gpu.dram.efficiency / active_sms
    l2 = gpu.l2.bandwidth / active_sms
    reads, writes = result.dram_read_bytes, result.dram_write_bytes
    mixed = 2.0 * gpu.dram.turnaround * reads * writes / max(reads + writes, 1)
    busy = max(
        (reads + writes + mixed) / dram,
        (result.l2_read_bytes + result.l2_write_bytes) / l2,
    )
    return min(busy / max(result.cycles, 1), 1.0)
