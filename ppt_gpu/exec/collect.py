"""Collects a run's trace: takes over what blocks left in the raw buffers, and builds the `Trace` at the end.

What a block that has not ended recorded stays in its buffers; the patterns that it refers to are held back.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.errors import BudgetError
from ppt_gpu.exec import digest
from ppt_gpu.exec.budget import Budget
from ppt_gpu.exec.collect_paths import Paths
from ppt_gpu.exec.growing import Growing
from ppt_gpu.exec.jit_access import PATTERN_BYTES, SITE_MASK
from ppt_gpu.exec.jit_compile import Engine
from ppt_gpu.exec.jit_context import Slot
from ppt_gpu.exec.jit_flow import MAX_SEGMENT
from ppt_gpu.exec.memory import DeviceMemory
from ppt_gpu.exec.schedule import WAIT_ROOM, State
from ppt_gpu.exec.trace import Trace, counts_by_block
from ppt_gpu.exec.trace_buffers import END_GUARDED, END_PATH, END_RECORD, WORD, TraceBuffers
from ppt_gpu.ptx.mangling import short_name
from ppt_gpu.units import format_bytes

PATHS = 1 << 17  # path records in the buffers of a block
RECORDS = 1 << 17  # accesses in them: few enough to be read back from the caches
FEWEST = 1 << 9  # of both for each warp where many blocks are in flight
ACCESSES = 1 << 22  # room for decoded accesses at first; untouched room costs nothing
LISTED = 1 << 14  # listed patterns of 256 B; a header has 16 bits for their number
PATTERNS = 1 << 20  # room for patterns at first; untouched room costs nothing here either
FEW = 1 << 12  # patterns that are worth a copy, which lets go of that room


class Collector:
    """The trace so far."""

    def __init__(self, engine: Engine, warps: int, blocks: int, budget: Budget) -> None:
        self.engine = engine
        self.warps, self.blocks = warps, blocks  # warps of a block
        self.budget = budget
        self.pattern_buffer = np.empty((LISTED, PATTERN_BYTES // WORD), np.int64)
        self.base, self.pattern, self.space = (Growing(kind, ACCESSES) for kind in (np.uint64, np.int32, np.uint8))
        self.access_count = np.zeros((blocks, warps), np.int64)
        self.held = digest.new_patterns(1 << 10)  # patterns of the blocks that have not ended
        self.patterns = digest.new_patterns(PATTERNS, 1 << 14)
        self.by_block = engine.traced and counts_by_block(blocks, len(engine.kernel.instructions))
        self.paths = Paths(engine, warps * blocks, warps if self.by_block else 0)

    def buffers(self, rows: NDArray[np.int64], many: bool) -> TraceBuffers:
        """Buffers of a block, one of `many` that are in flight at a time."""
        wait_room = WAIT_ROOM // WORD if any(self.engine.flow.waiting.only) else 0
        paths, records = (FEWEST if many else size // self.warps for size in (PATHS, RECORDS))
        found = TraceBuffers(rows, paths, records, max(wait_room, MAX_SEGMENT))
        rows[:, Slot.PATTERN_END] = self.pattern_buffer.ctypes.data + self.pattern_buffer.nbytes
        return found

    def take(self, buffers: TraceBuffers, ends: NDArray[np.int64], position: int, listed: int) -> None:
        """Take over what the blocks from `position` on, which have ended, left: up to these `places` [n, W, 3].

        `listed` counts the patterns listed since `forget_listed`.
        """
        if not len(ends):
            return
        starts = np.concatenate([buffers.starts[None], ends[:-1]])
        path, record = ((starts[..., c].ravel(), ends[..., c].ravel()) for c in (END_PATH, END_RECORD))
        self.access_count[position : position + len(ends)] = (record[1] - record[0]).reshape(-1, self.warps)
        self._decode(buffers, *record, listed)
        guarded = ends[..., END_GUARDED].ravel()
        self.paths.take(buffers.path.reshape(-1), *path, guarded, position * self.warps)

    def hold(self, buffers: Sequence[TraceBuffers], listed: int) -> None:
        """Hold back the patterns that these blocks, which have not been taken, refer to; then they may be forgotten."""
        numbers = np.full(max(listed, 1), -1, np.int32)
        raw = 0
        for each in buffers:
            used = each.used()
            if used and listed:
                headers = each.header.reshape(-1)
                start, end = each.starts[:, END_RECORD], each.now()[:, END_RECORD]
                for first, last in zip((start + each.held).tolist(), end.tolist(), strict=True):
                    self._hold(headers, first, last, listed, numbers)
                each.held = end - start
            raw += used
        patterns = int(self.patterns.used[0] + self.held.used[0])
        self._check_budget(self.paths.nbytes + raw + 13 * self.base.used + 264 * patterns)

    def _hold(self, headers: NDArray[np.int64], at: int, end: int, listed: int, numbers: NDArray[np.int32]) -> None:
        while at < end:
            h = self.held
            at = digest.hold_records(
                headers, at, end, self.pattern_buffer[:listed], numbers, h.offset, h.mask, h.table, h.used
            )
            if at < end:
                self.held = digest.grow_patterns(h)

    def forget_held(self) -> None:
        """All blocks that had held patterns back are taken."""
        digest.clear_patterns(self.held)

    def forget_listed(self, state: NDArray[np.int64], sites: NDArray[np.int64]) -> None:
        """No access that is not taken refers to a listed pattern: their buffer is empty again."""
        state[State.PATTERN] = self.pattern_buffer.ctypes.data
        state[State.NUMBER] = 0
        sites[:, SITE_MASK] = 0  # no place has listed a pattern

    def _decode(self, buffers: TraceBuffers, start: NDArray[np.int64], end: NDArray[np.int64], listed: int) -> None:
        """Append the accesses of these parts of the buffers."""
        total = int((end - start).sum())
        for array in (self.base, self.pattern, self.space):
            array.room(total)
        held = int(self.held.used[0])
        numbers, held_numbers = (np.full(max(count, 1), -1, np.int32) for count in (listed, held))
        at, part, k = self.base.used, 0, -1
        while part < len(start):
            part, k, at = digest.read_accesses(
                buffers.header.reshape(-1), buffers.base.reshape(-1), start, end, part, k,
                self.pattern_buffer[:listed], numbers, self.held.offset[:held], self.held.mask[:held], held_numbers,
                self.base.data.view(np.int64), self.pattern.data, self.space.data, at, *self.patterns,
            )  # fmt: skip
            if part < len(start):
                self.patterns = digest.grow_patterns(self.patterns)
        for array in (self.base, self.pattern, self.space):
            array.used = at

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
        memory: DeviceMemory,
        warnings: tuple[str, ...],
        printed: str,
    ) -> Trace:
        """The finished trace. `guarded` [n] are the thread counts of guarded instructions, `marks` [blocks or 0, n] the
        same counts at the end of every block, where threads are counted by block."""
        self._check_budget(self.paths.expanded_bytes())
        path_start, path_pc = self.paths.expand()
        by_block = np.diff(marks, axis=0, prepend=0) if self.by_block else guarded[None]
        executed, threads = self.paths.counts(by_block)
        used = int(self.patterns.used[0])
        offset = self.patterns.offset[:used]
        return Trace(
            blocks=blocks,
            path_start=path_start,
            path_pc=path_pc,
            warp_path=self.paths.warp_path,
            warp_block=np.repeat(np.arange(self.blocks, dtype=np.int32), self.warps),
            warp_threads=self.paths.warp_threads,
            access_start=np.concatenate(([0], np.cumsum(self.access_count.ravel()))).astype(np.int64),
            access_base=self.base.content,
            access_pattern=self.pattern.content,
            access_space=self.space.content,
            pattern_offset=offset.copy() if used < FEW else offset,
            pattern_mask=self.patterns.mask[:used].astype(np.uint32),
            pc_executed=executed,
            pc_threads=threads.sum(axis=0),
            ranges=memory.ranges(),
            warnings=warnings,
            printed=printed,
            block_threads=threads if self.by_block else None,
        )
