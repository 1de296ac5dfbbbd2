"""What GATSim's Algorithm 1 runs (paper 001): the machine, and the warps' instructions with latencies and accesses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

#: v_{b,i}: what Algorithm 1 does with an instruction. ACCESS: a memory instruction whose access is listed.
REGULAR, BARRIER, SFU, MEMORY, ACCESS = range(5)
#: which tag store an access looks into; PERFECT: none, every line hits; UNCACHED: none, every line misses
PERFECT, L1_GLOBAL, L1_LOCAL, CONSTANT, UNCACHED = range(5)
#: lines whose outcome is given
LINE_HITS, LINE_MISSES = -1, -2
POLICIES = ("lrr", "gto", "gto_launch")


@dataclass(frozen=True)
class GatsimWork:
    """The warps of B blocks on one SM: E instructions over all paths, W warps, M accesses, T lines."""

    path_start: NDArray[np.int64]  # [P+1]
    entry_kind: NDArray[np.int8]  # [E] REGULAR ... ACCESS
    entry_delay: NDArray[np.int64]  # [E] d_{b,i}, or a special instruction's latency; at least 1. Unused for ACCESS
    warp_path: NDArray[np.int32]  # [W] warps in block order
    warp_access: NDArray[np.int64]  # [W+1] first access of each warp, in the order of its stream
    block_warp: NDArray[np.int64]  # [B+1] first warp of each block, in the order in which the SM takes them
    access_start: NDArray[np.int64]  # [M+1] into the lines
    access_fixed: NDArray[np.int64]  # [M] cycles besides those of the lines
    access_store: NDArray[np.int8]  # [M] PERFECT ... UNCACHED
    access_write: NDArray[np.bool_]  # [M]
    access_line: NDArray[np.int64]  # [T] line numbers, each once an access; or LINE_HITS, LINE_MISSES

    @property
    def instructions(self) -> int:
        """Warp instructions of all warps."""
        return int(np.diff(self.path_start)[self.warp_path].sum())


@dataclass(frozen=True)
class TagStore:
    """A cache of whole lines, LRU. `sets` 0: there is none, every line misses."""

    sets: int = 0
    ways: int = 1


@dataclass(frozen=True)
class GatsimMachine:
    """One SM. `resident`: blocks at once (the printed algorithm has 1). Latencies in cycles, of one line."""

    schedulers: int = 1
    resident: int = 1
    memory_units: int = 1
    sfus: int = 1  # units that each serve a whole warp
    policy: str = "lrr"
    hit: int = 1
    miss: int = 1
    l1: TagStore = TagStore()
    constant: TagStore = TagStore()


@dataclass(frozen=True)
class GatsimTime:
    """What Algorithm 1 yields for one SM, in cycles. `cycles` is T_s."""

    cycles: int
    issued: int  # instructions
    idle: tuple[int, ...]  # cycles without an issue, by the kind of the instruction that the next warp waited for
    hits: int
    misses: int
    block_end: NDArray[np.int64]  # [B]


def straight_work(
    warps: list[list[int]], *, barriers: list[list[bool]] | None = None, warps_per_block: int | None = None
) -> GatsimWork:
    """Warps of given issue-to-issue latencies, as in the paper's example: `warps[p][k]` cycles."""
    lengths = [len(warp) for warp in warps]
    size = max(warps_per_block or len(warps), 1)
    return GatsimWork(
        path_start=np.cumsum([0, *lengths], dtype=np.int64),
        entry_kind=np.array(
            [BARRIER if at else REGULAR for warp in barriers or [[False] * n for n in lengths] for at in warp], np.int8
        ),
        entry_delay=np.array([delay for warp in warps for delay in warp], np.int64),
        warp_path=np.arange(len(warps), dtype=np.int32),
        warp_access=np.zeros(len(warps) + 1, np.int64),
        block_warp=np.array([*range(0, len(warps), size), len(warps)], np.int64),
        access_start=np.zeros(1, np.int64),
        access_fixed=np.zeros(0, np.int64),
        access_store=np.zeros(0, np.int8),
        access_write=np.zeros(0, np.bool_),
        access_line=np.zeros(0, np.int64),
    )
