"""Which lines another SM fetches, and which of these are still on their way when this SM asks for them too.

SMs run alike, so a line that several of them ask for at the same moment (`moments`) is on its way for all of them: one
fetches it, the others wait as long. It is there for an SM when another one has come to it at an earlier moment: the
warp that did has waited for it since.

Who fetches a line is known where all its users are sampled one by one: who comes first, and of those that come at the
same moment each a share of the lines. So a stencil's blocks fetch their own part, and find their neighbours'. Of other
lines this SM fetches one of as many as there are users (`sharing`); users that were not sampled are as often earlier as
those that were, of all lines in the buffer, and no two of them at the same line (which gives the fewest lines that
nobody is earlier at); but nobody is earlier at a line to which this SM comes before the sampled ones come to any
line of the buffer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.compiled import entry
from ppt_gpu.sm.sharing import BITS, Touches, Users, chance, fetched_by_others

#: the first moment of a line that nobody asks for
NEVER = np.iinfo(np.int64).max


def first_moments(touches: Touches, lines: int) -> NDArray[np.int64]:
    """[L] the first moment at which each line is touched; NEVER."""
    first = np.full(lines, NEVER)
    np.minimum.at(first, touches.line, touches.moment)
    return first


@dataclass(frozen=True)
class ByOthers:
    """Of L lines, which another SM fetches."""

    fetched: NDArray[np.bool_]
    coming: NDArray[np.bool_]  # those of them that are on their way when this SM asks


def by_others(
    address: NDArray[np.uint64],
    users: Users,
    first: NDArray[np.int64],
    used: NDArray[np.uint8],
    others: Touches,
    area: NDArray[np.int64],
) -> ByOthers:
    """first, used [L]: this SM's first moment and sectors of each line; area [L]: its buffer."""
    found = asked(others, used, first)
    fetched = fetched_by_others(address, users.sectors)
    coming = _coming(address, users.sectors, first, found, others, area)
    sampled = users.unknown < 0.5  # less than half a user of the line is one that was not sampled for itself
    before = found.covered > 0.0
    share = (1.0 - found.covered) / (1.0 + np.where(before, 0.0, found.together))
    return ByOthers(
        np.where(sampled, chance(address) >= share, fetched),
        np.where(sampled, ~before & (found.together > 0.0), coming),
    )


def _coming(
    address: NDArray[np.uint64],
    users: NDArray[np.float64],
    first: NDArray[np.int64],
    found: Asked,
    others: Touches,
    area: NDArray[np.int64],
) -> NDArray[np.bool_]:
    """[L] lines that no other of their `users` asked for before this SM did: if one fetches them, then now."""
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
    covered: NDArray[np.float64]  # [L] part of the sectors that some do before
    together: NDArray[np.float64]  # [L] how many do at the same moment; who asks for a part counts as that part


def asked(touches: Touches, used: NDArray[np.uint8], first: NDArray[np.int64]) -> Asked:
    """used, first [L]: sectors that this SM uses, and when it does first."""
    counts, last = np.zeros((2, len(first)), np.int64), np.full((3, len(first)), -1, np.int32)
    before, left = np.zeros(len(first), np.uint8), np.zeros(len(first), np.uint8)
    together = np.zeros(len(first), np.int64)
    _asked(touches.line, touches.sectors, touches.sm, touches.moment, used, first, last, counts, before, left, together)
    sectors = np.maximum(BITS[used], 1.0)
    return Asked(counts[0], counts[1], BITS[before] / sectors, together / sectors)


@entry
def _asked(
    line: np.ndarray, sectors: np.ndarray, sm: np.ndarray, moment: np.ndarray, used: np.ndarray, first: np.ndarray,
    last: np.ndarray, counts: np.ndarray, before: np.ndarray, left: np.ndarray, together: np.ndarray,
) -> None:  # fmt: skip
    """Fill counts [2, L], before [L]: sectors asked for earlier, together [L]: sectors asked for at the same moment, of
    each SM. Touches SM by SM. last [3, L]: the SM counted last, the one counted as earlier, and the one of `left` [L]:
    sectors that it has not asked for at the same moment."""
    for t in range(len(line)):
        number = line[t]
        new = used[number] & sectors[t]
        if new == 0:
            continue
        if last[0, number] != sm[t]:
            last[0, number] = sm[t]
            counts[0, number] += 1
        if moment[t] < first[number]:
            before[number] |= new
            if last[1, number] != sm[t]:
                last[1, number] = sm[t]
                counts[1, number] += 1
        elif moment[t] == first[number]:
            if last[2, number] != sm[t]:
                last[2, number] = sm[t]
                left[number] = used[number]
            new &= left[number]
            left[number] ^= new
            while new:
                together[number] += new & 1
                new >>= 1
