"""A machine for the simulation, from its files: the answers to what `ppt_gpu.cluster.model.machine.Machine` asks."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from ppt_gpu.cluster.model.costs import Costs
from ppt_gpu.cluster.model.machine import GPU, Collective, Copy, Machine, Place, Transfer, picoseconds
from ppt_gpu.cluster.model.network import Network
from ppt_gpu.cluster.topology.node_ports import NodePorts
from ppt_gpu.common.errors import PptError, did_you_mean
from ppt_gpu.spec.cluster import MachineSpec
from ppt_gpu.spec.gpu import Gpu
from ppt_gpu.spec.libraries import PATHS, MpiPath


def load_machine(name: str | Path, nodes: int | None = None, overrides: Sequence[str] = ()) -> ClusterMachine:
    """The machine `name` (a shipped one or a .toml file) with so many nodes, or as many as its file says.

    `overrides`: texts such as "network.bandwidth=50 GB/s". Raises PptError and InputErrors for bad files and values,
    for a network that cannot hold the nodes, and for one without any latency.
    """
    from ppt_gpu.spec.load_cluster import load_machine_spec

    spec = load_machine_spec(name, overrides)
    if nodes is not None:
        spec = replace(spec, nodes=nodes)
    machine = ClusterMachine(spec)
    machine.check()
    return machine


@dataclass(frozen=True)
class ClusterMachine:
    """A cluster of like nodes; see `ppt_gpu.cluster.model.machine.Machine` for what each answer means."""

    spec: MachineSpec

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def nodes(self) -> int:
        return self.spec.nodes

    @property
    def gpus_per_node(self) -> int:
        return self.spec.gpus_per_node

    @cached_property
    def node_ports(self) -> NodePorts:
        return NodePorts(self.spec)

    @cached_property
    def network(self) -> Network:
        return Network(self.spec.network, self.nodes, self.node_ports.nics, self.node_ports.nics_each)

    @cached_property
    def costs(self) -> Costs:
        return Costs(self.spec, self.node_ports, self.network, self._memory_rate)

    def check(self) -> None:
        """Raises PptError for a network that cannot hold the nodes or has no latency."""
        if self.nodes > 1:
            assert self.network.topology.nodes == self.nodes and self.network.lookahead > 0

    @property
    def switches(self) -> int:
        return self.network.switches if self.nodes > 1 else 0

    @property
    def lookahead(self) -> int:
        return self.network.lookahead

    @property
    def uniform(self) -> bool:
        return self.network.uniform

    @property
    def fair(self) -> bool:
        return self.spec.network.contention == "fair"

    def gpu(self, gpu: int) -> str:
        return self.spec.slot(gpu).model

    def ports(self) -> Sequence[str]:
        return self.node_ports.names

    def launch_overhead(self, gpu: int) -> int:
        return picoseconds(_gpu(self.gpu(gpu)).host.launch_overhead)

    def distance(self, source: int, target: int) -> Hashable:
        if self.spec.network.contention != "ports":
            return source, target
        return self.network.topology.between(source, target)

    def transfer(self, source: Place, target: Place, nbytes: int) -> Transfer:
        return self.costs.transfer(source, target, nbytes)

    def link_rate(self, link: int) -> float:
        """B/s of a link that flows share (contention "fair"): one of the network, or a GPU's to its host."""
        if link >= 0:
            return self.network.link_rate(link)
        up = self.node_ports.names[self.node_ports.of_link(link)].endswith("up")
        return self.spec.pcie.to_host if up else self.spec.pcie.to_gpu

    def copy(self, gpu: int, source: str, target: str, nbytes: int) -> Copy:
        pcie, ports = self.spec.pcie, self.node_ports
        if source == target:
            rate = self._memory_rate(gpu) if source == GPU else self.spec.host.memory_bandwidth
            return Copy(picoseconds(2 * nbytes / rate))
        rate = pcie.to_gpu if target == GPU else pcie.to_host
        port = ports.pcie_down(gpu) if target == GPU else ports.pcie_up(gpu)
        return Copy(picoseconds(pcie.latency + nbytes / rate), ((port, picoseconds(nbytes / rate)),))

    def reduce(self, gpu: int, memory: str, nbytes: int) -> int:
        """Two reads and a write of each byte, at the rate of the memory (of a rank's share of its host's memory)."""
        rate = self._memory_rate(gpu) if memory == GPU else self.spec.host.memory_bandwidth / self.gpus_per_node
        return picoseconds(3 * nbytes / rate)

    def _memory_rate(self, gpu: int) -> float:
        dram = _gpu(self.gpu(gpu)).dram
        return dram.bandwidth * dram.efficiency

    def collective(self, kind: str, nbytes: int, nodes: int, gpus_per_node: int, algorithm: str) -> Collective:
        from ppt_gpu.cluster.collectives import collectives, nccl
        from ppt_gpu.cluster.collectives import times as collective_times

        if algorithm == "nccl":
            collectives.check_kind(kind)
            seconds, name = nccl.seconds(self.spec, kind, nbytes, nodes, gpus_per_node)
            floor = self.lookahead if nodes > 1 else 0
            return Collective(max(floor, picoseconds(seconds)), name)
        duration = collective_times.duration(self, kind, algorithm, nbytes, nodes, gpus_per_node)
        return Collective(duration, algorithm)

    def parameters(self) -> Sequence[str]:
        """Every number of the files that is a time, a rate or a share and not zero; times of MPI paths as one."""
        found = []
        for part in ("network", "nic", "nvlink", "pcie", "host", "collectives"):
            for item in dataclasses.fields(getattr(self.spec, part)):
                value = getattr(getattr(self.spec, part), item.name)
                if isinstance(value, float) and 0 < value < float("inf"):
                    found.append(f"{part}.{item.name}")
        return found + [f"mpi.{path}.{key}" for path in PATHS for key in _used(getattr(self.spec.mpi, path))]

    def scaled(self, parameter: str, factor: float) -> ClusterMachine:
        """This machine with one of `parameters` multiplied; shares never above 1. PptError for any other name."""
        if parameter not in self.parameters():
            raise PptError(f"unknown parameter '{parameter}'", hint=did_you_mean(parameter, self.parameters()))
        part, _, key = parameter.partition(".")
        old = getattr(self.spec, part)
        if part == "mpi":
            path, _, key = key.partition(".")
            new = replace(old, **{path: _scaled_path(getattr(old, path), key, factor)})
        else:
            value = getattr(old, key) * factor
            new = replace(old, **{key: min(1.0, value) if key.endswith("efficiency") else value})
        return ClusterMachine(replace(self.spec, **{part: new}))


def _used(path: MpiPath) -> list[str]:
    """The times of a path that are not zero throughout."""
    found = [key for key in ("overhead", "latency", "gap") if any(getattr(tier, key) for tier in path.tiers)]
    return found + (["latency"] if path.latency and "latency" not in found else [])


def _scaled_path(path: MpiPath, key: str, factor: float) -> MpiPath:
    tiers = tuple(replace(tier, **{key: getattr(tier, key) * factor}) for tier in path.tiers)
    if key == "overhead":
        tiers = tuple(replace(tier, receive_overhead=tier.receive_overhead * factor) for tier in tiers)
    latency = path.latency * factor if key == "latency" else path.latency
    return replace(path, tiers=tiers, latency=latency)


@functools.cache
def _gpu(name: str) -> Gpu:
    from ppt_gpu.spec import load_gpu

    return load_gpu(name)


_CHECKED: type[Machine] = ClusterMachine  # the protocol holds
