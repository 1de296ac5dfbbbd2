"""Accesses of a segment that lie at one distance from an earlier one in all lanes: code does not record them.

Where two accesses of a segment have the same lanes, and their addresses the same register with other constants added,
the second repeats the pattern of the first at a fixed distance. Such a group is found while code is written; only its
first access leaves a record, from which `ppt_gpu.exec.digest_groups` makes the others.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Groups:
    """M static accesses, segment after segment, S segments."""

    start: NDArray[np.int64]  # [S+1] where those of each segment begin
    records: NDArray[np.int64]  # [S] records that each segment makes
    leader: NDArray[np.int64]  # [M] the record, among those of its segment, that an access is made from
    distance: NDArray[np.int64]  # [M] B from the address in that record

    @property
    def any(self) -> bool:
        """Is there an access without a record of its own?"""
        return int(self.records.sum()) < len(self.leader)


@dataclass
class Grouping:
    """Groups while code is written."""

    start: list[int] = field(default_factory=list)
    records: list[int] = field(default_factory=list)
    leader: list[int] = field(default_factory=list)
    distance: list[int] = field(default_factory=list)

    def begin_segment(self) -> None:
        self.start.append(len(self.leader))
        self.records.append(0)
        self._roots: dict[str, tuple[str, int]] = {}  # value -> the value it was made from, what was added
        self._leaders: dict[tuple[str, ...], tuple[int, int]] = {}  # -> record, what is added to its root

    def begin_access(self) -> None:
        """An access that is recorded, as long as nobody finds that it follows another one."""
        self.leader.append(self.records[-1])
        self.distance.append(0)
        self.records[-1] += 1

    def derive(self, value: str, source: str, more: int) -> None:
        """`value` is `source` + `more` in all lanes."""
        root, before = self._roots.get(source, (source, 0))
        self._roots[value] = root, before + more

    def follows(self, kind: tuple[str, ...], base: str, more: int, bits: int, scale: int = 1) -> bool:
        """Does the access at hand, at `base` + `more`, follow another one of its segment?

        `kind` is what both must have in common, `bits` the width in which addresses are added. Distances in a trace
        are `scale` times as large.
        """
        root, before = self._roots.get(base, (base, 0))
        at = before + more
        key = (*kind, root)
        if key not in self._leaders:
            self._leaders[key] = self.leader[-1], at
            return False
        record, first = self._leaders[key]
        self.records[-1] -= 1
        self.leader[-1] = record
        self.distance[-1] = _signed(scale * _signed(at - first, bits), 64)
        return True

    def done(self, segments: int) -> Groups:
        missing = segments - len(self.start)
        start = [*self.start, *[len(self.leader)] * (missing + 1)]
        records = [*self.records, *[0] * missing]
        arrays = (np.array(words, np.int64) for words in (start, records, self.leader, self.distance))
        return Groups(*arrays)


def _signed(value: int, bits: int) -> int:
    half = 1 << (bits - 1)
    return (value + half) % (2 * half) - half
