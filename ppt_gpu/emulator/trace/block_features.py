"""What each block of a grid does: counts from the traces of functional runs, of a sample or of the whole grid."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.emulator.trace.trace import Trace
from ppt_gpu.spec.gpu import MEMORY_SPACES
from ppt_gpu.workload.box import ROW, are_boxes, rows_of

#: warp instructions that one functional run of many may trace; its trace is dropped before the next
CHUNK = 1 << 22
FIRST_CHUNK = 32  # blocks
_SECTOR_SHIFT = 5  # 32 B
_THROUGH_L1 = np.array([space in ("global", "local") for space in MEMORY_SPACES])


@dataclass(frozen=True)
class BlockFeatures:
    """Counts of blocks, one entry a block."""

    blocks: NDArray[np.int64]  # [B] linear block ids
    warp_instructions: NDArray[np.int64]  # [B] executed by all warps of the block
    thread_instructions: NDArray[np.int64]  # [B]
    longest: NDArray[np.int64]  # [B] warp instructions of the longest warp
    sectors: NDArray[np.int64]  # [B] 32-byte sectors of global and local memory asked for, by warp accesses

    def __len__(self) -> int:
        return len(self.blocks)

    def take(self, index: NDArray) -> BlockFeatures:
        """The blocks at these positions, or where a mask is true."""
        return BlockFeatures(*(getattr(self, field.name)[index] for field in fields(self)))


def join(parts: Sequence[BlockFeatures]) -> BlockFeatures:
    """All blocks of `parts` by ascending id, each once."""
    columns = [np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(BlockFeatures)]
    order = np.argsort(columns[0], kind="stable")  # np.unique would do, and import masked arrays
    first = order[np.diff(columns[0][order], prepend=-1) != 0]
    return BlockFeatures(*(column[first] for column in columns))


def features_of(trace: Trace) -> BlockFeatures:
    """The features of the blocks of a trace, in its order.

    A warp access counts the sectors that its lanes' addresses would fall into if its lowest began a sector.
    """
    blocks = len(trace.blocks)
    instructions = np.diff(trace.path_start)[trace.warp_path].reshape(blocks, -1)
    counted = _pattern_sectors(trace)[trace.access_pattern] * _THROUGH_L1[trace.access_space]
    before = np.concatenate(([0], np.cumsum(counted)))
    sectors = (before[trace.access_start[1:]] - before[trace.access_start[:-1]]).reshape(blocks, -1)
    return BlockFeatures(
        blocks=trace.blocks,
        warp_instructions=instructions.sum(axis=1),
        thread_instructions=trace.warp_threads.reshape(blocks, -1).sum(axis=1),
        longest=instructions.max(axis=1),
        sectors=sectors.sum(axis=1).astype(np.int64),
    )


def _pattern_sectors(trace: Trace) -> NDArray[np.int64]:
    """[N] distinct sectors of each access pattern; 0 without active lanes."""
    lanes = np.arange(32, dtype=np.uint32)
    active = (trace.pattern_mask[:, None] >> lanes & 1).astype(bool)
    # Inactive lanes repeat the base address, offset 0, which an active lane has too.
    sector = np.sort(np.where(active, trace.pattern_offset, 0) >> _SECTOR_SHIFT, axis=1)
    found = (1 + np.count_nonzero(np.diff(sector, axis=1), axis=1)) * active.any(axis=1)
    boxes = are_boxes(trace.pattern_offset, trace.pattern_mask)
    if boxes.any():
        words = trace.pattern_offset[boxes]
        found[boxes] = rows_of(words) * -(-words[:, ROW] >> _SECTOR_SHIFT)
    return found


def run_features(run_blocks: Callable[[Sequence[int]], Trace], blocks: Sequence[int]) -> BlockFeatures:
    """The features of many blocks, in their order: run in chunks, so that no trace of all is ever held.

    `run_blocks` runs block ids and returns their trace.
    """
    parts: list[BlockFeatures] = []
    position, count = 0, FIRST_CHUNK
    while position < len(blocks):
        part = features_of(run_blocks(blocks[position : position + count]))
        parts.append(part)
        position += len(part)
        # At most twice as many: what comes may be longer than what was.
        count = max(min(int(CHUNK / max(float(part.warp_instructions.mean()), 1.0)), 2 * count), 1)
    return BlockFeatures(*(np.concatenate([getattr(p, f.name) for p in parts]) for f in fields(BlockFeatures)))
