"""What one SM simulation yields: numbers only; reports are made from them elsewhere."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

#: Every warp cycle of a resident, unfinished warp has exactly one of these reasons (profiler names).
STALL_REASONS = (
    "selected",  # issued in this cycle
    "not_selected",  # eligible, another warp was picked
    "wait",  # fixed-latency dependency (short) on an arithmetic result
    "math_pipe_throttle",  # the execution pipe is busy
    "long_scoreboard",  # waits for global, local or texture memory
    "short_scoreboard",  # waits for shared memory, SFU or another variable-latency unit
    "lg_throttle",  # load/store queue or MSHRs full (global, local)
    "mio_throttle",  # load/store pipe busy (shared, constant)
    "barrier",  # waits for the other warps of the block
    "branch_resolving",  # waits for a branch
    "no_instruction",  # waits for its next instruction line
    "drain",  # all instructions issued, stores or results outstanding
)


@dataclass(frozen=True)
class SmResult:
    """One SM, from the first block's launch to the last completion. Cycles are SM cycles."""

    cycles: int
    issued: int  # warp instructions (machine operations)
    block_start: NDArray[np.int64]  # [B] cycle
    block_end: NDArray[np.int64]  # [B] cycle
    warp_cycles: NDArray[np.int64]  # [len(STALL_REASONS)] resident warp cycles by reason; they sum to the total
    op_issued: NDArray[np.int64]  # [O] issues of each static operation
    op_stall: NDArray[np.int64]  # [O, len(STALL_REASONS)] warp cycles spent waiting to issue that operation
    pipe_busy: NDArray[np.int64]  # [pipes] unit-cycles busy, summed over units
    l1_accesses: int  # sectors (or lines) looked up
    l1_hits: int
    l2_accesses: int  # sectors
    l2_hits: int
    dram_read_bytes: int  # traffic of this SM
    dram_write_bytes: int
    l2_read_bytes: int
    l2_write_bytes: int
    shared_passes: int  # bank-conflict passes in shared memory
    shared_accesses: int
    wall: float  # s of host CPU time in the compiled loop
    skipped_cycles: int = 0  # of `cycles`: the loop passed over them, as what goes on repeats; the result is the same
    approximate_cycles: int = 0  # of `cycles`: not simulated, taken to go like those before (approximate loop skipping)
    estimated_operations: int = 0  # of memory: their hits and traffic are those of others, scaled (the same)
