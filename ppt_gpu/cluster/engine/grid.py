"""Ranks as a grid: nodes form a grid, and each node's GPUs a small one within it, so that neighbours are near.

Whoever takes neighbours from a grid, instead of computing ranks, does the same on every node: such applications can be
simulated by one node's ranks (`ppt_gpu.cluster.engine.symmetry`).
"""

from __future__ import annotations

from typing import Any

from ppt_gpu.cluster.engine.grid_index import Index, index_at, number_at, split, strides
from ppt_gpu.cluster.engine.state import RankState
from ppt_gpu.common.errors import PptError


class Grid:
    """The grid as one rank sees it. Axis 0 is the one along which ranks lie farthest apart."""

    __slots__ = ("axes", "gpu", "node", "nodes", "periodic", "rank", "tile")

    def __init__(self, rank: RankState, axes: int, periodic: bool) -> None:
        if axes < 1:
            raise PptError(f"a grid of {axes} axes: expected at least 1")
        world = rank.world
        self.rank = rank
        self.axes = axes
        self.periodic = periodic
        self.nodes = split(world.machine.nodes, axes)
        self.tile = split(world.gpus_per_node, axes)
        self.node = index_at(rank.node, self.nodes)
        self.gpu = index_at(rank.gpu, self.tile)
        if world.symmetry is not None:
            if not periodic:
                world.symmetry.broken("its grid is not periodic")
            world.symmetry.use(self.nodes)

    @property
    def shape(self) -> Index:
        """Ranks along each axis."""
        return tuple(node * tile for node, tile in zip(self.nodes, self.tile, strict=True))

    @property
    def position(self) -> Index:
        """Where this rank lies on each axis. An application that asks is simulated rank by rank."""
        symmetry = self.rank.world.symmetry
        if symmetry is not None:
            symmetry.broken("the application reads its position in the grid")
        return tuple(n * tile + g for n, tile, g in zip(self.node, self.tile, self.gpu, strict=True))

    def neighbour(self, axis: int, step: int) -> Any:
        """The rank so many steps along an axis; None beyond the end of a grid that is not periodic."""
        if not 0 <= axis < self.axes:
            raise PptError(f"axis {axis} of a grid with {self.axes}", hint="axes count from 0")
        # A step within the node's tile, and as many nodes further as it leads beyond it.
        further, gpu = divmod(self.gpu[axis] + step, self.tile[axis])
        node = self.node[axis] + further
        if not (self.periodic or 0 <= node < self.nodes[axis]):
            return None
        node %= self.nodes[axis]
        rank = self.rank
        number = rank.number + (gpu - self.gpu[axis]) * strides(self.tile)[axis]
        if further:
            number += (node - self.node[axis]) * strides(self.nodes)[axis] * rank.world.gpus_per_node
        return rank.world.as_peer(number)

    def neighbours(self, axis: int) -> tuple[Any, Any]:
        """The ranks before and behind this one along an axis."""
        return self.neighbour(axis, -1), self.neighbour(axis, 1)

    def at(self, *position: int) -> int:
        """The rank at a position."""
        if self.rank.world.symmetry is not None:
            self.rank.world.symmetry.broken("the application asks who is at a position of the grid")
        if len(position) != self.axes or not all(0 <= at < size for at, size in zip(position, self.shape, strict=True)):
            raise PptError(f"position {position} in a grid of {self.shape}")
        return self._rank(position)

    def _rank(self, position: Index) -> int:
        node = number_at(tuple(at // tile for at, tile in zip(position, self.tile, strict=True)), self.nodes)
        gpu = number_at(tuple(at % tile for at, tile in zip(position, self.tile, strict=True)), self.tile)
        return node * self.rank.world.gpus_per_node + gpu
