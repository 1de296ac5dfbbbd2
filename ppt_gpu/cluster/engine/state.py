"""The state of a run: what one process knows of it, its ranks, and tasks with clocks of their own.

`ppt_gpu.cluster.engine.rank` is what applications call. The order of simultaneous events is (time, sequence, source),
`source` being GPU, then node: like ranks of different nodes do like things in the same order, so that ties do not break
the symmetry between nodes.
"""

from __future__ import annotations

import operator
from array import array
from collections.abc import Callable, Generator, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ppt_gpu.cluster.engine.digest import END
from ppt_gpu.cluster.engine.history import Intervals
from ppt_gpu.cluster.engine.queue import SEQUENCE_SHIFT, Queue
from ppt_gpu.cluster.engine.request import Cause, Elsewhere, Queues, Request, Segment, Waiter, when_done
from ppt_gpu.cluster.engine.symmetry import Peer, Symmetry
from ppt_gpu.cluster.model.machine import PS_PER_S, Machine
from ppt_gpu.common.errors import PptError

GPU_SHIFT = 32  # of the order of an event: sequence, GPU, node
Wire = tuple[Any, ...]  # kind, time, order, source, target, tag, bytes, memory, identity, departed, hop, cause


class Told(NamedTuple):
    """What a rank says of its program: so many parts of a kind, and a function that says how many are finished."""

    what: str
    total: int
    finished: Callable[[], int]


@dataclass(frozen=True)
class Placement:
    """Which process carries a node: "block" or "round_robin". Switches go round."""

    processes: int = 1
    scheme: str = "block"

    def node(self, node: int, nodes: int) -> int:
        """The process of a node."""
        return node % self.processes if self.scheme == "round_robin" else node * self.processes // nodes


class Process:
    """What one process knows of a run: its nodes and ranks, their queue, what goes to other processes."""

    def __init__(
        self,
        machine: Machine,
        queue: Queue,
        placement: Placement,
        number: int = 0,
        symmetry: Symmetry | None = None,
    ) -> None:
        self.machine = machine
        self.queue = queue
        self.placement = placement
        self.process = number
        self.processes = placement.processes
        self.symmetry = symmetry
        self.push = queue.push
        self.gpus_per_node = machine.gpus_per_node
        self.size = machine.nodes * machine.gpus_per_node
        self.launch_overheads = [machine.launch_overhead(gpu) for gpu in range(machine.gpus_per_node)]
        self.runnable: list[Task] = []
        self.out: list[list[Wire]] = [[] for _ in range(self.processes)]
        nodes = range(machine.nodes) if symmetry is None else range(1)
        self.nodes_here = [node for node in nodes if placement.node(node, machine.nodes) == number]
        ports = len(machine.ports())
        self.ports: dict[int, list[int]] = {node: [0] * ports for node in self.nodes_here}
        self.causes: list[Cause] = []  # what other processes were told of by number
        self.ranks: list[RankState | None] = [None] * (len(nodes) * self.gpus_per_node)

    def owner_of_rank(self, rank: int) -> int:
        """The process of a rank."""
        return self.placement.node(rank // self.gpus_per_node, self.machine.nodes)

    def owner_of_switch(self, switch: int) -> int:
        """The process of a switch."""
        return switch % self.processes

    def peer(self, rank: Any) -> int:
        """The number of a rank that an application names. PptError if there is none of this number."""
        if self.symmetry is not None:
            if type(rank) is not Peer:
                self.symmetry.broken("the application names ranks by numbers")
            return rank.number
        if type(rank) is int and 0 <= rank < self.size:
            return rank
        if not hasattr(rank, "__index__") or not 0 <= operator.index(rank) < self.size:
            raise PptError(f"no rank {rank!r}", hint=f"there are ranks 0 to {self.size - 1}")
        return operator.index(rank)

    def as_peer(self, number: int) -> Any:
        """How an application is told of another rank."""
        return number if self.symmetry is None else Peer(number)

    def outbox(self, process: int) -> list[Wire]:
        """What goes to a process with the next exchange."""
        return self.out[process]

    def told_cause(self, cause: Cause) -> Elsewhere | None:
        """How another process is told of a cause: where it is kept."""
        if isinstance(cause, Segment):
            self.causes.append(cause)
            return self.process, len(self.causes) - 1
        return cause


Body = Generator[Any, None, None]


class Task(Waiter):
    """The program of a rank, or a collective that is played message by message on its behalf."""

    __slots__ = ("body", "now", "rank", "waiting", "world")

    rank: RankState

    def __init__(self, world: Process, time: int, cause: Cause) -> None:
        super().__init__(time, cause)
        self.world = world
        self.now = time
        self.body: Body | None = None
        self.waiting: Any = None  # what the body waits for

    def ready(self) -> None:
        self.world.runnable.append(self)

    def carry_on(self) -> None:
        """Run the body from where it waits to where it must wait again, or to its end."""
        body = self.body
        assert body is not None
        if self.latest > self.now:
            self.now = self.latest
        self.waiting = None
        for wanted in body:
            if wanted is None:
                continue
            if isinstance(wanted, Request):
                wanted = (wanted,)
            self.latest = self.now
            try:
                done = self.wait(wanted)
            except (AttributeError, TypeError):
                _check(wanted)
                raise
            if not done:
                self.waiting = wanted
                return
            self.now = self.latest
        self.finished()

    def finished(self) -> None:
        """The body is at its end."""
        self.body = None


def _check(wanted: Any) -> None:
    """PptError if this is not what can be waited for."""
    if not isinstance(wanted, list | tuple):
        raise PptError(f"the application yields a {type(wanted).__name__}", hint="yield a request or a list of them")
    for request in wanted:
        if not isinstance(request, Request):
            raise PptError(f"the application yields a {type(request).__name__}", hint="yield requests")


class RankState(Task):
    """One rank; times in ps."""

    __slots__ = (
        "ended",
        "gpu",
        "gpu_cause",
        "gpu_free",
        "intervals",
        "kernels",
        "log",
        "marks",
        "meetings",
        "node",
        "number",
        "queues",
        "sequence",
        "streams",
        "tail",
        "told",
    )

    def __init__(self, world: Process, number: int) -> None:
        super().__init__(world, 0, None)
        self.number = number
        self.node, self.gpu = divmod(number, world.gpus_per_node)
        self.sequence = 0
        self.tail = self.gpu << GPU_SHIFT | self.node
        self.gpu_free = 0
        self.gpu_cause: Cause = None
        self.streams: dict[Hashable, Request] = {}
        self.queues: Queues = {}
        self.meetings: dict[Hashable, int] = {}  # group -> collectives entered
        self.kernels = 0
        self.marks: list[int] = []
        self.told: Told | None = None  # how much its program has to do
        self.ended = -1
        self.log: array[int] | None = None
        self.intervals: Intervals | None = None

    def order(self) -> int:
        """The next order of an event caused by this rank."""
        self.sequence += 1
        return self.sequence << SEQUENCE_SHIFT | self.tail

    def node_group(self) -> Sequence[int]:
        """The ranks of this node, as a group for collectives."""
        first = self.node * self.world.gpus_per_node
        return range(first, first + self.world.gpus_per_node)

    def host_work(self, duration: int, label: str) -> Request:
        """The host is busy for `duration` ps."""
        if duration < 0:
            raise PptError(f"a time of {duration / PS_PER_S:g} s: expected none below 0")
        start = self.now
        self.now += duration
        if self.intervals is not None and duration:
            self.intervals.compute.extend((start, self.now))
            self.cause = Segment(self.cause, self.number, "host", label, start, self.now)
        return Request(self.now, self.cause)

    def source(self) -> str:
        """The file that the application is in; "" at its end."""
        return getattr(getattr(self.body, "gi_code", None), "co_filename", "")

    def finished(self) -> None:
        """The program is at its end; the rank's end is that of its streams."""
        super().finished()
        when_done(self.streams.values(), self.now, self.cause, self._end)

    def _end(self, time: int, cause: Cause) -> None:
        self.ended = time
        self.cause = cause
        if self.log is not None:
            self.log.extend((END, time))

    def enqueue(self, request: Request, stream: Hashable, after: Iterable[Request], start: Any) -> None:
        """Put `request` behind what the stream has; call start(time, cause) when that and `after` are done."""
        before = self.streams.get(stream)
        self.streams[stream] = request
        waits = after if before is None or (0 <= before.done <= self.now) else (before, *after)
        if waits:
            when_done(waits, self.now, self.cause, start)
        else:
            start(self.now, self.cause)
