"""How much of the L2 a launch fills, and with how much written data: what its write-backs cost in the steady state."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.bounds.least_latency import of_entries
from ppt_gpu.emulator.memory.memory import LOCAL_WINDOW, WINDOW_BYTES
from ppt_gpu.sm.accesses.sharing import sectors_used
from ppt_gpu.sm.program.program import KIND_ATOMIC, KIND_STORE, Program
from ppt_gpu.spec.gpu import Gpu


def dirty_share(program: Program, gpu: Gpu, chip_factor: float, active_sms: int) -> float:
    """How many written sectors each sector new to the simulated SM's part of the L2 pushes out.

    `chip_factor` scales the lines of the simulated blocks to the grid. F bytes of the launch are not found in the L2 of
    C bytes: the first C of them push out what earlier launches left, lines with `l2_dirty` written sectors, a whole one
    for each new line of s sectors; the rest push out sectors of the launch, of which w are written. So x * w +
    (1 - x) * l2_dirty / s for a sector that is not found, with x = 1 - C / F where the simulated blocks touch less than
    C. (Of the lines that a block of a stencil touches its neighbours use many, and it a sector of each: w counts
    sectors, so that all SMs together push out what they write.) The
    more of the SM's blocks they are, the more of these lines they push out themselves, in the order of their use: x is
    no more than the share of blocks that are not simulated.

    Of an L2 with a limit for dirty lines: those that the launch makes dirty beyond it have as many others written back.
    """
    lines = len(program.line_address)
    if lines == 0:
        return 0.0
    local = (program.line_address >= LOCAL_WINDOW) & (program.line_address < LOCAL_WINDOW + WINDOW_BYTES)
    again = np.count_nonzero(local) * (1.0 - min(active_sms / chip_factor, 1.0))  # later blocks have the same
    touched = (lines - again) * program.line_bytes * chip_factor / program.l2_share_factor
    if program.l2_dirty_most:
        return _over_the_limit(program, gpu, touched / program.line_bytes)
    missing = 1.0 - program.l2_found
    own = max(1.0 - gpu.l2.size / (touched * missing), 0.0) if missing > 0.0 else 0.0
    own = min(own, max(1.0 - active_sms / chip_factor, 0.0))
    pushed_out = (1.0 - own) * program.l2_dirty / _sectors_of_a_line(program) if program.l2_dirty else 0.0
    if own > 0.0:
        pushed_out += own * _written_share(program) / program.l2_writers
    return missing * pushed_out


def _over_the_limit(program: Program, gpu: Gpu, touched: float) -> float:
    """As `dirty_share`, where so many lines of the L2 can be dirty, of a launch that touches so many lines."""
    over = max(program.l2_dirty_lines + program.l2_made_dirty * touched - program.l2_dirty_most, 0.0)
    lines = max(over / touched, program.l2_lost_dirty)
    if not program.l2_dirty_lines:
        return lines
    capacity = gpu.l2.size / program.line_bytes
    return lines * program.l2_dirty * capacity / program.l2_dirty_lines / _sectors_of_a_line(program)


def _written_share(program: Program) -> float:
    """The share of the sectors touched by the simulated blocks that they write."""
    writes = _writes(program)
    real = program.tx_line >= 0
    read, written = (_sectors(program, real & chosen) for chosen in (~writes, writes))
    touched = int(np.bitwise_count(read | written).sum())
    return int(np.bitwise_count(written).sum()) / touched if touched else 0.0


def _sectors_of_a_line(program: Program) -> float:
    """How many sectors of a line the simulated blocks use, in the mean."""
    used = _sectors(program, program.tx_line >= 0)
    return max(float(np.bitwise_count(used[used > 0]).mean()) if used.any() else 0.0, 1.0)


def _sectors(program: Program, chosen: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """[L] which sectors of each line the `chosen` [T] transactions touch."""
    return sectors_used(program.tx_line[chosen], program.tx_sectors[chosen], len(program.line_address))


def _writes(program: Program) -> NDArray[np.bool_]:
    """[T] which transactions are of stores and atomics."""
    writes = (program.op_kind == KIND_STORE) | (program.op_kind == KIND_ATOMIC)
    return np.repeat(of_entries(program, writes), np.diff(program.access_start))
