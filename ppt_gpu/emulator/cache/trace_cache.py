"""What is known of one launch's traces: whole runs by their blocks, and single blocks where a trace can be taken apart.

In memory for the process, so that a sweep reads and decodes nothing twice, and in the store on disk.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from itertools import repeat
from threading import Lock, RLock
from typing import Any

from ppt_gpu.emulator.cache.store import Store
from ppt_gpu.emulator.trace.global_accesses import global_accesses
from ppt_gpu.emulator.trace.identity import digest
from ppt_gpu.emulator.trace.trace import GlobalAccesses, Trace
from ppt_gpu.emulator.trace.trace_file import Content, Record, class_of
from ppt_gpu.emulator.trace.trace_parts import join_blocks, join_global
from ppt_gpu.ptx.module import Kernel

LIMIT = 1 << 30  # B of arrays that stay in memory between predictions


class Kept:
    """Traces of one launch. `group` names it in the store; without a store they stay in memory only."""

    def __init__(self, group: str, store: Store | None = None) -> None:
        self.group, self.store = group, store
        self.records: dict[str, Record] = {}
        self._traces: dict[int, tuple[Trace, int]] = {}  # block -> trace and position, of separable records
        self._globals: dict[int, tuple[GlobalAccesses, int]] = {}
        self._looked = False  # the group was read from the store
        self.lock = RLock()  # held by who reads or adds: of threads that need the same run, one makes it

    def whole(self, kind: type[Content], blocks: Sequence[int]) -> Any:
        """The trace, or the global accesses, of a run of exactly these blocks; None if there is none."""
        name = entry_name(kind, blocks)
        if name not in self.records and self.store is not None:
            record = self.store.get(self.group, name)
            if record is not None:
                self.add(record, new=False)
        return self.records[name].content if name in self.records else None

    def missing(self, blocks: Sequence[int]) -> list[int]:
        """Those of `blocks` without a trace of their own."""
        return self._missing(blocks, self._traces)

    def missing_globals(self, blocks: Sequence[int]) -> list[int]:
        """Those of `blocks` whose global accesses are not known."""
        missing = self._missing(blocks, self._globals)
        return [block for block in missing if block not in self._traces]

    def join(self, blocks: Sequence[int]) -> Trace:
        """The trace of blocks none of which is missing."""
        return join_blocks([self._traces[block] for block in blocks])

    def join_globals(self, kernel: Kernel, blocks: Sequence[int]) -> GlobalAccesses:
        """The global accesses of blocks none of which is missing."""
        new = [block for block in dict.fromkeys(blocks) if block not in self._globals]
        if new:
            self._add_globals(global_accesses(kernel, self.join(new)))
        return join_global([self._globals[block] for block in blocks])

    def any_trace(self) -> Trace | None:
        """Some separable trace, to estimate with."""
        return next((trace for trace, _ in self._traces.values()), None)

    def add(self, record: Record, new: bool = True) -> None:
        """Keep a record; with `new` in the store, too."""
        name = entry_name(class_of(record.content), record.content.blocks.tolist())
        self.records[name] = record
        if record.separable and isinstance(record.content, Trace):
            _add_places(self._traces, record.content)
        elif record.separable and isinstance(record.content, GlobalAccesses):
            self._add_globals(record.content)
        if new and self.store is not None:
            self.store.put(self.group, name, record)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return sum(content_bytes(record.content) for record in list(self.records.values()))

    def _add_globals(self, found: GlobalAccesses) -> None:
        _add_places(self._globals, found)

    def _missing(self, blocks: Sequence[int], known: dict[int, Any]) -> list[int]:
        missing = [block for block in blocks if block not in known]
        if missing and self.store is not None and not self._looked:
            self._looked = True
            for _, record in self.store.group(self.group, self.records):
                self.add(record, new=False)
            missing = [block for block in blocks if block not in known]
        return missing


def _add_places(known: dict[int, Any], content: Any) -> None:
    """Add block -> (content, position of the block in it) for blocks that are not known."""
    blocks = content.blocks.tolist()[::-1]  # of a block that ran twice the first counts
    places = dict(zip(blocks, zip(repeat(content), range(len(blocks) - 1, -1, -1)), strict=False))
    known.update(places | known)


def entry_name(kind: type[Content], blocks: Sequence[int]) -> str:
    """The name of a run in its group."""
    return digest(kind.__name__, tuple(blocks))[:32]


def content_bytes(content: Content) -> int:
    """Bytes of the arrays of a trace or of global accesses."""
    return sum(int(getattr(value, "nbytes", 0)) for value in list(vars(content).values()))


_recent: OrderedDict[tuple[str, str], Kept] = OrderedDict()
_recalling = Lock()


def recall(group: str, store: Store) -> Kept:
    """What this process and the store know of a launch; the groups used longest ago leave memory when it is full."""
    key = (str(store.folder), group)
    with _recalling:
        if key not in _recent:
            _recent[key] = Kept(group, store)
        _recent.move_to_end(key)
        total = sum(kept.nbytes for kept in _recent.values())
        while total > LIMIT and len(_recent) > 1:
            _, oldest = _recent.popitem(last=False)
            total -= oldest.nbytes
        return _recent[key]


def forget() -> None:
    """Let go of what this process keeps in memory."""
    _recent.clear()
