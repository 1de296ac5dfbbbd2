"""A kernel as it would be if some of its memory accesses were ideal: its traces with other addresses.

Ideal is, for global memory, that the lanes of a warp touch elements that lie side by side, and each warp its own; for
shared memory, that the lanes of a warp use different banks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.emulator.cache.traces import LaunchTraces, Traces
from ppt_gpu.emulator.trace.block_features import BlockFeatures
from ppt_gpu.emulator.trace.global_accesses import global_accesses
from ppt_gpu.emulator.trace.trace import GlobalAccesses, Trace
from ppt_gpu.ptx.instructions import access_bytes, access_kind, is_traced
from ppt_gpu.ptx.module import Kernel
from ppt_gpu.spec.gpu import MEMORY_SPACES

SECTOR = 32  # B: what a global access asks of the memory
BANKS, BANK = 32, 4  # B: what the lanes of a shared access share
LANES = 32
GLOBAL, SHARED = MEMORY_SPACES.index("global"), MEMORY_SPACES.index("shared")


@dataclass(frozen=True)
class Spread:
    """What the accesses of one instruction ask for, and what they would if they were ideal."""

    pc: int
    line: int
    space: int
    accesses: int
    asked: int  # sectors, or passes over the banks
    ideal: int

    @property
    def each(self) -> tuple[float, float]:
        """(asked, ideal) of one access."""
        return self.asked / self.accesses, self.ideal / self.accesses


def spreads(kernel: Kernel, trace: Trace) -> list[Spread]:
    """Of every load and store of global and shared memory that ran."""
    pcs = access_pcs(kernel, trace)
    found = []
    for pc, instruction in enumerate(kernel.instructions):
        size = access_bytes(instruction)
        if access_kind(instruction) not in ("load", "store") or not is_traced(instruction) or not 0 < size <= 16:
            continue
        for space in (GLOBAL, SHARED):
            chosen = np.flatnonzero((pcs == pc) & (trace.access_space == space))
            masks = trace.pattern_mask[trace.access_pattern[chosen]]
            chosen = chosen[masks != 0]
            if not len(chosen):
                continue
            count = _sectors if space == GLOBAL else _passes
            asked, ideal = count(trace, chosen, size)
            found.append(Spread(pc, instruction.line, space, len(chosen), asked, ideal))
    return found


def access_pcs(kernel: Kernel, trace: Trace) -> NDArray[np.int64]:
    """[A] the instruction of each access."""
    traced = np.array([is_traced(instruction) for instruction in kernel.instructions], np.bool_)
    of_path = [
        trace.path_pc[start:end][traced[trace.path_pc[start:end]]]
        for start, end in zip(trace.path_start[:-1], trace.path_start[1:], strict=True)
    ]
    return np.concatenate([of_path[path] for path in trace.warp_path] or [np.zeros(0, np.int64)]).astype(np.int64)


def idealised(kernel: Kernel, trace: Trace, pcs: Sequence[int], grid_blocks: int) -> Trace:
    """`trace` with the accesses of these instructions ideal. `grid_blocks`: of the launch."""
    of_access = access_pcs(kernel, trace)
    base, pattern = trace.access_base.copy(), trace.access_pattern.copy()
    offsets, masks = list(trace.pattern_offset), list(trace.pattern_mask)
    warp_of = np.repeat(np.arange(trace.warps), np.diff(trace.access_start))
    for pc in pcs:
        size = access_bytes(kernel.instructions[pc])
        chosen = np.flatnonzero((of_access == pc) & ((trace.access_space == GLOBAL) | (trace.access_space == SHARED)))
        for old in np.unique(trace.access_pattern[chosen]):
            pattern[chosen[trace.access_pattern[chosen] == old]] = len(offsets)
            offsets.append(_side_by_side(trace.pattern_mask[old], size))
            masks.append(trace.pattern_mask[old])
        here = chosen[trace.access_space[chosen] == GLOBAL]
        base[here] = _own_places(trace, here, warp_of[here], size, grid_blocks)
    return replace(
        trace,
        access_base=base,
        access_pattern=pattern,
        pattern_offset=np.array(offsets, np.int64),
        pattern_mask=np.array(masks, np.uint32),
    )


class IdealLaunch(LaunchTraces):
    """The traces of a launch with some accesses ideal. What the blocks do otherwise is as it was."""

    def __init__(self, traces: Traces, number: int, pcs: Sequence[int]) -> None:
        super().__init__(traces, number)
        self.actual, self.pcs = LaunchTraces(traces, number), tuple(pcs)

    def run(self, blocks: Sequence[int]) -> Trace:
        return idealised(self.kernel, self.actual.run(blocks), self.pcs, self.launch.blocks)

    def touched(self, blocks: Sequence[int]) -> GlobalAccesses:
        return global_accesses(self.kernel, self.run(blocks))

    def features(self, blocks: Sequence[int]) -> BlockFeatures:
        return self.actual.features(blocks)


def _side_by_side(mask: np.uint32, size: int) -> NDArray[np.int64]:
    """[32] offsets of the active lanes, one after another."""
    active = (int(mask) >> np.arange(LANES)) & 1
    return np.where(active, (np.cumsum(active) - 1) * size, 0).astype(np.int64)


def _own_places(
    trace: Trace, accesses: NDArray[np.int64], warps: NDArray[np.int64], size: int, grid_blocks: int
) -> NDArray[np.uint64]:
    """[accesses] addresses in the buffers that they went to: each warp's, and each of its turns, behind another."""
    if not len(accesses):
        return np.zeros(0, np.uint64)
    per_block = trace.warps // len(trace.blocks)
    first = np.flatnonzero(np.r_[True, warps[1:] != warps[:-1]])
    turn = np.arange(len(warps)) - np.repeat(first, np.diff(np.r_[first, len(warps)]))
    linear = trace.blocks[trace.warp_block[warps]] * per_block + warps % per_block
    place = (turn * grid_blocks * per_block + linear) * (LANES * size)  # the warps of a turn side by side
    starts = np.array([one.start for one in trace.ranges] or [0], np.uint64)
    sizes = np.array([one.bytes for one in trace.ranges] or [1], np.int64)
    at = np.clip(np.searchsorted(starts, trace.access_base[accesses], side="right") - 1, 0, None)
    room = np.maximum(sizes[at] // (LANES * size) * (LANES * size), LANES * size)
    return starts[at] + (place % room).astype(np.uint64)


def _addresses(trace: Trace, chosen: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """[chosen, 32] addresses, and which lanes are active."""
    pattern = trace.access_pattern[chosen]
    active = ((trace.pattern_mask[pattern][:, None] >> np.arange(LANES, dtype=np.uint32)) & 1).astype(np.bool_)
    return trace.access_base[chosen].astype(np.int64)[:, None] + trace.pattern_offset[pattern], active


def _sectors(trace: Trace, chosen: NDArray[np.int64], size: int) -> tuple[int, int]:
    """Sectors that the accesses ask for, and the fewest that hold as many bytes."""
    addresses, active = _addresses(trace, chosen)
    asked = _distinct(np.where(active, addresses // SECTOR, -1))
    ideal = int((-(-active.sum(axis=1) * size // SECTOR)).sum())
    return asked, ideal


def _passes(trace: Trace, chosen: NDArray[np.int64], size: int) -> tuple[int, int]:
    """Passes over the banks: of each access the most different words in one bank; and of accesses side by side."""
    addresses, active = _addresses(trace, chosen)
    words = np.where(active, addresses // BANK, -1)
    most = np.zeros(len(chosen), np.int64)
    for bank in range(BANKS):
        here = np.where((words % BANKS == bank) & active, words, -1)
        ordered = np.sort(here, axis=1)
        distinct = (np.diff(ordered, axis=1) != 0).sum(axis=1) + 1 - (ordered[:, 0] == -1)
        most = np.maximum(most, distinct)
    return int(most.sum()), len(chosen) * max(size // BANK, 1)


def _distinct(rows: NDArray[np.int64]) -> int:
    """Different values of each row, -1 apart, all rows together."""
    ordered = np.sort(rows, axis=1)
    changes = (np.diff(ordered, axis=1) != 0).sum(axis=1) + 1 - (ordered[:, 0] == -1)
    return int(changes.sum())
