"""What earlier launches of a workload, and the host copies before them, left in the L2 when a launch begins.

Lines are kept in the order of their last use, as many as fit; of one launch, blocks count as run in their order. Only
grids that are small enough to be traced whole are followed: after another one nothing is known of the L2, and the next
launch is taken to find what the host copied last, as the first one does.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.exec.trace import Range
from ppt_gpu.scale.simulated_sm import TraceSm
from ppt_gpu.sm.lower import touched_lines
from ppt_gpu.spec.gpu import Gpu

Lines = NDArray[np.uint64]


class L2History:
    """`lines`: addresses in the L2, the one used last first; None: unknown."""

    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu
        self.capacity = gpu.l2.size // gpu.l2.line  # lines
        self.lines: Lines | None = None

    def launched(self, sm: TraceSm) -> None:
        """The launch that `sm` simulated has run."""
        before, self.lines = self.lines, None
        accesses = sm.traces.whole_grid(sm.feed.features)
        if accesses is None:
            return
        trace = sm.run_blocks(sm.feed.features.blocks.tolist())
        if before is None:
            before = copied(trace.ranges, self.capacity, self.gpu.l2.line)
        size = np.uint64(self.gpu.l2.line)
        used = touched_lines(sm.kernel, trace, self.gpu, accesses) // size * size
        self.lines = latest(np.concatenate((used[::-1], before)))[: self.capacity]


def copied(ranges: Sequence[Range], capacity: int, line: int) -> Lines:
    """At most `capacity` lines of `line` bytes that host copies left, the last one first."""
    found, left = [np.zeros(0, np.uint64)], capacity
    for area in reversed([area for area in ranges if area.copied]):
        first, end = area.start // line, -(-(area.start + area.bytes) // line)
        first = max(first, end - left)
        found.append(np.arange(first, end, dtype=np.uint64)[::-1] * np.uint64(line))
        left -= end - first
    return np.concatenate(found)


def latest(lines: Lines) -> Lines:
    """Each line once, where it stands first."""
    _, first = np.unique(lines, return_index=True)
    return lines[np.sort(first)]
