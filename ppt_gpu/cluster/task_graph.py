"""Task graphs: what each rank does as JSON, nodes with dependencies (docs/cluster.md), read strictly, run as a program.

Like the execution traces of Chakra (Sridharan et al., arXiv:2305.14516): kernels, copies, messages and collectives, all
starting when all that it comes after is done.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ppt_gpu.cluster.collectives.collectives import KINDS
from ppt_gpu.cluster.engine.rank import Rank
from ppt_gpu.cluster.engine.request import Request
from ppt_gpu.cluster.engine.state import Body, Told
from ppt_gpu.cluster.model.kernel import Kernel
from ppt_gpu.common.errors import InputErrors, PptError, did_you_mean
from ppt_gpu.common.units import parse_quantity

#: type -> (required, optional) keys beside id, type, rank and after
TYPES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "kernel": ((), ("kernel", "time", "stream")),
    "copy": (("from", "to", "bytes"), ("stream",)),
    "send": (("to", "bytes"), ("tag", "memory")),
    "receive": (("from", "bytes"), ("tag", "memory")),
    "collective": (("kind", "bytes"), ("algorithm", "ranks", "stream", "memory")),
}
COMMON = ("id", "type", "rank", "after")
TOP = ("schema", "description", "nodes")
MEMORIES = ("gpu", "host")


@dataclass(frozen=True)
class Node:
    """One piece of work. `rank` None: every rank does it."""

    number: int
    kind: str
    rank: int | None
    after: tuple[int, ...]
    values: Mapping[str, Any]


@dataclass(frozen=True)
class TaskGraph:
    """A graph in an order in which every node comes behind those that it depends on."""

    path: Path
    description: str
    nodes: tuple[Node, ...]

    def program(self, rank: Rank) -> Body:
        """The program of one rank."""
        done: dict[int, Request] = {}
        own = sum(node.rank is None or node.rank == rank.index for node in self.nodes)
        rank.told = Told("tasks", own, lambda: sum(request.done >= 0 for request in list(done.values())))
        for node in self.nodes:
            if node.rank is None or node.rank == rank.index:
                after = [done[number] for number in node.after if number in done]
                done[node.number] = _start(rank, node, after)
        yield list(done.values())


def _start(rank: Rank, node: Node, after: list[Request]) -> Request:
    values = node.values
    stream = values.get("stream", ("node", node.number))
    if node.kind == "kernel":
        work = Kernel(values["kernel"]) if "kernel" in values else values["time"]
        return rank.launch(work, stream=stream, after=after)
    if node.kind == "copy":
        return rank.copy(values["from"], values["to"], values["bytes"], stream=stream, after=after)
    memory, tag = values.get("memory", "gpu"), values.get("tag", 0)
    if node.kind == "send":
        return rank.isend(values["to"], values["bytes"], tag, memory=memory, after=after)
    if node.kind == "receive":
        return rank.irecv(values["from"], values["bytes"], tag, memory=memory)
    return rank.collective(
        values["kind"],
        values["bytes"],
        group=values.get("ranks"),
        algorithm=values.get("algorithm", "nccl"),
        memory=memory,
        stream=stream,
        after=after,
    )


def read_task_graph(path: Path) -> TaskGraph:
    """Read a graph. Raises PptError or InputErrors with everything that is wrong."""
    document = _read(path)
    errors: list[PptError] = []

    def wrong(place: str, message: str, hint: str | None = None) -> None:
        errors.append(PptError(f"{place}: {message}" if place else message, path=path, hint=hint))

    if not isinstance(document, dict):
        raise PptError("expected an object", path=path, hint='{"schema": 1, "nodes": [...]}')
    for key in document.keys() - set(TOP):
        wrong("", f"unknown key '{key}'", did_you_mean(key, TOP))
    if document.get("schema") != 1:
        wrong("", "schema: expected 1")
    entries = document.get("nodes")
    if not isinstance(entries, list) or not entries:
        wrong("", "nodes: expected a list of at least one node")
        entries = []
    nodes: list[Node] = []
    known: set[int] = set()
    for position, entry in enumerate(entries):
        node = _Reader(f"nodes[{position}]", wrong, known).node(entry)
        if node is not None:
            known.add(node.number)
            nodes.append(node)
    if errors:
        raise errors[0] if len(errors) == 1 else InputErrors(errors)
    return TaskGraph(path, str(document.get("description", "")), tuple(nodes))


def _read(path: Path) -> Any:
    def unique(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise PptError(f"key '{twice}' twice in one object", path=path)
        return found

    try:
        return json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        raise PptError(error.msg, path=path, line=error.lineno, column=error.colno) from None
    except (OSError, UnicodeDecodeError) as error:
        raise PptError(f"cannot read: {error}", path=path) from None


class _Reader:
    """Reads one node; errors go to `wrong`."""

    def __init__(self, place: str, wrong: Any, known: set[int]) -> None:
        self.place = place
        self.wrong = wrong
        self.known = known

    def node(self, entry: Any) -> Node | None:
        """The node, as far as it can be read; None if it has no identity."""
        if not isinstance(entry, dict):
            self.wrong(self.place, "expected an object")
            return None
        kind = entry.get("type")
        if kind not in TYPES:
            self.wrong(self.place, f"unknown type '{kind}'", did_you_mean(str(kind), TYPES))
            return None
        number = self.whole(entry, "id")
        if number in self.known:
            self.wrong(self.place, f"id {number} is taken")
        required, optional = TYPES[kind]
        allowed = (*COMMON, *required, *optional)
        for key in entry.keys() - set(allowed):
            self.wrong(self.place, f"unknown key '{key}'", did_you_mean(key, allowed))
        for key in required:
            if key not in entry:
                self.wrong(self.place, f"a {kind} needs '{key}'")
        if kind == "kernel" and ("kernel" in entry) == ("time" in entry):
            self.wrong(self.place, "a kernel needs either 'kernel' or 'time'")
        rank = self.whole(entry, "rank") if "rank" in entry else None
        return Node(number, kind, rank, self.after(entry), self.values(entry, kind))

    def whole(self, entry: Mapping[str, Any], key: str) -> int:
        """A number of 0 or more."""
        value = entry.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
        self.wrong(self.place, f"{key}: expected a whole number of 0 or more")
        return -1

    def after(self, entry: Mapping[str, Any]) -> tuple[int, ...]:
        """The ids that it comes after: of nodes before it."""
        found = entry.get("after", [])
        if not isinstance(found, list) or not all(type(number) is int for number in found):
            self.wrong(self.place, "after: expected a list of ids")
            return ()
        for number in found:
            if number not in self.known:
                self.wrong(self.place, f"after: no node before this has id {number}")
        return tuple(found)

    def values(self, entry: Mapping[str, Any], kind: str) -> dict[str, Any]:
        """The keys that are its type's own, converted."""
        found: dict[str, Any] = {}
        for key in (key for key in entry if key not in COMMON):
            if key == "memory" or (kind == "copy" and key in ("from", "to")):
                found[key] = self.choice(key, entry[key], MEMORIES)
            elif key in ("from", "to", "tag"):
                found[key] = self.whole(entry, key)
            elif key == "bytes":
                found[key] = int(self.quantity(key, entry[key], "bytes"))
            elif key == "time":
                found[key] = self.quantity(key, entry[key], "time")
            elif key == "kind":
                found[key] = self.choice(key, entry[key], KINDS)
            elif key == "ranks":
                found[key] = self.ranks(entry[key])
            else:
                found[key] = entry[key] if key == "stream" else str(entry[key])
        return found

    def choice(self, key: str, value: Any, allowed: Sequence[str]) -> str:
        """One of a few words."""
        if value not in allowed:
            self.wrong(self.place, f"{key}: unknown '{value}'", did_you_mean(str(value), allowed))
        return str(value)

    def quantity(self, key: str, value: Any, dimension: str) -> float:
        """A text with a unit, or of bytes a whole number."""
        if dimension == "bytes" and type(value) is int and value >= 0:
            return value
        try:
            found = parse_quantity(value, dimension) if isinstance(value, str) else -1.0
        except ValueError as error:
            self.wrong(self.place, f"{key}: {error}")
            return 0.0
        if found < 0:
            self.wrong(self.place, f"{key}: expected a text with a unit, such as '4 MiB' or '20 us'")
        return found

    def ranks(self, value: Any) -> tuple[int, ...]:
        """The members of a collective."""
        if not isinstance(value, list) or not value or not all(type(rank) is int and rank >= 0 for rank in value):
            self.wrong(self.place, "ranks: expected a list of ranks")
            return ()
        if len(set(value)) != len(value):
            self.wrong(self.place, "ranks: a rank twice")
        return tuple(value)
