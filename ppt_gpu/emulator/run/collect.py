"""Collects a run's trace: takes over what blocks left in the raw buffers, and builds the `Trace` at the end.

What a block that has not ended recorded stays in its buffers.
The paths of warps are stored once each, and expanded to instructions at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.errors import BudgetError
from ppt_gpu.common.units import format_bytes
from ppt_gpu.emulator.analysis.access_groups import Groups
from ppt_gpu.emulator.analysis.flow import MAX_SEGMENT
from ppt_gpu.emulator.jit.compiler.compile import Engine
from ppt_gpu.emulator.memory.memory import DeviceMemory
from ppt_gpu.emulator.memory.warp_context import Slot
from ppt_gpu.emulator.run.schedule import WAIT_PATTERNS, WAIT_ROOM
from ppt_gpu.emulator.trace import digest_paths
from ppt_gpu.emulator.trace.buffer_pool import empty
from ppt_gpu.emulator.trace.digest_patterns import Stored
from ppt_gpu.emulator.trace.pattern_store import PatternStore
from ppt_gpu.emulator.trace.record_words import RECORD_BYTES
from ppt_gpu.emulator.trace.recorded_trace import BlockThreads, RecordedTrace, Records
from ppt_gpu.emulator.trace.trace import Trace, counts_by_block
from ppt_gpu.emulator.trace.trace_buffers import TraceBuffers
from ppt_gpu.ptx.linking.mangling import short_name
from ppt_gpu.workload.budget import Budget


class Growing:
    """`data[:used]` is the content. Fresh room is not touched, so that unused room costs no memory."""

    def __init__(self, dtype: Any, capacity: int = 1 << 16) -> None:
        self.data: NDArray[Any] = np.empty(capacity, dtype)
        self.used = 0

    def room(self, more: int) -> None:
        """Make sure that `more` elements fit behind the content."""
        if self.used + more > len(self.data):
            new = empty(max(2 * len(self.data), self.used + more), self.data.dtype)
            new[: self.used] = self.data[: self.used]
            self.data = new

    def append(self, values: NDArray[Any]) -> None:
        self.room(len(values))
        self.data[self.used : self.used + len(values)] = values
        self.used += len(values)

    @property
    def content(self) -> NDArray[Any]:
        return self.data[: self.used]

    @property
    def nbytes(self) -> int:
        """Bytes of the content."""
        return self.used * self.data.itemsize


FIRST_ROOM = 1 << 10  # that there is room for at first


class Paths:
    """Paths so far, as segments. W warps, S segments."""

    def __init__(self, engine: Engine, warps: int, per_block: int = 0) -> None:
        """per_block: warps of a block where threads are counted by block, else 0."""
        self.engine = engine
        self.known, self.known_end = Growing(np.int32), Growing(np.int32)  # segments of the paths found
        self.count = 0
        self.start, self.hash = np.zeros(FIRST_ROOM + 1, np.int64), np.zeros(FIRST_ROOM, np.int64)
        self.table = np.zeros(4 * FIRST_ROOM, np.int32)
        self.warp_path = np.zeros(warps, np.int32)
        self.warp_threads = np.zeros(warps, np.int64)
        self.row_warps = per_block or max(warps, 1)
        rows = max(warps // self.row_warps, 1)
        self.segment_threads = np.zeros((rows, engine.flow.segments), np.int64)  # [blocks or 1, S]

    @property
    def nbytes(self) -> int:
        return self.known.nbytes + self.known_end.nbytes

    def take(
        self,
        words: NDArray[np.int64],
        starts: NDArray[np.int64],
        ends: NDArray[np.int64],
        guarded: NDArray[np.int64],
        warp: int,
    ) -> None:
        """Take over the path records of the warps from `warp` on, see `digest_paths.read_paths`."""
        part = 0
        while part < len(starts):
            self.count, part = digest_paths.read_paths(
                words, starts, ends, guarded, self.engine.plain, warp, self.row_warps,
                self.segment_threads, self.warp_threads, self.warp_path,
                self.known.data, self.known_end.data, self.start, self.hash, self.table, self.count, part,
            )  # fmt: skip
            self.known.used = self.known_end.used = int(self.start[self.count])
            if part < len(starts):
                self._make_room()

    def _make_room(self) -> None:
        """There is no room for a path: make twice as much."""
        if self.count < len(self.hash):
            for array in (self.known, self.known_end):
                array.room(len(array.data) - array.used + 1)
            return
        self.start, self.hash = np.resize(self.start, 2 * self.count + 1), np.resize(self.hash, 2 * self.count)
        self.table = np.zeros(2 * len(self.table), np.int32)
        digest_paths.fill_table(self.hash, self.count, self.table)

    def whole(self) -> WholePaths:
        """Once all are known."""
        engine, segments = self.engine, self.engine.flow.segments
        found = WholePaths(
            np.empty(self.count + 1, np.int64), np.zeros(segments, np.int64),
            np.empty(len(self.warp_path) + 1, np.int64), self.known.content, engine,
        )  # fmt: skip
        digest_paths.sum_paths(
            self.warp_path, self.start, self.known.content, engine.bounds, engine.groups.start,
            np.empty((2, self.count), np.int64), found.access_start, found.start, found.segment_executed,
        )  # fmt: skip
        return found

    def threads(self, guarded: NDArray[np.int64]) -> NDArray[np.int64]:
        """[I] executions of each instruction by threads. guarded [n]: those of guarded instructions."""
        total = np.zeros(self.engine.flow.segments, np.int64)
        digest_paths.sum_rows(self.segment_threads, total)
        found = total[self.engine.segment_of]
        found[list(self.engine.guarded)] = guarded
        return found

    def block_threads(self, marks: NDArray[np.int64]) -> BlockThreads:
        """Executions by threads, by block. marks [blocks, n]: those of guarded instructions up to each block's end."""
        return BlockThreads(self.segment_threads, self.engine.segment_of, self.engine.guarded, marks)


@dataclass(frozen=True)
class WholePaths:
    """The paths of a run that has ended. P paths, S segments, W warps, I instructions of the kernel."""

    start: NDArray[np.int64]  # [P+1] where each path begins among the instructions of all
    segment_executed: NDArray[np.int64]  # [S] executions by warps
    access_start: NDArray[np.int64]  # [W+1] where the accesses of each warp begin
    segments: NDArray[np.int32]  # of all paths
    engine: Engine

    @property
    def nbytes(self) -> int:
        """Bytes of the instructions of all paths."""
        return 4 * int(self.start[-1])

    def instructions(self) -> NDArray[np.int32]:
        """Of all paths."""
        pcs = np.empty(int(self.start[-1]), np.int32)
        digest_paths.expand_paths(self.segments, self.engine.bounds, pcs)
        return pcs

    def executed(self) -> NDArray[np.int64]:
        """[I] executions of each instruction by warps."""
        return self.segment_executed[self.engine.segment_of]


PATHS = 1 << 17  # path records in the buffers of a block
RECORDS = 1 << 18  # accesses in them: with more, taking them over would wait for memory; with fewer, it comes too often
FEWEST = 1 << 9  # of both for each warp where many blocks are in flight
MANY_ACCESSES = 1 << 22  # that room is made for at most where so many are expected
MARGIN = 1.5  # of room to what is expected: what is not used costs nothing
ACCESS_BYTES = 8 + 4 + 1  # of an access in the trace
PATTERN_BYTES = 32 * 8 + 4  # of a pattern
FEW = 1 << 14  # lines of patterns that are worth a copy, which lets go of that room


class Collector:
    """The trace so far."""

    def __init__(self, engine: Engine, warps: int, blocks: int, budget: Budget) -> None:
        self.engine = engine
        self.warps, self.blocks = warps, blocks  # warps of a block
        self.budget = budget
        self.base, self.header = Growing(np.uint64, 0), Growing(np.uint32, 0)
        self.record_start = np.zeros(blocks * warps + 1, np.int64)
        self.patterns = PatternStore()
        self.by_block = engine.traced and counts_by_block(blocks, len(engine.kernel.instructions))
        self.paths = Paths(engine, warps * blocks, warps if self.by_block else 0)

    def buffers(self, rows: NDArray[np.int64], many: bool) -> TraceBuffers:
        """Buffers of a block, one of `many` that are in flight at a time."""
        wait_room = WAIT_ROOM // RECORD_BYTES if any(self.engine.flow.waiting.only) else 0
        paths, records = (FEWEST if many else size // self.warps for size in (PATHS, RECORDS))
        found = TraceBuffers(rows, paths, records, max(wait_room, MAX_SEGMENT))
        rows[:, Slot.PATTERNS] = self.patterns.block.ctypes.data
        return found

    def take(self, buffers: TraceBuffers, ends: NDArray[np.int64], position: int) -> None:
        """Take over what blocks left that have ended, from `position` on: up to these host addresses [n, W, 3]."""
        if not len(ends):
            return
        first = position * self.warps
        at, total = self.base.used, buffers.records(ends[-1])
        self._room(total, (self.blocks - position - len(ends)) / len(ends))
        places = self.record_start[first + 1 : first + 1 + ends.shape[0] * self.warps]
        path, guarded = buffers.take(ends, self.header.data, self.base.data.view(np.int64), at, places)
        self.base.used = self.header.used = at + total
        self.paths.take(buffers.path.reshape(-1), path[0], path[1], guarded, first)

    def make_room(self, buffers: Sequence[TraceBuffers]) -> None:
        """Let these blocks, which have not been taken, get on. BudgetError when the trace is too large by now."""
        raw = sum(each.used() for each in buffers)
        self._check_budget(self.paths.nbytes + raw + ACCESS_BYTES * self.base.used + self._pattern_bytes())
        self.patterns.make_room(2 * WAIT_PATTERNS)

    def _room(self, total: int, times: float) -> None:
        """Make room for so many records. About `times` as many are to come."""
        expected = min(int((1 + times) * total * MARGIN), MANY_ACCESSES)
        for array in (self.base, self.header):
            array.room(total if array.used + total <= len(array.data) else max(total, expected))

    def _check_budget(self, size: int) -> None:
        if size > self.budget.trace:
            raise BudgetError(
                f"the trace of kernel '{short_name(self.engine.kernel.name)}' has {format_bytes(size)}, "
                f"the trace budget is {format_bytes(self.budget.trace)}",
                hint="run fewer blocks, or raise the trace budget: --max-trace SIZE, or Budget(trace=BYTES)",
            )

    def trace(
        self,
        blocks: NDArray[np.int64],
        guarded: NDArray[np.int64],
        marks: NDArray[np.int64],
        groups: Groups,
        memory: DeviceMemory,
        warnings: tuple[str, ...],
        printed: str,
    ) -> Trace:
        """The finished trace. `guarded` [n] are the thread counts of guarded instructions, `marks` [blocks or 0, n] the
        same counts at the end of every block, where threads are counted by block; `groups`: of accesses."""
        paths = self.paths.whole()
        self._check_budget(paths.nbytes + ACCESS_BYTES * int(paths.access_start[-1]) + self._pattern_bytes())
        fields: dict[str, Any] = {
            "blocks": blocks,
            "path_start": paths.start,
            "path_pc": paths.instructions(),
            "warp_path": self.paths.warp_path,
            "warp_block": np.repeat(np.arange(self.blocks, dtype=np.int32), self.warps),
            "warp_threads": self.paths.warp_threads,
            "access_start": paths.access_start,
            "pc_executed": paths.executed(),
            "pc_threads": self.paths.threads(marks[-1] if self.by_block else guarded),
            "ranges": memory.ranges(),
            "warnings": warnings,
            "printed": printed,
        }
        rows, masks = self.patterns.rows, self.patterns.masks
        if len(masks) < FEW:
            rows, masks = rows.copy(), masks.copy()
        records = Records(
            groups, self.paths.start, self.paths.known.content, self.record_start,
            self.base.content, self.header.content, Stored(rows, masks, self.patterns.count),
        )  # fmt: skip
        return RecordedTrace.of(records, self.paths.block_threads(marks) if self.by_block else None, **fields)

    def _pattern_bytes(self) -> int:
        """Bytes that the patterns have in the trace, at most."""
        return self.patterns.count * PATTERN_BYTES
