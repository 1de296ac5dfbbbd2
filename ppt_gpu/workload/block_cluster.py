"""Clusters of blocks: their shape, and which blocks belong together."""

from __future__ import annotations

from collections.abc import Sequence

from ppt_gpu.common.errors import PptError
from ppt_gpu.ptx.linking.mangling import short_name
from ppt_gpu.ptx.module import Kernel
from ppt_gpu.workload.workload import Dim3, Launch

MOST_BLOCKS = 16  # of a cluster; more than 8 are not portable between GPUs (CUDA C++ Programming Guide)
IDLE_ROUNDS = 2  # of turns of a cluster's blocks in which nothing moved, after which nothing ends their waiting


def cluster_of(kernel: Kernel, launch: Launch) -> Dim3:
    """Blocks of a cluster along each axis: the launch's, else the kernel's, else one block is a cluster."""
    if launch.cluster is not None:
        return launch.cluster
    x, y, z = (*kernel.directives.get("reqnctapercluster", ()), 1, 1, 1)[:3]
    return x, y, z


def is_explicit(kernel: Kernel, launch: Launch) -> bool:
    """Was a cluster asked for?"""
    return launch.cluster is not None or bool({"reqnctapercluster", "explicitcluster"} & set(kernel.directives))


def blocks_of(cluster: Dim3) -> int:
    return cluster[0] * cluster[1] * cluster[2]


def place_in_cluster(rank: int, cluster: Dim3) -> Dim3:
    x, y, _ = cluster
    return rank % x, rank // x % y, rank // (x * y)


def cluster_errors(kernel: Kernel, launch: Launch) -> list[PptError]:
    """What is wrong with the cluster of a launch: it must divide the grid, fit its limits and the kernel's wish."""
    cluster, errors = cluster_of(kernel, launch), []
    text = "x".join(str(n) for n in cluster)
    if min(cluster) < 1 or blocks_of(cluster) > MOST_BLOCKS:
        errors.append(PptError(f"a cluster of {text} blocks", hint=f"it has 1 to {MOST_BLOCKS} blocks"))
    elif any(n % c for n, c in zip(launch.grid, cluster, strict=True)):
        grid = "x".join(str(n) for n in launch.grid)
        errors.append(PptError(f"the grid {grid} is no whole number of clusters of {text} blocks"))
    required = kernel.directives.get("reqnctapercluster")
    if required and cluster != (*required, 1, 1)[:3]:
        wish = "x".join(str(n) for n in required)
        errors.append(PptError(f"kernel '{short_name(kernel.name)}' requires clusters of {wish} blocks, not {text}"))
    return errors


def whole_clusters(blocks: Sequence[int], grid: Dim3, cluster: Dim3) -> list[int]:
    """The blocks of every cluster that has one of `blocks`, cluster by cluster, by rank."""
    if blocks_of(cluster) == 1:
        return list(dict.fromkeys(blocks))
    gx, gy, _ = grid
    cx, cy, cz = cluster
    found: dict[tuple[int, int, int], None] = {}
    for block in blocks:
        found[block % gx // cx, block // gx % gy // cy, block // (gx * gy) // cz] = None
    return [
        ((z * cz + k) * gy + y * cy + j) * gx + x * cx + i
        for x, y, z in found
        for k in range(cz)
        for j in range(cy)
        for i in range(cx)
    ]
