"""What both SM loops return, before it becomes an SmResult."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.sm.loop.record import Answers
from ppt_gpu.sm.program.machine import COUNTERS
from ppt_gpu.sm.program.program import Program
from ppt_gpu.sm.program.result import STALL_REASONS

DONE, OVER_BUDGET, DEADLOCK, PAUSED = range(4)


@dataclass(frozen=True)
class Requests:
    """N requests, window by window, and in each SM by SM. Times are server times, but the answer of a read: a cycle."""

    sm: NDArray[np.int64]  # [N]
    time: NDArray[np.int64]  # [N]
    line: NDArray[np.int64]  # [N]
    sectors: NDArray[np.int64]  # [N]
    kind: NDArray[np.int64]  # [N]
    wait: NDArray[np.int64]  # [N] for what is inside the SM
    start: NDArray[np.int64]  # [N] of atomics: when the operation began
    updates: NDArray[np.int64]  # [N] of atomics
    answer: NDArray[np.int64]  # [N]


@dataclass(frozen=True)
class Asked:
    """What the SMs of a chip asked for, and what is inside them when all has been answered."""

    requests: Requests
    counters: NDArray[np.int64]  # [COUNTERS] of all SMs
    idle: int  # cycle from which no server inside the SMs is busy


@dataclass(frozen=True)
class Raw:
    """`status`: DONE, or why the other fields mean nothing."""

    status: int
    cycles: int
    block_start: NDArray[np.int64]  # [B]
    block_end: NDArray[np.int64]  # [B]
    warp_cycles: NDArray[np.int64]  # [reasons]
    op_stall: NDArray[np.int64]  # [O, reasons]
    counters: NDArray[np.int64]  # [COUNTERS]
    seconds: float  # CPU time of the loop
    skipped: int = 0  # cycles that loop skipping passed over
    approximate: int = 0  # those of them of which it is not known that they go like others
    estimated: int = 0  # memory operations of which the counters are those of others
    answers: Answers | None = None  # of the memory system, where they were asked for and are whole
    asked: Asked | None = None  # by the SMs of a chip, where that was wanted and is whole

    @classmethod
    def done(
        cls,
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
        answers: Answers | None = None,
        asked: Asked | None = None,
    ) -> Raw:
        """A run that came to its end; idle: cycles of warps without entries, which drain."""
        warp_cycles = op_stall.sum(axis=0)
        warp_cycles[STALL_REASONS.index("drain")] += idle
        return cls(
            DONE, cycles, block_start, block_end, warp_cycles, op_stall, counters, seconds, skipped, approximate,
            estimated, answers, asked,
        )  # fmt: skip

    @classmethod
    def failed(cls, status: int, program: Program) -> Raw:
        """A run that ended early."""
        blocks, operations, reasons = len(program.block_warp) - 1, len(program.op_name), len(STALL_REASONS)
        none, waits = np.zeros(blocks, np.int64), np.zeros(reasons, np.int64)
        stall, counters = np.zeros((operations, reasons), np.int64), np.zeros(len(COUNTERS), np.int64)
        return cls(status, 0, none, none, waits, stall, counters, 0.0)
