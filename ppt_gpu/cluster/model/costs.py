"""What a message costs: LogGP by size classes of the library, over the ports and links of the hardware.

o: the host's overheads, L: latencies of the path, g and G: how long ports are held. A message that the library stages
is copied whole to host memory before it leaves the node, and to the GPU after it came.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ppt_gpu.cluster.model.machine import GPU, Hop, Place, Transfer, picoseconds
from ppt_gpu.cluster.model.network import Network
from ppt_gpu.cluster.topology.node_ports import NodePorts
from ppt_gpu.spec.cluster import MachineSpec
from ppt_gpu.spec.libraries import MpiPath, Tier

Held = list[tuple[int, float]]  # (port, s)


@dataclass
class Way:
    """A message's way as it is put together: seconds; `rate` of its slowest part."""

    latency: float = 0.0
    beyond: float = 0.0  # latency of the hops that follow
    before: float = 0.0  # copies before the head can leave
    rate: float = float("inf")
    source: Held = field(default_factory=list)
    target: Held = field(default_factory=list)
    hops: tuple[Hop, ...] = ()
    links: tuple[int, ...] = ()
    by_cpu: bool = False  # the sender's host moves the bytes


class Costs:
    """Messages and copies of one machine. `memory_rate(gpu)`: B/s of a GPU's memory, reads and writes together."""

    def __init__(
        self, spec: MachineSpec, ports: NodePorts, network: Network, memory_rate: Callable[[int], float]
    ) -> None:
        self.spec, self.ports, self.network, self.memory_rate = spec, ports, network, memory_rate

    def transfer(self, source: Place, target: Place, nbytes: int) -> Transfer:
        """The costs of a message of `nbytes`."""
        if source[:2] == target[:2] and source.memory == target.memory:
            return self._itself(source, nbytes)
        apart = source.node != target.node
        library = self.spec.mpi.path(GPU in (source.memory, target.memory), apart)
        tier = library.tier(nbytes)
        if apart or library.loopback:
            way = self._through_nics(source, target, nbytes, library, tier)
        else:
            way = self._within_node(source, target, nbytes, tier)
        moving = nbytes / way.rate
        control = picoseconds(way.latency + way.beyond + library.latency)
        return Transfer(
            nbytes=nbytes,
            latency=picoseconds(way.latency + library.latency)
            + picoseconds(tier.latency + way.before + self._staged(source, nbytes, tier, up=True)),
            tail=picoseconds((0.0 if way.by_cpu else moving) + self._staged(target, nbytes, tier, up=False)),
            send_overhead=picoseconds(tier.overhead + (moving if way.by_cpu else 0.0)),
            receive_overhead=picoseconds(tier.receive_overhead),
            source_ports=_whole(way.source),
            target_ports=_whole(way.target),
            rendezvous=tier.rendezvous,
            control_latency=control if tier.rendezvous else 0,
            unexpected_copy=0 if tier.rendezvous else picoseconds(nbytes / (self.spec.host.memory_bandwidth / 2)),
            hops=way.hops,
            links=way.links,
        )

    def _itself(self, place: Place, nbytes: int) -> Transfer:
        """A copy within one memory."""
        rate = self.memory_rate(place.gpu) if place.memory == GPU else self.spec.host.memory_bandwidth
        start = self.spec.mpi.local_copy if place.memory == GPU else self.spec.mpi.host_node.tier(nbytes).overhead
        return Transfer(nbytes, latency=0, tail=picoseconds(2 * nbytes / rate), send_overhead=picoseconds(start))

    def _stages(self, place: Place, tier: Tier) -> bool:
        return place.memory == GPU and (tier.staged or not self.spec.nic.gpu_direct)

    def _staged(self, place: Place, nbytes: int, tier: Tier, *, up: bool) -> float:
        """Time of the copy between a GPU and its host that staging takes at one end."""
        if not self._stages(place, tier):
            return 0.0
        pcie = self.spec.pcie
        return pcie.latency + nbytes / (pcie.to_host if up else pcie.to_gpu)

    def _through_nics(self, source: Place, target: Place, nbytes: int, library: MpiPath, tier: Tier) -> Way:
        net, ports, pcie = self.spec.network, self.ports, self.spec.pcie
        from_gpu, to_gpu = source.memory == GPU, target.memory == GPU
        shared = net.contention == "fair" and source.node != target.node
        nic_rate = net.bandwidth * net.efficiency * ports.nics_each
        way = Way(rate=min(nic_rate, tier.bandwidth))
        sides = ((way.source, ports.nic_out(source.gpu), from_gpu), (way.target, ports.nic_in(target.gpu), to_gpu))
        for held, port, gpu in sides:
            # what the library adds to a message of a GPU keeps the GPU's own link busy, not the NIC that others use
            # where messages share the links, they share the NIC's and the GPU's own, too
            own = 0.0 if gpu else tier.gap
            moving = 0.0 if shared else nbytes / (nic_rate if gpu else way.rate)
            held.append((port, max(net.message_gap, own + moving)))
        if library.both_ways != float("inf"):
            bus = nbytes / (library.both_ways * ports.nics_each)
            way.source.append((ports.nic_bus(source.gpu), bus))
            way.target.append((ports.nic_bus(target.gpu), bus))
        if from_gpu:
            moving = 0.0 if shared else nbytes / min(pcie.to_host, tier.bandwidth)
            way.source.append((ports.pcie_up(source.gpu), tier.gap + moving))
            way.rate = way.rate if self._stages(source, tier) else min(way.rate, pcie.to_host)
        if to_gpu:
            moving = 0.0 if shared else nbytes / min(pcie.to_gpu, tier.bandwidth)
            way.target.append((ports.pcie_down(target.gpu), tier.gap + moving))
            way.rate = way.rate if self._stages(target, tier) else min(way.rate, pcie.to_gpu)
        if source.node == target.node:
            way.latency = 2 * net.nic_latency
            return way
        way.latency = self.network.latency_to_first(source.node, target.node)
        way.beyond = self.network.latency(self.network.topology.between(source.node, target.node)) - way.latency
        plane = ports.nic(source.gpu)
        way.hops = self.network.hops(source.node, target.node, plane, nbytes, ports.nics_each)
        way.links = self.network.links(source.node, target.node, plane)
        if shared and from_gpu:
            way.links += (ports.link(source.node, ports.pcie_up(source.gpu)),)
        if shared and to_gpu:
            way.links += (ports.link(target.node, ports.pcie_down(target.gpu)),)
        return way

    def _within_node(self, source: Place, target: Place, nbytes: int, tier: Tier) -> Way:
        if source.memory != GPU and target.memory != GPU:
            rate = self.spec.host.memory_bandwidth / 2  # read and written
            return Way(rate=min(rate, tier.bandwidth), source=[(self.ports.host_memory, nbytes / rate)], by_cpu=True)
        if source.memory != target.memory:
            return self._over_pcie(source, target, nbytes, tier)
        links = self.ports.links(self.spec, source.gpu, target.gpu)
        if not links:
            return self._over_pcie(source, target, nbytes, tier)
        nvlink = self.spec.nvlink
        rate = min(links * nvlink.bandwidth * nvlink.efficiency, tier.bandwidth)
        held = tier.gap + nbytes / rate
        sides = self.ports.nvlink(source.gpu, target.gpu)
        first, second = ([(port, held) for port in side] for side in sides)
        return Way(latency=nvlink.latency, rate=rate, source=first, target=second)

    def _over_pcie(self, source: Place, target: Place, nbytes: int, tier: Tier) -> Way:
        """From GPU to GPU without NVLink, or between a rank's GPU and another rank's host memory."""
        pcie, ports = self.spec.pcie, self.ports
        up = (ports.pcie_up(source.gpu), tier.gap + nbytes / min(pcie.to_host, tier.bandwidth))
        down = (ports.pcie_down(target.gpu), tier.gap + nbytes / min(pcie.to_gpu, tier.bandwidth))
        if source.memory != GPU:
            return Way(pcie.latency, rate=min(pcie.to_gpu, tier.bandwidth), target=[down])
        if target.memory != GPU:
            return Way(pcie.latency, rate=min(pcie.to_host, tier.bandwidth), source=[up])
        if pcie.peer:
            rate = min(pcie.to_host, pcie.to_gpu, tier.bandwidth)
            return Way(pcie.latency, rate=rate, source=[up], target=[down])
        # through host memory: the second copy begins when the first has ended
        first = pcie.latency + nbytes / pcie.to_host
        return Way(pcie.latency, before=first, rate=min(pcie.to_gpu, tier.bandwidth), source=[up], target=[down])


def _whole(held: Held) -> tuple[tuple[int, int], ...]:
    return tuple((port, picoseconds(seconds)) for port, seconds in held)
