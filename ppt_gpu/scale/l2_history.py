"""What earlier launches of a workload, and the host copies before them, left in the L2 when a launch begins.

Lines are kept in the order of their last use, as many as fit (but for written ones, `left_lines`); of one launch,
blocks count as run in their order. Of a grid that is too large to be traced whole its last blocks are, as far as they
fill the L2. Where not even these run alone, nothing is known, and the next launch is taken to find what the host copied
last, as the first one does.
"""

from __future__ import annotations

import numpy as np

from ppt_gpu.emulator.trace.block_features import BlockFeatures
from ppt_gpu.scale.cache.kept_lines import lines_codec, lines_name
from ppt_gpu.scale.history.heap import Heap
from ppt_gpu.scale.simulated_sm import TraceSm
from ppt_gpu.sm.l2_sharing.l2_sets import known_sets
from ppt_gpu.sm.l2_sharing.left_lines import LeftLines
from ppt_gpu.spec.gpu import Gpu

#: blocks whose trace says which space generic accesses go to
SOME = 8


class L2History:
    """`lines`: what is in the L2; None: unknown."""

    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu
        self.capacity = gpu.l2.size // gpu.l2.line  # lines
        each = max(1, self.capacity // (gpu.l2.ways * gpu.l2.slices))
        self.sets = None if gpu.l2.dirty_share else known_sets(gpu, gpu.l2.line, each)
        self.lines: LeftLines | None = None

    def launched(self, sm: TraceSm, features: BlockFeatures) -> None:
        """The launch of `sm` has run. `features`: of the blocks that were looked at."""
        before, self.lines = self.lines, None
        codec = lines_codec(self.gpu.l2.line, self.sets)
        name = lines_name(self.gpu, before, features.blocks.tolist()) if sm.kept is not None else ""
        self.lines = sm.kept.get(codec, name) if sm.kept is not None else None
        if self.lines is None:
            self.lines = self._left(sm, features, before)
            if sm.kept is not None and self.lines is not None:
                sm.kept.put(codec, name, self.lines)

    def _left(self, sm: TraceSm, features: BlockFeatures, before: LeftLines | None) -> LeftLines | None:
        from ppt_gpu.sm.lowering.global_memory import touched_lines

        accesses = sm.traces.whole_grid(features)
        if accesses is None:
            filled = self.capacity * self.gpu.l2.line // self.gpu.l2.sector
            last = 2 if self.gpu.l2.dirty_share else 1  # times the L2: dirty lines outlive others
            accesses = sm.traces.last_blocks(features, last * filled)
        if accesses is None:
            return None
        trace = sm.traces.run(features.blocks[:: -(-len(features) // SOME)].tolist())
        heap = Heap.of(trace.ranges, sm.gpu)
        trace = heap.trace(trace)
        if before is None:
            dirty_capacity = int(self.capacity * self.gpu.l2.dirty_share)
            before = LeftLines.copied(trace.ranges, self.capacity, self.gpu.l2.line, dirty_capacity, self.sets)
        size = np.uint64(self.gpu.l2.line)
        address, written = touched_lines(sm.kernel, trace, self.gpu, heap.accesses(accesses))
        blocks_before = int(accesses.blocks[0]) / len(accesses.blocks) if len(accesses.blocks) else 0.0
        return before.used(address // size * size, written, blocks_before)
