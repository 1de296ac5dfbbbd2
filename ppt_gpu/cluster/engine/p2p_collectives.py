"""Collectives played message by message, by one task for each member beside its program."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from ppt_gpu.cluster.engine.digest import COLLECTIVE
from ppt_gpu.cluster.engine.request import Cause, Request, when_done
from ppt_gpu.cluster.engine.state import Body, Process, RankState, Task
from ppt_gpu.cluster.engine.transport import Transport
from ppt_gpu.cluster.model.machine import Schedule, Step


class Players:
    """Starts them for one process's ranks."""

    def __init__(self, world: Process, transport: Transport) -> None:
        self.world = world
        self.transport = transport
        self.schedules: dict[tuple[str, str], Schedule] = {}

    def start(
        self,
        rank: RankState,
        call: tuple[str, int, str],
        name: tuple[Hashable, int],
        group: Sequence[int],
        memory: str,
        after: tuple[Request, ...],
    ) -> Request:
        """A member's call (kind, bytes, algorithm) of the collective of this name. PptError for unknown algorithms."""
        kind, nbytes, algorithm = call
        if self.world.symmetry is not None:
            self.world.symmetry.broken(f"the application has a collective by '{algorithm}', message by message")
        played = Played(self.world, rank, kind, self.transport)
        steps = self._schedule(kind, algorithm)(len(group), group.index(rank.number), nbytes)
        played.body = played.play(steps, group, name, memory)
        when_done(after, rank.now, rank.cause, played.begin)
        return played.request

    def _schedule(self, kind: str, algorithm: str) -> Schedule:
        from ppt_gpu.cluster.collectives.collectives import schedule

        found = self.schedules.get((kind, algorithm))
        if found is None:
            found = schedule(kind, algorithm, gpus_per_node=self.world.gpus_per_node)
            self.schedules[kind, algorithm] = found
        return found


class PlayedRequest(Request):
    """Done when this member's part of a played collective is."""

    __slots__ = ("kind", "task")

    def __init__(self, kind: str, task: Played) -> None:
        super().__init__()
        self.kind = kind
        self.task: Played | None = task

    def waits_for(self) -> tuple[str, Sequence[int]]:
        waiting = self.task.waiting if self.task is not None else None
        wanted = [request.waits_for() for request in waiting or () if request.done < 0]
        ranks = dict.fromkeys(rank for _, several in wanted for rank in several)
        return f"its part of {self.kind}", tuple(ranks)


class Played(Task):
    """A member's part of a collective, step by step."""

    __slots__ = ("request", "transport")

    def __init__(self, world: Process, rank: RankState, kind: str, transport: Transport) -> None:
        super().__init__(world, rank.now, rank.cause)
        self.rank = rank
        self.request = PlayedRequest(kind, self)
        self.transport = transport

    def begin(self, time: int, cause: Cause) -> None:
        """The member is ready."""
        self.now = self.latest = time
        self.cause = cause
        self.world.runnable.append(self)

    def play(self, steps: Iterable[Step], group: Sequence[int], tag: Hashable, memory: str) -> Body:
        """The steps as messages of this rank."""
        transport, rank = self.transport, self.rank
        for step in steps:
            requests: list[Request] = [
                transport.receive(self, group[peer], nbytes, tag) for peer, nbytes in step.receives
            ]
            requests += [transport.send(self, group[peer], nbytes, tag, memory) for peer, nbytes in step.sends]
            yield requests
            if step.reduce_bytes:
                self.now += self.world.machine.reduce(rank.gpu, memory, step.reduce_bytes)

    def finished(self) -> None:
        super().finished()
        rank = self.rank
        if rank.log is not None:
            rank.log.extend((COLLECTIVE, self.now, self.now))
        self.request.task = None  # no cycle is left behind
        self.request.complete(self.now, self.cause)
