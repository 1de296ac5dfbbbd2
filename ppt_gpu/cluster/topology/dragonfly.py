"""Dragonflies: groups of fully joined routers, every two groups joined once; minimal routes (Kim et al., ISCA 2008)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from ppt_gpu.cluster.topology.topology import Regular, Route, too_many
from ppt_gpu.spec.cluster import Dragonfly


class DragonflyOf(Regular):
    """As many groups as the nodes need. The link from group g to group g+1+d leaves from router d // global_links."""

    def __init__(self, shape: Dragonfly, nodes: int, name: str) -> None:
        self.shape = shape
        per_group = shape.routers * shape.nodes
        most = (shape.routers * shape.global_links + 1) * per_group
        if nodes > most:
            raise too_many(name, nodes, most)
        self.nodes = nodes
        self.groups = -(-nodes // per_group)
        self.switches = self.groups * shape.routers
        self.uniform = nodes <= shape.nodes

    def _gate(self, group: int, other: int) -> int:
        """The router of `group` that has the link to group `other`."""
        router = (other - group - 1) % self.groups // self.shape.global_links
        return self.nodes + group * self.shape.routers + router

    def route(self, source: int, target: int) -> Route:
        """Within the group to the router with the global link, over it, and within the group to the target's router."""
        if source == target:
            return (source,)
        routers = [self.nodes + node // self.shape.nodes for node in (source, target)]
        groups = [(router - self.nodes) // self.shape.routers for router in routers]
        path = [routers[0]]
        if groups[0] != groups[1]:
            path += [self._gate(groups[0], groups[1]), self._gate(groups[1], groups[0])]
        path.append(routers[1])
        passed = [vertex for number, vertex in enumerate(path) if number == 0 or path[number - 1] != vertex]
        return (source, *passed, target)

    def nearest(self) -> int:
        return 1 if self.shape.nodes > 1 else 2

    def edges(self) -> Iterator[tuple[int, int]]:
        yield from ((node, self.nodes + node // self.shape.nodes) for node in range(self.nodes))
        for group in range(self.groups):
            first = self.nodes + group * self.shape.routers
            yield from combinations(range(first, first + self.shape.routers), 2)
        for group, other in combinations(range(self.groups), 2):
            yield self._gate(group, other), self._gate(other, group)
