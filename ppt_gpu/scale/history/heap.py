"""Buffers where a GPU's driver puts them, where that is known: sets of caches and slices of the L2 follow from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.emulator.trace.trace import GlobalAccesses, Trace
from ppt_gpu.spec.gpu import MEMORY_SPACES, Gpu
from ppt_gpu.workload.workload import Range

UNIT = 256  # B, of whose multiples buffers take places
SHARED = MEMORY_SPACES.index("shared")


@dataclass(frozen=True)
class Heap:
    """Moves R buffers, which a run laid out at addresses of its own, to the ones where the driver allocates them."""

    starts: NDArray[np.uint64]  # [R] rising: where the run has them
    ends: NDArray[np.uint64]  # [R]
    moves: NDArray[np.uint64]  # [R] what is added to their addresses, modulo 2^64
    ranges: tuple[Range, ...]  # of the run, moved

    @classmethod
    def of(cls, ranges: Sequence[Range], gpu: Gpu) -> Heap:
        """One behind another in this order, from `memory.heap` on, each from a multiple of UNIT on.

        Where the GPU says nothing of them, they stay.
        """
        if not gpu.memory.heap:
            nothing = np.zeros(0, np.uint64)
            return cls(nothing, nothing, nothing, ())
        at, moved = gpu.memory.heap, []
        for area in ranges:
            moved.append(replace(area, start=at))
            at += -(-area.bytes // UNIT) * UNIT
        order = sorted(range(len(ranges)), key=lambda index: ranges[index].start)
        starts = np.array([ranges[index].start for index in order], np.uint64)
        sizes = np.array([ranges[index].bytes for index in order], np.uint64)
        moves = np.array([moved[index].start for index in order], np.uint64) - starts
        return cls(starts, starts + sizes, moves, tuple(moved))

    def trace(self, trace: Trace) -> Trace:
        """The run with its buffers there."""
        if not len(self.starts):
            return trace
        base = self._moved(trace.access_base, trace.access_space != SHARED)
        return replace(trace, access_base=base, ranges=self.ranges)

    def accesses(self, accesses: GlobalAccesses) -> GlobalAccesses:
        """Those of such a run."""
        if not len(self.starts):
            return accesses
        return replace(accesses, base=self._moved(accesses.base, np.ones(len(accesses.base), np.bool_)))

    def _moved(self, base: NDArray[np.uint64], chosen: NDArray[np.bool_]) -> NDArray[np.uint64]:
        place = np.searchsorted(self.starts, base, side="right") - 1
        inside = (place >= 0) & chosen & (base < np.append(self.ends, np.uint64(0))[place])
        return base + np.where(inside, np.append(self.moves, np.uint64(0))[place], np.uint64(0))
