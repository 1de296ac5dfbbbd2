"""Which blocks a translation runs: within the grid, all different, neighbours along every axis."""

from __future__ import annotations

from itertools import product

import pytest

from ppt_gpu.translation.blocks import sample_blocks

GRIDS = [*product((1, 2, 3, 7), repeat=3), (65535, 1, 1), (8, 32, 1), (1, 1, 9), (64, 64, 64)]


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("count", [1, 2, 4, 8, 20])
def test_samples_are_blocks_of_the_grid(grid: tuple[int, int, int], count: int) -> None:
    x, y, z = grid
    found = sample_blocks(grid, count)
    assert found == sorted(set(found)) and found[0] >= 0 and found[-1] < x * y * z
    assert len(found) <= count and found
    assert len(found) >= min(count, x * y * z, 4)
    axes = [extent > 1 for extent in grid]
    if count > sum(axes):
        at = [(b % x, b // x % y, b // (x * y)) for b in found]
        steps = {tuple(p - q for p, q in zip(one, other, strict=True)) for one in at for other in at}
        for axis in (axis for axis in range(3) if axes[axis]):
            assert tuple(int(axis == other) for other in range(3)) in steps


def test_the_middle_of_a_plane() -> None:
    assert sample_blocks((8, 32, 1), 8) == [0, *sorted(x + 8 * y for x, y in NEAR)]


NEAR = [(4, 16), (3, 16), (5, 16), (4, 15), (4, 17), (3, 15), (3, 17)]
