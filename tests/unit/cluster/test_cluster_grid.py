"""Grids of ranks: every rank once, neighbours one step apart, nodes as near as they can be."""

from __future__ import annotations

from math import prod
from typing import Any

import pytest
from plain_machine import PlainMachine

from ppt_gpu.cluster.engine.grid_index import split
from ppt_gpu.cluster.engine.simulate import simulate


@pytest.mark.parametrize(("nodes", "gpus"), [(1, 1), (1, 8), (6, 4), (5, 3), (12, 2)])
@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("periodic", [True, False])
def test_positions_and_neighbours(nodes: int, gpus: int, axes: int, periodic: bool) -> None:
    seen: dict[int, tuple[int, ...]] = {}
    found: dict[tuple[int, int, int], int | None] = {}

    def app(rank: Any) -> Any:
        grid = rank.grid(axes, periodic)
        seen[rank.index] = grid.position
        assert grid.at(*grid.position) == rank.index
        assert prod(grid.shape) == rank.size
        for axis in range(axes):
            for step in (-3, -1, 1, 2):
                found[rank.index, axis, step] = grid.neighbour(axis, step)
        shapes.add(grid.shape)
        yield None

    shapes: set[tuple[int, ...]] = set()
    simulate(PlainMachine(nodes=nodes, gpus_per_node=gpus), app, collapse=False)
    (shape,) = shapes
    assert len(set(seen.values())) == len(seen) == nodes * gpus
    for (rank, axis, step), neighbour in found.items():
        expected = list(seen[rank])
        expected[axis] += step
        inside = 0 <= expected[axis] < shape[axis]
        expected[axis] %= shape[axis]
        if inside or periodic:
            assert neighbour is not None and seen[neighbour] == tuple(expected)
        else:
            assert neighbour is None


@pytest.mark.parametrize(
    ("count", "axes", "shape"),
    [(64, 3, (4, 4, 4)), (8, 3, (2, 2, 2)), (1250, 3, (25, 10, 5)), (7, 2, (7, 1)), (36, 2, (6, 6)), (24, 1, (24,))],
)
def test_factors_are_as_equal_as_they_can_be(count: int, axes: int, shape: tuple[int, ...]) -> None:
    assert split(count, axes) == shape
