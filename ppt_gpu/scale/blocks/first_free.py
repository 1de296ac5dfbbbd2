"""How many blocks the SM gets whose slots are free first, in a launch of a few waves.

Each next block goes to the SM that frees a slot first. Where the blocks that an SM holds end one by one, further apart
than SMs are from one another, every SM gets its even share. Where they end close to each other, whoever is a little
earlier frees many slots before the others free any, and gets more blocks than they: the launch ends with it.

SMs, and the blocks in their slots, are apart by what the first access to a line decides: one finds it in the L2, where
another has to wait for DRAM. Between 0 and the difference of the two latencies everything is as likely. With an even
share a launch is taken to end with the simulated SM, so the last one is where that is; the first is before it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.scale.blocks.distribution import GridSpread
from ppt_gpu.scale.blocks.strata import GOLDEN
from ppt_gpu.spec.gpu import Gpu

#: as GOLDEN, whose multiples, less their whole parts, fill [0, 1) evenly, however many are taken
SILVER = 2**0.5 - 1


@dataclass(frozen=True)
class FirstFree:
    """The SM that gets the most blocks."""

    later_blocks: tuple[int, ...]  # ids of those after its first wave
    earlier: float  # cycles by which it is before the last SM


def first_free(ends: NDArray[np.int64], spread: GridSpread, gpu: Gpu) -> FirstFree:
    """Of SMs that are apart, which gets the most blocks of a launch of more than one wave.

    ends: [n] cycles at which the blocks of one SM ended, which had at least an even share of them.
    """
    sms, slots = spread.sms, len(ends)
    apart = 0 if gpu.perfect_memory else max(gpu.dram.latency - gpu.l2.latency, 0)
    sm = apart * ((np.arange(1, sms + 1) * GOLDEN) % 1.0 - 0.5)
    if gpu.host.blocks_per_cycle:
        sm += (np.arange(sms) - (sms - 1) / 2.0) / gpu.host.blocks_per_cycle
    slot = apart * ((np.arange(1, sms * slots + 1) * SILVER) % 1.0 - 0.5).reshape(sms, slots)
    free = np.sort(ends)[np.newaxis] + sm[:, np.newaxis] + slot
    first = spread.resident * spread.sms
    given = np.argsort(free, axis=None, kind="stable")[: spread.grid_blocks - first]  # in the order of the blocks
    taken = np.bincount(given // slots, minlength=sms)
    most = np.flatnonzero(taken == taken.max())
    last = int(most[np.argmax(sm[most])])  # of those that get most
    blocks = first + np.flatnonzero(given // slots == last)
    return FirstFree(tuple(blocks.tolist()), float(sm.max() - sm[last]))
