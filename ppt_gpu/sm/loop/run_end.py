"""How a run of an SM or of a chip ends: with its result, or with the error that says why it did not finish."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.errors import BudgetError, PptError
from ppt_gpu.sm.program.machine import COUNTERS, Machine
from ppt_gpu.sm.program.program import Program, op_issues
from ppt_gpu.sm.program.result import STALL_REASONS, SmResult

#: what a compiled loop returns: all has ended, or why not, or it pauses to be looked at
DONE, OVER_BUDGET, DEADLOCK, PAUSED = range(4)


def result_of(
    program: Program,
    machine: Machine,
    *,
    cycles: int,
    block_start: NDArray[np.int64],
    block_end: NDArray[np.int64],
    op_stall: NDArray[np.int64],
    idle: int,
    counters: NDArray[np.int64],
    seconds: float,
    skipped: int = 0,
    approximate: int = 0,
    estimated: int = 0,
) -> SmResult:
    """The result of a run that came to its end. `op_stall` [O, reasons]: warp cycles. `idle`: cycles of warps without
    entries, which drain. `counters` [COUNTERS]. `seconds`: CPU time of the loop."""
    warp_cycles = op_stall.sum(axis=0)
    warp_cycles[STALL_REASONS.index("drain")] += idle
    issued = op_issues(program)
    busy = np.bincount(
        program.op_pipe, weights=(issued * program.op_ii).astype(np.float64), minlength=len(machine.pipe_units)
    )
    return SmResult(
        cycles=cycles,
        issued=int(issued.sum()),
        block_start=block_start,
        block_end=block_end,
        warp_cycles=warp_cycles,
        op_issued=issued,
        op_stall=op_stall,
        pipe_busy=busy.astype(np.int64),
        wall=seconds,
        skipped_cycles=skipped,
        approximate_cycles=approximate,
        estimated_operations=estimated,
        **dict(zip(COUNTERS, (int(value) for value in counters), strict=True)),
    )


def unfinished(status: int, max_cycles: int) -> PptError:
    """The error of a run that did not come to its end."""
    if status == DEADLOCK:
        return PptError("the SM is stuck: no resident warp can ever issue again")
    return BudgetError(f"more than {max_cycles} cycles on the SM", hint="raise max_cycles or simulate fewer blocks")
