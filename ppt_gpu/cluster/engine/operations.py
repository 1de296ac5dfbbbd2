"""Work on a rank's GPU: kernels, which run one at a time, and copies, which queue for ports of the node."""

from __future__ import annotations

from collections.abc import Sequence

from ppt_gpu.cluster.engine.digest import COPY, KERNEL
from ppt_gpu.cluster.engine.request import Cause, Request, Segment
from ppt_gpu.cluster.engine.state import RankState
from ppt_gpu.cluster.model.machine import Copy


class KernelRun(Request):
    """A kernel on its way: launched, then `ready`, then run when the GPU is free."""

    __slots__ = ("duration", "label", "rank")

    def __init__(self, rank: RankState, duration: int, label: str) -> None:
        super().__init__()
        self.rank = rank
        self.duration = duration
        self.label = label

    def ready(self, time: int, cause: Cause) -> None:
        """It may start at `time`: that is an event, for kernels of other streams may be ready before."""
        self.cause = cause
        rank = self.rank
        rank.world.push(time, rank.order(), run_kernel, self)

    def waits_for(self) -> tuple[str, Sequence[int]]:
        return f"kernel {self.label}", ()


def run_kernel(time: int, run: KernelRun) -> None:
    """The kernel is ready at `time`: first come, first served."""
    rank = run.rank
    start, cause = time, run.cause
    if rank.gpu_free > time:
        start, cause = rank.gpu_free, rank.gpu_cause
    end = start + run.duration
    rank.gpu_free = end
    if rank.log is not None:
        rank.log.extend((KERNEL, time, start, end))
    if rank.intervals is not None:
        rank.intervals.compute.extend((start, end))
        rank.gpu_cause = cause = Segment(cause, rank.number, "kernel", run.label, start, end)
    run.complete(end, cause)


class CopyRun(Request):
    """A copy between a GPU and its host."""

    __slots__ = ("cost", "label", "rank")

    def __init__(self, rank: RankState, cost: Copy, label: str) -> None:
        super().__init__()
        self.rank = rank
        self.cost = cost
        self.label = label

    def ready(self, time: int, cause: Cause) -> None:
        """It may start at `time`, when its ports are free."""
        self.cause = cause
        rank = self.rank
        rank.world.push(time, rank.order(), run_copy, self)

    def waits_for(self) -> tuple[str, Sequence[int]]:
        return f"copy from {self.label}", ()


def run_copy(time: int, run: CopyRun) -> None:
    """The copy is ready at `time`; it waits until all its ports are free."""
    rank, cost = run.rank, run.cost
    start = take_ports(rank.world.ports[rank.node], cost.ports, time)
    end = start + cost.duration
    if rank.log is not None:
        rank.log.extend((COPY, time, start, end))
    cause = run.cause
    if rank.intervals is not None:
        rank.intervals.copies.extend((start, end))
        cause = Segment(cause, rank.number, "copy", run.label, start, end)
    run.complete(end, cause)


def take_ports(free: list[int], wanted: tuple[tuple[int, int], ...], time: int) -> int:
    """Hold the wanted ports (port, ps) from `time` or as soon as all are free. Returns when that is."""
    for port, _ in wanted:
        if free[port] > time:
            time = free[port]
    for port, busy in wanted:
        free[port] = time + busy
    return time
