"""Special registers in the interpreter.

Clocks and timers count the warp's executed instructions: time does not exist in a functional run. One SM runs all
blocks. A block is its own cluster. No shared memory is reserved, no performance counter counts, and the registers that
the driver sets (%envreg, %current_graph_exec) are 0, but for the two that point to the workspace of a grid_group: the
high half in %envreg1, the low half in %envreg2 (cooperative groups of CUDA 13).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ppt_gpu.common.errors import PptError
from ppt_gpu.emulator.launch.layout import RESERVED_AT
from ppt_gpu.emulator.memory.memory import GRID_WORKSPACE
from ppt_gpu.ptx.specials import ZEROS
from ppt_gpu.workload.block_cluster import cluster_of, is_explicit, place_in_cluster
from ppt_gpu.workload.workload import Dim3
from reference.interpreter.block import LANES, Bits, Block

_AXES = "xyzw"


def special_register(name: str, block: Block, number: int, executed: int) -> Bits:
    """The value of special register `name` ("tid.x") in each lane of the warp `number` of a block.

    executed: instructions of the warp so far, the one that reads included. PptError for a register without a value.
    """
    head, _, axis = name.partition(".")
    if head == "tid":
        return _thread_id(block, number, _AXES.index(axis or "x"))
    if head in _BLOCK_VECTORS:
        extents = (*_BLOCK_VECTORS[head](block), 0)  # the fourth is unused and always 0
        return np.full(LANES, extents[_AXES.index(axis or "x")], np.uint64)
    if head == "laneid":
        return np.arange(LANES, dtype=np.uint64)
    if head.startswith("lanemask_"):
        return _lane_mask(head.removeprefix("lanemask_"))
    if head in ZEROS:
        return np.zeros(LANES, np.uint64)
    if head.startswith(RESERVED_AT):
        place = block.launched.layout.reserved_at(head.removeprefix(RESERVED_AT))
        return np.full(LANES, place, np.uint64)
    if head == "warpid":
        return np.full(LANES, number, np.uint64)
    if head in _CLOCKS:
        return np.full(LANES, _CLOCKS[head](executed - 1), np.uint64)  # without the one that reads the clock
    if head in _BLOCK_SCALARS:
        return np.full(LANES, _BLOCK_SCALARS[head](block) & 0xFFFF_FFFF_FFFF_FFFF, np.uint64)
    raise PptError(f"the special register %{name} has no value in a functional run")


def _thread_id(block: Block, number: int, axis: int) -> Bits:
    x, y, _ = block.launched.block
    threads = number * LANES + np.arange(LANES)
    values = (threads % x, threads // x % y, threads // (x * y), np.zeros(LANES, np.int64))[axis]
    return values.astype(np.uint64)


def _lane_mask(which: str) -> Bits:
    lane = np.arange(LANES, dtype=np.uint64)
    one = np.uint64(1) << lane
    below = one - np.uint64(1)
    full = np.uint64(0xFFFFFFFF)
    return {"eq": one, "lt": below, "le": below | one, "ge": full & ~below, "gt": full & ~(below | one)}[which]


def _warps(block: Block) -> int:
    x, y, z = block.launched.block
    return -(-x * y * z // LANES)


def _cluster(block: Block) -> Dim3:
    return cluster_of(block.launched.kernel, block.launched.launch)


def _in_clusters(block: Block, blocks: Dim3) -> Dim3:
    """Blocks along each axis, counted in clusters."""
    x, y, z = (n // c for n, c in zip(blocks, _cluster(block), strict=True))
    return x, y, z


_BLOCK_VECTORS: dict[str, Callable[[Block], tuple[int, int, int]]] = {
    "ntid": lambda block: block.launched.block,
    "ctaid": lambda block: block.ctaid,
    "nctaid": lambda block: block.launched.grid,
    "clusterid": lambda block: _in_clusters(block, block.ctaid),
    "nclusterid": lambda block: _in_clusters(block, block.launched.grid),
    "cluster_ctaid": lambda block: place_in_cluster(block.rank, _cluster(block)),
    "cluster_nctaid": _cluster,
}

#: registers that read as 0
_BLOCK_SCALARS: dict[str, Callable[[Block], int]] = {
    "envreg1": lambda block: block.launched.memory.address_of(GRID_WORKSPACE) >> 32,
    "envreg2": lambda block: block.launched.memory.address_of(GRID_WORKSPACE) & 0xFFFF_FFFF,
    "nwarpid": _warps,
    "smid": lambda block: 0,
    "nsmid": lambda block: 1,
    "gridid": lambda block: 0,
    "cluster_ctarank": lambda block: block.rank,
    "cluster_nctarank": lambda block: len(block.cluster),
    "is_explicit_cluster": lambda block: int(is_explicit(block.launched.kernel, block.launched.launch)),
    "dynamic_smem_size": lambda block: block.launched.dynamic_shared,
    "aggr_smem_size": lambda block: block.launched.layout.shared_room,
    "total_smem_size": lambda block: block.launched.layout.shared_bytes,
}

#: of the instructions that the warp has executed
_CLOCKS: dict[str, Callable[[int], int]] = {
    "clock": lambda executed: executed & 0xFFFFFFFF,
    "clock_hi": lambda executed: executed >> 32,
    "clock64": lambda executed: executed,
    "globaltimer": lambda executed: executed,
    "globaltimer_lo": lambda executed: executed & 0xFFFFFFFF,
    "globaltimer_hi": lambda executed: executed >> 32,
}
