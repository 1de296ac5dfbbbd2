"""From one workload on one SM to the grid, by the PPT GPU module's overlap of successive workloads.

"PPT GPU module": the Performance Prediction Toolkit's GPU hardware model (paper 003 of the project's list, section 3);
details that the paper leaves open follow the behaviour of its released 2015 revision (github.com/lanl/PPT). With C the
cycles until the last block of the workload ended, e_j the end of block j, E the mean of e_j, S SMs and L workloads:

    overlap = 1 - E / C                                                       share in which blocks already end
    w_mean  = (1 / L) * [n_0 * C + sum over later rounds of n_r * C * (1 - overlap)],     n_r = min(S, workloads left)
    total   = floor(L / S) * w_mean + (E if L mod S) + trailing stores
"""

from __future__ import annotations

from dataclasses import dataclass

from ppt_gpu.common.errors import PptError
from ppt_gpu.spec.gpu import Gpu


@dataclass(frozen=True)
class PptTerms:
    """The terms of the PPT overlap rule, in cycles."""

    workload: float  # C: until the last block of the simulated workload ended
    block_average: float  # E: mean end of its blocks
    overlap: float  # 1 - E / C
    mean_workload: float  # of all workloads
    workloads: int
    cycles: float  # all workloads with the trailing stores, without launch overhead


def extrapolate_workload(
    workload: float,
    block_average: float,
    workloads: int,
    sms: int,
    trailing: float = 0.0,
    *,
    literal: bool = False,
) -> PptTerms:
    """The overlap rule. Cycles in, cycles out.

    `literal` keeps the released code's end of the schedule: when the workloads do not divide by the SMs, the last ones
    take E instead of C even if they are the only ones. Otherwise a launch never ends before its first workload has.
    PptError unless 0 < block_average <= workload and workloads, sms >= 1.
    """
    if not 0 < block_average <= workload or workloads < 1 or sms < 1:
        raise PptError(
            f"{workloads} workloads of {workload} cycles, mean block end {block_average}, on {sms} SMs",
            hint="a workload has a mean block end between 0 and its own end, and there is at least one",
        )
    overlap = 1 - block_average / workload
    first = min(sms, workloads)
    mean = (first * workload + (workloads - first) * workload * (1 - overlap)) / workloads
    rounds, rest = divmod(workloads, sms)
    last = rounds * mean + (block_average if rest else 0.0)
    if not literal:
        last = max(last, workload)
    return PptTerms(workload, block_average, overlap, mean, workloads, last + trailing)


def ppt_blocks_per_sm(gpu: Gpu, threads_per_block: int, registers_per_thread: int, grid_blocks: int) -> int:
    """The module's own occupancy rule, without allocation units: min of four limits. Kept to compare with."""
    sm = gpu.sm
    return min(
        sm.max_blocks,
        sm.max_warps * sm.warp_size // threads_per_block,
        sm.registers // (threads_per_block * max(registers_per_thread, 1)),
        -(-grid_blocks // sm.count),
    )
