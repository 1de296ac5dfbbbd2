"""How often DRAM has to open a row for what this SM asks of it, and what that costs all.

A channel can open a row only so often (tRRD, tFAW of its standard). As long as it moves enough bytes of each row that
is of no matter; where threads take 32 or 64 B here and there, DRAM spends its time with opening rows. Sectors of one
row (`dram.row_bytes`) that are asked for at the same moment (`moments`, of blocks that begin together) are moved while
it is open, whichever SMs ask; by the next moment it has been closed for others. What is written waits in the L2 for
what others write to its line, as long as that keeps it, and goes back with it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.sm.in_flight import NEVER, first_moments
from ppt_gpu.sm.lower_hash import Numbers
from ppt_gpu.sm.sharing import Touched, Users
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
    opened = moved = 0.0
    for writes in (False, True):
        chosen = load != writes
        some = replace(mine, address=mine.address[chosen], sectors=mine.sectors[chosen], sm=mine.sm[chosen],
                       moment=mine.moment[chosen])  # fmt: skip
        first = first_moments(some.on(address), len(address))
        line, which = np.nonzero(first != NEVER)
        once = 1.0 / users.sectors[line]  # of a sector that several SMs use each moves a part
        with_others = users.sectors[line] / users.line[line] if writes else np.ones(len(line))
        moved += float(once.sum())
        opened += _opened(address[line], first[line, which], once, with_others, others, gpu.dram.row_bytes)
    if not moved:
        return 1.0
    return max(1.0, opened / gpu.dram.rows_per_ns / (moved * sector / _bytes_per_ns(gpu)))


def _bytes_per_ns(gpu: Gpu) -> float:
    return gpu.dram.bandwidth * 1e-9 * gpu.dram.efficiency


def _opened(
    address: NDArray[np.uint64],
    moment: NDArray[np.int64],
    once: NDArray[np.float64],
    with_others: NDArray[np.float64],
    others: Touched,
    row_bytes: int,
) -> float:
    """Rows that are opened for sectors [N] of this SM.

    once: the part of each that this SM moves; with_others: what is left of an opening if others join in later.
    """
    if not len(address):
        return 0.0
    rows = np.unique(address // np.uint64(row_bytes))
    span = int(max(others.moment.max(initial=0), moment.max())) + 1
    own = np.searchsorted(rows, address // np.uint64(row_bytes)) * span + moment
    keys, group = np.unique(own, return_inverse=True)
    size = np.bincount(group)
    numbers = Numbers(len(rows))
    numbers.add(rows)
    place = numbers.look_up(others.address // np.uint64(row_bytes))
    known = place >= 0
    asked = place[known].astype(np.int64) * span + others.moment[known]
    at = np.minimum(np.searchsorted(keys, asked), len(keys) - 1)
    met = keys[at] == asked
    pairs = np.unique(at[met] * len(others.stands_for) + others.sm[known][met])
    at, sm = np.divmod(pairs, max(len(others.stands_for), 1))
    users = 1.0 + np.bincount(at, others.stands_for[sm], len(keys))
    part, joined = np.bincount(group, once) / size, np.bincount(group, with_others) / size
    return float((np.minimum(1.0 / users, part) * joined).sum())
