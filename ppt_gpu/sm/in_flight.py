"""Lines that another SM fetches, and that are still on their way when this SM asks for them too.

SMs run alike, so a line that several of them ask for at the same moment (`moments`) is on its way for all of them: one
fetches it, the others wait as long. It is there for an SM when another one has come to it at an earlier moment: the
warp that did has waited for it since. Users of a line that were not sampled are as often earlier as those that were, of
all lines in its buffer, and no two of them at the same line (which gives the fewest lines that nobody is earlier at);
but nobody is earlier at a line to which this SM comes before the sampled ones come to any line of the buffer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.compiled import entry
from ppt_gpu.sm.sharing import Touches, chance

#: the first moment of a line that nobody asks for
NEVER = np.iinfo(np.int64).max


def first_moments(touches: Touches, lines: int) -> NDArray[np.int64]:
    """[L] the first moment at which each line is touched; NEVER."""
    first = np.full(lines, NEVER)
    np.minimum.at(first, touches.line, touches.moment)
    return first


def coming(
    address: NDArray[np.uint64],
    users: NDArray[np.float64],
    first: NDArray[np.int64],
    used: NDArray[np.uint8],
    others: Touches,
    area: NDArray[np.int64],
) -> NDArray[np.bool_]:
    """[L] lines that no other of their `users` asked for before this SM did: if one fetches them, then now.

    first, used [L]: this SM's first moment and sectors; area [L]: the buffer of each line.
    """
    found = asked(others, used, first)
    _, group = np.unique(area, return_inverse=True)
    pairs, before = np.bincount(group, found.users), np.bincount(group, found.earlier)
    share = np.divide(before, pairs, out=np.zeros(len(pairs)), where=pairs > 0)[group]
    begins = np.full(len(pairs), NEVER)  # of each buffer: when the first of the others comes to it
    np.minimum.at(begins, group[others.line], others.moment)
    share[first <= begins[group]] = 0.0
    of_all = np.maximum(1.0 - share * np.maximum(users - 1.0, found.users), 0.0)
    of_known = 1.0 - share * found.users
    nobody = np.divide(of_all, of_known, out=np.zeros(len(users)), where=(found.earlier == 0) & (of_known > 0.0))
    # of lines that others fetch, `taken` is from 1 to below `users`: their place in it is another even number
    taken = chance(address) * users
    place = np.divide(taken - 1.0, users - 1.0, out=np.zeros(len(users)), where=users > 1.0)
    return place < nobody


@dataclass(frozen=True)
class Asked:
    """Of L lines: which of the sampled SMs ask for sectors that this SM uses."""

    users: NDArray[np.int64]  # [L] how many do
    earlier: NDArray[np.int64]  # [L] how many do before this SM


def asked(touches: Touches, used: NDArray[np.uint8], first: NDArray[np.int64]) -> Asked:
    """used, first [L]: sectors that this SM uses, and when it does first."""
    counts = np.zeros((2, len(first)), np.int64)
    last = np.full((2, len(first)), -1, np.int32)
    _asked(touches.line, touches.sectors, touches.sm, touches.moment, used, first, last, counts)
    return Asked(*counts)


@entry
def _asked(
    line: np.ndarray, sectors: np.ndarray, sm: np.ndarray, moment: np.ndarray, used: np.ndarray, first: np.ndarray,
    last: np.ndarray, counts: np.ndarray,
) -> None:  # fmt: skip
    """Fill counts [2, L], touches SM by SM. last [2, L]: the SM counted last, and the one counted as earlier."""
    for t in range(len(line)):
        number = line[t]
        if used[number] & sectors[t] == 0:
            continue
        if last[0, number] != sm[t]:
            last[0, number] = sm[t]
            counts[0, number] += 1
        if moment[t] < first[number] and last[1, number] != sm[t]:
            last[1, number] = sm[t]
            counts[1, number] += 1
