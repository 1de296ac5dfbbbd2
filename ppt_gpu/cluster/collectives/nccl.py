"""NCCL: which algorithm and protocol it takes, by its own tuning constants, and how long that takes on a machine.

Its estimate is latency + bytes / bandwidth for each algorithm and protocol, and the smallest wins
(NCCL, src/graph/tuning.cc; the constants are in hardware/nccl). A machine adds what the constants leave out: a fixed
overhead, the latency of its network, and the filling of the pipeline, whose chunks grow with the message up to a limit
(the ramp of middle sizes).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from ppt_gpu.spec.cluster import MachineSpec

PROTOCOLS = ("LL", "LL128", "Simple")
LL, LL128, SIMPLE = range(3)
TITLES = {"tree": "tree", "ring": "ring", "nvls": "NVLS", "nvls_tree": "NVLS tree"}


@dataclass(frozen=True)
class Estimate:
    """A way to carry out a collective: NCCL's latency (s) and bandwidth (B/s of the user's vector)."""

    algorithm: str
    protocol: int
    latency: float
    bandwidth: float

    @property
    def name(self) -> str:
        simple = self.algorithm.startswith("nvls")
        return TITLES[self.algorithm] if simple else f"{TITLES[self.algorithm]} {PROTOCOLS[self.protocol]}"


@dataclass(frozen=True)
class Group:
    """The GPUs of a collective and what joins them; rates in B/s."""

    spec: MachineSpec
    nodes: int
    each: int  # GPUs of a node
    generation: str
    within: float  # what a GPU's links within the node give to rings
    between: float  # what the NICs of a node give

    @property
    def ranks(self) -> int:
        return self.nodes * self.each

    @property
    def column(self) -> int:
        """1, 2 or more nodes, as the constants are listed."""
        return min(self.nodes, 3) - 1


def group_of(spec: MachineSpec, nodes: int, each: int) -> Group:
    """The group of `each` GPUs on each of `nodes` nodes; GPUs joined pairwise use the links among them only."""
    fit, nvlink, all_gpus = spec.collectives, spec.nvlink, spec.gpus_per_node
    within = fit.bandwidth
    if nvlink.topology in ("all", "edges") and all_gpus > 1:
        within *= max(1, each - 1) / (all_gpus - 1)
    nics = max(1.0, spec.nic.count * each / all_gpus)
    between = nics * spec.network.bandwidth * fit.network_efficiency
    ages = ("volta", "ampere", "hopper", "blackwell")
    oldest = min((slot.generation for slot in spec.gpus), key=ages.index)
    return Group(spec, nodes, each, oldest, within, between)


def estimates(group: Group, kind: str) -> Iterator[Estimate]:
    """Every algorithm and protocol that NCCL considers."""
    for protocol in (LL, LL128, SIMPLE):
        yield Estimate("ring", protocol, _ring_latency(group, kind, protocol), _ring_bandwidth(group, kind, protocol))
        if kind == "all_reduce":
            yield Estimate("tree", protocol, _tree_latency(group, protocol), _tree_bandwidth(group, protocol))
    nvls = group.spec.nccl.nvls_efficiency.get(group.generation)
    if nvls and group.spec.nvlink.multicast and group.each > 1 and kind != "broadcast":
        found = _nvls(group, kind, nvls)
        if found:
            yield found


def _hop(group: Group, algorithm: str, protocol: int) -> tuple[float, float]:
    """Latency of a step within a node and between nodes. Simple waits for the network once more, to flush."""
    spec = group.spec
    inside = spec.nccl.pcie_latency if spec.nvlink.topology == "none" else spec.nccl.nvlink_latency
    outside = spec.nccl.network_latency[algorithm][protocol]
    extra = spec.network.collective_latency * (2 if protocol == SIMPLE else 1)
    return inside[algorithm][protocol], outside + extra


def _steps(group: Group, kind: str) -> tuple[int, int]:
    """Steps of a ring, and those of them between nodes."""
    n, nodes = group.ranks, group.nodes
    if kind == "all_reduce":
        return 2 * (n - 1), 2 * nodes if nodes > 1 else 0
    return (n - 1, nodes - 1) if kind in ("all_gather", "reduce_scatter") else (n, nodes if nodes > 1 else 0)


def _ring_latency(group: Group, kind: str, protocol: int) -> float:
    nccl = group.spec.nccl
    inside, outside = _hop(group, "ring", protocol)
    steps, between = _steps(group, kind)
    between = min(steps, between)
    if group.nodes > 1:
        inside = max(inside, nccl.net_overhead[group.spec.host.vendor] * (3 if protocol == SIMPLE else 1))
    if kind == "broadcast":  # a chain that chunks run through
        return nccl.base_latency["ring"][protocol] + (outside if group.nodes > 1 else inside) * math.log2(group.ranks)
    return nccl.base_latency["ring"][protocol] + (steps - between) * inside + between * outside


def _ll_limit(group: Group) -> float:
    """LL: limited by the GPU within a node, by the CPU's kind between nodes of older GPUs."""
    nccl = group.spec.nccl
    generation = group.generation
    if group.nodes > 1 and generation in ("volta", "ampere"):
        generation = "ampere" if group.spec.host.vendor == "amd" else "volta"
    return nccl.ll_bandwidth[generation][group.column]


def _ring_bandwidth(group: Group, kind: str, protocol: int) -> float:
    nccl = group.spec.nccl
    bus = min(group.within, group.between) if group.nodes > 1 else group.within
    if group.each == 1:
        bus = group.between
    if protocol == LL:
        bus = min(_ll_limit(group), bus / 2)
    if protocol == LL128:
        share = 0.7 if group.each < 2 else 0.92  # 120 of 128 bytes are data; a GPU alone sends and receives
        bus = min(bus * share, nccl.channels * nccl.ring_ll128_bandwidth[group.generation])
    return bus * group.ranks / _steps(group, kind)[0]


def _tree_latency(group: Group, protocol: int) -> float:
    inside, outside = _hop(group, "tree", protocol)
    levels = math.floor(math.log2(group.nodes))
    return group.spec.nccl.base_latency["tree"][protocol] + 2 * ((group.each - 1) * inside + levels * outside)


def _tree_bandwidth(group: Group, protocol: int) -> float:
    """Two nodes exchange halves of the vector in both directions at once, more nodes pass all of it up and down."""
    nccl, generation = group.spec.nccl, group.generation
    if group.nodes == 1:
        bus = group.within
    elif group.each == 1:
        bus = group.between * (2 if group.nodes == 2 else 1)
    else:
        bus = min(group.within, group.between * (2 if group.nodes == 2 else 1))
    bus = min(bus * 0.92, nccl.channels * nccl.tree_bandwidth[generation][group.column])
    if protocol == LL:
        bus = min(bus / 3.8, _ll_limit(group))
    if protocol == LL128:
        share = 7 / 9 if group.nodes == 1 else 120 / 128
        bus = min(bus * share, nccl.channels * nccl.ring_ll128_bandwidth[generation])
    return bus / 2


def _nvls(group: Group, kind: str, efficiency: float) -> Estimate | None:
    """The switch adds and multiplies. Every GPU sends its vector once and the sum of its part: 1 + 1/n of the bytes."""
    nccl, each = group.spec.nccl, group.each
    inside = group.within * efficiency / (1 + 1 / each)
    if group.nodes == 1:
        rate = inside if kind == "all_reduce" else group.within * efficiency
        return Estimate("nvls", SIMPLE, nccl.nvlink_latency["nvls"][SIMPLE], rate)
    if kind != "all_reduce":
        return None
    step, hop = nccl.nvlink_latency["nvls_tree"][SIMPLE], _hop(group, "nvls_tree", SIMPLE)[1]
    outside = group.between if group.nodes == 2 else group.between / 2
    latency = step + 2 * math.floor(math.log2(group.nodes)) * hop
    return Estimate("nvls_tree", SIMPLE, latency, min(inside, outside))


def seconds(spec: MachineSpec, kind: str, nbytes: int, nodes: int, each: int) -> tuple[float, str]:
    """How long a collective takes and how it is carried out. The kinds and sizes of `machine.Machine.collective`."""
    group = group_of(spec, nodes, each)
    fit = spec.collectives
    if group.ranks == 1:
        return fit.overhead, "nothing to do"
    fill = fit.fill * nbytes / (nbytes + fit.fill_size) if nbytes else 0.0
    if kind == "all_to_all":
        return fit.overhead + fill + _exchange(group, nbytes), "send and receive"
    kind, nbytes = ("all_reduce", 4) if kind == "barrier" else (kind, nbytes)
    best = min((time_of(group, kind, nbytes, each), each.name, each) for each in estimates(group, kind))
    return fit.overhead + fill + best[0], best[1]


def _exchange(group: Group, nbytes: int) -> float:
    """Every GPU sends a part to every other: all at once, limited by the NVLinks of a GPU or the NICs of a node."""
    nccl, part = group.spec.nccl, nbytes / group.ranks
    inside = (group.each - 1) * part / group.within
    outside = (group.ranks - group.each) * group.each * part / group.between if group.nodes > 1 else 0.0
    step = nccl.nvlink_latency["ring"][SIMPLE] if group.each > 1 else 0.0
    if group.nodes > 1:
        step = max(step, nccl.network_latency["ring"][SIMPLE] + 2 * group.spec.network.collective_latency)
    return nccl.base_latency["ring"][SIMPLE] + step + max(inside, outside)


def time_of(group: Group, kind: str, nbytes: int, way: Estimate) -> float:
    """NCCL's estimate for a size: trees are slower in the middle, long rings between nodes have a plateau."""
    latency, bandwidth = way.latency, way.bandwidth
    power = int(math.log2(max(nbytes, 64) / 64))
    table = group.spec.nccl.tree_efficiency[way.protocol]
    if way.algorithm == "tree" and power < len(table):
        bandwidth *= table[power]
    share = nbytes / (group.spec.nccl.channels * group.ranks)
    if (way.algorithm, way.protocol, kind) == ("ring", SIMPLE, "all_reduce") and group.nodes > 1 and share >= 64:
        latency *= group.spec.nccl.plateau[group.generation]
    return latency + nbytes / bandwidth
