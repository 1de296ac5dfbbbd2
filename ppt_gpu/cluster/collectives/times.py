"""Closed forms of collectives: rounds of messages one after another, each as long as its longest message.

Exact for members that are all equally far from each other, whose number is a power of two where the algorithm halves
or doubles, and which divides the vector; else an estimate from the farthest members and the largest parts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import product
from typing import NamedTuple, Protocol

from ppt_gpu.cluster.collectives.collectives import algorithms, check_kind
from ppt_gpu.cluster.collectives.trees import powers
from ppt_gpu.cluster.model.machine import GPU, Place, Transfer
from ppt_gpu.common.errors import PptError, did_you_mean

FAR, INSIDE = "far", "inside"


class Round(NamedTuple):
    """So many rounds of messages of `nbytes`, between any members or within the nodes, each then reducing."""

    times: int
    nbytes: int
    reduced: int = 0
    where: str = FAR


class Priced(Protocol):
    """What of a machine the closed forms need."""

    def transfer(self, source: Place, target: Place, nbytes: int) -> Transfer: ...

    def reduce(self, gpu: int, memory: str, nbytes: int) -> int: ...


def duration(
    machine: Priced, kind: str, algorithm: str, nbytes: int, nodes: int, gpus_per_node: int, memory: str = GPU
) -> int:
    """Picoseconds of a collective when nothing else is in the way.

    Raises PptError for a kind or an algorithm that there is not.
    """
    check_kind(kind)
    known = algorithms(kind)
    if algorithm not in known:
        raise PptError(f"there is no algorithm '{algorithm}' for {kind}", hint=did_you_mean(algorithm, known))
    size = nodes * gpus_per_node
    if size == 1:
        return 0
    if algorithm == "hierarchical":
        rounds = _hierarchical(kind, nbytes, nodes, gpus_per_node)
    elif algorithm == "linear":
        return _linear(machine, nbytes, nodes, gpus_per_node, memory)
    else:
        rounds = _FLAT[kind, algorithm](size, nbytes)
    total = 0
    for each in rounds:
        if each.times:
            inside = each.where == INSIDE
            longest = _longest(machine, each.nbytes, 1 if inside else nodes, gpus_per_node, memory)
            total += each.times * (longest + (machine.reduce(0, memory, each.reduced) if each.reduced else 0))
    return total


def _longest(machine: Priced, nbytes: int, nodes: int, gpus_per_node: int, memory: str) -> int:
    """The time of a message to another GPU of the node or to the farthest node, whichever is longer."""
    here = Place(0, 0, memory)
    found = []
    if gpus_per_node > 1:
        found.append(machine.transfer(here, Place(0, gpus_per_node - 1, memory), nbytes))
    if nodes > 1:
        found += [machine.transfer(here, Place(node, 0, memory), nbytes) for node in {1, nodes // 2, nodes - 1}]
    return max(map(_ended, found))


def _ended(transfer: Transfer) -> int:
    """When both ends are done: a rendezvous sender waits until its ports are free."""
    if not transfer.rendezvous:
        return transfer.duration
    held = max((time for _, time in transfer.source_ports), default=0)
    return max(transfer.duration, transfer.send_overhead + 2 * transfer.control_latency + held)


def _linear(machine: Priced, nbytes: int, nodes: int, gpus_per_node: int, memory: str) -> int:
    """Every part is sent at once: messages follow each other at the pace of the busiest host or port of a node.

    A lower estimate: messages that wait for a busy target also keep their sender's ports.
    """
    part = -(-nbytes // (nodes * gpus_per_node))
    ports: Counter[int] = Counter()
    hosts: Counter[int] = Counter()
    rest = 0
    for gpu, peer in product(range(gpus_per_node), repeat=2):
        here = Place(0, gpu, memory)
        ways = [(1, Place(0, peer, memory))] if peer != gpu else []
        ways += [(nodes - 1, Place(nodes - 1, peer, memory))] if nodes > 1 else []
        for times, there in ways:
            out, back = machine.transfer(here, there, part), machine.transfer(there, here, part)
            for port, held in (*out.source_ports, *back.target_ports):
                ports[port] += times * held
            hosts[gpu] += times * out.send_overhead
            rest = max(rest, out.duration - max((out.send_overhead, *(held for _, held in out.source_ports))))
    return rest + max((*ports.values(), *hosts.values()))


def _hierarchical(kind: str, nbytes: int, nodes: int, gpus_per_node: int) -> list[Round]:
    steps, part = gpus_per_node - 1, -(-nbytes // gpus_per_node)
    levels = [len(powers(count)) for count in (nodes, gpus_per_node)]
    if kind == "broadcast":
        return [Round(levels[0], nbytes), Round(levels[1], nbytes, where=INSIDE)]
    if kind == "barrier":
        return [Round(2 * levels[1], 0, where=INSIDE), Round(levels[0], 0)]
    between = -(-part // nodes)
    return [
        Round(steps, part, part, INSIDE),
        Round(nodes - 1, between, between),
        Round(nodes - 1, between),
        Round(steps, part, where=INSIDE),
    ]


def _ring(size: int, nbytes: int, *, reduced: bool) -> Round:
    part = -(-nbytes // size)
    return Round(size - 1, part, part if reduced else 0)


def _halves(size: int, nbytes: int, *, reduced: bool) -> list[Round]:
    return [Round(1, nbytes * bit // size, nbytes * bit // size if reduced else 0) for bit in powers(size)]


_FLAT: dict[tuple[str, str], Callable[[int, int], list[Round]]] = {
    ("all_reduce", "ring"): lambda p, n: [_ring(p, n, reduced=True), _ring(p, n, reduced=False)],
    ("all_reduce", "tree"): lambda p, n: [Round(len(powers(p)), n, n), Round(len(powers(p)), n)],
    ("all_reduce", "recursive_doubling"): lambda p, n: [Round(len(powers(p)), n, n)],
    ("all_reduce", "halving_doubling"): lambda p, n: _halves(p, n, reduced=True) + _halves(p, n, reduced=False),
    ("all_gather", "ring"): lambda p, n: [_ring(p, n, reduced=False)],
    ("all_gather", "recursive_doubling"): lambda p, n: _halves(p, n, reduced=False),
    ("reduce_scatter", "ring"): lambda p, n: [_ring(p, n, reduced=True)],
    ("reduce_scatter", "halving_doubling"): lambda p, n: _halves(p, n, reduced=True),
    ("broadcast", "tree"): lambda p, n: [Round(len(powers(p)), n)],
    ("broadcast", "ring"): lambda p, n: [*_halves(p, n, reduced=False), _ring(p, n, reduced=False)],
    ("all_to_all", "ring"): lambda p, n: [_ring(p, n, reduced=False)],
    ("all_to_all", "recursive_doubling"): lambda p, n: [Round(len(powers(p)), -(-n // 2))],
    ("barrier", "recursive_doubling"): lambda p, n: [Round(len(powers(p)), 0)],
    ("barrier", "tree"): lambda p, n: [Round(2 * len(powers(p)), 0)],
    ("barrier", "ring"): lambda p, n: [Round(2 * p - 1, 0)],
}
