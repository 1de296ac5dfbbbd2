"""Lines that the L2 keeps for this SM because others use them again and again, at other moments than it does.

One SM sees its share of the L2, where a table that all SMs gather from, each at its own time, would be pushed out
between two of its own uses, by data that it streams. On the chip the others' uses keep it there. How long a line stays
after its last use, T, follows from how often all SMs together come to each line: so many lines that they fill the L2
have been used within T (Che, Tung, Wang, "Hierarchical Web Caching Systems", IEEE JSAC 20, 2002), uses of a line taken
as independent. An SM finds a line if another one has used it within T. What all SMs come to at the same moment
(`moments`) they come to once: then none keeps it for the next.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.compiled import entry
from ppt_gpu.sm.accesses.sharing import Touches, Users, Waves, chance

#: halvings of the interval in which T is looked for
STEPS = 30


def kept_lines(
    address: NDArray[np.uint64], users: Users, own: Touches, others: Touches, waves: Waves, capacity: float
) -> NDArray[np.bool_]:
    """[L] lines that others keep in an L2 of `capacity` lines. own, others: when they come to these lines."""
    nobody = np.zeros(len(address), np.bool_)
    at_once = waves.sms / users.line  # lines of the chip that each stands for
    if float(np.sum(at_once)) <= capacity:
        return nobody  # this SM's share holds all of them
    mine, theirs = uses(own, others, len(address))
    if not theirs.any():
        return nobody
    stays = _stays(at_once, mine + theirs, capacity)
    return chance(address | np.uint64(1)) < -np.expm1(-theirs * stays)


def uses(own: Touches, others: Touches, lines: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """[L] at how many moments this SM comes to each line, and how often others do, all of them, at other ones."""
    mine, theirs = np.zeros(lines), np.zeros(lines)
    order = np.lexsort((own.moment, own.line))
    line, moment = own.line[order].astype(np.int64), own.moment[order]
    new = (np.diff(line, prepend=-1) != 0) | (np.diff(moment, prepend=-1) != 0)
    line, moment = line[new], moment[new]
    np.add.at(mine, line, 1.0)
    start = np.searchsorted(line, np.arange(lines + 1))
    last_sm, last_moment = np.full(lines, -1, np.int64), np.full(lines, -1, np.int64)
    _others(start, moment, others.line, others.sm, others.moment, others.stands_for, last_sm, last_moment, theirs)
    return mine, theirs


@entry
def _others(
    start: np.ndarray, own: np.ndarray, line: np.ndarray, sm: np.ndarray, moment: np.ndarray, stands_for: np.ndarray,
    last_sm: np.ndarray, last_moment: np.ndarray, theirs: np.ndarray,
) -> None:  # fmt: skip
    """Add to `theirs`. start [L+1]: into `own`, the rising moments at which this SM comes to each line. last_*: the use
    of each line that was counted last."""
    for t in range(len(line)):
        number = line[t]
        if last_sm[number] == sm[t] and last_moment[number] == moment[t]:
            continue
        last_sm[number] = sm[t]
        last_moment[number] = moment[t]
        low, high = start[number], start[number + 1]
        while low < high:
            middle = (low + high) // 2
            if own[middle] < moment[t]:
                low = middle + 1
            else:
                high = middle
        if low == start[number + 1] or own[low] != moment[t]:
            theirs[number] += stands_for[sm[t]]


def _stays(lines: NDArray[np.float64], rate: NDArray[np.float64], capacity: float) -> float:
    """T: in so long, uses at these rates [L], each of so many `lines`, come to as many lines as there is room for.

    In the time in which the rates were counted; longer than that when not all of them fill it.
    """
    low, high = 0.0, 1.0

    def used(time: float) -> float:
        return float(np.sum(lines * -np.expm1(-rate * time)))

    if used(high) <= capacity:
        return capacity / used(high)
    for _ in range(STEPS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if used(middle) <= capacity else (low, middle)
    return low
