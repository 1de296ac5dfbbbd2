"""Topologies: which switches stand between two nodes, by formula where the network is regular; and as a networkx graph.

Vertices are numbers: nodes 0 ... nodes-1, then switches. A route is the vertices from a node to another, both included:
one shortest path for each pair, always the same. A node has one link to the network (a plane of its own for each NIC).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

from ppt_gpu.common.errors import PptError

if TYPE_CHECKING:
    import networkx

Route = tuple[int, ...]


class Topology(Protocol):
    """A network of a size."""

    nodes: int
    switches: int
    uniform: bool  # all pairs of different nodes are equally far

    def route(self, source: int, target: int) -> Route:
        """The vertices from node `source` to node `target`."""
        ...

    def between(self, source: int, target: int) -> int:
        """How many switches the route passes; 0 from a node to itself."""
        ...

    def nearest(self) -> int:
        """The fewest switches between two different nodes."""
        ...

    def edges(self) -> Iterator[tuple[int, int]]:
        """Every link once, as (vertex, vertex)."""
        ...

    def multiplicity(self, first: int, second: int) -> int:
        """How many links in parallel join two neighbours."""
        ...


def graph(topology: Topology) -> networkx.Graph:
    """The network as a graph; edges carry `links`, how many there are in parallel."""
    import networkx

    made = networkx.Graph()
    made.add_nodes_from(range(topology.nodes), kind="node")
    made.add_nodes_from(range(topology.nodes, topology.nodes + topology.switches), kind="switch")
    for first, second in topology.edges():
        made.add_edge(first, second, links=topology.multiplicity(first, second))
    return made


def too_many(name: str, nodes: int, most: int) -> PptError:
    return PptError(f"network '{name}' holds at most {most:,} nodes, not {nodes:,}")


class Regular:
    """What regular topologies share: links one by one, and distances from routes."""

    nodes: int
    switches: int
    uniform = False

    def multiplicity(self, first: int, second: int) -> int:
        return 1

    def route(self, source: int, target: int) -> Route:
        raise NotImplementedError

    def between(self, source: int, target: int) -> int:
        return max(0, len(self.route(source, target)) - 2)


class SingleSwitch(Regular):
    """Every node on one switch, which never limits."""

    uniform = True

    def __init__(self, nodes: int) -> None:
        self.nodes, self.switches = nodes, 1

    def route(self, source: int, target: int) -> Route:
        return (source,) if source == target else (source, self.nodes, target)

    def between(self, source: int, target: int) -> int:
        return int(source != target)

    def nearest(self) -> int:
        return 1

    def edges(self) -> Iterator[tuple[int, int]]:
        return ((node, self.nodes) for node in range(self.nodes))
