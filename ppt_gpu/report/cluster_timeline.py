"""The timeline of chosen ranks of a cluster simulation, in the trace event format that browsers' viewers read.

One process a rank, with tracks for compute, communication and copies; one for the critical path. Times in us, as the
format wants them.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator, Sequence
from typing import Any

from ppt_gpu.cluster.outcome import Outcome
from ppt_gpu.errors import PptError

TRACKS = ("compute", "communication", "copies")
PATH = -1  # the process number of the critical path
PS_PER_US = 10**6


def timeline(outcome: Outcome, ranks: Sequence[int]) -> str:
    """The document. PptError for a rank that there is not, or histories that were not kept."""
    return json.dumps({"traceEvents": list(_events(outcome, ranks)), "displayTimeUnit": "ns"}) + "\n"


def _events(outcome: Outcome, ranks: Sequence[int]) -> Iterator[dict[str, Any]]:
    kept = {rank.number: rank for rank in outcome.ranks}
    for number in ranks:
        if not 0 <= number < outcome.size:
            raise PptError(f"--ranks: no rank {number}", hint=f"there are ranks 0 to {outcome.size - 1}")
        rank = kept[number % len(kept)]  # of a node that stands for all
        if rank.intervals is None:
            raise PptError(f"--timeline: {outcome.note}")
        yield _name(number, f"rank {number}")
        for track, name in enumerate(TRACKS):
            yield from _spans(getattr(rank.intervals, name), number, track, name)
    if outcome.path:
        yield _name(PATH, "critical path")
    for on, kind, label, start, end in outcome.path:
        yield _span(f"{kind} {label}, rank {on}", PATH, 0, start, end)


def _spans(pairs: array[int], number: int, track: int, name: str) -> Iterator[dict[str, Any]]:
    times = sorted(zip(pairs[::2], pairs[1::2], strict=True))
    for start, end in times:
        yield _span(name, number, track, start, end)


def _span(name: str, process: int, track: int, start: int, end: int) -> dict[str, Any]:
    times = {"ts": start / PS_PER_US, "dur": (end - start) / PS_PER_US}
    return {"name": name, "ph": "X", "pid": process, "tid": track, **times}


def _name(process: int, name: str) -> dict[str, Any]:
    return {"name": "process_name", "ph": "M", "pid": process, "tid": 0, "args": {"name": name}}
