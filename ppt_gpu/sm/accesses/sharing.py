"""Which lines are in the L2 before this SM first asks: what other SMs fetch.

* A line that k SMs of the wave use is fetched from DRAM by one of them and found in the L2 by the k-1 others. k is
  estimated from a sample of other SMs: 1 + the sum over those that touch the line of the SMs that each stands for. Of
  such lines this SM does not fetch a share of 1 - 1/k, chosen by a hash of the address; `in_flight` says which of them
  are still on their way, and who fetches where all users are known.
* Few of many SMs are sampled, so the share of them that touches a line is known roughly only, and 1 - 1/k of a rough k
  is too little in the mean. How far the lines of a buffer really differ in that share shows in how much more their
  samples differ than chance would have it (method of moments); by as much each keeps its own share, and takes the
  buffer's for the rest. (James and Stein's shrinkage, as an empirical Bayes estimator: Efron and Morris, "Data
  Analysis Using Stein's Estimator and Its Generalizations", JASA 70, 1975.)
* A line used by k SMs, whatever sectors of it they use, is stored once, so the slice of the L2 that one of S SMs sees
  holds more than 1/S of it: lines / sum(1/k) times as much (`Program.l2_share_factor`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.compiled import entry
from ppt_gpu.common.hash_ids import Numbers, mix
from ppt_gpu.workload.workload import Range

#: how many bits each byte has
BITS = np.array([mask.bit_count() for mask in range(256)], np.float64)
#: values in a run from which on moving runs takes less than sorting the values
RUN = 256

V = TypeVar("V", bound=np.generic)
Order = list[slice] | NDArray[np.int64]


def rising_order(values: NDArray[np.int32], below: int) -> Order:
    """The stable order in which `values` [T], from 0 to `below` - 1, rise.

    The transactions of a block are those of one SM, so that mostly whole runs of equal values are moved.
    """
    edges = (np.flatnonzero(values[1:] != values[:-1]) + 1).tolist()
    if len(edges) * RUN > len(values):
        short = np.uint16 if below <= 1 << 16 else np.uint32  # short numbers are sorted by counting
        return np.argsort(values.astype(short), kind="stable")
    runs = [slice(first, end) for first, end in zip([0, *edges], [*edges, len(values)], strict=True)]
    return sorted(runs, key=lambda run: int(values[run.start])) if edges else runs


def taken(values: NDArray[V], order: Order) -> NDArray[V]:
    """[T] the values in this order."""
    if not isinstance(order, list):
        return values[order]
    return values[order[0]] if len(order) == 1 else np.concatenate([values[run] for run in order])


@dataclass(frozen=True)
class Touched:
    """T transactions of the sampled SMs; those of one SM in its order."""

    address: NDArray[np.uint64]  # [T] of the line
    sectors: NDArray[np.uint8]  # [T]
    sm: NDArray[np.int32]  # [T] index of a sampled SM
    moment: NDArray[np.int64]  # [T] when its SM comes to it (`moments`)
    stands_for: NDArray[np.float64]  # [sampled SMs] how many of the other SMs each stands for

    def on(self, address: NDArray[np.uint64]) -> Touches:
        """Those of the lines at `address` [L]."""
        numbers = Numbers(len(address))
        numbers.add(address)
        line = numbers.look_up(self.address)
        sectors, sm, moment = self.sectors, self.sm, self.moment
        known = line >= 0
        if not known.all():  # few are, where blocks share little: less to sort
            line, sectors, sm, moment = line[known], sectors[known], sm[known], moment[known]
        order = rising_order(sm, len(self.stands_for))
        return Touches(
            taken(line, order), taken(sectors, order), taken(sm, order), taken(moment, order), self.stands_for
        )


@dataclass(frozen=True)
class Touches:
    """As Touched, of known lines, one SM after another."""

    line: NDArray[np.int32]  # [T] line id
    sectors: NDArray[np.uint8]  # [T]
    sm: NDArray[np.int32]  # [T]
    moment: NDArray[np.int64]  # [T]
    stands_for: NDArray[np.float64]  # [sampled SMs]

    def where(self, chosen: NDArray[np.bool_]) -> Touches:
        """Those of them for which `chosen` [T] holds."""
        return Touches(self.line[chosen], self.sectors[chosen], self.sm[chosen], self.moment[chosen], self.stands_for)


def sectors_used(line: NDArray[np.int32], sectors: NDArray[np.uint8], lines: int) -> NDArray[np.uint8]:
    """[L] the sectors of each line that transactions (line id, sectors) [T] touch."""
    used = np.zeros(lines, np.uint8)
    np.bitwise_or.at(used, line, sectors)
    return used


@dataclass(frozen=True)
class Users:
    """How many SMs use each of L lines, this one among them: from 1 to all that are active."""

    sectors: NDArray[np.float64]  # [L] of those that this SM uses; who uses a part of them counts as that part
    line: NDArray[np.float64]  # [L] whatever sectors
    unknown: NDArray[np.float64]  # [L] of these, the ones that were not sampled one by one

    @classmethod
    def alone(cls, lines: int) -> Users:
        """Nobody else."""
        return cls(np.ones(lines), np.ones(lines), np.zeros(lines))


def sharers(
    used: NDArray[np.uint8],
    others: Touches,
    active_sms: int,
    area: NDArray[np.int64] | None = None,
) -> Users:
    """The estimated number of SMs that use each line.

    used [L]: this SM's sectors. area [L]: the buffer of each line, whose lines are estimated together; None: each line
    by itself.
    """
    lines = len(used)
    if len(others.stands_for) == 0 or lines == 0:
        return Users.alone(lines)
    last, left = np.full(lines, -1, np.int32), np.zeros(lines, np.uint8)
    touched, sampled = np.zeros((2, lines)), np.zeros((2, lines))  # of the sectors used, of the line
    _touched(others.line, others.sectors, others.sm, others.stands_for, used, BITS, last, left, touched, sampled)
    many = others.stands_for[others.stands_for > 1.0]
    if area is not None and len(many) > 1:
        sampled = np.stack([settled(each / many.sum(), len(many), area) * many.sum() for each in sampled])
    sectors, line = np.minimum(1.0 + touched + sampled, float(active_sms))
    return Users(sectors, line, sampled[1])


@dataclass(frozen=True)
class Waves:
    """The waves of blocks that were sampled, of all SMs."""

    count: int
    moments: int  # from one to the next
    sms: int


def while_kept(
    used: NDArray[np.uint8],
    others: Touches,
    first: NDArray[np.int64],
    waves: Waves,
    capacity: float,
    area: NDArray[np.int64],
) -> Touches:
    """Those of `others` that come to a line so soon before or after this SM that the L2 keeps it in between.

    used, first, area [L]: sectors that this SM uses, when it does first, and the buffer of each line. capacity: lines
    that the L2 holds. In every wave all SMs together fetch as many new ones as this SM, each with the users that it
    has in the wave; after as many as the capacity a line is gone.
    """
    if waves.sms * len(used) <= capacity:
        return others
    apart = np.abs(others.moment - first[others.line])
    users = sharers(used, others.where(apart < waves.moments), waves.sms, area)
    new = waves.sms * float((1.0 / users.line).sum()) / waves.count
    return others.where(apart * new <= capacity * waves.moments)


def settled(share: NDArray[np.float64], samples: int, area: NDArray[np.int64]) -> NDArray[np.float64]:
    """[L] what share of the SMs touches each line, where a share of `samples` of them did; area [L]: its buffer."""
    _, group = np.unique(area, return_inverse=True)
    lines = np.bincount(group)
    mean = np.bincount(group, share) / lines
    by_chance = mean * (1.0 - mean)
    observed = np.bincount(group, (share - mean[group]) ** 2) / lines
    real = np.clip((observed - by_chance / samples) / (1.0 - 1.0 / samples), 0.0, by_chance)
    rest = (by_chance - real) / samples
    kept = np.divide(real, real + rest, out=np.ones(len(lines)), where=real + rest > 0.0)
    few = np.maximum(lines - 3, 0) / np.maximum(lines - 1, 1)  # of few lines nobody knows how far they differ
    taken = ((1.0 - kept) * few)[group]
    return (1.0 - taken) * share + taken * mean[group]


@entry
def _touched(
    line: np.ndarray, sectors: np.ndarray, sm: np.ndarray, stands_for: np.ndarray, used: np.ndarray, bits: np.ndarray,
    last: np.ndarray, left: np.ndarray, known: np.ndarray, sampled: np.ndarray,
) -> None:  # fmt: skip
    """[2, L] how many of the other SMs touch the sectors used of each line, and the line: of those that stand for
    themselves, and more. Transactions SM by SM.

    last [L]: the SM that touched the line last, left [L]: sectors used that this SM has not touched yet.
    """
    for t in range(len(line)):
        number = line[t]
        weight = stands_for[sm[t]]
        counted = sampled if weight > 1.0 else known
        if last[number] != sm[t]:
            last[number] = sm[t]
            left[number] = used[number]
            counted[1, number] += weight
        new = left[number] & sectors[t]
        left[number] ^= new
        counted[0, number] += weight * bits[new] / bits[used[number]]


def areas(address: NDArray[np.uint64], ranges: Sequence[Range]) -> NDArray[np.int64]:
    """[L] in which of the buffers each line begins, or behind which."""
    starts = np.sort(np.array([area.start for area in ranges], np.uint64))
    return np.searchsorted(starts, address, side="right").astype(np.int64)


def fetched_by_others(address: NDArray[np.uint64], users: NDArray[np.float64]) -> NDArray[np.bool_]:
    """[L] lines that another of their `users` fetched first: a share of 1 - 1/users, by a hash of the address."""
    return chance(address) * users >= 1.0


def chance(address: NDArray[np.uint64]) -> NDArray[np.float64]:
    """[L] numbers from 0 to below 1, evenly spread, by a hash of the address."""
    return (mix(address) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def share_factor(users: NDArray[np.float64]) -> float:
    """How much more than 1/S of the L2 one SM sees: lines / sum(1/users), at least 1."""
    return float(len(users) / np.sum(1.0 / users)) if len(users) else 1.0
