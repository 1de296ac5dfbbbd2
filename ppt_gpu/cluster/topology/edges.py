"""A network that the user lists link by link: shortest paths, found when they are first asked for."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Sequence

from ppt_gpu.cluster.topology.topology import Regular, Route
from ppt_gpu.common.errors import PptError
from ppt_gpu.spec.cluster_rules import is_node


class EdgeList(Regular):
    """Nodes n0, n1, ...; every other name is a switch, numbered as they appear. Nodes pass no messages on.

    Of several shortest paths the one whose vertices have the lowest numbers, nearest to the target first.
    """

    def __init__(self, edges: Sequence[tuple[str, str]], nodes: int, name: str) -> None:
        names = list(dict.fromkeys(end for edge in edges for end in edge))
        listed = sum(is_node(each) for each in names)
        if listed != nodes:
            raise PptError(f"network '{name}' joins {listed:,} nodes, not {nodes:,}", hint=f"use --nodes {listed}")
        switches = [each for each in names if not is_node(each)]
        number = {f"n{node}": node for node in range(nodes)}
        number |= {each: nodes + index for index, each in enumerate(switches)}
        self.nodes, self.switches = nodes, len(switches)
        self.links = Counter((min(pair), max(pair)) for pair in ((number[a], number[b]) for a, b in edges))
        self.near: list[list[int]] = [[] for _ in number]
        for first, second in sorted(self.links):
            self.near[first].append(second)
            self.near[second].append(first)
        for each in self.near:
            each.sort()
        self._onward: dict[int, list[int]] = {}

    def multiplicity(self, first: int, second: int) -> int:
        return self.links[min(first, second), max(first, second)]

    def _to(self, target: int) -> list[int]:
        """The next vertex on the way to `target`, for every vertex: breadth first, from the target."""
        if target not in self._onward:
            onward = [-1] * len(self.near)
            onward[target] = target
            todo = deque([target])
            while todo:
                at = todo.popleft()
                for vertex in self.near[at] if at == target or at >= self.nodes else ():
                    if onward[vertex] < 0:
                        onward[vertex] = at
                        todo.append(vertex)
            self._onward[target] = onward
        return self._onward[target]

    def route(self, source: int, target: int) -> Route:
        onward, path = self._to(target), [source]
        while path[-1] != target:
            path.append(onward[path[-1]])
        return tuple(path)

    def nearest(self) -> int:
        """Breadth first from every node until another node is met."""
        return min((self._first_node(node) for node in range(self.nodes)), default=1) - 1

    def _first_node(self, start: int) -> int:
        seen, ring, steps = {start}, [start], 0
        while ring:
            steps += 1
            ring = list(dict.fromkeys(v for at in ring for v in self.near[at] if v not in seen))
            seen.update(ring)
            if any(vertex < self.nodes for vertex in ring):
                return steps
        return 1

    def edges(self) -> Iterator[tuple[int, int]]:
        return iter(sorted(self.links))
