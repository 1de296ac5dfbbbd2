"""Collectives as steps of messages: what each member sends and receives, step by step, for the usual algorithms.

Every vector is cut into parts as equal as whole bytes allow. Sources: Thakur, Rabenseifner, Gropp, Optimization of
Collective Communication Operations in MPICH (IJHPCA 2005); Bruck et al. (TPDS 1997) for sizes that are no power of two.
"""

from __future__ import annotations

from collections.abc import Iterator

from ppt_gpu.cluster.collectives import collectives_in_nodes as in_nodes
from ppt_gpu.cluster.collectives import trees
from ppt_gpu.cluster.model.machine import Exchange, Schedule, Step
from ppt_gpu.common.errors import PptError, did_you_mean

KINDS = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all", "barrier")


def part(nbytes: int, parts: int, number: int) -> int:
    """Bytes of part `number` (modulo `parts`) of a vector."""
    number %= parts
    return nbytes * (number + 1) // parts - nbytes * number // parts


def check_kind(kind: str) -> None:
    """Raises PptError for a collective that there is not."""
    if kind not in KINDS:
        raise PptError(f"unknown collective '{kind}'", hint=did_you_mean(kind, KINDS))


def schedule(kind: str, algorithm: str, gpus_per_node: int = 1) -> Schedule:
    """The steps of a collective. The hierarchical algorithms need to know which members share a node.

    Raises PptError for a kind or an algorithm that there is not.
    """
    check_kind(kind)
    known = {name: made for (each, name), made in _SCHEDULES.items() if each == kind}
    if algorithm == "hierarchical" and kind in in_nodes.KINDS:
        return in_nodes.schedule(kind, gpus_per_node, {key: _SCHEDULES[key] for key in in_nodes.NEEDS})
    if algorithm not in known:
        raise PptError(
            f"there is no algorithm '{algorithm}' for {kind}", hint=did_you_mean(algorithm, algorithms(kind))
        )
    return known[algorithm]


def algorithms(kind: str) -> list[str]:
    """The algorithms of a kind of collective."""
    names = [name for each, name in _SCHEDULES if each == kind]
    return [*names, *(["hierarchical"] if kind in in_nodes.KINDS else [])]


def ring_reduce_scatter(size: int, index: int, nbytes: int) -> Iterator[Step]:
    """size - 1 steps to the right; member i ends with part i."""
    for step in range(size - 1):
        sent, received = part(nbytes, size, index - step - 1), part(nbytes, size, index - step - 2)
        yield Step((Exchange((index + 1) % size, sent),), (Exchange((index - 1) % size, received),), received)


def ring_all_gather(size: int, index: int, nbytes: int) -> Iterator[Step]:
    """size - 1 steps to the right, member i beginning with part i."""
    for step in range(size - 1):
        sent, received = part(nbytes, size, index - step), part(nbytes, size, index - step - 1)
        yield Step((Exchange((index + 1) % size, sent),), (Exchange((index - 1) % size, received),))


def ring_all_reduce(size: int, index: int, nbytes: int) -> Iterator[Step]:
    yield from ring_reduce_scatter(size, index, nbytes)
    yield from ring_all_gather(size, index, nbytes)


def ring_broadcast(size: int, index: int, nbytes: int) -> Iterator[Step]:
    """Scattered by a binomial tree, then gathered in a ring (van de Geijn): for long vectors."""
    yield from trees.scatter(size, index, nbytes)
    yield from ring_all_gather(size, index, nbytes)


def ring_barrier(size: int, index: int, nbytes: int) -> Iterator[Step]:
    """A token goes round twice: all have come, all may go."""
    for lap in range(2 if size > 1 else 0):
        if index > 0 or lap > 0:
            yield Step((), (Exchange((index - 1) % size, 0),))
        if not (lap == 1 and index == size - 1):
            yield Step((Exchange((index + 1) % size, 0),), ())


def pairwise(size: int, index: int, nbytes: int) -> Iterator[Step]:
    """Step s: to the member s further, from the member s before."""
    for step in range(1, size):
        target, source = (index + step) % size, (index - step) % size
        send, receive = part(nbytes, size, target), part(nbytes, size, index)
        yield Step((Exchange(target, send),), (Exchange(source, receive),))


def linear(size: int, index: int, nbytes: int) -> Iterator[Step]:
    """Everything at once, beginning with the next member."""
    others = [(index + step) % size for step in range(1, size)]
    sources = [(index - step) % size for step in range(1, size)]
    if others:
        sends = tuple(Exchange(peer, part(nbytes, size, peer)) for peer in others)
        yield Step(sends, tuple(Exchange(peer, part(nbytes, size, index)) for peer in sources))


def bruck_all_to_all(size: int, index: int, nbytes: int) -> Iterator[Step]:
    """ceil(log2 size) steps, each with half of the parts; member i's part for i + k moves where bit s of k is set."""
    largest = max((part(nbytes, size, number) for number in range(size)), default=0)
    for distance in trees.powers(size):
        moved = largest * sum(bool(k & distance) for k in range(size))
        target, source = (index + distance) % size, (index - distance) % size
        yield Step((Exchange(target, moved),), (Exchange(source, moved),))


def bruck_all_gather(size: int, index: int, nbytes: int) -> Iterator[Step]:
    """Twice as many parts in each step; for powers of two the bytes are those of recursive doubling."""
    for distance in trees.powers(size):
        count = min(distance, size - distance)
        target, source = (index - distance) % size, (index + distance) % size
        sent = sum(part(nbytes, size, index + number) for number in range(count))
        received = sum(part(nbytes, size, source + number) for number in range(count))
        yield Step((Exchange(target, sent),), (Exchange(source, received),))


def dissemination(size: int, index: int, nbytes: int) -> Iterator[Step]:
    """Barrier: in step s a word to the member 2^s further."""
    for distance in trees.powers(size):
        yield Step((Exchange((index + distance) % size, 0),), (Exchange((index - distance) % size, 0),))


_SCHEDULES: dict[tuple[str, str], Schedule] = {
    ("all_reduce", "ring"): ring_all_reduce,
    ("all_reduce", "tree"): trees.all_reduce,
    ("all_reduce", "recursive_doubling"): trees.doubling_all_reduce,
    ("all_reduce", "halving_doubling"): trees.halving_doubling_all_reduce,
    ("all_gather", "ring"): ring_all_gather,
    ("all_gather", "recursive_doubling"): bruck_all_gather,
    ("reduce_scatter", "ring"): ring_reduce_scatter,
    ("reduce_scatter", "halving_doubling"): trees.halving_reduce_scatter,
    ("broadcast", "tree"): trees.broadcast,
    ("broadcast", "ring"): ring_broadcast,
    ("all_to_all", "ring"): pairwise,
    ("all_to_all", "linear"): linear,
    ("all_to_all", "recursive_doubling"): bruck_all_to_all,
    ("barrier", "recursive_doubling"): dissemination,
    ("barrier", "tree"): trees.barrier,
    ("barrier", "ring"): ring_barrier,
}
