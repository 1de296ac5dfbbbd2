"""The paths of a run's warps: taken from the raw buffers, stored once each, expanded to instructions at the end."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.exec import digest_paths
from ppt_gpu.exec.growing import Growing
from ppt_gpu.exec.jit_compile import Engine
from ppt_gpu.exec.recorded_trace import BlockThreads


class Paths:
    """Paths so far, as segments. W warps, S segments."""

    def __init__(self, engine: Engine, warps: int, per_block: int = 0) -> None:
        """per_block: warps of a block where threads are counted by block, else 0."""
        self.engine = engine
        self.known = Growing(np.int32)  # segments of the paths found
        self.count = 0
        self.start, self.hash = np.zeros(1025, np.int64), np.zeros(1024, np.int64)
        self.table = np.zeros(4096, np.int32)
        self.warp_path = np.zeros(warps, np.int32)
        self.warp_threads = np.zeros(warps, np.int64)
        segments = engine.flow.segments
        self.segment_count = np.zeros(segments, np.int64)
        self.row_warps = per_block or max(warps, 1)
        self.segment_threads = np.zeros((max(warps // self.row_warps, 1), segments), np.int64)  # [blocks or 1, S]
        code, bounds = engine.kernel.instructions, engine.flow.start
        plain = [sum(i.guard is None for i in code[bounds[s] : bounds[s + 1]]) for s in range(segments)]
        self.plain = np.array(plain, np.int64)  # instructions without a guard

    @property
    def nbytes(self) -> int:
        return self.known.nbytes

    def take(
        self,
        words: NDArray[np.int64],
        starts: NDArray[np.int64],
        ends: NDArray[np.int64],
        guarded: NDArray[np.int64],
        warp: int,
    ) -> None:
        """Take over the path records of the warps from `warp` on, see `digest_paths.read_paths`."""
        self._room(len(starts))
        part = 0
        while part < len(starts):
            self.count, part = digest_paths.read_paths(
                words, starts, ends, guarded, self.plain, warp, self.row_warps,
                self.segment_count, self.segment_threads, self.warp_threads, self.warp_path,
                self.known.data, self.start, self.hash, self.table, self.count, part,
            )  # fmt: skip
            self.known.used = int(self.start[self.count])
            if part < len(starts):
                self.known.room(len(self.known.data) - self.known.used + 1)  # twice as much

    def _room(self, warps: int) -> None:
        """Make room for one new path a warp, but for its segments."""
        wanted = self.count + warps
        if wanted + 1 > len(self.start):
            self.start, self.hash = np.resize(self.start, 2 * wanted + 1), np.resize(self.hash, 2 * wanted)
        if 2 * wanted > len(self.table):
            self.table = np.zeros(1 << (4 * wanted - 1).bit_length(), np.int32)
            for p in range(self.count):
                slot = (int(self.hash[p]) >> 3) & (len(self.table) - 1)
                while self.table[slot]:
                    slot = (slot + 1) & (len(self.table) - 1)
                self.table[slot] = p + 1

    @cached_property
    def _ends(self) -> NDArray[np.int64]:
        """[segments of all paths + 1] instructions before each, once all are known."""
        return sums(np.diff(np.array(self.engine.flow.start, np.int64))[self.known.content])

    def expanded_bytes(self) -> int:
        """Size of the instruction stream of all paths, once all are known."""
        return 4 * int(self._ends[-1])

    def accesses(self) -> NDArray[np.int64]:
        """[W] accesses of each warp."""
        if self.count == 0:
            return np.zeros(len(self.warp_path), np.int64)
        ends = sums(np.diff(self.engine.groups.start)[self.known.content])
        return np.diff(ends[self.start[: self.count + 1]])[self.warp_path]

    def expand(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """(start of each path, instructions of all paths)."""
        ends = self._ends
        pcs = np.empty(int(ends[-1]), np.int32)
        digest_paths.expand_paths(self.known.content, np.array(self.engine.flow.start, np.int64), pcs)
        return ends[self.start[: self.count + 1]], pcs

    def executed(self) -> NDArray[np.int64]:
        """[I] executions of each instruction by warps."""
        return self.segment_count[self._segment]

    def threads(self, guarded: NDArray[np.int64]) -> NDArray[np.int64]:
        """[I] executions of each instruction by threads. guarded [n]: those of guarded instructions."""
        found = self.segment_threads.sum(axis=0)[self._segment]
        found[list(self.engine.guarded)] = guarded
        return found

    def block_threads(self, marks: NDArray[np.int64]) -> BlockThreads:
        """Executions by threads, by block. marks [blocks, n]: those of guarded instructions up to each block's end."""
        return BlockThreads(self.segment_threads, self._segment, self.engine.guarded, marks)

    @cached_property
    def _segment(self) -> NDArray[np.int64]:
        """[I] the segment of each instruction."""
        return np.repeat(np.arange(len(self.segment_count)), np.diff(np.array(self.engine.flow.start)))


def sums(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """[n+1] where each begins when so many of each lie one behind the other."""
    found = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=found[1:])
    return found
