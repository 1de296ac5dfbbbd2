"""What a simulation yields: the time, each rank's end, split and marks, the digest, and what it took.

What is wrong with a run that came to an end too soon: who waits for whom, and which messages nobody received.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from ppt_gpu.cluster.engine.critical_path import Piece, Step, path_to
from ppt_gpu.cluster.engine.digest import log_digest, run_digest
from ppt_gpu.cluster.engine.history import Intervals, Split, split_of
from ppt_gpu.cluster.engine.matching import Message, tag_text, waiting
from ppt_gpu.cluster.engine.request import Elsewhere
from ppt_gpu.cluster.engine.world import World
from ppt_gpu.common.errors import PptError

if TYPE_CHECKING:
    from ppt_gpu.cluster.engine.rank import Rank


SHOWN = 8  # lines of a message
UNRECEIVED = "never received"


class Blocked(NamedTuple):
    """A rank that waits for ever: what for, and which ranks that depends on."""

    rank: int
    what: str
    ranks: Sequence[int]


def blocked_ranks(ranks: Iterable[Rank]) -> list[Blocked]:
    """The ranks whose programs did not end."""
    found = []
    for rank in ranks:
        if rank.ended < 0:
            wanted = rank.waiting if rank.body is not None else rank.streams.values()
            waits = [request.waits_for() for request in wanted or () if request.done < 0]
            for what, others in waits[:1]:
                found.append(Blocked(rank.number, what, others))
    return found


def unreceived(ranks: Iterable[Rank]) -> list[str]:
    """Messages that were sent and never received, and receives that never got one, in words."""
    found = []
    for rank in ranks:
        for entry in waiting(rank.queues):
            what = tag_text(entry.tag)
            if isinstance(entry, Message):
                size = entry.transfer.nbytes
                found.append(f"rank {entry.source} sent {size} bytes to rank {rank.number} ({what}), {UNRECEIVED}")
            else:
                source = entry.source
                found.append(f"rank {rank.number} receives from rank {source} ({what}), which sent no such message")
    return found


def check_ended(blocked: Sequence[Blocked], left: Sequence[str], size: int) -> None:
    """PptError if ranks are blocked, or messages left over."""
    if blocked:
        chain = _chain(blocked)
        sent = [line for line in left if line.endswith(UNRECEIVED)][: max(0, SHOWN - len(chain))]
        raise PptError(
            f"deadlock: {len(blocked)} of {size} ranks wait for ever\n"
            + "\n".join(f"  {line}" for line in (*chain, *sent))
        )
    if left:
        more = f"\n  and {len(left) - SHOWN} more" if len(left) > SHOWN else ""
        raise PptError(
            "sends and receives do not match\n" + "\n".join(f"  {line}" for line in left[:SHOWN]) + more,
            hint="every message needs one receive with its sender and tag",
        )


def _chain(blocked: Sequence[Blocked]) -> list[str]:
    """Who waits for whom, from the first blocked rank on until somebody comes again or has ended."""
    by_rank = {entry.rank: entry for entry in blocked}
    together: dict[str, set[int]] = {}
    for entry in blocked:
        together.setdefault(entry.what, set()).add(entry.rank)
    lines: list[str] = []
    seen: set[int] = set()
    at = blocked[0].rank
    while at in by_rank and at not in seen and len(lines) < SHOWN:
        seen.add(at)
        entry = by_rank[at]
        lines.append(f"rank {at} waits for {entry.what}")
        came = together[entry.what] if len(entry.ranks) > 1 else ()
        following = next((rank for rank in entry.ranks if rank != at and rank not in came), None)
        if following is None:
            return lines
        at = following
    if at not in by_rank:
        lines.append(f"rank {at} has ended")
    elif at in seen:
        lines.append(f"rank {at} is one of these")
    return lines


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
