"""Applications for the tests of the cluster simulation: each uses other parts of it, in ways that make ties."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def halo(rank: Any, iterations: int = 3, nbytes: int = 4096) -> Any:
    """Six neighbours, a kernel, an all-reduce."""
    grid = rank.grid(3)
    peers = [grid.neighbour(axis, step) for axis in range(3) for step in (-1, 1)]
    for _ in range(iterations):
        yield rank.launch(20e-6)
        receives = [rank.irecv(peer, nbytes, side ^ 1) for side, peer in enumerate(peers)]
        yield receives + [rank.isend(peer, nbytes, side) for side, peer in enumerate(peers)]
        yield rank.all_reduce(8)
        rank.mark()


def large_halo(rank: Any) -> Any:
    """The same with messages that ask before they are sent."""
    yield from halo(rank, 2, 100_000)


def streams(rank: Any) -> Any:
    """Kernels of two streams, copies, and messages that start when kernels end."""
    after, before = (rank.index + 1) % rank.size, (rank.index - 1) % rank.size
    for turn in range(3):
        first = rank.launch(10e-6, stream="a")
        rank.copy("gpu", "host", 5000, stream="b", after=[first])
        second = rank.launch(4e-6 * (rank.index % 3), stream="b")
        send = rank.isend(after, 3000 * (turn + 1), after=[first, second])
        receive = rank.irecv(before, 20_000)
        rank.launch(3e-6, stream="c", after=[receive])
        rank.compute(1e-6)
        yield [send, rank.all_reduce(1000, stream="d", after=[second])]
    yield rank.record("c")


def groups(rank: Any) -> Any:
    """Collectives of nodes and of ranks across nodes."""
    row = rank.node_group()
    column = range(rank.local, rank.size, rank.local_size)
    for _ in range(3):
        yield rank.all_gather(1 << 16, group=row)
        yield rank.reduce_scatter(1 << 14, group=column)
        yield rank.launch(1e-6 * (rank.index % 5))
        yield rank.barrier()


def everybody(rank: Any) -> Any:
    """Every rank sends to every other at once."""
    others = [other for other in range(rank.size) if other != rank.index]
    for _ in range(2):
        yield [rank.irecv(other, 700) for other in others] + [rank.isend(other, 700) for other in others]


def played(rank: Any) -> Any:
    """Collectives message by message."""
    yield rank.all_reduce(50_000, algorithm="ring")
    yield rank.all_reduce(8, algorithm="recursive_doubling", memory="host")
    yield [rank.barrier(algorithm="tree"), rank.broadcast(4000, algorithm="tree")]


APPLICATIONS: dict[str, Callable[[Any], Any]] = {
    function.__name__: function for function in (halo, large_halo, streams, groups, everybody, played)
}
