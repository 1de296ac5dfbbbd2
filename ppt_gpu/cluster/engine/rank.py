"""A rank of an application: what it may call. One rank drives one GPU.

An application is a generator function, `def app(rank): ...`. Calls start something and return a request; to yield a
request, or a list of them, is to wait until it is done:

    def app(rank):
        left, right = rank.grid(1).neighbours(0)
        for _ in range(10):
            step = rank.launch("stencil7")
            yield step
            yield [rank.isend(right, 4096), rank.irecv(left, 4096)]
            yield rank.all_reduce(8)
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

from ppt_gpu.cluster.engine.closed_form_collectives import Collectives
from ppt_gpu.cluster.engine.grid import Grid
from ppt_gpu.cluster.engine.operations import CopyRun, KernelRun
from ppt_gpu.cluster.engine.request import Request
from ppt_gpu.cluster.engine.state import Process, RankState, Told
from ppt_gpu.cluster.engine.transport import Transport
from ppt_gpu.cluster.model.kernel import Kernel
from ppt_gpu.cluster.model.machine import GPU, HOST, PS_PER_S, picoseconds
from ppt_gpu.common.errors import PptError

MEMORIES = (GPU, HOST)


class Rank(RankState):
    """One rank. Times that an application gives or reads are in seconds, sizes in bytes."""

    __slots__ = ("collectives", "kernel_duration", "transport")

    def __init__(
        self,
        world: Process,
        number: int,
        transport: Transport,
        collectives: Collectives,
        kernel_duration: Callable[[Kernel | float, RankState], tuple[int, str]],
    ) -> None:
        """kernel_duration: (ps, name) of a kernel on the GPU of a rank."""
        super().__init__(world, number)
        self.rank = self
        self.transport = transport
        self.collectives = collectives
        self.kernel_duration = kernel_duration

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
        return Grid(self, axes, periodic)

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
        if isinstance(kernel, str):
            kernel = Kernel(kernel)
        duration, name = self.kernel_duration(kernel, self)
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
        return self.transport.send(self, self.world.peer(target), nbytes, tag, memory, after)

    def irecv(self, source: Any, nbytes: int, tag: int = 0, *, memory: str = GPU) -> Request:
        """Receive up to `nbytes` from a rank; messages of one sender and tag are received in the order sent."""
        if memory not in MEMORIES or type(nbytes) is not int or nbytes < 0 or tag < 0:
            nbytes = _checked(memory, nbytes, tag)
        return self.transport.receive(self, self.world.peer(source), nbytes, tag)

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
        return self.collectives.start(self, kind, size, group, algorithm, memory, stream, tuple(after))

    def mark(self, of: int | None = None) -> None:
        """The end of an iteration: the time between marks is reported.

        `of`: how many marks this rank makes in all, for the progress of long runs; it changes nothing else.
        """
        if of is not None and self.told is None:
            self.told = Told("iterations", _iterations(of), self.marks.__len__)
        self.marks.append(self.now)

    def _enqueue(self, run: KernelRun | CopyRun, stream: Hashable, after: Iterable[Request]) -> None:
        self.now += self.world.launch_overheads[self.gpu]
        self.enqueue(run, stream, after, run.ready)


def _check_memory(memory: str) -> None:
    if memory not in MEMORIES:
        raise PptError(f"unknown memory '{memory}'", hint=f"expected '{GPU}' or '{HOST}'")


def _iterations(of: int) -> int:
    if not isinstance(of, int) or of < 1:
        raise PptError(f"mark(of={of!r}): expected how many marks the rank makes", hint="1 or more")
    return of


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
