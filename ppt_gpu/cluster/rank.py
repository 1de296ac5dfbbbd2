"""A rank of an application: what it may call, and its state. One rank drives one GPU.

An application is a generator function, `def app(rank): ...`. Calls start something and return a request; to yield a
request, or a list of them, is to wait until it is done:

    def app(rank):
        left, right = rank.grid(1).neighbours(0)
        for _ in range(10):
            step = rank.launch("stencil7")
            yield step
            yield [rank.isend(right, 4096), rank.irecv(left, 4096)]
            yield rank.all_reduce(8)

The order of simultaneous events is (time, sequence, source), `source` being GPU, then node: like ranks of different
nodes do like things in the same order, so that ties do not break the symmetry between nodes.
"""

from __future__ import annotations

import operator
from array import array
from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ppt_gpu.cluster.digest import END
from ppt_gpu.cluster.kernel import Kernel
from ppt_gpu.cluster.machine import GPU, HOST, PS_PER_S, picoseconds
from ppt_gpu.cluster.operations import CopyRun, KernelRun
from ppt_gpu.cluster.queue import SEQUENCE_SHIFT
from ppt_gpu.cluster.request import Request, Segment, when_done
from ppt_gpu.cluster.task import Task
from ppt_gpu.errors import PptError

if TYPE_CHECKING:
    from ppt_gpu.cluster.grid import Grid
    from ppt_gpu.cluster.history import Intervals
    from ppt_gpu.cluster.matching import Queues
    from ppt_gpu.cluster.world import World

MEMORIES = (GPU, HOST)
GPU_SHIFT = 32  # of the order of an event: sequence, GPU, node


class Rank(Task):
    """One rank. Times that an application gives or reads are in seconds, sizes in bytes."""

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
    )

    def __init__(self, world: World, number: int) -> None:
        super().__init__(world, 0, None)
        self.rank = self
        self.number = number
        self.node, self.gpu = divmod(number, world.gpus_per_node)
        self.sequence = 0
        self.tail = self.gpu << GPU_SHIFT | self.node
        self.gpu_free = 0
        self.gpu_cause: Segment | None = None
        self.streams: dict[Hashable, Request] = {}
        self.queues: Queues = {}
        self.meetings: dict[Hashable, int] = {}  # group -> collectives entered
        self.kernels = 0
        self.marks: list[int] = []
        self.ended = -1
        self.log: array[int] | None = None
        self.intervals: Intervals | None = None

    # Who and where

    @property
    def index(self) -> int:
        """The number of this rank, 0 ... size-1. An application that asks is simulated rank by rank."""
        if self.world.symmetry is not None:
            self.world.symmetry.broken("the application reads rank.index")
        return self.number

    @property
    def size(self) -> int:
        """How many ranks there are."""
        return self.world.size

    @property
    def local(self) -> int:
        """The number of this rank within its node."""
        return self.gpu

    @property
    def local_size(self) -> int:
        """How many ranks a node has."""
        return self.world.gpus_per_node

    @property
    def time(self) -> float:
        """The rank's clock in s."""
        return self.now / PS_PER_S

    def grid(self, axes: int, periodic: bool = True) -> Grid:
        """All ranks as a grid with so many axes, a node's ranks close together."""
        from ppt_gpu.cluster.grid import Grid

        return Grid(self, axes, periodic)

    def node_group(self) -> Sequence[int]:
        """The ranks of this node, as a group for collectives."""
        first = self.node * self.world.gpus_per_node
        return range(first, first + self.world.gpus_per_node)

    # Work

    def compute(self, seconds: float, label: str = "host") -> Request:
        """The host computes for so long; the clock is ahead by that at once."""
        return self.host_work(picoseconds(seconds), label)

    def launch(
        self,
        kernel: Kernel | str | float,
        *,
        stream: Hashable = 0,
        after: Iterable[Request] = (),
        label: str = "",
    ) -> Request:
        """Launch a kernel on a stream: a Kernel, a workload's name, or its time in s. It runs when the stream's former
        work and everything in `after` is done and the GPU is free; kernels of a GPU run one at a time.
        """
        world = self.world
        if isinstance(kernel, str):
            kernel = Kernel(kernel)
        duration, name = world.kernel_duration(kernel, self)
        run = KernelRun(self, duration, label or name)
        self._enqueue(run, stream, after)
        return run

    def copy(
        self, source: str, target: str, nbytes: int, *, stream: Hashable = 0, after: Iterable[Request] = ()
    ) -> Request:
        """Copy between the memories "gpu" and "host" on a stream, asynchronously; the host's is pinned."""
        for memory in (source, target):
            _check_memory(memory)
        run = CopyRun(self, self.world.machine.copy(self.gpu, source, target, _size(nbytes)), f"{source} to {target}")
        self._enqueue(run, stream, after)
        return run

    def record(self, stream: Hashable = 0) -> Request:
        """An event: done when all that the stream was given so far is done."""
        return self.streams.get(stream) or Request(self.now, self.cause)

    def synchronize(self) -> list[Request]:
        """All that the streams were given so far, to wait for."""
        return list(self.streams.values())

    # Messages

    def isend(
        self, target: Any, nbytes: int, tag: int = 0, *, memory: str = GPU, after: Iterable[Request] = ()
    ) -> Request:
        """Send `nbytes` to a rank. Done when the buffer may be used again. With `after` it starts when those are done,
        without the host waiting.
        """
        if memory not in MEMORIES or type(nbytes) is not int or nbytes < 0 or tag < 0:
            nbytes = _checked(memory, nbytes, tag)
        return self.world.transport.send(self, self.world.peer(target), nbytes, tag, memory, after)

    def irecv(self, source: Any, nbytes: int, tag: int = 0, *, memory: str = GPU) -> Request:
        """Receive up to `nbytes` from a rank; messages of one sender and tag are received in the order sent."""
        if memory not in MEMORIES or type(nbytes) is not int or nbytes < 0 or tag < 0:
            nbytes = _checked(memory, nbytes, tag)
        return self.world.transport.receive(self, self.world.peer(source), nbytes, tag)

    # Collectives

    def all_reduce(self, nbytes: int, **options: Any) -> Request:
        """Combine a vector of `nbytes` of every member; all get the result. Options: see `collective`."""
        return self.collective("all_reduce", nbytes, **options)

    def all_gather(self, nbytes: int, **options: Any) -> Request:
        """Every member gets all `nbytes`, of which it brings its part."""
        return self.collective("all_gather", nbytes, **options)

    def reduce_scatter(self, nbytes: int, **options: Any) -> Request:
        """Combine vectors of `nbytes`; every member gets its part of the result."""
        return self.collective("reduce_scatter", nbytes, **options)

    def broadcast(self, nbytes: int, **options: Any) -> Request:
        """The first member's `nbytes` go to all."""
        return self.collective("broadcast", nbytes, **options)

    def all_to_all(self, nbytes: int, **options: Any) -> Request:
        """Every member sends an equal part of its `nbytes` to each."""
        return self.collective("all_to_all", nbytes, **options)

    def barrier(self, **options: Any) -> Request:
        """Done when every member came."""
        return self.collective("barrier", 0, **options)

    def collective(
        self,
        kind: str,
        nbytes: int,
        *,
        group: Sequence[int] | None = None,
        algorithm: str = "nccl",
        memory: str = GPU,
        stream: Hashable = 0,
        after: Iterable[Request] = (),
    ) -> Request:
        """A collective of all ranks or of a group of them (a range or a sequence of indices, the same for each member).

        `algorithm` "nccl": on a stream, as the library runs it: from when the last member is ready, for as long as the
        machine's model says. "ring", "tree", "recursive_doubling" and so on: message by message, as MPI does, from the
        call on or when `after` is done, without a stream.
        """
        _check_memory(memory)
        size = 0 if kind == "barrier" else _size(nbytes)
        return self.world.collectives.start(self, kind, size, group, algorithm, memory, stream, tuple(after))

    def mark(self) -> None:
        """The end of an iteration: the time between marks is reported."""
        self.marks.append(self.now)

    # For the simulation

    def order(self) -> int:
        """The next order of an event caused by this rank."""
        self.sequence += 1
        return self.sequence << SEQUENCE_SHIFT | self.tail

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

    def _end(self, time: int, cause: Segment | None) -> None:
        self.ended = time
        self.cause = cause
        if self.log is not None:
            self.log.extend((END, time))

    def _enqueue(self, run: KernelRun | CopyRun, stream: Hashable, after: Iterable[Request]) -> None:
        self.now += self.world.launch_overheads[self.gpu]
        self.enqueue(run, stream, after, run.ready)

    def enqueue(self, request: Request, stream: Hashable, after: Iterable[Request], start: Any) -> None:
        """Put `request` behind what the stream has; call start(time, cause) when that and `after` are done."""
        before = self.streams.get(stream)
        self.streams[stream] = request
        waits = after if before is None or (0 <= before.done <= self.now) else (before, *after)
        if waits:
            when_done(waits, self.now, self.cause, start)
        else:
            start(self.now, self.cause)


def _check_memory(memory: str) -> None:
    if memory not in MEMORIES:
        raise PptError(f"unknown memory '{memory}'", hint=f"expected '{GPU}' or '{HOST}'")


def _size(nbytes: int) -> int:
    try:
        found = operator.index(nbytes)
    except TypeError:
        raise PptError(f"a size of {nbytes!r} bytes: expected a whole number") from None
    if found < 0:
        raise PptError(f"a size of {found} bytes: expected none below 0")
    return found


def _checked(memory: str, nbytes: int, tag: int) -> int:
    """The size as an int; PptError for what a message cannot be."""
    _check_memory(memory)
    if tag < 0:
        raise PptError(f"tag {tag}: expected 0 or more")
    return _size(nbytes)
