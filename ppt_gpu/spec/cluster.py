"""The description of a cluster: nodes, their links, the network, and the libraries that move data; in base units.

Built from hardware/machines, hosts, networks, mpi and nccl (*.toml) by `ppt_gpu.spec.load_cluster`; the TOML keys are
the field names below. Times in s, sizes in B, rates in B/s and one direction unless said otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ppt_gpu.spec.gpu import Source
from ppt_gpu.spec.libraries import MpiSpec, NcclSpec


@dataclass(frozen=True)
class HostSpec:
    """The CPUs of a node and their memory."""

    name: str
    title: str
    vendor: str  # "intel", "amd", "arm", "ibm": NCCL's constants differ
    sockets: int
    cores: int  # of all sockets
    memory_bandwidth: float  # of all sockets, reads and writes together


@dataclass(frozen=True)
class NetworkSpec:
    """What joins the nodes. Only the table of its own topology is set."""

    name: str
    title: str
    topology: str  # "single_switch", "fat_tree", "dragonfly", "torus", "edges"
    contention: str  # "ports": of the NICs only; "links": every link's port too; "fair": max-min fair shares of links
    bandwidth: float  # of a port
    efficiency: float  # share of it that large messages reach
    nic_latency: float  # a NIC with its bus, at either end
    link_latency: float  # a cable
    switch_latency: float
    message_gap: float  # a NIC's port starts messages no closer than this
    collective_latency: float  # NCCL: what a step through this network takes beyond the constants that it assumes
    fat_tree: FatTree | None = None
    dragonfly: Dragonfly | None = None
    torus: Torus | None = None
    edges: tuple[tuple[str, str], ...] = ()  # names that are not switches' are the nodes, in their order


@dataclass(frozen=True)
class FatTree:
    """Levels of switches: down[i] ports of a switch of level i+1 go down, up[i] go up (none from the last level).

    The extended generalized fat tree XGFT (Ohring et al., IPPS 1995) with down = m and up = w one level later.
    """

    down: tuple[int, ...]
    up: tuple[int, ...]


@dataclass(frozen=True)
class Dragonfly:
    """Groups of routers, all joined within a group and every two groups once (Kim et al., ISCA 2008)."""

    routers: int  # of a group
    nodes: int  # of a router
    global_links: int  # of a router


@dataclass(frozen=True)
class Torus:
    """A router a node, joined to both neighbours in each dimension."""

    dims: tuple[int, ...]  # (): as near to a cube as the number of nodes allows
    dimensions: int


@dataclass(frozen=True)
class GpuSlots:
    """So many GPUs of one kind in a node."""

    model: str
    count: int
    generation: str  # compute capability's major number as NCCL groups them: "volta", "ampere", "hopper", "blackwell"


@dataclass(frozen=True)
class NicSpec:
    count: int  # shared out to the GPUs in order
    gpu_direct: bool  # reads and writes a GPU's memory without the host


@dataclass(frozen=True)
class NvlinkSpec:
    """Links between the GPUs of a node."""

    topology: str  # "none", "switch", "all" (each pair joined, links shared out evenly), "edges"
    links: int  # of a GPU
    bandwidth: float  # of a link
    efficiency: float  # share of it that large copies reach
    latency: float
    multicast: bool  # the switch reduces and multiplies (NVLink SHARP)
    edges: tuple[tuple[int, int, int], ...] = ()  # GPU, GPU, links


@dataclass(frozen=True)
class PcieSpec:
    """Between each GPU and its host: PCIe, or NVLink-C2C."""

    to_gpu: float
    to_host: float
    latency: float  # of a copy
    peer: bool  # GPUs reach each other without passing through host memory


@dataclass(frozen=True)
class NcclFit:
    """What of NCCL's times its own constants leave out, by machine."""

    bandwidth: float  # of a GPU's NVLink (or PCIe) in rings, B/s
    overhead: float  # s a collective
    network_efficiency: float  # share of the NICs' rate that rings between nodes reach
    fill: float  # s to fill and drain the pipeline of a long collective
    fill_size: float  # B at which half of it shows


@dataclass(frozen=True)
class MachineSpec:
    """A cluster of like nodes."""

    name: str
    title: str
    notes: str
    nodes: int
    gpus: tuple[GpuSlots, ...]
    host: HostSpec
    network: NetworkSpec
    mpi: MpiSpec
    nccl: NcclSpec
    nic: NicSpec
    nvlink: NvlinkSpec
    pcie: PcieSpec
    collectives: NcclFit
    sources: Mapping[str, Source] = field(default_factory=dict, compare=False)

    @property
    def gpus_per_node(self) -> int:
        return sum(slot.count for slot in self.gpus)

    def slot(self, gpu: int) -> GpuSlots:
        """The kind of GPU number `gpu` of a node. Raises IndexError."""
        for slot in self.gpus:
            if gpu < slot.count:
                return slot
            gpu -= slot.count
        raise IndexError(gpu)
