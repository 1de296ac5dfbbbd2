"""What a simulation yields: the time, each rank's end, split and marks, the digest, and what it took."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ppt_gpu.cluster.engine.critical_path import Piece, Step, path_to
from ppt_gpu.cluster.engine.deadlock import Blocked, blocked_ranks, check_ended, unreceived
from ppt_gpu.cluster.engine.digest import log_digest, run_digest
from ppt_gpu.cluster.engine.history import Intervals, Split, split_of
from ppt_gpu.cluster.engine.request import Elsewhere
from ppt_gpu.cluster.engine.world import World


@dataclass(frozen=True)
class RankEnd:
    """One rank at the end; times in ps."""

    number: int
    end: int
    marks: tuple[int, ...]
    split: Split | None
    digest: bytes
    intervals: Intervals | None = None  # of ranks whose timeline is wanted


@dataclass(frozen=True)
class Part:
    """One process's ranks at the end."""

    ranks: list[RankEnd]
    blocked: list[Blocked]
    left: list[str]
    events: int
    messages: int
    cause: Elsewhere | None  # of the end of the rank that ends last
    kernels: dict[str, int]


@dataclass(frozen=True)
class Outcome:
    """The run; times in ps. `ranks` are those simulated: all, or those of node 0 that stand for every node's."""

    time: int
    size: int
    processes: int
    ranks: tuple[RankEnd, ...]
    stands_for: int  # how many nodes each simulated node stands for
    note: str  # how the ranks were simulated
    sha256: str  # "" without a digest
    events: int
    messages: int
    path: tuple[Step, ...]  # the critical path, first to last; empty without a history
    kernels: dict[str, int]  # name -> ps of one launch

    @property
    def iteration(self) -> float | None:
        """ps from mark to mark, the mean over the iterations of the rank that marks last; None with under 2 marks."""
        marks = max((rank.marks for rank in self.ranks), key=lambda found: (len(found) > 1, found[-1:]), default=())
        return (marks[-1] - marks[0]) / (len(marks) - 1) if len(marks) > 1 else None


def part_of(world: World) -> Part:
    """What a process has to report."""
    settings = world.settings
    ranks = []
    wanted = {number % len(world.ranks) for number in settings.timeline}  # one node may stand for all
    for rank in world.own:
        split = split_of(rank.intervals, rank.ended) if rank.intervals is not None and rank.ended >= 0 else None
        digest = log_digest(rank.log) if rank.log is not None else b""
        intervals = rank.intervals if rank.number in wanted else None
        ranks.append(RankEnd(rank.number, rank.ended, tuple(rank.marks), split, digest, intervals))
    last = max(world.own, key=lambda rank: (rank.ended, -rank.number), default=None)
    cause = world.told_cause(last.cause) if settings.history and last is not None else None
    kernels = {}
    gpus = {world.machine.gpu(gpu) for gpu in range(world.gpus_per_node)}
    for (_, gpu), (duration, name) in world.kernel_durations.items():
        kernels[f"{name} on {world.machine.gpu(gpu)}" if len(gpus) > 1 else name] = duration
    return Part(
        ranks,
        blocked_ranks(world.own),
        unreceived(world.own),
        world.queue.events,
        world.transport.sent,
        cause,
        kernels,
    )


def combine(
    parts: Sequence[Part], piece_at: Callable[[Elsewhere], Piece], size: int, stands_for: int, note: str
) -> Outcome:
    """The run from its parts. PptError when ranks are blocked or messages left over.

    `piece_at`: as `ppt_gpu.cluster.engine.critical_path.path_to` asks for.
    """
    check_ended(
        sorted(blocked for part in parts for blocked in part.blocked),
        [text for part in parts for text in part.left],
        size,
    )
    ranks = sorted((rank for part in parts for rank in part.ranks), key=lambda rank: rank.number)
    return Outcome(
        time=max(rank.end for rank in ranks),
        size=size,
        processes=len(parts),
        ranks=tuple(ranks),
        stands_for=stands_for,
        note=note,
        sha256=run_digest(_every(ranks, stands_for)) if ranks[0].digest else "",
        events=sum(part.events for part in parts),
        messages=sum(part.messages for part in parts),
        path=path_to(max(parts, key=_end).cause, piece_at),
        kernels={name: time for part in parts for name, time in part.kernels.items()},
    )


def _end(part: Part) -> tuple[int, int]:
    """By which the last of all parts is known: when its last rank ends; of several such ranks, the first."""
    return max(((rank.end, -rank.number) for rank in part.ranks), default=(-1, 0))


def _every(ranks: Sequence[RankEnd], stands_for: int) -> Iterable[bytes]:
    """The digests of all ranks, in order: node 0's stand for those of every node."""
    return [rank.digest for rank in ranks] * stands_for
