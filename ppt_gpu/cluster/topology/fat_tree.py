"""Fat trees: XGFT(h; down; 1, up) of Ohring et al. (IPPS 1995), routed by the target's digits (D-mod-K)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product

from ppt_gpu.cluster.topology.topology import Regular, Route, too_many
from ppt_gpu.spec.cluster import FatTree


class FatTreeOf(Regular):
    """Level l (from 1) has switches named by (position among its subtrees, which of the parallel ones).

    Node n lies in subtree n // m(l) of level l, m(l) = down[0] * ... * down[l-1]; a subtree of level l has
    w(l) = up[0] * ... * up[l-2] switches at its top. The last level holds as many subtrees as the nodes need.
    """

    def __init__(self, shape: FatTree, nodes: int, name: str) -> None:
        self.levels = len(shape.down)
        self.below = [math.prod(shape.down[:level]) for level in range(self.levels + 1)]  # m(l)
        self.copies = [1] + [math.prod(shape.up[:level]) for level in range(self.levels)]  # w(l), w(0) unused
        self.up = (1, *shape.up)  # parents of a vertex of level l: up[l]
        if nodes > self.below[-1]:
            raise too_many(name, nodes, self.below[-1])
        self.nodes = nodes
        counts = [-(-nodes // self.below[level]) * self.copies[level] for level in range(1, self.levels + 1)]
        self.first = [0, nodes] + [nodes + sum(counts[:level]) for level in range(1, self.levels)]
        self.switches = sum(counts)
        self.uniform = nodes <= shape.down[0]

    def _vertex(self, level: int, subtree: int, copy: int) -> int:
        return subtree if level == 0 else self.first[level] + subtree * self.copies[level] + copy

    def _meeting(self, source: int, target: int) -> int:
        """The lowest level at which both nodes lie in one subtree."""
        return next(level for level, size in enumerate(self.below) if source // size == target // size)

    def between(self, source: int, target: int) -> int:
        return max(0, 2 * self._meeting(source, target) - 1)

    def route(self, source: int, target: int) -> Route:
        """Up by the digits of the target, so that all ways to a node come down to it by the same switches."""
        top = self._meeting(source, target)
        copies = [0]
        for level in range(top):
            # a vertex of level l with copy c has the parents c * up[l] ... + up[l] - 1 of level l+1
            digit = target // self.below[max(level - 1, 0)] % self.up[level]
            copies.append(copies[-1] * self.up[level] + digit)
        climb = [self._vertex(level, source // self.below[level], copies[level]) for level in range(top)]
        descend = [self._vertex(level, target // self.below[level], copies[level]) for level in range(top, -1, -1)]
        return (*climb, *descend)

    def nearest(self) -> int:
        return 1 if self.below[1] > 1 else self.between(0, 1)

    def edges(self) -> Iterator[tuple[int, int]]:
        for node in range(self.nodes):
            yield node, self._vertex(1, node // self.below[1], 0)
        for level in range(1, self.levels):
            subtrees = range(-(-self.nodes // self.below[level]))
            for subtree, copy, parent in product(subtrees, range(self.copies[level]), range(self.up[level])):
                above = subtree * self.below[level] // self.below[level + 1]
                yield (
                    self._vertex(level, subtree, copy),
                    self._vertex(level + 1, above, copy * self.up[level] + parent),
                )
