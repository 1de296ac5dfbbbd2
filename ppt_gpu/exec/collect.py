"""Collects a run's trace: takes over the raw buffers whenever they are full, and builds the `Trace` at the end."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.errors import BudgetError
from ppt_gpu.exec import digest
from ppt_gpu.exec.budget import Budget
from ppt_gpu.exec.jit_compile import PATH_RECORD, Engine
from ppt_gpu.exec.memory import DeviceMemory
from ppt_gpu.exec.schedule import (
    TURN_PATH,
    TURN_PATH_END,
    TURN_RECORD,
    TURN_RECORD_END,
    TURN_WARP,
)
from ppt_gpu.exec.trace import Trace
from ppt_gpu.units import format_bytes

PATH_BYTES = 1 << 20
RECORD_BYTES = 1 << 20  # a quarter of a common L2 cache, so that it is read back from there


class Growing:
    """An array with room to append; `data[:used]` is the content."""

    def __init__(self, dtype: Any) -> None:
        self.data: NDArray[Any] = np.zeros(1 << 12, dtype)
        self.used = 0

    def room(self, more: int) -> None:
        """Make sure that `more` elements fit behind the content."""
        if self.used + more > len(self.data):
            new = np.zeros(max(2 * len(self.data), self.used + more), self.data.dtype)
            new[: self.used] = self.data[: self.used]
            self.data = new

    def append(self, values: NDArray[Any]) -> None:
        self.room(len(values))
        self.data[self.used : self.used + len(values)] = values
        self.used += len(values)

    @property
    def content(self) -> NDArray[Any]:
        return self.data[: self.used]


class Collector:
    """The trace so far. W warps, S segments."""

    def __init__(self, engine: Engine, warps: int, budget: Budget) -> None:
        self.engine = engine
        self.budget = budget
        self.path_buffer = np.zeros(PATH_BYTES // 4, np.uint32)
        self.record_buffer = np.zeros(RECORD_BYTES // 8, np.int64)
        self.base, self.pattern, self.space = Growing(np.uint64), Growing(np.int32), Growing(np.uint8)
        self.access_parts = [Growing(np.int64) for _ in range(3)]  # warp, start, end
        self.pending = Growing(np.int32)  # segments of warps that have not ended
        self.pending_parts = [Growing(np.int64) for _ in range(3)]
        self.known, self.paths = Growing(np.int32), 0
        self.known_start, self.known_hash = np.zeros(1025, np.int64), np.zeros(1024, np.int64)
        self.path_table = np.zeros(4096, np.int32)
        self.patterns = digest.new_patterns(1024)
        self.site_pattern = np.zeros(max(len(engine.sites), 1), np.int32)
        self.warp_path = np.zeros(warps, np.int32)
        self.warp_threads = np.zeros(warps, np.int64)
        segments = engine.flow.segments
        self.segment_count, self.segment_threads = np.zeros(segments, np.int64), np.zeros(segments, np.int64)
        code = engine.kernel.instructions
        start = engine.flow.start
        self.plain = np.array(
            [sum(i.guard is None for i in code[start[s] : start[s + 1]]) for s in range(segments)], np.int64
        )

    def take(self, turns: NDArray[np.int64], ended_warps: int) -> None:
        """Take over the buffers. `turns` are the turns since last time; warps below `ended_warps` have ended."""
        turns = turns.copy()
        turns[:, TURN_PATH : TURN_PATH_END + 1] -= self.path_buffer.ctypes.data
        turns[:, TURN_PATH : TURN_PATH_END + 1] //= PATH_RECORD
        turns[:, TURN_RECORD : TURN_RECORD_END + 1] -= self.record_buffer.ctypes.data
        turns[:, TURN_RECORD : TURN_RECORD_END + 1] //= 8
        self._accesses(turns)
        self._paths(turns)
        self._end(ended_warps)
        self._check_budget()

    def _accesses(self, turns: NDArray[np.int64]) -> None:
        """The records of consecutive turns lie one after another, so they are read in one go."""
        if not len(turns):
            return
        start, end = int(turns[0, TURN_RECORD]), int(turns[-1, TURN_RECORD_END])
        counts = turn_accesses(self.record_buffer, turns)
        first = self.base.used
        for array in (self.base, self.pattern, self.space):
            array.room(int(counts.sum()))
        at = first
        while start < end:
            start, at = digest.read_accesses(
                self.record_buffer, start, end, self.base.data, self.pattern.data, self.space.data, at, *self.patterns,
                self.site_pattern,
            )
            if start < end:
                self.patterns = digest.grow_patterns(self.patterns)
        for array in (self.base, self.pattern, self.space):
            array.used = at
        ends = first + np.cumsum(counts)
        for array, values in zip(self.access_parts, (turns[:, TURN_WARP], ends - counts, ends), strict=True):
            array.append(values)

    def _paths(self, turns: NDArray[np.int64]) -> None:
        lengths = turns[:, TURN_PATH_END] - turns[:, TURN_PATH]
        first = self.pending.used
        self.pending.room(int(lengths.sum()))
        self.pending.used = digest.read_paths(
            self.path_buffer.reshape(-1, 2), turns, self.plain, self.pending.data, first,
            self.segment_count, self.segment_threads, self.warp_threads,
        )  # fmt: skip
        ends = first + np.cumsum(lengths)
        for array, values in zip(self.pending_parts, (turns[:, TURN_WARP], ends - lengths, ends), strict=True):
            array.append(values)

    def _end(self, ended_warps: int) -> None:
        """Number the paths of ended warps; keep the others pending."""
        warp, start, end = (array.content for array in self.pending_parts)
        whole = int(np.count_nonzero(warp < ended_warps))  # blocks run one after another: these come first
        if not whole:
            return
        self._room_for_paths(len(np.unique(warp[:whole])), int(end[whole - 1]))
        order = np.argsort(warp[:whole], kind="stable")
        self.paths = digest.cons_paths(
            self.pending.data, order, warp, start, end,
            self.known.data, self.known_start, self.known_hash, self.path_table, self.paths, self.warp_path,
        )  # fmt: skip
        self.known.used = int(self.known_start[self.paths])
        cut = int(end[whole - 1])
        rest, parts = self.pending.content[cut:].copy(), [a.content[whole:].copy() for a in self.pending_parts]
        self.pending.used = 0
        self.pending.append(rest)
        for array, values, shift in zip(self.pending_parts, parts, (0, cut, cut), strict=True):
            array.used = 0
            array.append(values - shift)

    def _room_for_paths(self, warps: int, segments: int) -> None:
        self.known.room(segments)
        wanted = self.paths + warps
        if wanted + 1 > len(self.known_start):
            self.known_start = np.resize(self.known_start, 2 * wanted + 1)
            self.known_hash = np.resize(self.known_hash, 2 * wanted)
        if 2 * wanted > len(self.path_table):
            self.path_table = np.zeros(1 << (4 * wanted - 1).bit_length(), np.int32)
            for p in range(self.paths):
                slot = (int(self.known_hash[p]) >> 3) & (len(self.path_table) - 1)
                while self.path_table[slot]:
                    slot = (slot + 1) & (len(self.path_table) - 1)
                self.path_table[slot] = p + 1

    def _check_budget(self) -> None:
        arrays = (self.base, self.pattern, self.space, self.pending, self.known, *self.access_parts)
        size = sum(array.data.nbytes for array in arrays) + self.patterns.offset.nbytes
        if size > self.budget.trace:
            self.over_budget(size)

    def over_budget(self, size: int) -> None:
        raise BudgetError(
            f"the trace of kernel '{self.engine.kernel.name}' needs more than {format_bytes(size)}, "
            f"the trace budget is {format_bytes(self.budget.trace)}",
            hint="run fewer blocks or raise the trace budget (Budget.trace)",
        )

    def trace(
        self, blocks: NDArray[np.int64], guarded: NDArray[np.int64], memory: DeviceMemory, warnings: tuple[str, ...]
    ) -> Trace:
        """The finished trace. `guarded` are the thread counts of guarded instructions."""
        path_start, path_pc = self._path_pcs()
        access_start, base, pattern, space = self._by_warp()
        executed, threads = self._counts(guarded)
        warps = len(self.warp_path)
        used = int(self.patterns.used[0])
        return Trace(
            blocks=blocks,
            path_start=path_start,
            path_pc=path_pc,
            warp_path=self.warp_path,
            warp_block=np.repeat(np.arange(len(blocks), dtype=np.int32), warps // max(len(blocks), 1)),
            warp_threads=self.warp_threads,
            access_start=access_start,
            access_base=base,
            access_pattern=pattern,
            access_space=space,
            pattern_offset=self.patterns.offset[:used].copy(),
            pattern_mask=self.patterns.mask[:used].astype(np.uint32),
            pc_executed=executed,
            pc_threads=threads,
            ranges=memory.ranges(),
            warnings=warnings,
        )

    def _path_pcs(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        bounds = np.array(self.engine.flow.start, np.int64)
        segments = self.known.content
        ends = np.concatenate(([0], np.cumsum(np.diff(bounds)[segments])))
        path_start = ends[self.known_start[: self.paths + 1]].astype(np.int64)
        if 4 * int(ends[-1]) > self.budget.trace:
            self.over_budget(4 * int(ends[-1]))
        pcs = np.zeros(int(ends[-1]), np.int32)
        digest.expand_paths(segments, bounds, pcs)
        return path_start, pcs

    def _by_warp(self) -> tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.int32], NDArray[np.uint8]]:
        warp, start, end = (array.content for array in self.access_parts)
        counts = np.bincount(warp, weights=end - start, minlength=len(self.warp_path)).astype(np.int64)
        access_start = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
        new = tuple(np.zeros(a.used, a.data.dtype) for a in (self.base, self.pattern, self.space))
        order = np.argsort(warp, kind="stable")
        digest.gather_by_warp(order, start, end, self.base.data, self.pattern.data, self.space.data, *new)
        return access_start, *new

    def _counts(self, guarded: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        lengths = np.diff(np.array(self.engine.flow.start))
        executed = np.repeat(self.segment_count, lengths)
        threads = np.repeat(self.segment_threads, lengths)
        threads[list(self.engine.guarded)] = guarded
        return executed, threads


def turn_accesses(words: NDArray[np.int64], turns: NDArray[np.int64]) -> NDArray[np.int64]:
    """Access records of each turn."""
    counts = np.zeros(len(turns), np.int64)
    digest.count_turns(words, turns, counts)
    return counts
