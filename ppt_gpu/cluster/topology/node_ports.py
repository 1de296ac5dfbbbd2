"""The ports of a node: what its messages and copies queue for, numbered."""

from __future__ import annotations

from functools import cached_property

from ppt_gpu.spec.cluster import MachineSpec


class NodePorts:
    """NICs in groups (as many as GPUs share one, or one for several NICs of a GPU), NVLinks, PCIe, host memory.

    A NIC has three: out, in, and its bus, which both directions share where a library cannot use both fully.
    """

    def __init__(self, spec: MachineSpec) -> None:
        self.gpus = spec.gpus_per_node
        self.nics = min(spec.nic.count, self.gpus)
        self.nics_each = spec.nic.count // self.nics
        self.names = [f"nic{number} {side}" for number in range(self.nics) for side in ("out", "in", "bus")]
        self._pcie = len(self.names)
        self.names += [f"gpu{number} pcie {side}" for number in range(self.gpus) for side in ("up", "down")]
        self.host_memory = len(self.names)
        self.names.append("host memory")
        self._nvlink = len(self.names)
        self.pairs: dict[tuple[int, int], int] = {}  # GPU -> GPU: links of a direct connection
        self.switched = spec.nvlink.topology == "switch"
        if self.switched:
            self.names += [f"gpu{number} nvlink {side}" for number in range(self.gpus) for side in ("out", "in")]
        else:
            self.pairs = _pairs(spec)
            self.names += [f"nvlink {source}>{target}" for source, target in self.pairs]

    @cached_property
    def _pair_port(self) -> dict[tuple[int, int], int]:
        return {pair: self._nvlink + number for number, pair in enumerate(self.pairs)}

    def nic(self, gpu: int) -> int:
        """The group of NICs that serves a GPU (and its rank's host memory)."""
        return gpu * self.nics // self.gpus

    def nic_out(self, gpu: int) -> int:
        return 3 * self.nic(gpu)

    def nic_in(self, gpu: int) -> int:
        return 3 * self.nic(gpu) + 1

    def nic_bus(self, gpu: int) -> int:
        return 3 * self.nic(gpu) + 2

    def pcie_up(self, gpu: int) -> int:
        return self._pcie + 2 * gpu

    def pcie_down(self, gpu: int) -> int:
        return self._pcie + 2 * gpu + 1

    def link(self, node: int, port: int) -> int:
        """A port as a link that flows share: below zero, the network's are not."""
        return ~(node * len(self.names) + port)

    def of_link(self, link: int) -> int:
        """The port of a `link`."""
        return ~link % len(self.names)

    def nvlink(self, source: int, target: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The ports at the source and at the target of a direct transfer, which must be possible."""
        if self.switched:
            return (self._nvlink + 2 * source,), (self._nvlink + 2 * target + 1,)
        return (self._pair_port[source, target],), ()

    def links(self, spec: MachineSpec, source: int, target: int) -> int:
        """NVLinks that a transfer between two GPUs uses; 0: there is no direct way."""
        return spec.nvlink.links if self.switched else self.pairs.get((source, target), 0)


def _pairs(spec: MachineSpec) -> dict[tuple[int, int], int]:
    """Links of every directed pair of directly joined GPUs. "all" shares a GPU's links out evenly, one at least."""
    found: dict[tuple[int, int], int] = {}
    count = spec.gpus_per_node
    if spec.nvlink.topology == "all" and count > 1:
        each = max(1, spec.nvlink.links // (count - 1))
        found = {(a, b): each for a in range(count) for b in range(count) if a != b}
    elif spec.nvlink.topology == "edges":
        for first, second, links in spec.nvlink.edges:
            for pair in ((first, second), (second, first)):
                found[pair] = found.get(pair, 0) + links
    return found
