"""Between the nodes: latencies of paths, and the links that messages queue for or share, by kind of contention.

Each group of NICs of a node is in a plane of its own, a network of the same shape: planes share nothing.
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise

from ppt_gpu.cluster.model.machine import Hop, picoseconds
from ppt_gpu.cluster.topology.dragonfly import DragonflyOf
from ppt_gpu.cluster.topology.edges import EdgeList
from ppt_gpu.cluster.topology.fat_tree import FatTreeOf
from ppt_gpu.cluster.topology.topology import SingleSwitch, Topology
from ppt_gpu.cluster.topology.torus import TorusOf
from ppt_gpu.common.errors import PptError
from ppt_gpu.spec.cluster import NetworkSpec


def build(network: NetworkSpec, nodes: int) -> Topology:
    """The network for so many nodes. Raises PptError when it cannot hold just as many."""
    if network.fat_tree:
        return FatTreeOf(network.fat_tree, nodes, network.name)
    if network.dragonfly:
        return DragonflyOf(network.dragonfly, nodes, network.name)
    if network.torus:
        return TorusOf(network.torus, nodes, network.name)
    if network.edges:
        return EdgeList(network.edges, nodes, network.name)
    return SingleSwitch(nodes)


class Network:
    """The network of a machine of so many nodes, built when it is first asked for."""

    def __init__(self, spec: NetworkSpec, nodes: int, planes: int, nics_each: int) -> None:
        self.spec, self.nodes, self.planes, self.nics_each = spec, nodes, planes, nics_each

    @cached_property
    def topology(self) -> Topology:
        return build(self.spec, self.nodes)

    @property
    def queued(self) -> bool:
        return self.spec.contention == "links"

    @property
    def switches(self) -> int:
        """Switches whose ports messages queue for."""
        return self.topology.switches * self.planes if self.queued else 0

    @property
    def uniform(self) -> bool:
        return self.spec.contention == "ports" and self.topology.uniform

    def latency(self, switches: int) -> float:
        """Seconds from NIC to NIC past so many switches."""
        net = self.spec
        return 2 * net.nic_latency + (switches + 1) * net.link_latency + switches * net.switch_latency

    def latency_to_first(self, source: int, target: int) -> float:
        """Seconds to the other node, or to the first switch where hops follow."""
        if self.queued:
            return self.spec.nic_latency + self.spec.link_latency
        return self.latency(self.topology.between(source, target))

    def hops(self, source: int, target: int, plane: int, nbytes: int, nics_each: int) -> tuple[Hop, ...]:
        """The output port of every switch on the way, the last one leading to the node."""
        if not self.queued:
            return ()
        net, topology = self.spec, self.topology
        route = topology.route(source, target)
        first = plane * topology.switches - topology.nodes
        made = []
        for at, onward in pairwise(route[1:]):
            rate = net.bandwidth * net.efficiency * nics_each * topology.multiplicity(at, onward)
            latency = net.switch_latency + net.link_latency + (net.nic_latency if onward == target else 0.0)
            made.append(Hop(at + first, onward, picoseconds(nbytes / rate), picoseconds(latency)))
        return tuple(made)

    def links(self, source: int, target: int, plane: int) -> tuple[int, ...]:
        """The links on the way, from the node's own to the other node's, as numbers that `link_rate` knows."""
        if self.spec.contention != "fair":
            return ()
        route, size = self.topology.route(source, target), self._size
        return tuple((plane * size + a) * size + b for a, b in pairwise(route))

    @property
    def _size(self) -> int:
        return self.topology.nodes + self.topology.switches

    def link_rate(self, link: int) -> float:
        """B/s of a link of `links`."""
        first, second = link // self._size % self._size, link % self._size
        net = self.spec
        return net.bandwidth * net.efficiency * self.nics_each * self.topology.multiplicity(first, second)

    @cached_property
    def lookahead(self) -> int:
        """Picoseconds that no message between nodes, or between a node and a switch, undercuts.

        Raises PptError when that is none: nothing could then be simulated in parallel.
        """
        net = self.spec
        if self.queued:
            shortest = min(net.nic_latency, net.switch_latency) + net.link_latency
        else:
            shortest = self.latency(self.topology.nearest())
        found = picoseconds(shortest)
        if found <= 0:
            raise PptError(
                f"network '{net.name}': nic_latency, link_latency and switch_latency are all zero",
                hint="give at least one of them: no message between nodes is there at once",
            )
        return found
