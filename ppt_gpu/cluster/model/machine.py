"""What the simulation asks of a machine: where a rank sits, and what a message, a copy or a collective costs there.

Times are whole picoseconds, so that sums are exact and ties are real ties. The machine answers once for each distinct
question (the simulation keeps the answers), so it may take its time: curves, protocols and staging are its matter, and
what comes back is integers to add. Ports are numbered within a node: whatever transfers of that node queue for, first
come first served (NIC out, NIC in, a GPU's NVLink out, its PCIe up, ...).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

PS_PER_S = 10**12

GPU, HOST = "gpu", "host"  # the memories that a message or copy starts or ends in


def picoseconds(seconds: float) -> int:
    """Seconds as whole picoseconds, rounded to nearest."""
    return round(seconds * PS_PER_S)


class Place(NamedTuple):
    """Where a message starts or ends: a node, a GPU of it (0 ... gpus_per_node-1), and which memory."""

    node: int
    gpu: int
    memory: str


class Hop(NamedTuple):
    """One link inside the network, whose port is queued for: only of machines whose network's links are contended.

    `switch` is the switch (0 ... machine.switches-1) that the port belongs to, `busy` how long the message holds it,
    `latency` the time of the message's head from there to the next hop or the receiving node; ps.
    """

    switch: int
    port: int
    busy: int
    latency: int


@dataclass(frozen=True, slots=True)
class Transfer:
    """What a message of one size between two places costs; times in ps.

    The sender's host is busy for `send_overhead`; then the message waits until all its `source_ports` are free, holds
    each for its time, and its head reaches the receiving node (or the first hop) `latency` later. There it waits for
    the `target_ports`, holds each for its time, and is there `tail` after its head, if nothing made it wait. The
    receiver's host is then busy for `receive_overhead`. The buffer of an eager message can be used again after
    `send_overhead`, that of a rendezvous one when the source ports are free again.

    `rendezvous`: a request goes first, and the data when the receive is posted and the answer came back; either takes
    `control_latency` and no port. Both latencies are at least `Machine.lookahead` between nodes.
    `unexpected_copy`: time to copy an eager message that came before its receive was posted.
    `links`: the links of the network that it crosses, for machines that share them max-min fair (else empty);
    such a message takes `tail` or, if longer, the time its shares of the links allow for `nbytes`.
    """

    nbytes: int
    latency: int
    tail: int
    send_overhead: int = 0
    receive_overhead: int = 0
    source_ports: tuple[tuple[int, int], ...] = ()  # (port, ps held)
    target_ports: tuple[tuple[int, int], ...] = ()
    rendezvous: bool = False
    control_latency: int = 0
    unexpected_copy: int = 0
    hops: tuple[Hop, ...] = ()
    links: tuple[int, ...] = ()

    @property
    def duration(self) -> int:
        """From the send to the end of the receive when nothing is in the way and the receive is posted."""
        handshake = 2 * self.control_latency if self.rendezvous else 0
        between = sum(hop.latency for hop in self.hops)
        return self.send_overhead + handshake + self.latency + between + self.tail + self.receive_overhead


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy between a GPU and its host, or within one: waits for its ports, holds each, ends `duration` later; ps."""

    duration: int
    ports: tuple[tuple[int, int], ...] = ()


class Exchange(NamedTuple):
    """One message of a step: the peer by its index in the group, and bytes."""

    peer: int
    nbytes: int


class Step(NamedTuple):
    """One step of a collective for one member: its messages start together; the next step starts when all have ended.

    `reduce_bytes`: bytes that the member then combines with its own (0: none).
    """

    sends: tuple[Exchange, ...]
    receives: tuple[Exchange, ...]
    reduce_bytes: int = 0


class Schedule(Protocol):
    """A collective as point-to-point steps: `schedule(size, index, nbytes)` yields the steps of member `index`."""

    def __call__(self, size: int, index: int, nbytes: int) -> Iterator[Step]: ...


class Collective(NamedTuple):
    """A collective timed as a whole: it ends `duration` ps after its last member came; how it is carried out."""

    duration: int
    algorithm: str  # "ring LL128", for the report


class Machine(Protocol):
    """A cluster of like nodes. Everything here must be quick for 10,000s of nodes: build graphs when first needed."""

    @property
    def name(self) -> str: ...

    @property
    def nodes(self) -> int: ...

    @property
    def gpus_per_node(self) -> int: ...

    @property
    def switches(self) -> int:
        """Switches whose ports messages queue for (0 where only the nodes' ports are contended)."""
        ...

    @property
    def lookahead(self) -> int:
        """ps: no message between nodes takes less; nor between a node and a switch or two switches, if any."""
        ...

    @property
    def uniform(self) -> bool:
        """Every pair of different nodes is equally far, and shares nothing with any other pair."""
        ...

    @property
    def fair(self) -> bool:
        """Messages share the links of the network max-min fair: one process must simulate all nodes."""
        ...

    def gpu(self, gpu: int) -> str:
        """The name or file of GPU number `gpu` of every node, for `load_gpu`."""
        ...

    def ports(self) -> Sequence[str]:
        """The names of a node's ports: port p is ports()[p]."""
        ...

    def launch_overhead(self, gpu: int) -> int:
        """How long the host is busy launching a kernel or starting a copy on this GPU, in ps."""
        ...

    def distance(self, source: int, target: int) -> Hashable:
        """A class of node pairs: `transfer` answers the same for pairs of one class, GPUs and memories being equal.

        Called for every message, so quick. With hops or links the pair itself.
        """
        ...

    def transfer(self, source: Place, target: Place, nbytes: int) -> Transfer:
        """What a message costs; also between GPUs of one node, and from a place to itself."""
        ...

    def link_rate(self, link: int) -> float:
        """B/s of a link of a transfer's `links`."""
        ...

    def copy(self, gpu: int, source: str, target: str, nbytes: int) -> Copy:
        """What copying costs between the memories of a GPU and its host (pinned)."""
        ...

    def reduce(self, gpu: int, memory: str, nbytes: int) -> int:
        """Time to combine nbytes of received data with own, in ps."""
        ...

    def collective(self, kind: str, nbytes: int, nodes: int, gpus_per_node: int, algorithm: str) -> Collective:
        """Time of a collective of GPU memory as the library runs it, over so many nodes and GPUs of each.

        kind: all_reduce, all_gather, reduce_scatter, broadcast, all_to_all, barrier. nbytes: what one member holds
        (all_reduce, broadcast: the vector; all_gather, reduce_scatter, all_to_all: the whole of the longer vector).
        algorithm: "nccl" (its own choice), or a name with a closed form. At least `lookahead` when nodes > 1.
        """
        ...

    def parameters(self) -> Sequence[str]:
        """Dotted names of what `--set` and the sensitivity study may change, such as 'network.latency'."""
        ...

    def scaled(self, parameter: str, factor: float) -> Machine:
        """This machine with one parameter multiplied by `factor`."""
        ...
