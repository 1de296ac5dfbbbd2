"""A sample of a grid's blocks: which to run, and what they say of all.

Blocks are numbered in the order in which they start, x fastest. n strata of equal length cut that order; from stratum i
comes the block at a share frac(i * golden ratio) of it: spread evenly, without falling into step with the grid's rows.
Mean and standard error follow from differences of successive strata (Wolter, Introduction to Variance Estimation,
section 8.2), so that a trend along the grid is not taken for noise:

    se^2 = (1 - n / B) / n * sum (y_(i+1) - y_i)^2 / (2 (n - 1))
"""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.workload.workload import Dim3

GOLDEN = (5**0.5 - 1) / 2


def stratified(blocks: int, count: int) -> NDArray[np.int64]:
    """[n] ids of one block a stratum, ascending; all blocks when `count` is not below their number."""
    if count >= blocks:
        return np.arange(blocks, dtype=np.int64)
    index = np.arange(count, dtype=np.int64)
    first, end = index * blocks // count, (index + 1) * blocks // count
    return first + ((index * GOLDEN) % 1.0 * (end - first)).astype(np.int64)


def landmarks(grid: Dim3) -> NDArray[np.int64]:
    """Ids of the blocks at the corners, in the middle of edges and faces, and in the middle of the grid: up to 27."""
    axes = [sorted({0, extent // 2, extent - 1}) for extent in grid]
    ids = {x + grid[0] * (y + grid[1] * z) for x, y, z in product(*axes)}
    return np.array(sorted(ids), np.int64)


def standard_error(values: NDArray, blocks: int) -> float:
    """Relative standard error of the mean of `values`, one a stratum, of a grid of so many blocks.

    0 when every block was taken; a single value shows no spread and gives 1.
    """
    count = len(values)
    mean = float(np.mean(values))
    if count >= blocks or mean <= 0:
        return 0.0
    if count < 2:
        return 1.0
    squares = float((np.diff(values.astype(np.float64)) ** 2).sum())
    return float(((1.0 - count / blocks) / count * squares / (2.0 * (count - 1))) ** 0.5 / mean)


def variation(values: NDArray) -> float:
    """The coefficient of variation: standard deviation over mean."""
    mean = float(np.mean(values))
    return float(np.std(values)) / mean if mean > 0 else 0.0


def stand_ins(blocks: NDArray[np.int64], sample: NDArray[np.int64]) -> NDArray[np.int64]:
    """[len(blocks)] for each block id the position in `sample` (ascending ids) of the block that stands for it.

    One of its two neighbours in the sample: the nearer, the likelier, drawn by the golden ratio's multiples. So both
    the trend along the grid and the spread of the blocks survive, which an interpolation would flatten.
    """
    after = np.searchsorted(sample, blocks).clip(0, len(sample) - 1)
    high = sample[after]
    before = np.where(high == blocks, after, np.maximum(after - 1, 0))
    low = sample[before]
    share = (blocks - low) / np.maximum(high - low, 1)
    turns = blocks * GOLDEN
    return np.where(turns - np.floor(turns) < share, after, before)
