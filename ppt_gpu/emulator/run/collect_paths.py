"""The paths of a run's warps: taken from the raw buffers, stored once each, expanded to instructions at the end."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.emulator.jit.compiler.compile import Engine
from ppt_gpu.emulator.trace import digest_paths
from ppt_gpu.emulator.trace.growing import Growing
from ppt_gpu.emulator.trace.recorded_trace import BlockThreads

PATHS = 1 << 10  # that there is room for at first


class Paths:
    """Paths so far, as segments. W warps, S segments."""

    def __init__(self, engine: Engine, warps: int, per_block: int = 0) -> None:
        """per_block: warps of a block where threads are counted by block, else 0."""
        self.engine = engine
        self.known, self.known_end = Growing(np.int32), Growing(np.int32)  # segments of the paths found
        self.count = 0
        self.start, self.hash = np.zeros(PATHS + 1, np.int64), np.zeros(PATHS, np.int64)
        self.table = np.zeros(4 * PATHS, np.int32)
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
