"""Which blocks of a grid to run in order to see how addresses move along each of its axes."""

from __future__ import annotations

from itertools import product

NEAR = 3  # blocks along each axis, at most


def sample_blocks(grid: tuple[int, int, int], count: int) -> list[int]:
    """Up to `count` block numbers, ascending: a block in the middle, then its nearest neighbours along each axis.

    The middle, because warps at an edge of the data often take another path. With enough blocks the first of the grid
    is one of them, far from the others: it shows steps that change on the way. With `count` of 1 + the number of
    axes, or more, there are two neighbours along each axis.
    """
    x, y, z = (range(max(0, extent // 2 + 2 - NEAR), min(extent, extent // 2 + 2)) for extent in grid)
    middle = [axis[len(axis) // 2] for axis in (x, y, z)]

    def distance(at: tuple[int, int, int]) -> tuple[int, int, tuple[int, int, int]]:
        apart = [abs(own - other) for own, other in zip(at, middle, strict=True)]
        return sum(apart), max(apart), at

    near = sorted(product(x, y, z), key=distance)
    axes = 1 + sum(extent > 1 for extent in grid)
    chosen = {(0, 0, 0)} if count > axes else set()
    for at in near:
        if len(chosen) < count:
            chosen.add(at)
    return sorted(i + grid[0] * (j + grid[1] * k) for i, j, k in chosen)
