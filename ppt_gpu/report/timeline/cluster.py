"""The timeline of chosen ranks of a cluster simulation, in the trace event format that browsers' viewers read.

One process a rank, with compute, communication and copies; one for the critical path.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence

from ppt_gpu.cluster.engine.outcome import Outcome
from ppt_gpu.common.errors import PptError
from ppt_gpu.report.timeline.trace_events import Event, flight, process_name, span

TRACKS = ("compute", "communication", "copies")
PS_PER_NS = NS_PER_US = 1000


def timeline(outcome: Outcome, ranks: Sequence[int]) -> list[Event]:
    """The events. PptError for a rank that there is not, or histories that were not kept."""
    return list(_events(outcome, ranks))


def _events(outcome: Outcome, ranks: Sequence[int]) -> Iterator[Event]:
    kept = {rank.number: rank for rank in outcome.ranks}
    for number in ranks:
        if not 0 <= number < outcome.size:
            raise PptError(f"--ranks: no rank {number}", hint=f"there are ranks 0 to {outcome.size - 1}")
        rank = kept[number % len(kept)]  # of a node that stands for all
        if rank.intervals is None:
            raise PptError(f"--timeline: {outcome.note}")
        yield from process_name(number, f"rank {number}")
        for track, name in enumerate(TRACKS):
            yield from _spans(getattr(rank.intervals, name), number, track, name)
    if outcome.path:
        yield from process_name(outcome.size, "critical path")  # after all ranks
    for on, kind, label, start, end in outcome.path:
        yield _span(f"{kind} {label}, rank {on}", outcome.size, 0, start, end)


def _spans(pairs: array[int], number: int, track: int, name: str) -> Iterator[Event]:
    """Compute as spans; messages and copies, of which several may be under way at once, each by itself."""
    times = sorted(zip(pairs[::2], pairs[1::2], strict=True))
    for index, (start, end) in enumerate(times):
        if track == 0:
            yield _span(name, number, track, start, end)
        else:
            yield from flight(name, number, len(TRACKS) * index + track, _us(start), _us(end))


def _span(name: str, process: int, track: int, start: int, end: int) -> Event:
    return span(name, process, track, _us(start), (_ns(end) - _ns(start)) / NS_PER_US)


def _ns(time: int) -> int:
    """ps to whole ns, which viewers count: spans that touch must do so after that."""
    return round(time / PS_PER_NS)


def _us(time: int) -> float:
    return _ns(time) / NS_PER_US
