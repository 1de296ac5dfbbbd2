"""Level "workload": the extrapolation of the PPT GPU module, one max-block workload on one SM scaled to the grid.

"PPT GPU module": the Performance Prediction Toolkit's GPU hardware model (paper 003 of the project's list, section 3);
details that the paper leaves open follow the behaviour of its released 2015 revision (github.com/lanl/PPT). With C the
cycles until the last block of the workload ended, e_j the end of block j, E the mean of e_j, S SMs and L workloads:

    overlap = 1 - E / C                                                       share in which blocks already end
    w_mean  = (1 / L) * [n_0 * C + sum over later rounds of n_r * C * (1 - overlap)],     n_r = min(S, workloads left)
    total   = floor(L / S) * w_mean + (E if L mod S) + trailing stores
"""

from __future__ import annotations

import numpy as np

from ppt_gpu.errors import PptError
from ppt_gpu.scale.grid import SmPlan
from ppt_gpu.scale.prediction import KernelPrediction, PptTerms
from ppt_gpu.sm.result import SmResult
from ppt_gpu.spec.gpu import Gpu


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


def workload_prediction(result: SmResult, plan: SmPlan) -> KernelPrediction:
    """Scale the first wave of one SM (`plan` of level "workload") to the grid.

    The rule credits the overlap of successive workloads whether or not the hardware has room for it, so it can fall
    below what the busiest resource needs: see KernelPrediction.raised_to.
    """
    blocks = len(plan.blocks)
    if len(result.block_end) != blocks:
        raise PptError(f"{len(result.block_end)} blocks were simulated; the plan has {blocks}")
    last = float(np.max(result.block_end))
    terms = extrapolate_workload(
        workload=last,
        block_average=float(np.mean(result.block_end)),
        workloads=-(-plan.spread.grid_blocks // blocks),
        sms=plan.spread.sms,
        trailing=result.cycles - last,
    )
    if plan.exact:
        text = f"all {blocks} blocks of the busiest SM fit in one workload, which was simulated"
        return KernelPrediction(float(result.cycles), plan, result, (text,), terms.workload, ppt=terms)
    text = (
        f"one workload of {blocks} blocks was simulated on one SM and extrapolated to {terms.workloads} workloads "
        f"with the PPT overlap rule (overlap {terms.overlap:.1%})"
    )
    return KernelPrediction(terms.cycles, plan, result, (text,), terms.mean_workload, ppt=terms)


def ppt_blocks_per_sm(gpu: Gpu, threads_per_block: int, registers_per_thread: int, grid_blocks: int) -> int:
    """The module's own occupancy rule, without allocation units: min of four limits. Kept to compare with."""
    sm = gpu.sm
    return min(
        sm.max_blocks,
        sm.max_warps * sm.warp_size // threads_per_block,
        sm.registers // (threads_per_block * max(registers_per_thread, 1)),
        -(-grid_blocks // sm.count),
    )


def ppt_memory_cycles(pending: int, latency: tuple[float, float], capacity: tuple[int, int]) -> tuple[bool, float]:
    """(accepted, cycles) of a global access while `pending` others are outstanding.

    `latency` = (unloaded, loaded) cycles; above `capacity[0]` pending accesses the latency grows by a share of the
    difference, at `capacity[1]` the access is refused.
    """
    low, high = latency
    free, most = capacity
    return pending < most, low + max(pending - free, 0) / most * (high - low)
