"""Lines that host copies and earlier launches left in the L2, and which a launch still finds when it comes to them.

Under LRU a line is gone once as many other lines have been used after it as the L2 holds: those used after it by the
earlier launches (its place in their order), and those that this launch touched first and that are not among these. How
many the whole grid has touched when a block starts follows from the block's number; which share of them is not among
the more recent ones is that of the lines that the simulated blocks before it touched.

Some L2s keep written lines longer (`l2.dirty_share`). No more than this share of their lines is dirty: a write beyond
it has some other dirty line written back, any of them. And a new line takes the place of the clean one that was used
least recently among the older half; only where there is none, a dirty one's. So a dirty line stays until all lines of
the older half are dirty, and one that has been written back goes as under LRU. So does one that is written again before
it has been read (as measured: validation/RESULTS.md).

Where it is known which lines share a set of the L2, a line is gone once as many others of its set have been used as
that has ways.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.emulator.trace.identity import digest
from ppt_gpu.sm.l2_sharing.l2_sets import L2Sets
from ppt_gpu.workload.workload import Range

#: moments of a launch at which the lines touched so far are looked at
MOMENTS = 16
#: share of an L2 with a limit for dirty lines in which a new line looks for a clean one to replace
OLDER = 0.5
#: rounds of which each draws other lines to be written back; few, so that launches in a loop leave the same again
ROUNDS = 4
#: times what an L2 holds, among the last of which are all lines that its sets hold
UNEVEN = 4


@dataclass(frozen=True)
class Course:
    """How a launch goes through the L2: of each of L lines, in the order of their first uses."""

    found: NDArray[np.bool_]  # [L] there when the launch comes to it
    dirty: NDArray[np.bool_]  # [L] and not written back yet
    lost: NDArray[np.bool_]  # [L] was dirty when the launch began, and was pushed out
    cleaned: NDArray[np.float64]  # [L] lines that had been written back for the limit by then
    cleaned_at_end: float


@dataclass(frozen=True)
class LeftLines:
    """N lines of an L2 with room for `capacity` of them, and then written ones that are there nevertheless."""

    address: NDArray[np.uint64]  # [N] the one used last first
    written: NDArray[np.uint8]  # [N] masks of the sectors not yet written back
    unread: NDArray[np.bool_]  # [N] written by its last use
    capacity: int
    dirty_capacity: int = 0  # lines that can be dirty at a time; 0: all, and they go as others do
    round: int = 0  # of ROUNDS
    sets: L2Sets | None = None  # None: any line can be where any other is; not with a limit for dirty lines

    @classmethod
    def copied(
        cls, ranges: Sequence[Range], capacity: int, line: int, dirty_capacity: int = 0, sets: L2Sets | None = None
    ) -> LeftLines:
        """What host copies left: at most `capacity` lines of `line` bytes, the last ones; the last range came last."""
        found, room = [np.zeros(0, np.uint64)], capacity if sets is None else UNEVEN * capacity
        for area in reversed([area for area in ranges if area.copied]):
            first, end = area.start // line, -(-(area.start + area.bytes) // line)
            first = max(first, end - room)
            found.append(np.arange(first, end, dtype=np.uint64)[::-1] * np.uint64(line))
            room -= end - first
        address = np.concatenate(found)
        if sets is not None:
            address = address[sets.rank(address) < sets.ways]
        clean, unread = np.zeros(len(address), np.uint8), np.zeros(len(address), np.bool_)
        return cls(address, clean, unread, capacity, dirty_capacity, sets=sets)

    @cached_property
    def digest(self) -> str:
        """Equal for equal content."""
        lines = self.address.tobytes(), self.written.tobytes(), self.unread.tobytes()
        return digest(*lines, self.capacity, self.dirty_capacity, self.round)

    @property
    def dirty(self) -> float:
        """The written sectors of a line of the L2, in the mean of all that it has room for."""
        there = len(self.written) if self.dirty_capacity else self.capacity
        return float(np.bitwise_count(self.written[:there]).sum()) / max(self.capacity, 1)

    @cached_property
    def dirty_lines(self) -> int:
        """Lines with a written sector."""
        return int(np.count_nonzero(self.written))

    def used(self, address: NDArray[np.uint64], written: NDArray[np.uint8], blocks_before: float = 0.0) -> LeftLines:
        """What is left after these lines have been used, the last one last. written: masks of sectors.

        blocks_before: blocks that the launch ran before those that use them, as a multiple of these, and like them.
        """
        if not len(address):
            return self
        lines, first, line = np.unique(address, return_index=True, return_inverse=True)
        writes = np.zeros(len(lines), np.bool_)
        np.logical_or.at(writes, line, written > 0)
        order = np.argsort(first, kind="stable")
        touched = np.arange(len(order), dtype=np.float64) + blocks_before * len(order)
        course = self.course(lines[order], touched, writes[order])
        end = course.cleaned_at_end
        kept = self.written.copy()
        place = self.places(lines[order])
        stands = place < len(kept)
        lost = stands & ~(course.dirty if self.dirty_capacity else course.found)
        kept[place[lost]] = 0
        since = np.zeros(len(kept))
        rewritten = stands & writes[order]
        since[place[rewritten]] = course.cleaned[rewritten]
        kept[~self._stays_dirty(self.address, end - since)] = 0
        at, when = np.empty(len(lines)), np.empty(len(lines))
        at[order], when[order] = course.cleaned, np.arange(len(order))
        stays = self._stays_dirty(address, end - at[line])
        if self.dirty_capacity:
            share = float(np.mean(writes))
            stays &= (len(lines) - when[line]) * share <= self._oldest(share)
        now = np.where(stays, written, 0).astype(np.uint8)
        return self._joined(address, written > 0, now, kept, self.round + (end > 0.0))

    def _joined(
        self, address: NDArray[np.uint64], unread: NDArray[np.bool_], now: NDArray[np.uint8], kept: NDArray[np.uint8],
        rounds: int,
    ) -> LeftLines:  # fmt: skip
        """These uses, the last one last, then the lines that stood here before. now, kept: masks of dirty sectors."""
        all_lines = np.concatenate((address[::-1], self.address))
        all_unread = np.concatenate((unread[::-1], self.unread))
        _, first, line = np.unique(all_lines, return_index=True, return_inverse=True)
        dirty = np.zeros(len(first), np.uint8)
        np.bitwise_or.at(dirty, line, np.concatenate((now[::-1], kept)).astype(np.uint8))
        order = np.argsort(first, kind="stable")
        unread = all_unread[first[order]]
        stays = (unread | (dirty[order] > 0)) & (np.cumsum(unread) <= self.capacity) & bool(self.dirty_capacity)
        stays |= self._depth_of(all_lines[first[order]]) < self.capacity
        order = order[stays]
        lines = all_lines[first[order]], dirty[order], all_unread[first[order]]
        return LeftLines(*lines, self.capacity, self.dirty_capacity, rounds % ROUNDS, self.sets)

    def _depth_of(self, address: NDArray[np.uint64]) -> NDArray[np.int64]:
        """[L] of lines in the order of their last uses, how many others were used after each; in its set, for each
        set of the L2."""
        if self.sets is None:
            return np.arange(len(address))
        return self.sets.rank(address) * (self.capacity // self.sets.ways)

    @cached_property
    def _depth(self) -> NDArray[np.int64]:
        """[N + 1] of the lines here, and of one that is not."""
        return np.append(self._depth_of(self.address), len(self.address))

    def _stays_dirty(self, address: NDArray[np.uint64], cleaned: NDArray[np.float64]) -> NDArray[np.bool_]:
        """[L] dirty lines that are not among those that so many write-backs for the limit took, any each time."""
        if not self.dirty_capacity:
            return np.ones(len(address), np.bool_)
        mixed = (address ^ np.uint64(self.round << 56)) * np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
        drawn = (mixed >> np.uint64(40)).astype(np.float64) / (1 << 24)
        return drawn < np.exp(-cleaned / self.dirty_capacity)

    def places(self, address: NDArray[np.uint64]) -> NDArray[np.int64]:
        """[L] where each line stands, N for one that is not there."""
        order = np.argsort(self.address, kind="stable")
        found = np.searchsorted(self.address, address, sorter=order)
        inside = found < len(order)
        place = np.full(len(address), len(order), np.int64)
        place[inside] = order[found[inside]]
        if len(order):
            absent = self.address[np.minimum(place, len(order) - 1)] != address
            place[absent] = len(order)
        return place

    def course(
        self, address: NDArray[np.uint64], touched: NDArray[np.float64], writes: NDArray[np.bool_], most: float = np.inf
    ) -> Course:
        """How a launch finds these lines when it comes to them.

        touched [L]: lines that the whole grid has touched before it comes to each; writes [L]: lines that it writes.
        most: lines that there are; blocks that come to the same ones again push out no more.
        """
        place = self.places(address)
        there = place < len(self.address)
        unread_before = np.cumsum(np.append(self.unread, False))[place]  # one more than its place among the unread
        written_share = float(np.mean(writes)) if len(writes) else 0.0
        oldest = self._oldest(written_share)
        lasts = unread_before + np.minimum(touched, most) * written_share <= oldest
        was_dirty = np.append(self.written > 0, False)[place]
        rewrites = writes & np.append(self.unread, False)[place]
        moment = _moments(touched)
        before = np.zeros(0, np.int64)  # places of the lines touched earlier, sorted
        found, dirty = np.zeros((2, len(address)), np.bool_)
        cleaned = np.zeros(len(address))
        lost = was_dirty & ~lasts
        named = float(np.mean(was_dirty)) * (most if np.isfinite(most) else len(address)) if len(address) else 0.0
        unnamed = max(1.0 - named / max(self.dirty_lines, 1), 0.0)  # share of the dirty lines that it does not come to
        known, more_dirty = 0.0, 0.0  # lines touched so far, and how many more are dirty than before
        share = written_share  # of the latest touched ones
        for number in range(MOMENTS):
            now = np.flatnonzero(moment == number)
            if len(now) == 0:
                continue
            begins = min(float(touched[now].min()), most)
            more_dirty, known = more_dirty + share * (begins - known), begins
            newer = np.searchsorted(before, place[now], side="right") / max(len(before), 1)
            others = np.minimum(touched[now] * (1.0 - newer), np.maximum(most - 1.0 - place[now], 0.0))
            found[now] = there[now] & (self._depth[place[now]] + others < self.capacity)
            cleaned[now] = self._cleaned(more_dirty - self._aged(begins * written_share, oldest, unnamed))
            lost[now] |= was_dirty[now] & rewrites[now] & ~found[now]
            dirty[now] = was_dirty[now] & ~lost[now] & self._stays_dirty(address[now], cleaned[now])
            share = float(np.mean(writes[now] & ~dirty[now])) - float(np.mean(lost[now]))
            before = np.sort(np.concatenate((before, place[now])))
        if self.dirty_capacity:
            found |= dirty
        ends = min(float(touched.max(initial=-1.0)) + 1.0, most)
        more_dirty += share * max(ends - known, 0.0) - self._aged(ends * written_share, oldest, unnamed)
        return Course(found, dirty, lost, cleaned, self._cleaned(more_dirty))

    def _oldest(self, written_share: float) -> float:
        """How many lines are written after a dirty one before it is pushed out, where they are this share of all."""
        clean = (1.0 - OLDER) * (1.0 - written_share)  # those of the younger half, which stay, too
        return self.capacity * (1.0 - clean)

    def _aged(self, written: float, oldest: float, unnamed: float) -> float:
        """Dirty lines that so many written ones push out; of those here the share that the launch does not name."""
        of_these = len(self._dirty_ages) - int(np.searchsorted(self._dirty_ages, oldest - written, side="right"))
        return max(written - oldest, 0.0) + unnamed * of_these

    @cached_property
    def _dirty_ages(self) -> NDArray[np.int64]:
        """Of each dirty line how many unread ones were used after it, and itself; rising."""
        return np.cumsum(self.unread, dtype=np.int64)[self.written > 0]

    def _cleaned(self, more_dirty: float) -> float:
        """Lines written back for the limit when so many more than at the beginning of the launch would be dirty."""
        return max(self.dirty_lines + more_dirty - self.dirty_capacity, 0.0) if self.dirty_capacity else 0.0


def _moments(touched: NDArray[np.float64]) -> NDArray[np.int64]:
    """[L] which of MOMENTS parts of the launch, of as many lines each; what is touched together is in one part."""
    order = np.argsort(touched, kind="stable")
    _, first = np.unique(touched[order], return_index=True)
    begins = np.zeros(len(touched), np.int64)
    begins[first] = first
    moment = np.empty(len(touched), np.int64)
    moment[order] = np.maximum.accumulate(begins) * MOMENTS // max(len(touched), 1)
    return moment
