"""Collects a run's trace: takes over what blocks left in the raw buffers, and builds the `Trace` at the end.

What a block that has not ended recorded stays in its buffers.
"""

from __future__ import annotations

from collections.abc import Sequence
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
from ppt_gpu.emulator.run.collect_paths import Paths
from ppt_gpu.emulator.run.schedule import WAIT_PATTERNS, WAIT_ROOM
from ppt_gpu.emulator.trace.digest_patterns import Stored
from ppt_gpu.emulator.trace.growing import Growing
from ppt_gpu.emulator.trace.pattern_store import PatternStore
from ppt_gpu.emulator.trace.record_words import RECORD_BYTES
from ppt_gpu.emulator.trace.recorded_trace import RecordedTrace, Records
from ppt_gpu.emulator.trace.trace import Trace, counts_by_block
from ppt_gpu.emulator.trace.trace_buffers import TraceBuffers
from ppt_gpu.ptx.linking.mangling import short_name
from ppt_gpu.workload.budget import Budget

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
