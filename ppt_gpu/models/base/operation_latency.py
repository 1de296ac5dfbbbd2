"""What an execution of each machine operation costs on average: latency, and what it asks of MSHRs and DRAM.

The latency of a memory operation is its average memory access time (AMAT): latencies of the levels, weighted by how
often each was the slowest to answer (paper 000, section V-B). Latencies count from issue to the issue of a dependent.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.compiled import entry as compiled_entry
from ppt_gpu.models.base.cache_outcomes import DRAM, L1, L2, LEVELS, NONE, CacheOutcomes
from ppt_gpu.models.base.warp_streams import WarpStreams
from ppt_gpu.sm.program.program import KIND_ATOMIC, KIND_CONSTANT, KIND_LOAD, KIND_SHARED, KIND_STORE, Program
from ppt_gpu.spec.gpu import Gpu


@dataclass(frozen=True)
class OperationLatency:
    """Of O static operations; everything by execution, mean over all simulated warps."""

    latency: NDArray[np.float64]  # [O] cycles
    share: NDArray[np.float64]  # [O, 4] of LEVELS, how often each answers; loads and atomics only, else 0
    fetched_lines: NDArray[np.float64]  # [O] requests that hold an MSHR
    l2_read: NDArray[np.float64]  # [O] sectors that the L2 is asked for
    l2_write: NDArray[np.float64]  # [O] sectors that are sent to it
    dram_read: NDArray[np.float64]  # [O] sectors that come from DRAM
    dram_write: NDArray[np.float64]  # [O] sectors that DRAM will have to write
    miss_latency: float  # cycles of a load or atomic that the L1 does not answer, mean; 0: there is none

    @property
    def may_miss(self) -> NDArray[np.float64]:
        """[O] probability that an execution waits for L2 or DRAM."""
        found: NDArray[np.float64] = self.share[:, L2] + self.share[:, DRAM]
        return found


def amat(latencies: NDArray[np.float64], shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Average memory access time: latencies [levels] weighted with shares [..., levels]."""
    found: NDArray[np.float64] = shares @ latencies
    return found


def level_latencies(gpu: Gpu) -> NDArray[np.float64]:
    """[LEVELS] cycles until data of each level can be used."""
    below = float(gpu.l1.latency + gpu.memory.miss_latency)
    if gpu.perfect_memory:
        return np.array([gpu.l1.latency, gpu.l1.latency, below, below], np.float64)
    return np.array([gpu.l1.latency, gpu.l1.latency, gpu.l2.latency, gpu.dram.latency], np.float64)


def operation_latency(inputs: WarpStreams, outcomes: CacheOutcomes) -> OperationLatency:
    """From what the caches answered to the cost of every operation."""
    program, gpu = inputs.program, inputs.gpu
    kind = program.op_kind
    answers = np.isin(kind, (KIND_LOAD, KIND_ATOMIC))
    sums = sums_by_operation(program, outcomes)
    mean = sums[:, 1:] / np.maximum(sums[:, :1], 1.0)
    share = np.where(answers[:, None], mean[:, :4], 0.0)
    share[:, L1] += share[:, NONE]  # no lane was active: as a hit
    share[:, NONE] = 0.0
    fetched, below, read, written, passes, updates = mean[:, 4:].T
    levels = level_latencies(gpu)
    latency = program.op_latency.astype(np.float64)
    latency[answers] = amat(levels, share)[answers]
    if len(program.access_atomic):
        again = (updates - 1.0) / gpu.memory.atomics_per_cycle
        latency[kind == KIND_ATOMIC] += np.maximum(again, 0.0)[kind == KIND_ATOMIC]
    shared = kind == KIND_SHARED
    latency[shared] = gpu.shared.latency + np.maximum(passes - 1.0, 0.0)[shared]
    latency[kind == KIND_CONSTANT] = gpu.memory.constant_latency
    latency[kind == KIND_STORE] = 0.0
    missed = sums[:, 1 + L2 : 1 + len(LEVELS)].sum(axis=0)
    return OperationLatency(
        latency=latency,
        share=share,
        fetched_lines=fetched,
        l2_read=np.where(answers, below, 0.0),
        l2_write=np.where(answers, 0.0, below),
        dram_read=read,
        dram_write=written * outcomes.write_back,
        miss_latency=float(missed @ levels[L2:] / missed.sum()) if missed.sum() else 0.0,
    )


def sums_by_operation(program: Program, outcomes: CacheOutcomes) -> NDArray[np.float64]:
    """[O, 11] over the memory entries of each operation: how many there are, how many of each of LEVELS, fetched lines,
    L2 sectors, sectors read from DRAM, sectors written, cycles in the load/store unit, updates of the same address."""
    sums = np.zeros((len(program.op_name), 11))
    _sum(
        outcomes.entry_op, outcomes.level, outcomes.fetched_lines, outcomes.l2_sectors, outcomes.dram_read,
        outcomes.written, program.access_cycles, program.access_atomic, sums,
    )  # fmt: skip
    return sums


@compiled_entry
def _sum(
    ops: np.ndarray, level: np.ndarray, fetched: np.ndarray, below: np.ndarray, read: np.ndarray, written: np.ndarray,
    passes: np.ndarray, updates: np.ndarray, sums: np.ndarray,
) -> None:  # fmt: skip
    for access in range(len(ops)):
        op = ops[access]
        sums[op, 0] += 1.0
        sums[op, 1 + level[access]] += 1.0
        sums[op, 5] += fetched[access]
        sums[op, 6] += below[access]
        sums[op, 7] += read[access]
        sums[op, 8] += written[access]
        sums[op, 9] += passes[access]
        if len(updates) > 0:
            sums[op, 10] += updates[access]
