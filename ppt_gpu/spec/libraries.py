"""The libraries that move data in a cluster: message passing by size classes, and NCCL's tuning constants.

Times in s, sizes in B, rates in B/s. Built from hardware/mpi and hardware/nccl by `ppt_gpu.spec.load_cluster`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

#: kinds of path that a message takes: which memory, and within a node or through the network
PATHS = ("host_node", "host_network", "gpu_node", "gpu_network")


@dataclass(frozen=True)
class Tier:
    """How messages up to a size travel: LogGP by size classes (Alexandrov et al. 1995; Degomme et al., TPDS 2017)."""

    up_to: float  # bytes, the largest message of the tier
    overhead: float  # o: the sender's host is busy
    receive_overhead: float  # the receiver's
    gap: float  # g: ports are held this long besides the bytes
    latency: float  # on top of the path's and the hardware's
    bandwidth: float  # 1/G: no more than this, whatever the hardware gives
    rendezvous: bool  # data wait for the receive
    staged: bool  # data of a GPU pass through host memory, copied whole before and after


@dataclass(frozen=True)
class MpiPath:
    """What a library does on one kind of path."""

    latency: float  # software, once a message
    loopback: bool  # within a node: through the NIC, out and in again
    both_ways: float  # B/s in and out of a NIC together
    tiers: tuple[Tier, ...]

    def tier(self, nbytes: int) -> Tier:
        return next(tier for tier in self.tiers if nbytes <= tier.up_to)


@dataclass(frozen=True)
class MpiSpec:
    """A message-passing library on one kind of machine."""

    name: str
    title: str
    host_node: MpiPath
    host_network: MpiPath
    gpu_node: MpiPath
    gpu_network: MpiPath
    local_copy: float  # time to start a copy from a GPU's memory to itself

    def path(self, gpu: bool, network: bool) -> MpiPath:
        if gpu:
            return self.gpu_network if network else self.gpu_node
        return self.host_network if network else self.host_node


@dataclass(frozen=True)
class NcclSpec:
    """The tuning constants of a version of NCCL. Triples are for LL, LL128, Simple; or for 1, 2, more than 2 nodes."""

    name: str
    title: str
    base_latency: Mapping[str, tuple[float, ...]]  # algorithm -> triple, s
    nvlink_latency: Mapping[str, tuple[float, ...]]
    pcie_latency: Mapping[str, tuple[float, ...]]
    network_latency: Mapping[str, tuple[float, ...]]
    tree_efficiency: tuple[tuple[float, ...], ...]  # [protocol][log2(bytes / 64)]
    plateau: Mapping[str, float]  # generation -> factor on the latency of long rings between nodes
    ll_bandwidth: Mapping[str, tuple[float, ...]]  # generation (1 node) or CPU (more) -> by nodes
    ring_ll128_bandwidth: Mapping[str, float]  # a channel
    tree_bandwidth: Mapping[str, tuple[float, ...]]  # a channel, by nodes
    nvls_efficiency: Mapping[str, float]
    net_overhead: Mapping[str, float]  # CPU vendor -> s
    channels: int
