"""Loops found again in an executed instruction stream: an exact, nested `repeat` structure.

The stream is first cut into the straight runs between jumps (basic blocks that were really taken), then blocks are
appended one by one to a list in which every repetition that becomes complete is folded: two equal neighbours become
a loop of 2, a loop followed by one more copy of its body counts one more. Unfolding gives back the stream.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

MAX_DEPTH = 8  # nested loops; deeper repetitions stay unfolded
_TRIES = 4  # earlier places of the same symbol that are tried as the end of the previous iteration


@dataclass(frozen=True, slots=True)
class Run:
    """Instructions first .. last, one after another."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Repeat:
    count: int
    body: tuple[Run | Repeat, ...]


Node = Run | Repeat


def find_loops(path: NDArray[np.int32]) -> tuple[Node, ...]:
    """The structure of a stream of instruction indices; unfolded in order it is the stream, exactly."""
    if len(path) == 0:
        return ()
    ends, symbols = _blocks(path)
    folder = _Folder()
    for symbol in symbols.tolist():
        folder.append(symbol)
    folder.settle()
    return _join(folder.nodes(folder.items, ends))


def unfold(nodes: tuple[Node, ...]) -> NDArray[np.int32]:
    """The stream that `nodes` stand for."""
    parts = [np.zeros(0, np.int32)]
    for node in nodes:
        if isinstance(node, Run):
            parts.append(np.arange(node.first, node.last + 1, dtype=np.int32))
        else:
            parts.append(np.tile(unfold(node.body), node.count))
    return np.concatenate(parts)


def _blocks(path: NDArray[np.int32]) -> tuple[dict[int, int], NDArray[np.int32]]:
    """({first instruction: last} of each block, the stream as first instructions of its blocks)."""
    jump = np.flatnonzero(np.diff(path) != 1)
    leader = np.zeros(int(path.max()) + 2, np.bool_)
    leader[path[0]] = leader[path[-1] + 1] = True
    leader[path[jump + 1]] = True
    leader[path[jump] + 1] = True
    starts = np.flatnonzero(leader)
    ends = dict(zip(starts.tolist(), (np.append(starts[1:], len(leader)) - 1).tolist(), strict=True))
    return ends, path[leader[path]]


def _join(nodes: list[Node]) -> tuple[Node, ...]:
    """Neighbouring runs that follow each other become one."""
    joined: list[Node] = []
    for node in nodes:
        before = joined[-1] if joined else None
        if isinstance(node, Run) and isinstance(before, Run) and before.last + 1 == node.first:
            joined[-1] = Run(before.first, node.last)
        else:
            joined.append(node)
    return tuple(joined)


@dataclass
class _Folder:
    """The list of symbols so far. A symbol >= 0 is a block; -1 - i is the i-th loop of `loops`."""

    items: list[int] = field(default_factory=list)
    loops: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)  # count, body
    depth: list[int] = field(default_factory=list)  # of each loop
    known: dict[tuple[int, tuple[int, ...]], int] = field(default_factory=dict)
    places: dict[int, list[int]] = field(default_factory=dict)  # symbol -> positions in `items`, rising
    due: dict[int, list[int]] = field(default_factory=dict)  # length of `items` -> loops one more body long then

    def append(self, symbol: int) -> None:
        # A loop at the end may still grow: fold what it closes only when the next symbol does not continue it.
        if self.items and self.items[-1] < 0 and self._first(self.items[-1]) != symbol:
            self.settle()
        self._push(symbol)
        self._fold()

    def settle(self) -> None:
        """Fold what a loop at the end completes."""
        while self._fold():
            pass

    def nodes(self, symbols: list[int] | tuple[int, ...], ends: dict[int, int]) -> list[Node]:
        found: list[Node] = []
        for symbol in symbols:
            if symbol >= 0:
                found.append(Run(symbol, ends[symbol]))
            else:
                count, body = self.loops[-1 - symbol]
                found.append(Repeat(count, _join(self.nodes(body, ends))))
        return found

    def _first(self, symbol: int) -> int:
        while symbol < 0:
            symbol = self.loops[-1 - symbol][1][0]
        return symbol

    def _push(self, symbol: int) -> None:
        self.places.setdefault(symbol, []).append(len(self.items))
        self.items.append(symbol)
        if symbol < 0:
            at = len(self.items) - 1
            self.due.setdefault(at + 1 + len(self.loops[-1 - symbol][1]), []).append(at)

    def _drop(self, count: int) -> None:
        for _ in range(count):
            symbol = self.items.pop()
            self.places[symbol].pop()
            if symbol < 0:
                self.due[len(self.items) + 1 + len(self.loops[-1 - symbol][1])].pop()

    def _loop(self, count: int, body: tuple[int, ...]) -> int:
        key = (count, body)
        if key not in self.known:
            self.known[key] = -1 - len(self.loops)
            self.loops.append(key)
            self.depth.append(1 + max((self.depth[-1 - symbol] for symbol in body if symbol < 0), default=0))
        return self.known[key]

    def _recount(self, loop: int, count: int, body: tuple[int, ...]) -> int:
        """The loop with another count; the old one is renamed where nothing else can know it, to save memory."""
        if loop == -len(self.loops) and not self.places[loop] and (count, body) not in self.known:
            del self.known[self.loops[-1]]
            self.loops[-1] = (count, body)
            self.known[count, body] = loop
        return self._loop(count, body)

    def _fold(self) -> bool:
        return self._grow() or self._pair()

    def _grow(self) -> bool:
        """[... loop body] -> [... loop+1]"""
        for at in reversed(self.due.get(len(self.items), [])):
            count, body = self.loops[-1 - self.items[at]]
            if tuple(self.items[at + 1 :]) == body:
                loop = self.items[at]
                self._drop(len(body) + 1)
                self._push(self._recount(loop, count + 1, body))
                return True
        return False

    def _pair(self) -> bool:
        """[... body body] -> [... loop of 2]"""
        items = self.items
        end = len(items)
        places = self.places[items[-1]] if items else []
        for place in places[-2 : -2 - _TRIES : -1]:
            length = end - 1 - place
            if 2 * length > end or items[-length] != items[-2 * length]:
                continue
            body = tuple(items[-length:])
            deep = any(self.depth[-1 - symbol] >= MAX_DEPTH for symbol in body if symbol < 0)
            if not deep and tuple(items[-2 * length : -length]) == body:
                self._drop(2 * length)
                self._push(self._loop(2, body))
                return True
        return False
