"""How often DRAM has to open a row for what this SM asks of it, and what that costs all.

A channel can open a row only so often (tRRD, tFAW of its standard). As long as it moves enough bytes of each row that
is of no matter; where threads take 32 or 64 B here and there, DRAM spends its time with opening rows. Sectors of one
row (`dram.row_bytes`) that are asked for at the same moment (`moments`, of blocks that begin together) are moved while
it is open, whichever SMs ask; by the next moment it has been closed for others. What is written waits in the L2 for
what others write to its line, as long as that keeps it, and goes back with it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.hash_ids import Numbers, dense_ids
from ppt_gpu.sm.accesses.sharing import Touched, Users
from ppt_gpu.sm.l2_sharing.in_flight import NEVER, first_moments
from ppt_gpu.spec.gpu import Gpu


def opens_rows(gpu: Gpu) -> bool:
    """Whether it is known how often DRAM of `gpu` can open a row."""
    return gpu.dram.rows_per_ns > 0.0 and not gpu.perfect_memory


def row_openings(
    mine: Touched, load: NDArray[np.bool_], others: Touched, address: NDArray[np.uint64], users: Users, gpu: Gpu,
    sector: int,
) -> float:  # fmt: skip
    """How many times as long as bytes in an open row DRAM takes for what SMs ask of it, at least 1.

    mine, others: what this SM touches, and the sampled ones; moments of different turns of blocks differ. load [T]:
    what of mine is only read. address [L], users: of the lines of this SM. sector: B.
    """
    asked = [_asked(mine, load != writes, address, users, writes, gpu.dram.row_bytes) for writes in (False, True)]
    moved = sum(float(one.moved) for one in asked) * sector / (gpu.dram.bandwidth * 1e-9 * gpu.dram.efficiency)
    if sum(one.opened() for one in asked) <= moved * gpu.dram.rows_per_ns:  # also if nobody else asks for these rows
        return 1.0
    return max(1.0, sum(one.opened(others, gpu.dram.row_bytes) for one in asked) / gpu.dram.rows_per_ns / moved)


@dataclass(frozen=True)
class _Asked:
    """What this SM reads, or writes: N openings of rows if no other SM asks for them at the same moment."""

    row: NDArray[np.uint64]  # [N]
    moment: NDArray[np.int64]  # [N]
    part: NDArray[np.float64]  # [N] of each opening that is this SM's, as it shares sectors with others
    joined: NDArray[np.float64]  # [N] what is left of it if others join in later
    moved: float  # sectors

    def opened(self, others: Touched | None = None, row_bytes: int = 1) -> float:
        """How many rows are opened for this SM. others: who else asks for them."""
        part = self.part
        if others is not None and len(self.row):
            span = np.uint64(max(others.moment.max(initial=0), self.moment.max()) + 1)
            numbers = Numbers(len(self.row))
            numbers.add(self.row * span + self.moment.astype(np.uint64))
            at = numbers.look_up(others.address // np.uint64(row_bytes) * span + others.moment.astype(np.uint64))
            met, sms = at >= 0, max(len(others.stands_for), 1)
            pairs = dense_ids((at[met].astype(np.int64) * sms + others.sm[met]).view(np.uint64))[1]
            at, sm = np.divmod(pairs.view(np.int64), sms)
            part = np.minimum(1.0 / (1.0 + np.bincount(at, others.stands_for[sm], len(self.row))), part)
        return float((part * self.joined).sum())


def _asked(
    mine: Touched, chosen: NDArray[np.bool_], address: NDArray[np.uint64], users: Users, writes: bool, row_bytes: int
) -> _Asked:
    """chosen [T]: of `mine`, what is read or what is written."""
    some = replace(
        mine,
        address=mine.address[chosen],
        sectors=mine.sectors[chosen],
        sm=mine.sm[chosen],
        moment=mine.moment[chosen],
    )
    first = first_moments(some.on(address), len(address))
    line, which = np.nonzero(first != NEVER)
    once = 1.0 / users.sectors[line]  # of a sector that several SMs use each moves a part
    later = users.sectors[line] / users.line[line] if writes else np.ones(len(line))
    row, moment = address[line] // np.uint64(row_bytes), first[line, which]
    span = np.uint64(moment.max(initial=0) + 1)
    keys, group = np.unique(row * span + moment.astype(np.uint64), return_inverse=True)
    size = np.bincount(group)
    row, of = np.divmod(keys, span)
    part, joined = np.bincount(group, once) / size, np.bincount(group, later) / size
    return _Asked(row, of.astype(np.int64), part, joined, float(once.sum()))
