"""Special registers in the interpreter.

Clocks and timers count the warp's executed instructions: time does not exist in a functional run. One SM runs all
blocks. A block is its own cluster. No shared memory is reserved, no performance counter counts, and the registers that
the driver sets (%envreg, %current_graph_exec) are 0, but for the two that point to the workspace of a grid_group: the
high half in %envreg1, the low half in %envreg2 (cooperative groups of CUDA 13).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ppt_gpu.errors import PptError
from ppt_gpu.exec.cluster import cluster_of, is_explicit, place_in_cluster
from ppt_gpu.exec.interp_warp import LANES, Bits, Warp
from ppt_gpu.exec.layout import RESERVED_AT
from ppt_gpu.exec.memory import GRID_WORKSPACE
from ppt_gpu.exec.workload import Dim3

_AXES = "xyzw"


def special_register(warp: Warp, name: str) -> Bits:
    """The value of special register `name` ("tid.x") in each lane. PptError for one that has no value here."""
    head, _, axis = name.partition(".")
    if head == "tid":
        return _thread_id(warp, _AXES.index(axis or "x"))
    if head in _BLOCK_VECTORS:
        extents = (*_BLOCK_VECTORS[head](warp), 0)  # the fourth is unused and always 0
        return np.full(LANES, extents[_AXES.index(axis or "x")], np.uint64)
    if head == "laneid":
        return np.arange(LANES, dtype=np.uint64)
    if head.startswith("lanemask_"):
        return _lane_mask(head.removeprefix("lanemask_"))
    if head in ZEROS:
        return np.zeros(LANES, np.uint64)
    if head.startswith(RESERVED_AT):
        place = warp.launched.layout.reserved_at(head.removeprefix(RESERVED_AT))
        return np.full(LANES, place, np.uint64)
    if head in _SCALARS:
        return np.full(LANES, _SCALARS[head](warp) & 0xFFFF_FFFF_FFFF_FFFF, np.uint64)
    raise PptError(f"the special register %{name} has no value in a functional run")


def _thread_id(warp: Warp, axis: int) -> Bits:
    x, y, _ = warp.launched.block
    threads = warp.threads
    values = (threads % x, threads // x % y, threads // (x * y), np.zeros(LANES, np.int64))[axis]
    return values.astype(np.uint64)


def _lane_mask(which: str) -> Bits:
    lane = np.arange(LANES, dtype=np.uint64)
    one = np.uint64(1) << lane
    below = one - np.uint64(1)
    full = np.uint64(0xFFFFFFFF)
    return {"eq": one, "lt": below, "le": below | one, "ge": full & ~below, "gt": full & ~(below | one)}[which]


def _warps(warp: Warp) -> int:
    x, y, z = warp.launched.block
    return -(-x * y * z // LANES)


def _clock(warp: Warp) -> int:
    """Instructions before the one that reads the clock."""
    return warp.executed - 1


def _cluster(warp: Warp) -> Dim3:
    return cluster_of(warp.kernel, warp.launched.launch)


def _in_clusters(warp: Warp, blocks: Dim3) -> Dim3:
    """Blocks along each axis, counted in clusters."""
    x, y, z = (n // c for n, c in zip(blocks, _cluster(warp), strict=True))
    return x, y, z


_BLOCK_VECTORS: dict[str, Callable[[Warp], tuple[int, int, int]]] = {
    "ntid": lambda warp: warp.launched.block,
    "ctaid": lambda warp: warp.block.ctaid,
    "nctaid": lambda warp: warp.launched.grid,
    "clusterid": lambda warp: _in_clusters(warp, warp.block.ctaid),
    "nclusterid": lambda warp: _in_clusters(warp, warp.launched.grid),
    "cluster_ctaid": lambda warp: place_in_cluster(warp.block.rank, _cluster(warp)),
    "cluster_nctaid": lambda warp: _cluster(warp),
}

#: registers that read as 0
ZEROS: tuple[str, ...] = (
    *(f"envreg{i}" for i in range(32) if i not in (1, 2)),
    *(f"pm{i}" for i in range(8)),
    *(f"pm{i}_64" for i in range(8)),
    "current_graph_exec",
)

_SCALARS: dict[str, Callable[[Warp], int]] = {
    "envreg1": lambda warp: warp.launched.memory.address_of(GRID_WORKSPACE) >> 32,
    "envreg2": lambda warp: warp.launched.memory.address_of(GRID_WORKSPACE) & 0xFFFF_FFFF,
    "warpid": lambda warp: warp.number,
    "nwarpid": _warps,
    "smid": lambda warp: 0,
    "nsmid": lambda warp: 1,
    "gridid": lambda warp: 0,
    "cluster_ctarank": lambda warp: warp.block.rank,
    "cluster_nctarank": lambda warp: len(warp.block.cluster),
    "is_explicit_cluster": lambda warp: int(is_explicit(warp.kernel, warp.launched.launch)),
    "clock": lambda warp: _clock(warp) & 0xFFFFFFFF,
    "clock_hi": lambda warp: _clock(warp) >> 32,
    "clock64": lambda warp: _clock(warp),
    "globaltimer": lambda warp: _clock(warp),
    "globaltimer_lo": lambda warp: _clock(warp) & 0xFFFFFFFF,
    "globaltimer_hi": lambda warp: _clock(warp) >> 32,
    "dynamic_smem_size": lambda warp: warp.launched.dynamic_shared,
    "aggr_smem_size": lambda warp: warp.launched.layout.shared_room,
    "total_smem_size": lambda warp: warp.launched.layout.shared_bytes,
}
