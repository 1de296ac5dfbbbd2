"""Functional simulation of L1 and L2: which level answers each memory operation, without time.

The input collector of GPUMech (paper 000, section V-A): the resident warps take turns, one memory operation each; a
block that is done makes place for the next. Caches, sectors and write policies are those of the simulator
(ppt_gpu/sm/README.md, "Memory"): the L1 of one SM and its slice of the L2, in which lines that other SMs or the host
brought are warm. A hit on a line that is still on its way, which takes time to see, is a hit here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.bounds.least_latency import entry_ops
from ppt_gpu.models.base.access_stream import caches_of
from ppt_gpu.models.base.cache_walk import walk
from ppt_gpu.models.base.warp_streams import WarpStreams
from ppt_gpu.sm.loop.memory import WAY, l1_way
from ppt_gpu.sm.program.machine import Machine, even_sets, set_index
from ppt_gpu.sm.program.program import KIND_ATOMIC, KIND_LOAD, KIND_STORE, Program

#: who answers: nobody is asked (a store, an access without lanes), or the farthest of the levels asked
LEVELS = ("none", "L1", "L2", "DRAM")
NONE, L1, L2, DRAM = range(len(LEVELS))


@dataclass(frozen=True)
class CacheOutcomes:
    """Of the M memory entries and O static operations of the simulated blocks. Sectors are the program's."""

    entry_op: NDArray[np.int64]  # [M]
    level: NDArray[np.uint8]  # [M] the slowest answer to any of the transactions
    fetched_lines: NDArray[np.int32]  # [M] transactions of loads and atomics that the L1 does not answer: MSHRs
    l2_sectors: NDArray[np.int32]  # [M] sectors asked of or sent to the L2
    dram_read: NDArray[np.int32]  # [M] sectors that come from DRAM
    written: NDArray[np.int32]  # [M] sectors that will have to go to DRAM: newly dirty in the L2, or written through
    l1_sectors: int  # looked up
    l1_hits: int
    dram_write_sectors: int  # that went to DRAM while the blocks ran

    @property
    def write_back(self) -> float:
        """DRAM writes for each sector in `written`: below 1 while the L2 keeps them."""
        written = int(self.written.sum())
        return self.dram_write_sectors / written if written else 0.0


def cache_outcomes(inputs: WarpStreams) -> CacheOutcomes:
    """Run the memory operations of the simulated blocks through the caches of one SM."""
    program = inputs.program
    machine = caches_of(inputs)
    ops = entry_ops(program)
    return simulate_caches(program, machine, ops, inputs.resident_blocks)


def simulate_caches(program: Program, machine: Machine, ops: NDArray[np.int64], resident: int) -> CacheOutcomes:
    """ops [M]: the operation of each memory entry; resident: blocks that the SM holds at once."""
    asks = np.isin(program.op_kind, (KIND_LOAD, KIND_STORE, KIND_ATOMIC))
    kind = np.where(asks, program.op_kind, -1).astype(np.int64)
    fetched, below, read, written = np.zeros((4, len(ops)), np.int32)
    level, totals = np.zeros(len(ops), np.uint8), np.zeros(3, np.int64)
    walk(
        program, machine, ops, kind, l1_way(program, machine) & WAY, resident,
        set_index(program, machine.l1_sets, machine.l1_index), even_sets(program, machine.l2_sets),
        level, fetched, below, read, written, totals,
    )  # fmt: skip
    return CacheOutcomes(ops, level, fetched, below, read, written, *(int(total) for total in totals))
