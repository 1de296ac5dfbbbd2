"""What every trace fulfils, checked for traces from files before compiled loops that trust it see them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.emulator.memory.mbarrier_word import SYNC_SPACE
from ppt_gpu.emulator.trace.block_features import BlockFeatures
from ppt_gpu.emulator.trace.trace import GlobalAccesses, Trace
from ppt_gpu.emulator.trace.trace_pack import Damaged
from ppt_gpu.workload.box import are_boxes, are_empty_boxes, are_sound, span

Grid = tuple[int, int, int]

ADDRESS_BITS = 47  # every address of a run lies below 2^47
RECORDED_SPACES = SYNC_SPACE + 1  # global, shared and local are recorded, and words of `mbarrier_word.word`


def check_trace(trace: Trace, grid: Grid, separable: bool) -> None:
    """Raise Damaged with the first thing that is wrong. Sizes and starts of paths and accesses are sound already.

    separable: blocks may be taken one by one.
    """
    _blocks(trace.blocks, grid)
    accesses = len(trace.access_base)
    lengths = np.diff(trace.path_start)[trace.warp_path]
    _require(len(trace.warp_threads) == trace.warps, "thread counts do not match the warps")
    _within(trace.warp_threads, 0, None, "a negative number of threads")
    _require(bool((trace.warp_threads <= 32 * lengths).all()), "a warp with more than 32 threads an instruction")
    for part in (trace.access_pattern, trace.access_space):
        _require(len(part) == accesses, "accesses without pattern or space")
    _within(trace.access_space, 0, RECORDED_SPACES, "an access to a space that is not recorded")
    _patterns(trace.access_base, trace.access_pattern, trace.pattern_offset, trace.pattern_mask)
    threads = trace.pc_threads[None] if trace.block_threads is None else trace.block_threads
    _within(threads, 0, None, "a negative number of threads")
    _require(bool((trace.pc_threads <= 32 * trace.pc_executed).all()), "more than 32 threads a warp")
    _require(bool((threads.sum(axis=0) == trace.pc_threads).all()), "thread counts by block do not add up")
    _require(trace.block_threads is None or len(threads) == len(trace.blocks), "thread counts do not match the blocks")
    _require(int(trace.pc_threads.sum()) == int(trace.warp_threads.sum()), "thread counts of warps do not add up")
    _require(not separable or trace.block_threads is not None, "blocks without thread counts of their own")


def check_globals(found: GlobalAccesses, grid: Grid, instructions: int) -> None:
    """Raise Damaged with the first thing that is wrong."""
    _blocks(found.blocks, grid)
    for part in (found.pc, found.pattern):
        _require(len(part) == len(found.base), "accesses without instruction or pattern")
    _within(found.pc, 0, instructions, f"an instruction outside of the kernel, which has {instructions}")
    _patterns(found.base, found.pattern, found.pattern_offset, found.pattern_mask)


def check_features(found: BlockFeatures, grid: Grid, threads: int) -> None:
    """Raise Damaged with the first thing that is wrong."""
    _blocks(found.blocks, grid)
    warps = -(-threads // 32)
    for counts in (found.warp_instructions, found.thread_instructions, found.longest, found.sectors):
        _require(len(counts) == len(found.blocks), "counts do not match the blocks")
        _within(counts, 0, 1 << 50, "a count that no block has")
    _require(bool((found.longest <= found.warp_instructions).all()), "a warp longer than its block")
    _require(bool((found.warp_instructions <= warps * found.longest).all()), "a block longer than its warps")
    _require(bool((found.thread_instructions <= 32 * found.warp_instructions).all()), "more than 32 threads a warp")


def _blocks(blocks: NDArray[np.int64], grid: Grid) -> None:
    x, y, z = grid
    _within(blocks, 0, x * y * z, f"a block outside of the grid {x}x{y}x{z}")


def _patterns(
    base: NDArray[np.uint64], pattern: NDArray[np.int32], offset: NDArray[np.int64], mask: NDArray[np.uint32]
) -> None:
    _require(len(offset) == len(mask), "patterns without a mask")
    _within(pattern, 0, len(mask), "an access without a pattern")
    if not len(mask):
        return
    active = (mask[:, None] >> np.arange(32, dtype=np.uint32) & 1).astype(bool)
    boxes, empty = are_boxes(offset, mask), are_empty_boxes(offset, mask)
    active[boxes | empty] = True  # their words are checked below, or have been
    _require(not offset[~active].any(), "an inactive lane with an address")
    lowest = active.argmax(axis=1)
    _require(not offset[np.arange(len(mask)), lowest].any(), "a base that is not the lowest lane's address")
    limit = 1 << ADDRESS_BITS
    low, high = offset.min(axis=1), offset.max(axis=1)
    if boxes.any():
        _require(bool(are_sound(offset[boxes]).all()), "a bulk copy of no possible size")
        low[boxes], high[boxes] = span(offset[boxes])
    _require(-limit <= int(low.min()) and int(high.max()) < limit, "a lane outside of the address space")
    _within(base, 0, limit, "an access outside of the address space")
    if not base.size or (int(base.min()) + int(low.min()) >= 0 and int(base.max()) + int(high.max()) < limit):
        return  # not even the widest pattern could leave it
    at = base.astype(np.int64)
    _within(at + low[pattern], 0, limit, "a lane outside of the address space")
    _within(at + high[pattern], 0, limit, "a lane outside of the address space")


def _within(values: NDArray[Any], least: int, above: int | None, text: str) -> None:
    if values.size:
        _require(least <= int(values.min()) and (above is None or int(values.max()) < above), text)


def _require(sound: bool, text: str) -> None:
    if not sound:
        raise Damaged(text)
