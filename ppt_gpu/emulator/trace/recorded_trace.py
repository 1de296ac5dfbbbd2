"""A trace of records: accesses, patterns and the counts of blocks are made when somebody first looks at them.

Accesses that follow others of their segment (`ppt_gpu.emulator.analysis.access_groups`) leave no records, and distances
of lanes are recorded in few bits, so that a trace is several times as large as what was recorded; most of the time that
it takes to make is the system's, for fresh memory.

All accesses of a trace from those that were recorded: the others lie at known distances.

`ppt_gpu.emulator.analysis.access_groups` finds these distances while code is written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.compiled import entry
from ppt_gpu.emulator.analysis.access_groups import Groups
from ppt_gpu.emulator.memory.warp_context import FULL_MASK
from ppt_gpu.emulator.trace.digest_patterns import Stored
from ppt_gpu.emulator.trace.record_words import SPACE_BITS
from ppt_gpu.emulator.trace.trace import Trace
from ppt_gpu.emulator.trace.trace_parts import only_blocks

_SPACE = (1 << SPACE_BITS) - 1


@entry
def expand_groups(
    warp_path: NDArray[np.int32],  # [W]
    path_start: NDArray[np.int64],  # [P+1]
    path_segment: NDArray[np.int32],  # segments of the paths
    start: NDArray[np.int64],  # of `analysis.access_groups.Groups`, as the next three
    records: NDArray[np.int64],
    leader: NDArray[np.int64],
    distance: NDArray[np.int64],
    recorded: NDArray[np.int64],  # [W, 2] where the records of each warp begin and end
    record_base: NDArray[np.int64],
    record_header: NDArray[np.uint32],
    masks: NDArray[np.int64],  # of `digest_patterns.Stored`
    number: NDArray[np.int32],  # of each pattern in the trace, by its line; empty: lines are their numbers
    base: NDArray[np.int64],  # [A] room for all accesses
    pattern: NDArray[np.int32],
    space: NDArray[np.uint8],
) -> int:
    """Write the accesses of all warps. Returns the number of warps whose records are those that their paths make."""
    at = np.uint64(0)
    for w in range(len(warp_path)):
        r = recorded[w, 0]
        p = warp_path[w]
        for k in range(path_start[p], path_start[p + 1]):
            s = path_segment[np.uint64(k)]
            for j in range(start[s], start[s + 1]):
                q = np.uint64(r + leader[np.uint64(j)])
                line = np.uint64(record_header[q] >> SPACE_BITS)
                away = distance[np.uint64(j)]
                if away != 0 and masks[line] & FULL_MASK == 0:  # an access without lanes is nowhere
                    away = 0
                base[at] = record_base[q] + away
                pattern[at] = number[line] if len(number) > 0 else np.int64(line)
                space[at] = record_header[q] & _SPACE
                at += np.uint64(1)
            r += records[s]
        if r != recorded[w, 1]:
            return w
    return len(warp_path)


@entry
def expand_space(
    wanted: int,
    warp_path: NDArray[np.int32],  # as of `expand_groups`, up to `masks`
    path_start: NDArray[np.int64],
    path_segment: NDArray[np.int32],
    start: NDArray[np.int64],
    records: NDArray[np.int64],
    leader: NDArray[np.int64],
    distance: NDArray[np.int64],
    recorded: NDArray[np.int64],
    record_base: NDArray[np.int64],
    record_header: NDArray[np.uint32],
    masks: NDArray[np.int64],
    memory_start: NDArray[np.int64],  # [P+1] where the memory instructions of each path begin
    memory_pc: NDArray[np.int32],
    ends: NDArray[np.int64],  # [W] accesses up to the end of each warp
    pc: NDArray[np.int32],  # room for all accesses, as the next two
    base: NDArray[np.int64],
    header: NDArray[np.uint32],
) -> int:
    """Write the accesses of all warps to one space, with the headers of their records. Returns as `expand_groups`."""
    at = np.uint64(0)
    for w in range(len(warp_path)):
        r = recorded[w, 0]
        p = warp_path[w]
        m = memory_start[p]
        for k in range(path_start[p], path_start[p + 1]):
            s = path_segment[np.uint64(k)]
            for j in range(start[s], start[s + 1]):
                q = np.uint64(r + leader[np.uint64(j)])
                if record_header[q] & _SPACE == wanted:
                    away = distance[np.uint64(j)]
                    if away != 0 and masks[np.uint64(record_header[q] >> SPACE_BITS)] & FULL_MASK == 0:
                        away = 0
                    pc[at] = memory_pc[np.uint64(m)]
                    base[at] = record_base[q] + away
                    header[at] = record_header[q]
                    at += np.uint64(1)
                m += 1
            r += records[s]
        if r != recorded[w, 1] or m != memory_start[p + 1]:
            return w
        ends[w] = at
    return len(warp_path)


_MADE = ("access_base", "access_pattern", "access_space", "pattern_offset", "pattern_mask")
_MAKING = Lock()


@dataclass(frozen=True)
class Records:
    """R accesses that were recorded; those of warp w stand from start[w] to start[w + 1]."""

    groups: Groups
    path_start: NDArray[np.int64]  # [P+1]
    path_segment: NDArray[np.int32]  # segments of the paths
    start: NDArray[np.int64]  # [W+1]
    base: NDArray[np.uint64]  # [R] as in a trace
    header: NDArray[np.uint32]  # [R] space and pattern (`ppt_gpu.emulator.trace.record_words`)
    patterns: Stored

    @property
    def nbytes(self) -> int:
        """Bytes of what was recorded."""
        return self.base.nbytes + self.header.nbytes + self.patterns.nbytes

    def accesses(self, warp_path: NDArray[np.int32], spans: NDArray[np.int64], count: int) -> dict[str, NDArray[Any]]:
        """The arrays `_MADE` of the `count` accesses of n warps. warp_path [n]; spans [n, 2]: their records."""
        number, offset, mask = self.patterns.numbered(self.header, spans)
        return dict(zip(_MADE, (*self._expanded(warp_path, spans, count, number), offset, mask), strict=True))

    def lines(self, warp_path: NDArray[np.int32], spans: NDArray[np.int64], count: int) -> dict[str, NDArray[Any]]:
        """As `accesses`, with the lines of `patterns` as numbers, and without patterns."""
        none = np.empty((0, 32), np.int64), np.empty(0, np.uint32)
        made = self._expanded(warp_path, spans, count, np.empty(0, np.int32))
        return dict(zip(_MADE, (*made, *none), strict=True))

    def of_space(
        self, space: int, warp_path: NDArray[np.int32], memory_start: NDArray[np.int64], memory_pc: NDArray[np.int32],
        count: int,
    ) -> tuple[NDArray[Any], ...]:  # fmt: skip
        """(accesses [W] up to the end of each warp; instruction, base and pattern [n] of each; distances and masks) of
        those of the `count` accesses of all warps that go to one space, without making the others.

        memory_pc: the memory instructions on each path, from memory_start [P+1] on.
        """
        ends, pc = np.empty(len(warp_path), np.int64), np.empty(count, np.int32)
        base, header = np.empty(count, np.uint64), np.empty(count, np.uint32)
        spans, groups = np.stack([self.start[:-1], self.start[1:]], axis=1), self.groups
        done = expand_space(
            space, warp_path, self.path_start, self.path_segment, groups.start, groups.records, groups.leader,
            groups.distance, spans, self.base.view(np.int64), self.header, self.patterns.masks,
            memory_start, memory_pc, ends, pc, base.view(np.int64), header,
        )  # fmt: skip
        assert done == len(warp_path), f"warp {done} has other records than its path makes"
        used = int(ends[-1]) if len(ends) else 0
        number, offset, mask = self.patterns.numbered(header, np.array([[0, used]]))
        pattern = number[header[:used] >> np.uint32(SPACE_BITS)]
        return ends, pc[:used].copy(), base[:used].copy(), pattern, offset, mask

    def _expanded(
        self, warp_path: NDArray[np.int32], spans: NDArray[np.int64], count: int, number: NDArray[np.int32]
    ) -> tuple[NDArray[np.uint64], NDArray[np.int32], NDArray[np.uint8]]:
        base, pattern, space = np.empty(count, np.uint64), np.empty(count, np.int32), np.empty(count, np.uint8)
        groups = self.groups
        done = expand_groups(
            warp_path, self.path_start, self.path_segment, groups.start, groups.records, groups.leader, groups.distance,
            spans, self.base.view(np.int64), self.header, self.patterns.masks, number,
            base.view(np.int64), pattern, space,
        )  # fmt: skip
        assert done == len(warp_path), f"warp {done} has other records than its path makes"
        return base, pattern, space


def kept_accesses(trace: Trace) -> tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.uint32]]:
    """(start, base, header) of the records of a trace where it has them, else of its accesses: for comparisons of
    warps that take the same path, which have the same accesses if their records are the same."""
    records = trace.__dict__.get("records")
    if records is not None:
        return records.start, records.base, records.header
    header = trace.access_pattern.astype(np.uint32) << np.uint32(SPACE_BITS) | trace.access_space
    return trace.access_start, trace.access_base, header


_Making = Callable[[Records, NDArray[np.int32], NDArray[np.int64], int], dict[str, NDArray[Any]]]


@dataclass(frozen=True)
class BlockThreads:
    """How often threads executed each instruction, by block, as far as it is counted while blocks run."""

    segment_threads: NDArray[np.int64]  # [B, S]
    segment: NDArray[np.int64]  # [I] of each instruction
    guarded: tuple[int, ...]  # instructions with a guard, which count apart
    marks: NDArray[np.int64]  # [B, n] those of these so far, at the end of each block

    @property
    def nbytes(self) -> int:
        return self.segment_threads.nbytes + self.marks.nbytes

    def made(self, positions: Sequence[int] | None = None) -> NDArray[np.int64]:
        """[B, I] of all blocks, or of those at these positions."""
        of = np.arange(len(self.marks)) if positions is None else np.array(positions, np.int64)
        found = self.segment_threads[of[:, None], self.segment]
        before = np.where(of[:, None] > 0, self.marks[of - 1], 0)
        found[:, list(self.guarded)] = self.marks[of] - before
        return found


class RecordedTrace(Trace):
    """Equal to the trace of all accesses; `records` and `counts` are let go once these are made."""

    @staticmethod
    def of(records: Records, counts: BlockThreads | None, **fields: Any) -> RecordedTrace:
        """`fields`: those of a trace but for the arrays that are made from `records` and `counts`."""
        trace = object.__new__(RecordedTrace)
        trace.__dict__.update(fields, records=records, counts=counts)
        return trace

    @cached_property  # in the place of the field, whose default would be found
    def block_threads(self) -> NDArray[np.int64] | None:
        with _MAKING:
            if "block_threads" not in self.__dict__:
                counts: BlockThreads | None = self.__dict__.pop("counts", None)
                self.__dict__["block_threads"] = None if counts is None else counts.made()
            found: NDArray[np.int64] | None = self.__dict__["block_threads"]
            return found

    def __getattr__(self, name: str) -> Any:
        """Called for what is not there, or not yet."""
        if name not in _MADE:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        with _MAKING:  # other threads that ask wait for it
            records = self.__dict__.pop("records", None)
            if records is not None:
                spans = np.stack([records.start[:-1], records.start[1:]], axis=1)
                self.__dict__.update(records.accesses(self.warp_path, spans, int(self.access_start[-1])))
        return self.__dict__[name]

    def _block_threads(self, positions: Sequence[int]) -> NDArray[np.int64] | None:
        return None if self.block_threads is None else self.block_threads[list(positions)]

    def some(self, positions: Sequence[int]) -> Trace:
        """A trace of the blocks at these positions only, but for the counts of instructions: those are of all."""
        return self._of_blocks(positions, Records.accesses)

    def stored(self, positions: Sequence[int]) -> tuple[Trace, Stored | None]:
        """As `some`, and patterns: if there are any, its accesses have their lines for patterns, and it has none."""
        records: Records | None = self.__dict__.get("records")
        if records is None:
            return self.some(positions), None
        return self._of_blocks(positions, Records.lines), records.patterns

    def _of_blocks(self, positions: Sequence[int], make: _Making) -> Trace:
        found = dict(self.__dict__)
        by_block: BlockThreads | None = found.pop("counts", None)
        records: Records | None = found.pop("records", None)
        if records is None:
            return only_blocks(self, self.blocks[list(positions)].tolist())
        per_block = len(self.warp_path) // len(self.blocks)
        warps = (np.array(positions)[:, None] * per_block + np.arange(per_block)).ravel()
        counts = np.diff(self.access_start)[warps]
        spans = np.stack([records.start[warps], records.start[warps + 1]], axis=1)
        found.update(make(records, self.warp_path[warps], spans, int(counts.sum())))
        found.update(
            blocks=self.blocks[list(positions)],
            warp_path=self.warp_path[warps],
            warp_block=np.repeat(np.arange(len(positions), dtype=np.int32), per_block),
            warp_threads=self.warp_threads[warps],
            access_start=np.concatenate(([0], np.cumsum(counts))).astype(np.int64),
            block_threads=self._block_threads(positions) if by_block is None else by_block.made(positions),
        )
        return Trace(**found)
