"""Collects a trace in plain Python: what each warp executed, in order, then shared paths and patterns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.emulator.memory.mbarrier_word import SYNC_SPACE
from ppt_gpu.emulator.trace.trace import Trace, counts_by_block
from ppt_gpu.spec.gpu import MEMORY_SPACES
from ppt_gpu.workload.box import Box
from ppt_gpu.workload.workload import Range

Pattern = tuple[int, tuple[int, ...]]  # mask, offsets from the lowest active lane


@dataclass
class Recorder:
    """One warp's record."""

    instructions: int  # static
    path: list[int] = field(default_factory=list)
    threads: int = 0
    bases: list[int] = field(default_factory=list)
    patterns: list[Pattern] = field(default_factory=list)
    spaces: list[int] = field(default_factory=list)
    executed: NDArray[np.int64] = field(init=False)  # [static instructions] warp executions
    pc_threads: NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        self.executed = np.zeros(self.instructions, np.int64)
        self.pc_threads = np.zeros(self.instructions, np.int64)

    def instruction(self, index: int, threads: int) -> None:
        """The warp executed instruction `index` with `threads` active lanes."""
        self.path.append(index)
        self.threads += threads
        self.executed[index] += 1
        self.pc_threads[index] += threads

    def mark(self) -> tuple[Any, ...]:
        """What is recorded so far, for `undo`."""
        return len(self.path), self.threads, len(self.bases), self.executed.copy(), self.pc_threads.copy()

    def undo(self, mark: tuple[Any, ...]) -> None:
        """Forget what was recorded since then."""
        length, self.threads, accesses, self.executed, self.pc_threads = mark
        del self.path[length:], self.bases[accesses:], self.patterns[accesses:], self.spaces[accesses:]

    def access(self, space: str, addresses: NDArray[np.uint64], active: NDArray[np.bool_]) -> None:
        """The lanes in `active` accessed `addresses`; without any, base, offsets and mask are 0."""
        lanes = np.flatnonzero(active).tolist()
        base = int(addresses[lanes[0]]) if lanes else 0
        offsets = [0] * len(active)
        for lane in lanes:
            offsets[lane] = int(addresses[lane]) - base
        self.bases.append(base)
        self.patterns.append((sum(1 << lane for lane in lanes), tuple(offsets)))
        self.spaces.append(MEMORY_SPACES.index(space))

    def words(self, words: NDArray[np.uint64], active: NDArray[np.bool_]) -> None:
        """The lanes in `active` arrived or waited; `words` as in `ppt_gpu.emulator.memory.mbarrier_word`."""
        self.access(MEMORY_SPACES[SYNC_SPACE], words, active)

    def box(self, box: Box | None) -> None:
        """A bulk copy read or wrote a box of global memory, or nothing."""
        self.bases.append(box.start if box else 0)
        self.patterns.append((box.mask, box.words()) if box else (0, (0,) * 32))
        self.spaces.append(MEMORY_SPACES.index("global"))


def build_trace(
    blocks: Sequence[int],
    recorders: Sequence[Recorder],
    instructions: int,
    warps_per_block: int,
    ranges: tuple[Range, ...],
    warnings: tuple[str, ...],
    printed: str,
) -> Trace:
    """The trace of all warps, in order of block and warp. Paths and patterns are numbered by first appearance."""
    paths: dict[tuple[int, ...], int] = {}
    warp_path = [paths.setdefault(tuple(r.path), len(paths)) for r in recorders]
    patterns: dict[Pattern, int] = {}
    access_pattern = [patterns.setdefault(pattern, len(patterns)) for r in recorders for pattern in r.patterns]
    starts = np.cumsum([0, *(len(p) for p in paths)])
    threads = np.zeros((len(blocks), instructions), np.int64)
    for number, recorder in enumerate(recorders):
        threads[number // warps_per_block] += recorder.pc_threads
    return Trace(
        blocks=np.array(blocks, np.int64),
        path_start=starts.astype(np.int64),
        path_pc=np.array([pc for path in paths for pc in path], np.int32),
        warp_path=np.array(warp_path, np.int32),
        warp_block=np.repeat(np.arange(len(blocks), dtype=np.int32), warps_per_block),
        warp_threads=np.array([r.threads for r in recorders], np.int64),
        access_start=np.cumsum([0, *(len(r.bases) for r in recorders)]).astype(np.int64),
        access_base=np.array([b for r in recorders for b in r.bases], np.uint64),
        access_pattern=np.array(access_pattern, np.int32),
        access_space=np.array([s for r in recorders for s in r.spaces], np.uint8),
        pattern_offset=np.array([offsets for _, offsets in patterns], np.int64).reshape(-1, 32),
        pattern_mask=np.array([mask for mask, _ in patterns], np.uint32),
        pc_executed=sum((r.executed for r in recorders), np.zeros(instructions, np.int64)),
        pc_threads=threads.sum(axis=0),
        ranges=ranges,
        warnings=warnings,
        printed=printed,
        block_threads=threads if counts_by_block(len(blocks), instructions) else None,
    )
