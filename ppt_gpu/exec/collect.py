"""Collects a run's trace: takes over the raw buffers whenever they are full, and builds the `Trace` at the end.

Blocks run one after another, so all but the last block of a buffer have ended: their warps are decoded in warp order.
The records of a block that a full buffer cut in two wait until it ends.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.errors import BudgetError
from ppt_gpu.exec import digest
from ppt_gpu.exec.budget import Budget
from ppt_gpu.exec.collect_paths import Paths
from ppt_gpu.exec.digest_paths import turn_columns, warp_order
from ppt_gpu.exec.growing import Growing
from ppt_gpu.exec.jit_access import PATTERN_BYTES, RECORD_BYTES, SITE_MASK
from ppt_gpu.exec.jit_compile import PATH_RECORD, Engine
from ppt_gpu.exec.jit_context import Slot
from ppt_gpu.exec.memory import DeviceMemory
from ppt_gpu.exec.schedule import (
    TURN_RECORD,
    TURN_RECORD_END,
    TURN_WARP,
    State,
)
from ppt_gpu.exec.trace import Trace, counts_by_block
from ppt_gpu.units import format_bytes

PATHS = 1 << 17  # path records of 8 B in the buffer
RECORDS = 1 << 17  # access records of 16 B: few enough to be read back from the caches
_PATH_SHIFT, _RECORD_SHIFT = PATH_RECORD.bit_length() - 1, RECORD_BYTES.bit_length() - 1
ACCESSES = 1 << 22  # room for decoded accesses at first; untouched room costs nothing
LISTED = 1 << 14  # listed patterns of 256 B; a record has 16 bits for their number
PATTERNS = 1 << 20  # room for patterns at first; untouched room costs nothing here either
FEW = 1 << 12  # patterns that are worth a copy, which lets go of that room
_NO_LANES = np.zeros(1, np.int64)  # records that are not held back have the masks of their patterns themselves


class Collector:
    """The trace so far."""

    def __init__(self, engine: Engine, warps: int, blocks: int, budget: Budget) -> None:
        self.engine = engine
        self.warps, self.blocks = warps, blocks  # warps of a block
        self.budget = budget
        self.path_buffer = np.empty((PATHS, 2), np.uint32)
        self.record_buffer = np.empty((RECORDS, 2), np.int64)
        self.pattern_buffer = np.empty((LISTED, PATTERN_BYTES // 8), np.int64)
        self.base, self.pattern, self.space = (Growing(kind, ACCESSES) for kind in (np.uint64, np.int32, np.uint8))
        self.access_count = np.zeros(warps * blocks, np.int64)
        self.waiting = Growing(np.int64)  # records of a block that has not ended, two words each
        self.waiting_parts: list[NDArray[np.int64]] = []  # [3, n] warp, first record, end
        self.held = digest.new_patterns(1 << 10)  # patterns of the records that wait
        self.patterns = digest.new_patterns(PATTERNS, 1 << 14)
        self.by_block = engine.traced and counts_by_block(blocks, len(engine.kernel.instructions))
        self.paths = Paths(engine, warps * blocks, warps if self.by_block else 0)

    def reset(self, state: NDArray[np.int64], rows: NDArray[np.int64], sites: NDArray[np.int64]) -> None:
        """Empty buffers for the next stretch of the run."""
        for cursor, end, buffer in (
            (State.PATH, Slot.PATH_END, self.path_buffer),
            (State.RECORD, Slot.RECORD_END, self.record_buffer),
            (State.PATTERN, Slot.PATTERN_END, self.pattern_buffer),
        ):
            state[cursor] = buffer.ctypes.data
            rows[:, end] = buffer.ctypes.data + buffer.nbytes
        state[State.NUMBER] = state[State.SEGMENTS] = 0
        sites[:, SITE_MASK] = 0  # listed patterns end with their buffer

    def take(self, turns: NDArray[np.int64], ended: int, listed: int) -> None:
        """Take over the buffers: `turns` are the turns since last time, `listed` counts the patterns listed since.

        The first `ended` blocks have ended. Blocks from there on may have taken turns; they all wait until a later
        call without turns says that they have ended.
        """
        columns = turn_columns(
            turns, self.path_buffer.ctypes.data, _PATH_SHIFT, self.record_buffer.ctypes.data, _RECORD_SHIFT
        )
        self._accesses(columns, ended, listed)
        self.paths.take(self.path_buffer, columns, ended * self.warps)
        patterns = int(self.patterns.used[0] + self.held.used[0])
        self._check_budget(self.paths.nbytes + self.waiting.nbytes + 13 * self.base.used + 264 * patterns)

    def _accesses(self, turns: NDArray[np.int64], ended: int, listed: int) -> None:
        warp = turns[TURN_WARP]
        cut = int(np.searchsorted(warp, ended * self.warps))  # turns from here on are of the running block
        resumed = 0
        if self.waiting_parts:  # turns below `resumed` are of the block that began in an earlier buffer
            block = int(self.waiting_parts[0][0, 0]) // self.warps
            resumed = int(np.searchsorted(warp, (block + 1) * self.warps))
            self._wait(turns[:, :resumed], listed)
            if block < ended:
                self._decode_waiting()
        done = turns[:, resumed : max(cut, resumed)]
        if done.size:
            words, (start, end) = self.record_buffer, done[[TURN_RECORD, TURN_RECORD_END]]
            self._decode(words, done[TURN_WARP], start, end, self.pattern_buffer[:listed], _NO_LANES)
        self._wait(turns[:, max(cut, resumed) :], listed)

    def _wait(self, turns: NDArray[np.int64], listed: int) -> None:
        """Keep the records of a block that has not ended, and the patterns that they refer to."""
        if not turns.size:
            return
        first, end = int(turns[TURN_RECORD, 0]), int(turns[TURN_RECORD_END, -1])  # turns lie one after another
        parts = turns[[TURN_WARP, TURN_RECORD, TURN_RECORD_END]]
        parts[1:] += self.waiting.used // 2 - first
        words = self.record_buffer[first:end].copy()
        numbers = np.full(max(listed, 1), -1, np.int32)
        at = 0
        while at < len(words):
            h = self.held
            at = digest.hold_records(
                words, at, self.pattern_buffer[:listed], numbers, h.offset, h.mask, h.table, h.used
            )
            if at < len(words):
                self.held = digest.grow_patterns(h)
        self.waiting.append(words.ravel())
        self.waiting_parts.append(parts)

    def _decode_waiting(self) -> None:
        """Append the accesses that wait: their block has ended."""
        warp, start, end = np.concatenate(self.waiting_parts, axis=1)
        held = self.held
        used = int(held.used[0])
        self._decode(self.waiting.content.reshape(-1, 2), warp, start, end, held.offset[:used], held.mask[:used])
        self.waiting_parts, self.waiting.used = [], 0
        digest.clear_patterns(held)

    def _decode(
        self,
        words: NDArray[np.int64],
        warp: NDArray[np.int64],
        start: NDArray[np.int64],
        end: NDArray[np.int64],
        listed: NDArray[np.int64],
        lanes: NDArray[np.int64],
    ) -> None:
        """Append the accesses of parts (warp, first, end) in warp order."""
        order = warp_order(warp)
        total = int((end - start).sum())
        for array in (self.base, self.pattern, self.space):
            array.room(total)
        numbers = np.full(max(len(listed), 1), -1, np.int32)
        at, free, k, record = self.base.used, self.base.used + total, 0, -1
        while at < free or k < len(order):
            k, record, at = digest.read_parts(
                words, warp, start, end, order, k, record, listed, lanes, numbers, self.access_count,
                self.base.data, self.pattern.data, self.space.data, at, *self.patterns,
            )  # fmt: skip
            if k < len(order):
                self.patterns = digest.grow_patterns(self.patterns)
        for array in (self.base, self.pattern, self.space):
            array.used = free

    def _check_budget(self, size: int) -> None:
        if size > self.budget.trace:
            raise BudgetError(
                f"the trace of kernel '{self.engine.kernel.name}' has {format_bytes(size)}, "
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
            access_start=np.concatenate(([0], np.cumsum(self.access_count))).astype(np.int64),
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
