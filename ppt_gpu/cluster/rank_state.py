"""The state of a rank, and what the simulation does with it; `ppt_gpu.cluster.rank` is what applications call.

The order of simultaneous events is (time, sequence, source), `source` being GPU, then node: like ranks of different
nodes do like things in the same order, so that ties do not break the symmetry between nodes.
"""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any

from ppt_gpu.cluster.digest import END
from ppt_gpu.cluster.machine import PS_PER_S
from ppt_gpu.cluster.queue import SEQUENCE_SHIFT
from ppt_gpu.cluster.request import Cause, Request, Segment, when_done
from ppt_gpu.cluster.task import Task
from ppt_gpu.errors import PptError

if TYPE_CHECKING:
    from ppt_gpu.cluster.history import Intervals
    from ppt_gpu.cluster.matching import Queues
    from ppt_gpu.cluster.run_progress import Told
    from ppt_gpu.cluster.world import World

GPU_SHIFT = 32  # of the order of an event: sequence, GPU, node


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

    def __init__(self, world: World, number: int) -> None:
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
