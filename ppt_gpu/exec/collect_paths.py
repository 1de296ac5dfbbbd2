"""The paths of a run's warps: taken from the raw buffers, stored once each, expanded to instructions at the end."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.exec import digest_paths
from ppt_gpu.exec.growing import Growing
from ppt_gpu.exec.jit_compile import Engine
from ppt_gpu.exec.recorded_trace import BlockThreads

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

    @cached_property
    def _ends(self) -> NDArray[np.int64]:
        """[segments of all paths + 1] instructions before each, once all are known."""
        return sums(np.diff(self.engine.bounds)[self.known.content])

    def expanded_bytes(self) -> int:
        """Size of the instruction stream of all paths, once all are known."""
        return 4 * int(self._ends[-1])

    def access_start(self) -> NDArray[np.int64]:
        """[W+1] where the accesses of each warp begin."""
        found = np.zeros(len(self.warp_path) + 1, np.int64)
        if self.count:
            digest_paths.start_accesses(
                self.warp_path, self.start, self.known.content, self.engine.groups.start,
                np.empty(self.count, np.int64), found,
            )  # fmt: skip
        return found

    def expand(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """(start of each path, instructions of all paths)."""
        ends = self._ends
        pcs = np.empty(int(ends[-1]), np.int32)
        digest_paths.expand_paths(self.known.content, self.engine.bounds, pcs)
        return ends[self.start[: self.count + 1]], pcs

    def executed(self) -> NDArray[np.int64]:
        """[I] executions of each instruction by warps."""
        segments = len(self.engine.bounds) - 1
        warps = np.bincount(self.warp_path, minlength=self.count)[: self.count]
        weight = np.repeat(warps, np.diff(self.start[: self.count + 1]))
        found = np.bincount(self.known.content, weights=weight, minlength=segments)  # exact: far below 2^53
        return found.astype(np.int64)[self.engine.segment_of]

    def threads(self, guarded: NDArray[np.int64]) -> NDArray[np.int64]:
        """[I] executions of each instruction by threads. guarded [n]: those of guarded instructions."""
        found = self.segment_threads.sum(axis=0)[self.engine.segment_of]
        found[list(self.engine.guarded)] = guarded
        return found

    def block_threads(self, marks: NDArray[np.int64]) -> BlockThreads:
        """Executions by threads, by block. marks [blocks, n]: those of guarded instructions up to each block's end."""
        return BlockThreads(self.segment_threads, self.engine.segment_of, self.engine.guarded, marks)


def sums(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """[n+1] where each begins when so many of each lie one behind the other."""
    found = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=found[1:])
    return found
