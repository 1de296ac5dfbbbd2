"""The global accesses of a trace, by block: all that matters of the blocks that run on other SMs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ppt_gpu.common.errors import PptError
from ppt_gpu.emulator.trace.digest import number_patterns
from ppt_gpu.emulator.trace.trace import GlobalAccesses, Trace
from ppt_gpu.ptx.instructions import is_traced
from ppt_gpu.ptx.module import Kernel
from ppt_gpu.spec.gpu import MEMORY_SPACES

if TYPE_CHECKING:
    from ppt_gpu.emulator.trace.recorded_trace import Records

GLOBAL = MEMORY_SPACES.index("global")


def global_accesses(kernel: Kernel, trace: Trace) -> GlobalAccesses:
    """Those accesses of `trace` that went to global memory. PptError when they do not match its paths.

    Of a trace that holds records the other accesses are not made.
    """
    traced = np.array([is_traced(instruction) for instruction in kernel.instructions], np.bool_)
    chosen = np.flatnonzero(traced[trace.path_pc])
    memory_pc = trace.path_pc[chosen].astype(np.int32)
    memory_start = np.searchsorted(chosen, trace.path_start)
    counts = np.diff(trace.access_start)
    if not np.array_equal(counts, np.diff(memory_start)[trace.warp_path]):
        raise PptError("the accesses of the trace do not match its paths")
    records: Records | None = trace.__dict__.get("records")
    if records is not None:
        count = int(trace.access_start[-1])
        ends, *arrays = records.of_space(GLOBAL, trace.warp_path, memory_start, memory_pc, count)
        per_block = len(trace.warp_path) // max(len(trace.blocks), 1)
        start = np.concatenate(([0], ends[per_block - 1 :: per_block])) if per_block else np.zeros(1, np.int64)
        return GlobalAccesses(trace.blocks, start, *arrays)
    found = np.flatnonzero(trace.access_space == GLOBAL)
    pc = memory_pc[found + np.repeat(memory_start[trace.warp_path] - trace.access_start[:-1], counts)[found]]
    block_of = np.repeat(trace.warp_block, counts)[found]
    start = np.searchsorted(block_of, np.arange(len(trace.blocks) + 1))
    pattern, first = trace.access_pattern[found], np.zeros(len(trace.pattern_mask), np.int32)
    kept = first[: number_patterns(pattern, len(first), first)]
    return GlobalAccesses(
        trace.blocks, start, pc, trace.access_base[found], pattern, trace.pattern_offset[kept], trace.pattern_mask[kept]
    )
