"""How much longer, or shorter, the L2 takes for sectors that many SMs ask for at the same moment (`moments`).

`l2.bandwidth` is what SMs get that are out of step. When all ask for the same lines in the same order, the requests on
their way are for few lines, which the slices of the L2 share unevenly: some slices idle while others have a queue. From
Hopper on a unit in front of the slices has reads of a sector that come together served by one. `l2.in_step` says how
many times `l2.bandwidth` they get then; where a share f of all blocks that run reads a sector at the same moment it is
1 + (in_step - 1) f, as measured on Hopper, where blocks read one of p parts: f = 1 / p (validation/RESULTS.md).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.sm.accesses.sharing import Touches
from ppt_gpu.sm.l2_sharing.in_flight import NEVER


def time_in_step(
    loaded: NDArray[np.uint8], first: NDArray[np.int64], others: Touches, active_sms: int, resident: int, in_step: float
) -> float:
    """How many times as long as out of step the L2 takes for a sector that is read, in the mean.

    loaded [L]: masks of the sectors of each line that this SM loads; first [L, sectors of a line]: when it first comes
    to each; others: the touches of those lines by sampled SMs; resident: blocks that an SM runs at a time.
    """
    bits = first.shape[1]
    wanted = (loaded[:, None] >> np.arange(bits, dtype=np.uint8) & 1).astype(np.bool_) & (first < NEVER)
    if in_step == 1.0 or active_sms < 2 or not wanted.any():
        return 1.0
    sms = _sms_at_once(wanted, first, others) / (active_sms - 1)
    blocks = 1.0 - (1.0 - np.minimum(sms, 1.0)) ** (1.0 / resident)  # an SM asks when one of its blocks does
    return float((1.0 / (1.0 + (in_step - 1.0) * blocks[wanted])).mean())


def _sms_at_once(wanted: NDArray[np.bool_], first: NDArray[np.int64], others: Touches) -> NDArray[np.float64]:
    """[L, sectors of a line] how many other SMs ask for each wanted sector at the moment that this SM does."""
    found = np.zeros(first.shape)
    sampled = len(others.stands_for)
    for bit in range(first.shape[1]):
        meets = wanted[others.line, bit] & (first[others.line, bit] == others.moment)
        meets &= (others.sectors >> np.uint8(bit) & 1).astype(np.bool_)
        pairs = np.unique(others.line[meets].astype(np.int64) * sampled + others.sm[meets])
        found[:, bit] = np.bincount(pairs // max(sampled, 1), others.stands_for[pairs % max(sampled, 1)], len(first))
    return found
