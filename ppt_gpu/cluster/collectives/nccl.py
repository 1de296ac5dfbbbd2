"""NCCL: which algorithm and protocol it takes, by its own tuning constants, and how long that takes on a machine.

Its estimate is latency + bytes / bandwidth for each algorithm and protocol (`nccl_ways`), and the smallest wins. A
machine adds what the constants leave out: a fixed overhead, the latency of its network, and the filling of the
pipeline, whose chunks grow with the message up to a limit (the ramp of middle sizes).
"""

from __future__ import annotations

import math

from ppt_gpu.cluster.collectives.nccl_ways import SIMPLE, Estimate, Group, estimates, group_of
from ppt_gpu.spec.cluster import MachineSpec


def seconds(spec: MachineSpec, kind: str, nbytes: int, nodes: int, each: int) -> tuple[float, str]:
    """How long a collective takes and how it is carried out. The kinds and sizes of `machine.Machine.collective`."""
    group = group_of(spec, nodes, each)
    fit = spec.collectives
    if group.ranks == 1:
        return fit.overhead, "nothing to do"
    fill = fit.fill * nbytes / (nbytes + fit.fill_size) if nbytes else 0.0
    if kind == "all_to_all":
        return fit.overhead + fill + _exchange(group, nbytes), "send and receive"
    kind, nbytes = ("all_reduce", 4) if kind == "barrier" else (kind, nbytes)
    best = min((time_of(group, kind, nbytes, each), each.name, each) for each in estimates(group, kind))
    return fit.overhead + fill + best[0], best[1]


def _exchange(group: Group, nbytes: int) -> float:
    """Every GPU sends a part to every other: all at once, limited by the NVLinks of a GPU or the NICs of a node."""
    nccl, part = group.spec.nccl, nbytes / group.ranks
    inside = (group.each - 1) * part / group.within
    outside = (group.ranks - group.each) * group.each * part / group.between if group.nodes > 1 else 0.0
    step = nccl.nvlink_latency["ring"][SIMPLE] if group.each > 1 else 0.0
    if group.nodes > 1:
        step = max(step, nccl.network_latency["ring"][SIMPLE] + 2 * group.spec.network.collective_latency)
    return nccl.base_latency["ring"][SIMPLE] + step + max(inside, outside)


def time_of(group: Group, kind: str, nbytes: int, way: Estimate) -> float:
    """NCCL's estimate for a size: trees are slower in the middle, long rings between nodes have a plateau."""
    latency, bandwidth = way.latency, way.bandwidth
    power = int(math.log2(max(nbytes, 64) / 64))
    table = group.spec.nccl.tree_efficiency[way.protocol]
    if way.algorithm == "tree" and power < len(table):
        bandwidth *= table[power]
    share = nbytes / (group.spec.nccl.channels * group.ranks)
    if (way.algorithm, way.protocol, kind) == ("ring", SIMPLE, "all_reduce") and group.nodes > 1 and share >= 64:
        latency *= group.spec.nccl.plateau[group.generation]
    return latency + nbytes / bandwidth
