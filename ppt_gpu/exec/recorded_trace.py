"""A trace of records: the arrays of its accesses are made when somebody first looks at one of them.

Accesses that follow others of their segment (`ppt_gpu.exec.jit_groups`) leave no records, so that a trace is several
times as large as what was recorded, and most of the time that it takes to make is the system's, for fresh memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.exec.digest_groups import expand_groups
from ppt_gpu.exec.jit_groups import Groups
from ppt_gpu.exec.trace import Trace
from ppt_gpu.exec.trace_parts import only_blocks

_MADE = ("access_base", "access_pattern", "access_space")
_MAKING = Lock()


@dataclass(frozen=True)
class Records:
    """R accesses that were recorded; those of warp w stand from start[w] to start[w + 1]."""

    groups: Groups
    path_start: NDArray[np.int64]  # [P+1]
    path_segment: NDArray[np.int32]  # segments of the paths
    start: NDArray[np.int64]  # [W+1]
    base: NDArray[np.uint64]  # [R], as in a trace, like the next two
    pattern: NDArray[np.int32]
    space: NDArray[np.uint8]
    nobody: int  # the pattern without lanes, -1: there is none

    @property
    def nbytes(self) -> int:
        """Bytes of what was recorded."""
        return self.base.nbytes + self.pattern.nbytes + self.space.nbytes

    def accesses(
        self, warp_path: NDArray[np.int32], start: NDArray[np.int64], count: int
    ) -> tuple[NDArray[np.uint64], NDArray[np.int32], NDArray[np.uint8]]:
        """(bases, patterns, spaces) of the `count` accesses of n warps. warp_path [n]; start [n, 2]: their records."""
        base, pattern, space = (np.empty(count, array.dtype) for array in (self.base, self.pattern, self.space))
        groups = self.groups
        done = expand_groups(
            warp_path, self.path_start, self.path_segment, groups.start, groups.records, groups.leader, groups.distance,
            start, self.nobody, self.base.view(np.int64), self.pattern, self.space,
            base.view(np.int64), pattern, space,
        )  # fmt: skip
        assert done == len(warp_path), f"warp {done} has other records than its path makes"
        return base, pattern, space


def kept_accesses(trace: Trace) -> tuple[NDArray[Any], ...]:
    """(start, base, pattern, space) of the records of a trace where it has them, else of its accesses: for comparisons
    of warps that take the same path, which have the same accesses if their records are the same."""
    records = trace.__dict__.get("records")
    if records is not None:
        return records.start, records.base, records.pattern, records.space
    return trace.access_start, trace.access_base, trace.access_pattern, trace.access_space


class RecordedTrace(Trace):
    """Equal to the trace of all accesses; `records` are let go once these are made."""

    @staticmethod
    def of(records: Records, **fields: Any) -> RecordedTrace:
        """`fields`: those of a trace but for the arrays that are made from `records`."""
        trace = object.__new__(RecordedTrace)
        trace.__dict__.update(fields, records=records)
        return trace

    def __getattr__(self, name: str) -> Any:
        """Called for what is not there, or not yet."""
        if name not in _MADE:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        with _MAKING:  # other threads that ask wait for it
            records = self.__dict__.pop("records", None)
            if records is not None:
                spans = np.stack([records.start[:-1], records.start[1:]], axis=1)
                made = records.accesses(self.warp_path, spans, int(self.access_start[-1]))
                self.__dict__.update(zip(_MADE, made, strict=True))
        return self.__dict__[name]

    def some(self, positions: Sequence[int]) -> Trace:
        """A trace of the blocks at these positions only, but for the counts of instructions: those are of all."""
        found = dict(self.__dict__)
        records: Records | None = found.pop("records", None)
        if records is None:
            return only_blocks(self, self.blocks[list(positions)].tolist())
        per_block = len(self.warp_path) // len(self.blocks)
        warps = (np.array(positions)[:, None] * per_block + np.arange(per_block)).ravel()
        counts = np.diff(self.access_start)[warps]
        spans = np.stack([records.start[warps], records.start[warps + 1]], axis=1)
        made = records.accesses(self.warp_path[warps], spans, int(counts.sum()))
        found.update(zip(_MADE, made, strict=True))
        found.update(
            blocks=self.blocks[list(positions)],
            warp_path=self.warp_path[warps],
            warp_block=np.repeat(np.arange(len(positions), dtype=np.int32), per_block),
            warp_threads=self.warp_threads[warps],
            access_start=np.concatenate(([0], np.cumsum(counts))).astype(np.int64),
            block_threads=None if self.block_threads is None else self.block_threads[list(positions)],
        )
        return Trace(**found)
