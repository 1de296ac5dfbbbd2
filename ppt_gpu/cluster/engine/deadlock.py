"""What is wrong with a run that came to an end too soon: who waits for whom, and which messages nobody received."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ppt_gpu.cluster.engine.matching import Message, tag_text, waiting
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
