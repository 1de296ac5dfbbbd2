"""The part of a simulation that one process carries: its ranks and nodes, their queue, what goes to other processes."""

from __future__ import annotations

import traceback
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import GeneratorType

from ppt_gpu.cluster.engine.closed_form_collectives import Collectives, News
from ppt_gpu.cluster.engine.history import Intervals
from ppt_gpu.cluster.engine.queue import NEVER, Queue
from ppt_gpu.cluster.engine.rank import Rank
from ppt_gpu.cluster.engine.state import Body, Placement, Process, RankState, Wire
from ppt_gpu.cluster.engine.symmetry import Symmetry
from ppt_gpu.cluster.engine.transport import Transport
from ppt_gpu.cluster.engine.transport_fair import FairTransport
from ppt_gpu.cluster.model.kernel import Kernel, KernelTimes, no_kernel_times
from ppt_gpu.cluster.model.machine import Machine, picoseconds
from ppt_gpu.common.errors import InputErrors, PptError

Program = Callable[[Rank], Body]


@dataclass(frozen=True)
class Settings:
    """What is the same in all processes. `jitter`: kernels take up to this share longer, at random from `seed`.

    `history`: keep where each rank's time goes, and the critical path; `timeline`: ranks whose intervals are wanted.
    """

    digest: bool = False
    history: bool = False
    timeline: tuple[int, ...] = ()
    jitter: float = 0.0
    seed: int = 1
    kernel_times: KernelTimes = field(default=no_kernel_times)
    kernel_factor: float = 1.0


class World(Process):
    """One process's part of a run, with the programs of its ranks."""

    def __init__(
        self,
        machine: Machine,
        program: Program,
        queue: Queue,
        settings: Settings,
        placement: Placement | None = None,
        process: int = 0,
        symmetry: Symmetry | None = None,
    ) -> None:
        super().__init__(machine, queue, placement or Placement(), process, symmetry)
        self.settings = settings
        self.kernel_durations: dict[tuple[Kernel, int], tuple[int, str]] = {}
        self.own: list[Rank] = []
        self.transport = FairTransport(self) if machine.fair else Transport(self)
        self.collectives = Collectives(self, self.transport)
        for node in self.nodes_here:
            for number in range(node * self.gpus_per_node, (node + 1) * self.gpus_per_node):
                self._add(number, program)

    def _add(self, number: int, program: Program) -> None:
        rank = Rank(self, number, self.transport, self.collectives, self.kernel_duration)
        if self.settings.digest:
            rank.log = array("q")
        if self.settings.history:
            rank.intervals = Intervals()
        rank.body = program(rank)
        if not isinstance(rank.body, GeneratorType):
            raise PptError("the application is no generator function", hint="it must yield what it waits for")
        self.ranks[number] = rank
        self.own.append(rank)
        self.runnable.append(rank)

    # What ranks ask

    def kernel_duration(self, kernel: Kernel | float, rank: RankState) -> tuple[int, str]:
        """(ps, name) of a kernel, or of one whose time in s is given, on a rank's GPU."""
        if isinstance(kernel, Kernel):
            found = self.kernel_durations.get((kernel, rank.gpu))
            if found is None:
                seconds = self.settings.kernel_times(kernel, self.machine.gpu(rank.gpu)) * self.settings.kernel_factor
                found = self.kernel_durations[kernel, rank.gpu] = (picoseconds(seconds), str(kernel))
        else:
            if not kernel >= 0:
                raise PptError(f"a kernel of {kernel!r} s", hint="give a Kernel, a workload's name or a time in s")
            found = (picoseconds(kernel * self.settings.kernel_factor), "kernel")
        if self.settings.jitter:
            rank.kernels += 1
            share = uniform(self.settings.seed, rank.number, rank.kernels)
            return found[0] + int(found[0] * self.settings.jitter * share), found[1]
        return found

    # The run

    def resume(self) -> None:
        """Carry on all tasks that can."""
        runnable = self.runnable
        task = None
        try:
            for task in runnable:  # the list grows while it is walked
                task.carry_on()
        except Exception as error:
            assert task is not None
            raise _in_application(error, task.rank) from error
        runnable.clear()

    def window(self, end: int) -> int:
        """Run all that happens before `end` ps. Returns a time before which nothing will happen, messages included."""
        self.queue.run_window(end, self.runnable, self.resume)
        times = (wire[1] for outbox in self.out for wire in outbox)
        return min(self.queue.next_time(), min(times, default=NEVER))

    def outgoing(self) -> tuple[list[list[Wire]], list[News]]:
        """What goes to each process, and what goes to all."""
        out, self.out = self.out, [[] for _ in range(self.processes)]
        return out, self.collectives.news()

    def incoming(self, wires: Sequence[Wire], news: Sequence[News]) -> int:
        """What came from all processes. Returns when the first collective ends that became complete, or NEVER."""
        for wire in wires:
            self.transport.hear(wire)
        return self.collectives.hear(news)


def uniform(seed: int, rank: int, number: int) -> float:
    """A number in [0, 1) that depends on these three only: Steele, Lea, Flood: Fast Splittable PRNGs, OOPSLA 2014."""
    mask = (1 << 64) - 1
    z = (seed * 0x9E3779B97F4A7C15 + rank * 0xD1B54A32D192ED03 + number * 0x8CB92BA72F3D8DD7) & mask
    z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ z >> 27) * 0x94D049BB133111EB) & mask
    return ((z ^ z >> 31) >> 11) / (1 << 53)


def _in_application(error: Exception, rank: RankState) -> PptError:
    """The error as one of the application, with its file and line; of several, each."""
    if isinstance(error, PptError) and error.path is not None:
        return error
    if isinstance(error, InputErrors):
        each = [one.with_traceback(error.__traceback__) for one in error.errors]
        return InputErrors([_in_application(one, rank) for one in each])
    own = rank.source()
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == own]
    frame = getattr(rank.body, "gi_frame", None)
    line = lines[-1] if lines else frame.f_lineno if frame is not None else None
    path = own if line is not None else None
    message = error.message if isinstance(error, PptError) else f"{type(error).__name__}: {error}"
    hint = error.hint if isinstance(error, PptError) else None
    return PptError(f"rank {rank.number}: {message}", path=path, line=line, hint=hint)
