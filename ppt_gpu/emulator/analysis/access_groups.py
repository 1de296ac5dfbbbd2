"""Accesses of a segment that lie at one distance from an earlier one in all lanes: code does not record them.

Where two accesses of a segment have the same lanes, and their addresses one value with other constants added, or other
registers that are the same in all threads (`ppt_gpu.emulator.analysis.constant_offsets`), the second repeats the
pattern of the first at one distance. Such a group is found while code is written; only its first access leaves a
record, from which `ppt_gpu.emulator.trace.recorded_trace` makes the others. Distances that a launch decides are known
when it has run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.emulator.analysis.constant_offsets import NEAR, Distance


@dataclass(frozen=True, slots=True)
class Far:
    """How far an access is from the one that it is made from: in addresses of so many bits, `scale` times as much in a
    trace."""

    distance: Distance
    bits: int
    scale: int

    def value(self, uniform: Mapping[int, int]) -> int:
        """B in a trace."""
        return _signed(self.scale * _signed(self.distance.value(uniform), self.bits), 64)


@dataclass(frozen=True)
class Groups:
    """M static accesses, segment after segment, S segments."""

    start: NDArray[np.int64]  # [S+1] where those of each segment begin
    records: NDArray[np.int64]  # [S] records that each segment makes
    leader: NDArray[np.int64]  # [M] the record, among those of its segment, that an access is made from
    distance: NDArray[np.int64]  # [M] B from the address in that record
    far: tuple[tuple[int, Far], ...] = ()  # accesses whose distance a launch decides

    @property
    def any(self) -> bool:
        """Is there an access without a record of its own?"""
        return int(self.records.sum()) < len(self.leader)

    def of_launch(self, uniform: Mapping[int, int]) -> Groups:
        """With the distances of a launch in which uniform registers had these values."""
        if not self.far:
            return self
        distance = self.distance.copy()
        for access, far in self.far:
            distance[access] = far.value(uniform)
        return replace(self, distance=distance, far=())


@dataclass
class Grouping:
    """Groups while code is written."""

    start: list[int] = field(default_factory=list)
    records: list[int] = field(default_factory=list)
    leader: list[int] = field(default_factory=list)
    distance: list[int] = field(default_factory=list)
    far: dict[int, Far] = field(default_factory=dict)

    def begin_segment(self) -> None:
        self.start.append(len(self.leader))
        self.records.append(0)
        self._roots: dict[str, tuple[str, Distance]] = {}  # value -> the value it was made from, what was added
        self._leaders: dict[tuple[str, ...], tuple[int, Distance]] = {}  # -> record, what is added to its root

    def begin_access(self) -> None:
        """An access that is recorded, as long as nobody finds that it follows another one."""
        self.leader.append(self.records[-1])
        self.distance.append(0)
        self.records[-1] += 1

    def derive(self, value: str, source: str, more: Distance) -> None:
        """`value` is `source` + `more` in all lanes."""
        root, before = self._roots.get(source, (source, NEAR))
        self._roots[value] = root, before + more

    def follows(self, kind: tuple[str, ...], base: str, more: int, bits: int, scale: int = 1) -> bool:
        """Does the access at hand, at `base` + `more`, follow another one of its segment?

        `kind` is what both must have in common, `bits` the width in which addresses are added. Distances in a trace
        are `scale` times as large.
        """
        root, before = self._roots.get(base, (base, NEAR))
        at = before + Distance(more)
        key = (*kind, root)
        if key not in self._leaders:
            self._leaders[key] = self.leader[-1], at
            return False
        record, first = self._leaders[key]
        self.records[-1] -= 1
        self.leader[-1] = record
        far = Far(at - first, bits, scale)
        if far.distance.terms:
            self.far[len(self.leader) - 1] = far
        else:
            self.distance[-1] = far.value({})
        return True

    def done(self, segments: int) -> Groups:
        missing = segments - len(self.start)
        start = [*self.start, *[len(self.leader)] * (missing + 1)]
        records = [*self.records, *[0] * missing]
        leader, distance = np.array(self.leader, np.int64), np.array(self.distance, np.int64)
        return Groups(
            np.array(start, np.int64), np.array(records, np.int64), leader, distance, tuple(self.far.items())
        )  # fmt: skip


def _signed(value: int, bits: int) -> int:
    half = 1 << (bits - 1)
    return (value + half) % (2 * half) - half
