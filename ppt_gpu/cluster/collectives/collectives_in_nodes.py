"""Hierarchical collectives: within each node first, then between nodes, then within each node again.

Member i is GPU i % gpus_per_node of node i // gpus_per_node. Between the nodes GPU g of every node works on part g of
the vector, so that all NICs of a node are busy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ppt_gpu.cluster.model.machine import Exchange, Schedule, Step
from ppt_gpu.common.errors import PptError

KINDS = ("all_reduce", "broadcast", "barrier")
#: the flat schedules that these are put together from
NEEDS = (
    ("reduce_scatter", "ring"),
    ("all_reduce", "ring"),
    ("all_gather", "ring"),
    ("broadcast", "tree"),
    ("barrier", "recursive_doubling"),
    ("barrier", "tree"),
)


def schedule(kind: str, gpus_per_node: int, flat: Mapping[tuple[str, str], Schedule]) -> Schedule:
    """The hierarchical algorithm of a kind, over `flat` ones within nodes and between them."""

    def play(size: int, index: int, nbytes: int) -> Iterator[Step]:
        if size % gpus_per_node:
            raise PptError(f"hierarchical: {size} members do not fill nodes of {gpus_per_node} GPUs")
        node, gpu = divmod(index, gpus_per_node)
        nodes, first = size // gpus_per_node, node * gpus_per_node

        def inside(name: tuple[str, str], count: int) -> Iterator[Step]:
            return _moved(flat[name](gpus_per_node, gpu, count), first, 1)

        def between(name: tuple[str, str], count: int) -> Iterator[Step]:
            return _moved(flat[name](nodes, node, count), gpu, gpus_per_node)

        if kind == "all_reduce":
            own = nbytes * (gpu + 1) // gpus_per_node - nbytes * gpu // gpus_per_node
            yield from inside(("reduce_scatter", "ring"), nbytes)
            yield from between(("all_reduce", "ring"), own)
            yield from inside(("all_gather", "ring"), nbytes)
        elif kind == "broadcast":
            if gpu == 0:
                yield from between(("broadcast", "tree"), nbytes)
            yield from inside(("broadcast", "tree"), nbytes)
        else:
            yield from inside(("barrier", "tree"), 0)
            yield from between(("barrier", "recursive_doubling"), 0)

    return play


def _moved(steps: Iterator[Step], first: int, stride: int) -> Iterator[Step]:
    """Steps of a part of the members, with the members' own indices."""

    def own(exchanges: tuple[Exchange, ...]) -> tuple[Exchange, ...]:
        return tuple(Exchange(first + each.peer * stride, each.nbytes) for each in exchanges)

    return (Step(own(step.sends), own(step.receives), step.reduce_bytes) for step in steps)
