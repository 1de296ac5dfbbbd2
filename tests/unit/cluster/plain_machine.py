"""A machine whose costs can be worked out in the head: one latency and one rate between nodes, others within."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

from ppt_gpu.cluster.model.machine import Collective, Copy, Hop, Machine, Place, Transfer

US = 10**6  # ps


@dataclass(frozen=True)
class PlainMachine:
    """Ports: per GPU out and in (0 ... 2 g - 1), then the node's NIC out and in. Rates in ps a byte."""

    nodes: int = 2
    gpus_per_node: int = 2
    name: str = "plain"
    overhead: int = US // 2
    latency: int = 2 * US
    near_latency: int = US
    byte: int = 100
    near_byte: int = 10
    eager: int = 8192
    launch: int = 0
    hops: int = 0  # switches that a message between nodes crosses
    switches: int = 0
    uniform: bool = True
    fair: bool = False

    @property
    def lookahead(self) -> int:
        return self.latency

    def gpu(self, gpu: int) -> str:
        return "k40"

    def ports(self) -> Sequence[str]:
        gpus = [f"gpu{g}.{way}" for g in range(self.gpus_per_node) for way in ("out", "in")]
        return (*gpus, "nic.out", "nic.in")

    def launch_overhead(self, gpu: int) -> int:
        return self.launch

    def distance(self, source: int, target: int) -> Hashable:
        return (source, target) if self.hops else source != target

    def transfer(self, source: Place, target: Place, nbytes: int) -> Transfer:
        far = source.node != target.node
        time = nbytes * (self.byte if far else self.near_byte)
        nic = 2 * self.gpus_per_node
        first, second = (nic, nic + 1) if far else (2 * source.gpu, 2 * target.gpu + 1)
        latency = self.latency if far else self.near_latency
        hops = self.hops if far else 0
        return Transfer(
            nbytes,
            latency,
            time,
            send_overhead=self.overhead,
            receive_overhead=self.overhead,
            source_ports=((first, time),),
            target_ports=((second, time),),
            rendezvous=nbytes > self.eager,
            control_latency=latency,
            unexpected_copy=nbytes,
            hops=tuple(Hop((source.node + k) % self.switches, target.node, time, self.latency) for k in range(hops)),
        )

    def copy(self, gpu: int, source: str, target: str, nbytes: int) -> Copy:
        return Copy(nbytes * 50, ((2 * gpu, nbytes * 50),))

    def reduce(self, gpu: int, memory: str, nbytes: int) -> int:
        return nbytes

    def collective(self, kind: str, nbytes: int, nodes: int, gpus_per_node: int, algorithm: str) -> Collective:
        steps = 2 * (nodes * gpus_per_node - 1)
        return Collective(steps * self.latency + nbytes * self.byte, "plain ring")

    def parameters(self) -> Sequence[str]:
        return ("latency", "byte", "launch")

    def scaled(self, parameter: str, factor: float) -> Machine:
        return replace(self, **{parameter: round(getattr(self, parameter) * factor)})
