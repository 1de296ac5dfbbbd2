"""The critical path of a run: the chain of kernels, messages and so on that ended last, and what it consists of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ppt_gpu.cluster.engine.request import Cause, Elsewhere, Segment

Step = tuple[int, str, str, int, int]  # rank, kind, label, start, end
Piece = tuple[list[Step], Elsewhere | None]  # a path within one process, last step first, and where it comes from


class Share(NamedTuple):
    """What of the path one kind of work takes."""

    kind: str
    label: str
    time: int  # ps
    steps: int


def shares(path: Sequence[Step], total: int) -> list[Share]:
    """What the path consists of, the longest first. The times add up to `total` ps, the end of the run.

    Messages are taken together, whatever ranks they join. Between two steps the host works: launches, overheads.
    """
    times: dict[tuple[str, str], int] = {}
    counts: dict[tuple[str, str], int] = {}
    reached = 0
    for _, kind, label, start, end in path:
        name = (kind, "" if kind == "message" else label)
        if start > reached:
            gap = ("host", "overheads")
            times[gap] = times.get(gap, 0) + start - reached
            counts[gap] = counts.get(gap, 0) + 1
        times[name] = times.get(name, 0) + max(0, end - max(start, reached))
        counts[name] = counts.get(name, 0) + 1
        reached = max(reached, end)
    if total > reached:
        gap = ("host", "overheads")
        times[gap] = times.get(gap, 0) + total - reached
        counts[gap] = counts.get(gap, 0) + 1
    found = [Share(*name, time, counts[name]) for name, time in times.items()]
    return sorted(found, key=lambda share: (-share.time, share.kind, share.label))


def piece_to(cause: Cause) -> Piece:
    """The path to `cause` as far as this process knows it."""
    steps = []
    while isinstance(cause, Segment):
        steps.append(cause[1:])
        cause = cause.previous
    return steps, cause


def path_to(end: Cause, piece_at: Callable[[Elsewhere], Piece]) -> tuple[Step, ...]:
    """The path to `end`, first to last, through all processes: `piece_at` fetches what another one keeps."""
    steps, before = piece_to(end)
    while before is not None:
        more, before = piece_at(before)
        steps += more
    return tuple(reversed(steps))


def ranks_on(path: Sequence[Step]) -> list[int]:
    """The ranks that the path runs through, in order, each turn once."""
    found: list[int] = []
    for rank, *_ in path:
        if not found or found[-1] != rank:
            found.append(rank)
    return found
