"""Timelines in the trace event format that Perfetto and browsers' own viewers read, as JSON or compressed JSON.

Times are in us, as the format wants them. The format: Google's document "Trace Event Format". Processes and tracks are
numbered from 0 here and from 1 in the file: Perfetto takes process 0 and thread 0 for the idle ones of the machine, and
so all tracks 0 for one.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping
from typing import Any

from ppt_gpu.common.errors import PptError
from ppt_gpu.common.outputs import write_whole

Event = dict[str, Any]
SUFFIXES = (".json", ".json.gz")


def check_target(path: str) -> None:
    """Raises PptError for a file name with another ending."""
    if not path.endswith(SUFFIXES):
        raise PptError(f"--timeline {path}: unknown kind of file", hint=f"expected a name ending in {_endings()}")


def _endings() -> str:
    return " or ".join(SUFFIXES)


def write(path: str, events: Iterable[Event], about: Mapping[str, Any] | None = None) -> None:
    """Write the timeline whole; the same events, the same bytes. `about`: metadata that viewers show."""
    data = document(events, about).encode()
    write_whole(path, gzip.compress(data, 6, mtime=0) if path.endswith(".gz") else data)


def document(events: Iterable[Event], about: Mapping[str, Any] | None = None) -> str:
    """The timeline as text."""
    found: dict[str, Any] = {"traceEvents": list(events), "displayTimeUnit": "ns"}
    if about:
        found["otherData"] = dict(about)
    return json.dumps(found) + "\n"


def span(
    name: str, process: int, track: int, start: float, length: float, about: Mapping[str, Any] | None = None
) -> Event:
    """Something that takes a while."""
    found: Event = {"name": name, "ph": "X", "pid": process + 1, "tid": track + 1, "ts": start, "dur": length}
    return found | {"args": dict(about)} if about else found


def counter(name: str, process: int, at: float, values: Mapping[str, float]) -> Event:
    """Quantities from `at` on, drawn as an area."""
    return {"name": name, "ph": "C", "pid": process + 1, "tid": 1, "ts": at, "args": dict(values)}


def flight(
    name: str, process: int, number: int, start: float, end: float, about: Mapping[str, Any] | None = None
) -> Iterable[Event]:
    """Something that takes a while beside others of its kind; `number` is its own in the process."""
    common = {"name": name, "cat": "flight", "id2": {"local": hex(number)}, "pid": process + 1, "tid": 1}
    yield {**common, "ph": "b", "ts": start, "args": dict(about or {})}
    yield {**common, "ph": "e", "ts": end}


def process_name(process: int, name: str, place: int | None = None) -> Iterable[Event]:
    """The name of a process, and its place among them."""
    yield {"name": "process_name", "ph": "M", "pid": process + 1, "tid": 1, "args": {"name": name}}
    if place is not None:
        yield {"name": "process_sort_index", "ph": "M", "pid": process + 1, "tid": 1, "args": {"sort_index": place}}


def track_name(process: int, track: int, name: str) -> Iterable[Event]:
    """The name of a track; tracks stand in the order of their numbers."""
    yield {"name": "thread_name", "ph": "M", "pid": process + 1, "tid": track + 1, "args": {"name": name}}
    yield {"name": "thread_sort_index", "ph": "M", "pid": process + 1, "tid": track + 1, "args": {"sort_index": track}}
