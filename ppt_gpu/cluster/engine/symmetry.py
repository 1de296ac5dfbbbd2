"""Nodes that live the same life: one node's ranks simulated for all, exactly.

Let the nodes form a periodic grid. Shifting all nodes along it maps the machine onto itself when every pair of nodes is
equally far. It maps the run onto itself when every rank's program depends only on its place within its node, and names
other ranks by steps along the grid. Then what happens to node 0 happens to every node: a message that node 0 sends k
nodes further is one that it receives from k nodes back, at the same time and, as the order of simultaneous events
(ppt_gpu.cluster.engine.state) is the same for all nodes, in the same order.

Nothing of this is taken on trust: ranks that ask for what differs between nodes end the attempt (`Asymmetric`), and the
application is simulated rank by rank.
"""

from __future__ import annotations

from typing import NoReturn

from ppt_gpu.cluster.engine.grid_index import Index, index_at, number_at


class Asymmetric(BaseException):
    """The application is not the same on all nodes, as far as can be told: `str` says why. Not for applications."""


class Peer:
    """Another rank, named by steps along the grid. Equal peers are one rank; they have no number or order."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Peer) and other.number == self.number

    def _beyond(self, *_: object) -> NoReturn:
        raise Asymmetric("the application does more with its neighbours than send and receive")

    __hash__ = __index__ = __int__ = __str__ = __repr__ = __bool__ = _beyond
    __lt__ = __le__ = __gt__ = __ge__ = __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __mod__ = _beyond


class Symmetry:
    """The shifts of a grid of nodes, while node 0 stands for all."""

    def __init__(self, gpus_per_node: int) -> None:
        self.gpus_per_node = gpus_per_node
        self.nodes: Index = ()

    def broken(self, why: str) -> NoReturn:
        """What only one node would do happens. Raises Asymmetric."""
        raise Asymmetric(why)

    def use(self, nodes: Index) -> None:
        """The application arranges the nodes in this grid."""
        if self.nodes and self.nodes != nodes:
            self.broken("the application has grids of several shapes")
        self.nodes = nodes

    def image(self, source: int, target: int) -> tuple[int, int]:
        """A message from node 0 as node 0 receives it: (sender as it names it, receiver of node 0)."""
        node, gpu = divmod(target, self.gpus_per_node)
        if not node:
            return source, target
        back = tuple(-at % size for at, size in zip(index_at(node, self.nodes), self.nodes, strict=True))
        return number_at(back, self.nodes) * self.gpus_per_node + source, gpu
