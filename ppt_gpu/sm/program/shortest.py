"""The shortest program, which is simulated to have the SM loop compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.sm.program.ops import kind_of, pipe_order
from ppt_gpu.sm.program.program import Program
from ppt_gpu.spec.gpu import TASK_CLASSES, Gpu


def shortest_program(gpu: Gpu) -> Program:
    """One warp with one integer operation. What lowers kernels is compiled code, too, and would come first."""
    op = gpu.isa.op("int32")

    def one(value: int, kind: type[np.generic] = np.int32) -> NDArray[Any]:
        return np.array([value], kind)

    def ends(count: int) -> NDArray[np.int64]:
        return np.array([0, count], np.int64)

    return Program(
        op_name=("int32",),
        op_pipe=one(pipe_order(gpu).index(op.pipe)),
        op_latency=one(op.latency),
        op_ii=one(op.ii),
        op_kind=one(kind_of("int32"), np.int8),
        op_pc=one(0),
        op_class=one(TASK_CLASSES.index("int32")),
        path_start=ends(1),
        entry_op=one(0),
        entry_wait=one(0, np.uint64),
        entry_slot=one(-1, np.int8),
        warp_path=one(0),
        warp_access=ends(0),
        block_warp=ends(1),
        access_start=one(0, np.int64),
        access_cycles=np.zeros(0, np.int32),
        tx_line=np.zeros(0, np.int32),
        tx_sectors=np.zeros(0, np.uint8),
        line_address=np.zeros(0, np.uint64),
        line_warm=np.zeros(0, np.uint8),
    )
