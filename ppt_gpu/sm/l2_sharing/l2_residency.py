"""Which lines a launch still finds of those that host copies and earlier launches left in the L2."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.sm.l2_sharing.left_lines import LeftLines
from ppt_gpu.workload.workload import Range


@dataclass(frozen=True)
class Uses:
    """What blocks of one SM touch, warp after warp: A accesses, T transactions, lines numbered as they are touched."""

    line: NDArray[np.int32]  # [T]
    start: NDArray[np.int64]  # [A+1] first transaction of each access
    writes: NDArray[np.bool_]  # [A]
    warp_start: NDArray[np.int64]  # [W+1] first access of each warp
    blocks: NDArray[np.int64]  # [B] their numbers in the grid
    resident: int  # blocks that run at a time


def found_left(
    left: LeftLines, uses: Uses, address: NDArray[np.uint64], users: NDArray[np.float64], ranges: Sequence[Range],
    active_sms: int, grid: int, size: int,
) -> tuple[NDArray[np.bool_], float, float]:  # fmt: skip
    """[L] which lines at `address` [L], each used by `users` [L] of the SMs, are there; shares of all of them.

    The shares are of lines that the launch makes dirty, and of dirty ones that were pushed out before it came to them.
    grid: blocks; size: line, B.
    """
    if not len(address):
        return np.zeros(0, np.bool_), 0.0, 0.0
    written = np.zeros(len(address), np.bool_)
    written[uses.line[np.repeat(uses.writes, np.diff(uses.start))]] = True
    per_block = float(np.sum(1.0 / users)) / len(uses.blocks)
    there_are = sum(-(-(area.start + area.bytes) // size) - area.start // size for area in ranges)
    touched = _blocks_before(uses, active_sms, grid) * per_block
    course = left.course(address, touched, written, there_are)
    return course.found, float(np.mean(written & ~course.dirty)), float(np.mean(course.lost))


def _blocks_before(uses: Uses, active_sms: int, grid: int) -> NDArray[np.float64]:
    """[L] how many blocks of the `grid` have touched their lines when each line is touched first.

    Blocks of a wave run at the same time: it is as far as the lines of its blocks that their warps came to by fewer
    accesses, or in earlier blocks by as many.
    """
    first = np.flatnonzero(np.diff(np.maximum.accumulate(uses.line), prepend=-1) > 0)
    access = np.searchsorted(uses.start, first, side="right") - 1
    warp = np.searchsorted(uses.warp_start, access, side="right") - 1
    block = uses.blocks[warp // ((len(uses.warp_start) - 1) // len(uses.blocks))].astype(np.int64)
    wave = block // (uses.resident * active_sms)
    depth = access - uses.warp_start[warp]
    order = np.lexsort((block, depth, wave))
    _, begins, of_wave = np.unique(wave[order], return_index=True, return_inverse=True)
    lines = np.diff(np.append(begins, len(order)))[of_wave]
    together = np.diff(block[order], prepend=-1) | np.diff(depth[order], prepend=-1)  # not 0: other ones begin
    rank = np.maximum.accumulate(np.where(together != 0, np.arange(len(order)), 0)) - begins[of_wave]
    before = wave * uses.resident * active_sms
    running = np.minimum(grid - before, uses.resident * active_sms)
    part = np.empty(len(order))
    part[order] = rank / lines
    return before + part * running
