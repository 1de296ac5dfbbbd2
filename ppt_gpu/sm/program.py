"""What the SM simulator runs: machine operations and memory transactions in flat arrays, ready for the compiled loop.

Lowered from a trace (`ppt_gpu.sm.lower.lower_trace`) or a task list (`lower_tasklist`) for one GPU.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

#: memory behaviour of a transaction when the caches are not looked up (task lists with given hit rates)
FORCED_L1, FORCED_L2, FORCED_DRAM = -1, -2, -3


@dataclass(frozen=True)
class Program:
    """O static machine operations, E entries over all paths, P paths, W warps, M memory entries, T transactions, L lines.

    An entry waits for `wait` (bit s: scoreboard slot s must be complete) and announces its completion in `slot`.
    """

    # static operations
    op_name: tuple[str, ...]  # [O]
    op_pipe: NDArray[np.int32]  # [O] pipe index
    op_latency: NDArray[np.int32]  # [O] cycles
    op_ii: NDArray[np.int32]  # [O] cycles
    op_kind: NDArray[np.int8]  # [O] ppt_gpu.sm.program.KIND_*
    op_pc: NDArray[np.int32]  # [O] source instruction (PTX index or task number), for hot spots
    op_class: NDArray[np.int32]  # [O] index into TASK_CLASSES
    # paths
    path_start: NDArray[np.int64]  # [P+1]
    entry_op: NDArray[np.int32]  # [E]
    entry_wait: NDArray[np.uint64]  # [E]
    entry_slot: NDArray[np.int8]  # [E] -1: nobody waits
    # warps: in block order
    warp_path: NDArray[np.int32]  # [W]
    warp_access: NDArray[np.int64]  # [W+1] first memory entry of the warp in the arrays below
    block_warp: NDArray[np.int64]  # [B+1] first warp of each block, blocks in launch order
    # memory entries, one per executed memory operation, in stream order
    access_start: NDArray[np.int64]  # [M+1] into the transactions
    access_cycles: NDArray[np.int32]  # [M] cycles in the load/store pipe: bank-conflict passes or transactions
    # transactions (global, local): dense line ids
    tx_line: NDArray[np.int32]  # [T] line id, or FORCED_*
    tx_sectors: NDArray[np.uint8]  # [T] sector mask within the line
    # lines
    line_address: NDArray[np.uint64]  # [L]
    line_warm: NDArray[np.uint8]  # [L] 1: first touch finds it in the L2 (host copy, or fetched by another SM)
    thread_instructions: int = 0
    scoreboard_slots: int = 64


KIND_COMPUTE, KIND_BRANCH, KIND_BARRIER, KIND_LOAD, KIND_STORE, KIND_ATOMIC, KIND_SHARED, KIND_CONSTANT = range(8)
