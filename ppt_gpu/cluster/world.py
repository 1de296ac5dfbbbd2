"""The part of a simulation that one process carries: its ranks and nodes, their queue, what goes to other processes."""

from __future__ import annotations

import operator
import traceback
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import GeneratorType
from typing import Any

from ppt_gpu.cluster.history import Intervals
from ppt_gpu.cluster.kernel import Kernel, KernelTimes, no_kernel_times
from ppt_gpu.cluster.machine import Machine, picoseconds
from ppt_gpu.cluster.meeting import Collectives, News
from ppt_gpu.cluster.queue import NEVER, Queue
from ppt_gpu.cluster.rank import Rank
from ppt_gpu.cluster.request import Cause, Elsewhere, Segment
from ppt_gpu.cluster.symmetry import Peer, Symmetry
from ppt_gpu.cluster.task import Body, Task
from ppt_gpu.cluster.transport import Transport, Wire
from ppt_gpu.cluster.transport_fair import FairTransport
from ppt_gpu.errors import InputErrors, PptError

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


@dataclass(frozen=True)
class Placement:
    """Which process carries a node: "block" or "round_robin". Switches go round."""

    processes: int = 1
    scheme: str = "block"

    def node(self, node: int, nodes: int) -> int:
        """The process of a node."""
        return node % self.processes if self.scheme == "round_robin" else node * self.processes // nodes


class World:
    """One process's part."""

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
        self.machine = machine
        self.queue = queue
        self.settings = settings
        self.placement = placement or Placement()
        self.process = process
        self.processes = self.placement.processes
        self.symmetry = symmetry
        self.push = queue.push
        self.gpus_per_node = machine.gpus_per_node
        self.size = machine.nodes * machine.gpus_per_node
        self.launch_overheads = [machine.launch_overhead(gpu) for gpu in range(machine.gpus_per_node)]
        self.runnable: list[Task] = []
        self.kernel_durations: dict[tuple[Kernel, int], tuple[int, str]] = {}
        self.out: list[list[Wire]] = [[] for _ in range(self.processes)]
        nodes = range(machine.nodes) if symmetry is None else range(1)
        here = [node for node in nodes if self.placement.node(node, machine.nodes) == process]
        ports = len(machine.ports())
        self.ports: dict[int, list[int]] = {node: [0] * ports for node in here}
        self.causes: list[Cause] = []  # what other processes were told of by number
        self.own: list[Rank] = []
        self.ranks: list[Rank | None] = [None] * (len(nodes) * self.gpus_per_node)
        self.collectives = Collectives(self)
        self.transport = FairTransport(self) if machine.fair else Transport(self)
        for node in here:
            for number in range(node * self.gpus_per_node, (node + 1) * self.gpus_per_node):
                self._add(number, program)

    def _add(self, number: int, program: Program) -> None:
        rank = Rank(self, number)
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

    def owner_of_rank(self, rank: int) -> int:
        """The process of a rank."""
        return self.placement.node(rank // self.gpus_per_node, self.machine.nodes)

    def owner_of_switch(self, switch: int) -> int:
        """The process of a switch."""
        return switch % self.processes

    # What ranks ask

    def kernel_duration(self, kernel: Kernel | float, rank: Rank) -> tuple[int, str]:
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

    def outbox(self, process: int) -> list[Wire]:
        """What goes to a process with the next exchange."""
        return self.out[process]

    def told_cause(self, cause: Cause) -> Elsewhere | None:
        """How another process is told of a cause: where it is kept."""
        if isinstance(cause, Segment):
            self.causes.append(cause)
            return self.process, len(self.causes) - 1
        return cause

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


def _in_application(error: Exception, rank: Rank) -> PptError:
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
