"""Lines that host copies and earlier launches left in the L2, and which a launch still finds when it comes to them.

Under LRU a line is gone once as many other lines have been used after it as the L2 holds: those used after it by the
earlier launches (its place in their order), and those that this launch touched first and that are not among these. How
many the whole grid has touched when a block starts follows from the block's number; which share of them is not among
the more recent ones is that of the lines that the simulated blocks before it touched.

Of some L2s launches find more of what others wrote and nobody has read since (`l2.unread_share`): such a line is there
until as many others as this share of the L2 holds have been written after it and not been read either.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.exec.identity import digest
from ppt_gpu.exec.trace import Range

#: moments of a launch at which the lines touched so far are looked at
MOMENTS = 16


@dataclass(frozen=True)
class LeftLines:
    """N lines of an L2 with room for `capacity` of them, and then unread ones that are there nevertheless."""

    address: NDArray[np.uint64]  # [N] the one used last first
    written: NDArray[np.uint8]  # [N] masks of the sectors not yet written back
    unread: NDArray[np.bool_]  # [N] written by its last use
    capacity: int
    unread_capacity: int = 0  # unread lines that are there, whatever has been read since

    @classmethod
    def copied(cls, ranges: Sequence[Range], capacity: int, line: int, unread_capacity: int = 0) -> LeftLines:
        """What host copies left: at most `capacity` lines of `line` bytes, the last ones; the last range came last."""
        found, room = [np.zeros(0, np.uint64)], capacity
        for area in reversed([area for area in ranges if area.copied]):
            first, end = area.start // line, -(-(area.start + area.bytes) // line)
            first = max(first, end - room)
            found.append(np.arange(first, end, dtype=np.uint64)[::-1] * np.uint64(line))
            room -= end - first
        address = np.concatenate(found)
        clean, unread = np.zeros(len(address), np.uint8), np.zeros(len(address), np.bool_)
        return cls(address, clean, unread, capacity, unread_capacity)

    @cached_property
    def digest(self) -> str:
        """Equal for equal content."""
        lines = self.address.tobytes(), self.written.tobytes(), self.unread.tobytes()
        return digest(*lines, self.capacity, self.unread_capacity)

    @property
    def dirty(self) -> float:
        """The written sectors of a line of the L2, in the mean of all that it has room for."""
        return float(np.bitwise_count(self.written[: self.capacity]).sum()) / max(self.capacity, 1)

    def used(self, address: NDArray[np.uint64], written: NDArray[np.uint8], blocks_before: float = 0.0) -> LeftLines:
        """What is left after these lines have been used, the last one last. written: masks of sectors.

        blocks_before: blocks that the launch ran before those that use them, as a multiple of these, and like them.
        """
        if not len(address):
            return self
        all_lines = np.concatenate((address[::-1], self.address))
        all_unread = np.concatenate((written[::-1] > 0, self.unread))
        gone = self._pushed_out(address, written > 0, blocks_before)
        now, before = written[::-1], np.where(gone, np.uint8(0), self.written)
        _, first, line = np.unique(all_lines, return_index=True, return_inverse=True)
        dirty = np.zeros(len(first), np.uint8)
        np.bitwise_or.at(dirty, line, np.concatenate((now, before)).astype(np.uint8))
        order = np.argsort(first, kind="stable")
        unread = all_unread[first[order]]
        stays = unread & (np.cumsum(unread) <= self.unread_capacity)
        stays[: self.capacity] = True
        order = order[stays]
        lines = all_lines[first[order]], dirty[order], all_unread[first[order]]
        return LeftLines(*lines, self.capacity, self.unread_capacity)

    def _pushed_out(
        self, address: NDArray[np.uint64], written: NDArray[np.bool_], blocks_before: float
    ) -> NDArray[np.bool_]:
        """[N] lines that are pushed out before these uses name them."""
        lines, first, line = np.unique(address, return_index=True, return_inverse=True)
        writes = np.zeros(len(lines), np.bool_)
        np.logical_or.at(writes, line, written)
        order = np.argsort(first, kind="stable")
        touched = np.arange(len(order), dtype=np.float64) + blocks_before * len(order)
        lost = ~self.found(lines[order], touched, float(np.mean(writes)))
        place = self.places(lines[order][lost])
        result = np.zeros(len(self.address), np.bool_)
        result[place[place < len(result)]] = True
        return result

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

    def found(
        self,
        address: NDArray[np.uint64],
        touched: NDArray[np.float64],
        written_share: float = 0.0,
        most: float = np.inf,
    ) -> NDArray[np.bool_]:
        """[L] lines that are there when the launch comes to them.

        touched [L]: lines that the whole grid has touched before it comes to each; `written_share` of them it writes.
        most: lines that there are; blocks that come to the same ones again push out no more.
        """
        place = self.places(address)
        there = place < len(self.address)
        unread_before = np.cumsum(np.append(self.unread, False))[place]  # one more than its place among the unread
        outlives = np.append(self.unread, False)[place] & (
            unread_before + np.minimum(touched, most) * written_share <= self.unread_capacity
        )
        moment = _moments(touched)
        before = np.zeros(0, np.int64)  # places of the lines touched earlier, sorted
        result = np.zeros(len(address), np.bool_)
        for number in range(MOMENTS):
            now = np.flatnonzero(moment == number)
            if len(now) == 0:
                continue
            newer = np.searchsorted(before, place[now], side="right") / max(len(before), 1)
            others = np.minimum(touched[now] * (1.0 - newer), np.maximum(most - 1.0 - place[now], 0.0))
            distance = place[now] + others
            result[now] = there[now] & ((distance < self.capacity) | outlives[now])
            before = np.sort(np.concatenate((before, place[now])))
        return result


def _moments(touched: NDArray[np.float64]) -> NDArray[np.int64]:
    """[L] which of MOMENTS parts of the launch, of as many lines each; what is touched together is in one part."""
    order = np.argsort(touched, kind="stable")
    _, first = np.unique(touched[order], return_index=True)
    begins = np.zeros(len(touched), np.int64)
    begins[first] = first
    moment = np.empty(len(touched), np.int64)
    moment[order] = np.maximum.accumulate(begins) * MOMENTS // max(len(touched), 1)
    return moment
