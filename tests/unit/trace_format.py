"""Reads a file in the trace event format and holds it against the rules that viewers rely on."""

import gzip
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

REQUIRED = {
    "X": {"name", "pid", "tid", "ts", "dur"},
    "M": {"name", "pid", "tid", "args"},
    "C": {"name", "pid", "ts", "args"},
    "b": {"name", "cat", "id2", "pid", "ts"},
    "e": {"name", "cat", "id2", "pid", "ts"},
}
METADATA = {"process_name": "name", "process_sort_index": "sort_index",
            "thread_name": "name", "thread_sort_index": "sort_index"}  # fmt: skip


def read(path: Path) -> dict[str, Any]:
    """The document, after checking every event, that spans of a track nest, and that what begins ends."""
    data = path.read_bytes()
    document = json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)
    assert set(document) <= {"traceEvents", "displayTimeUnit", "otherData"}
    assert document["displayTimeUnit"] in ("ms", "ns")
    tracks: dict[tuple[int, int], list[tuple[float, float]]] = defaultdict(list)
    flying: dict[tuple[str, str, int], list[float]] = defaultdict(list)
    for event in document["traceEvents"]:
        kind = event["ph"]
        assert REQUIRED[kind] <= set(event), event
        assert event["pid"] > 0 and event.get("tid", 1) > 0, "0 is the idle process or thread of the machine"
        assert isinstance(event["name"], str) and event["name"]
        if kind == "M":
            assert METADATA[event["name"]] in event["args"]
        else:
            assert event["ts"] >= 0
        if kind == "X":
            assert event["dur"] > 0
            tracks[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
        elif kind == "C":
            assert all(isinstance(value, int | float) for value in event["args"].values())
        elif kind in "be":
            flying[event["cat"], event["id2"]["local"], event["pid"]].append(
                event["ts"] if kind == "b" else -event["ts"]
            )
    for spans in tracks.values():
        check_nesting(spans)
    for begun, ended in flying.values():
        assert 0 <= begun < -ended
    return document


def check_nesting(spans: list[tuple[float, float]]) -> None:
    """Two spans of a track are apart, or one lies inside the other; to a millionth of a cycle."""
    stack: list[float] = []
    for start, end in sorted(spans, key=lambda span: (span[0], -span[1])):
        while stack and stack[-1] <= start + 1e-6:
            stack.pop()
        assert not stack or end <= stack[-1] + 1e-6
        stack.append(end)


def names(document: dict[str, Any]) -> dict[int, str]:
    """Process number, from 0 on as the writer counts -> name."""
    return {e["pid"] - 1: e["args"]["name"] for e in document["traceEvents"] if e["name"] == "process_name"}


def spans(document: dict[str, Any], process: int) -> list[dict[str, Any]]:
    return [event for event in document["traceEvents"] if event["ph"] == "X" and event["pid"] == process + 1]
