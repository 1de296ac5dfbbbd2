"""Which lines another SM fetches, and which sectors of these are still on their way when this SM asks for them too.

SMs run alike, so a sector that several of them ask for at the same moment (`moments`) is on its way for all of them:
one fetches it, the others wait as long. It is there for an SM when another one has come to it at an earlier moment:
the warp that did has waited for it since. (A gather comes to one sector of a line first, and to the next ones later,
when all SMs together have fetched them long since.)

Who fetches a sector is known where all users of its line are sampled one by one: who comes first, and of those that
come at the same moment each a share. So a stencil's blocks fetch their own part, and find their neighbours'. Of other
lines this SM fetches one of as many as there are users (`sharing`), rather sectors at which none of the sampled users
was earlier. Users that were not sampled are as often earlier as those that were, of all sectors in the buffer, and no
two of them at the same one (which gives the fewest that nobody is earlier at); but nobody is earlier at a sector to
which this SM comes before the sampled ones come to any line of the buffer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.compiled import entry
from ppt_gpu.sm.accesses.sharing import Touches, Users, chance

#: the first moment of a sector that nobody asks for
NEVER = np.iinfo(np.int64).max


def first_moments(touches: Touches, lines: int) -> NDArray[np.int64]:
    """[L, sectors of a line] the first moment at which each sector is touched; NEVER."""
    first = np.full((lines, int(touches.sectors.max(initial=1)).bit_length()), NEVER)
    _first_moments(touches.line, touches.sectors, touches.moment, first)
    return first


@entry
def _first_moments(line: np.ndarray, sectors: np.ndarray, moment: np.ndarray, first: np.ndarray) -> None:
    for t in range(len(line)):
        for sector in range(first.shape[1]):
            if sectors[t] >> sector & 1:
                first[line[t], sector] = min(first[line[t], sector], moment[t])


@dataclass(frozen=True)
class ByOthers:
    """Of L lines, masks of the sectors that another SM fetches."""

    fetched: NDArray[np.uint8]
    coming: NDArray[np.uint8]  # those of them that are on their way when this SM asks


def by_others(
    address: NDArray[np.uint64],
    users: Users,
    first: NDArray[np.int64],
    used: NDArray[np.uint8],
    others: Touches,
    area: NDArray[np.int64],
) -> ByOthers:
    """first [L, sectors of a line]: when this SM comes to each sector; used [L]: its sectors; area [L]: its buffer."""
    found = asked(others, used, first)
    sampled = (users.unknown < 0.5)[:, None]  # less than half a user of the line was not sampled for itself
    group = np.unique(area, return_inverse=True)[1]
    own = np.where(sampled, (found.earlier == 0) / (1.0 + found.at_once), _share(users.sectors, first, found, group))
    luck = chance(address)[:, None]
    late = np.where(sampled, (found.at_once > 0) * 1.0, _nobody(users.sectors, first, found, others, group))
    # where others fetch, `luck` is from `own` to below 1: their place in it is another even number
    place = np.divide(luck - own, 1.0 - own, out=np.zeros(first.shape), where=own < 1.0)
    fetched = luck >= own
    return ByOthers(_masks(fetched), _masks(fetched & (found.earlier == 0) & (place < late) & (first < NEVER)))


def _masks(chosen: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """[L] the chosen [L, sectors of a line] sectors as bits."""
    return np.packbits(chosen, axis=1, bitorder="little")[:, 0] if chosen.size else np.zeros(len(chosen), np.uint8)


def _share(
    users: NDArray[np.float64], first: NDArray[np.int64], found: Asked, group: NDArray[np.int64]
) -> NDArray[np.float64]:
    """[L, sectors of a line] how likely this SM is the one that fetches.

    One of its `users` is; in each buffer, rather of sectors at which none of the sampled SMs was earlier.
    """
    even = np.where(first < NEVER, 1.0 / users[:, None], 0.0)
    nobody_was = found.earlier == 0

    def raised(chosen: NDArray[np.bool_], wanted: NDArray) -> NDArray[np.float64]:
        have = np.bincount(group, np.where(chosen, even, 0.0).sum(axis=1))
        times = np.divide(wanted, have, out=np.zeros(len(have)), where=have > 0.0)
        return np.where(chosen, np.minimum(even * times[group, None], 1.0), 0.0)

    wanted = np.bincount(group, even.sum(axis=1))
    likely = raised(nobody_was, wanted)
    rest = wanted - np.bincount(group, likely.sum(axis=1))
    return likely + raised(~nobody_was, np.where(rest > 1e-9 * wanted, rest, 0.0))


def _nobody(
    users: NDArray[np.float64], first: NDArray[np.int64], found: Asked, others: Touches, group: NDArray[np.int64]
) -> NDArray[np.float64]:
    """[L, sectors of a line] how likely no other of the `users` asked before this SM, if none of the sampled did."""
    pairs, before = (np.bincount(group, each.sum(axis=1)) for each in (found.users, found.earlier))
    earlier = np.divide(before, pairs, out=np.zeros(len(pairs)), where=pairs > 0)
    begins = np.full(len(pairs), NEVER)  # of each buffer: when the first of the others comes to it
    np.minimum.at(begins, group[others.line], others.moment)
    share = np.where(first <= begins[group, None], 0.0, earlier[group, None])
    of_all = np.maximum(1.0 - share * np.maximum(users[:, None] - 1.0, found.users), 0.0)
    of_known = 1.0 - share * found.users
    return np.divide(of_all, of_known, out=np.zeros(first.shape), where=of_known > 0.0)


@dataclass(frozen=True)
class Asked:
    """Of the sectors of L lines that this SM uses, [L, sectors of a line]: how many of the sampled SMs ask for them."""

    users: NDArray[np.int32]
    earlier: NDArray[np.int32]  # before this SM
    at_once: NDArray[np.int32]  # at the same moment


def asked(touches: Touches, used: NDArray[np.uint8], first: NDArray[np.int64]) -> Asked:
    """used [L]: sectors that this SM uses; first [L, sectors of a line]: when it does first."""
    counts = np.zeros((3, *first.shape), np.int32)
    last = np.full((3, *first.shape), -1, np.int32)
    _asked(touches.line, touches.sectors, touches.sm, touches.moment, used, first, last, counts)
    return Asked(*counts)


@entry
def _asked(
    line: np.ndarray, sectors: np.ndarray, sm: np.ndarray, moment: np.ndarray, used: np.ndarray, first: np.ndarray,
    last: np.ndarray, counts: np.ndarray,
) -> None:  # fmt: skip
    """Fill counts [3, L, sectors of a line]: SMs that ask for a sector, before this SM, at the same moment. Touches SM
    by SM. last, of the same shape: the SM counted last."""
    for t in range(len(line)):
        number = line[t]
        for sector in range(first.shape[1]):
            if not used[number] & sectors[t] & 1 << sector:
                continue
            if last[0, number, sector] != sm[t]:
                last[0, number, sector] = sm[t]
                counts[0, number, sector] += 1
            if moment[t] < first[number, sector]:
                when = 1
            elif moment[t] == first[number, sector]:
                when = 2
            else:
                continue
            if last[when, number, sector] != sm[t]:
                last[when, number, sector] = sm[t]
                counts[when, number, sector] += 1
