"""Which lines are in the L2 before this SM first asks: host copies, and what other SMs fetch.

* A host copy writes through the L2; the bytes copied last stay, as many as fit.
* A line that k SMs of the wave use is fetched from DRAM by one of them and found in the L2 by the k-1 others. k is
  estimated from a sample of other SMs: 1 + the sum over those that touch the line of the SMs that each stands for. Of
  such lines this SM finds a share of 1 - 1/k warm, chosen by a hash of the address.
* A line used by k SMs is stored once, so the slice of the L2 that one of S SMs sees holds more than 1/S of it:
  lines / sum(1/k) times as much (`Program.l2_share_factor`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.compiled import entry
from ppt_gpu.exec.trace import Range
from ppt_gpu.sm.lower_hash import Numbers, mix

_BITS = np.array([mask.bit_count() for mask in range(256)], np.float64)


def copied_lines(address: NDArray[np.uint64], ranges: Sequence[Range], capacity: int, line: int) -> NDArray[np.bool_]:
    """[L] lines that host copies left in an L2 of `capacity` bytes; the last of `ranges` was copied last."""
    warm = np.zeros(len(address), np.bool_)
    left = capacity
    for area in reversed([area for area in ranges if area.copied]):
        kept = min(left, area.bytes)
        if kept <= 0:
            continue
        left -= kept
        end = area.start + area.bytes
        first = area.start // line * line if kept == area.bytes else -(-(end - kept) // line) * line
        warm |= (address >= np.uint64(first)) & (address < np.uint64(end))
    return warm


@dataclass(frozen=True)
class Touched:
    """T transactions of the sampled SMs; those of one SM in its order."""

    address: NDArray[np.uint64]  # [T] of the line
    sectors: NDArray[np.uint8]  # [T]
    sm: NDArray[np.int32]  # [T] index of a sampled SM
    stands_for: NDArray[np.float64]  # [sampled SMs] how many of the other SMs each stands for


def sectors_used(line: NDArray[np.int32], sectors: NDArray[np.uint8], lines: int) -> NDArray[np.uint8]:
    """[L] the sectors of each line that transactions (line id, sectors) [T] touch."""
    used = np.zeros(lines, np.uint8)
    np.bitwise_or.at(used, line, sectors)
    return used


def sharers(
    address: NDArray[np.uint64], used: NDArray[np.uint8], others: Touched, active_sms: int
) -> NDArray[np.float64]:
    """[L] estimated number of SMs that use each line, from 1 to `active_sms`.

    used [L]: this SM's sectors. Another SM that touches only a part of them counts as that part.
    """
    if len(others.stands_for) == 0 or len(address) == 0:
        return np.ones(len(address))
    numbers = Numbers(len(address))
    numbers.add(address)
    last, left = np.full(len(address), -1, np.int32), np.zeros(len(address), np.uint8)
    touched = np.zeros(len(address), np.float64)
    line = numbers.look_up(others.address)
    known = np.flatnonzero(line >= 0)  # few, where blocks share little: less to sort
    short = np.uint16 if len(others.stands_for) <= 1 << 16 else np.uint32  # short numbers are sorted by counting
    order = known[np.argsort(others.sm[known].astype(short), kind="stable")]
    sectors, sm = others.sectors[order], others.sm[order]
    _touched(line[order], sectors, sm, others.stands_for, used, _BITS, last, left, touched)
    return np.minimum(1.0 + touched, float(active_sms))


@entry
def _touched(
    line: np.ndarray, sectors: np.ndarray, sm: np.ndarray, stands_for: np.ndarray, used: np.ndarray, bits: np.ndarray,
    last: np.ndarray, left: np.ndarray, total: np.ndarray,
) -> None:  # fmt: skip
    """[L] total: how many of the other SMs touch the sectors used of each line. Transactions SM by SM.

    last [L]: the SM that touched the line last, left [L]: sectors used that this SM has not touched yet.
    """
    for t in range(len(line)):
        number = line[t]
        if last[number] != sm[t]:
            last[number] = sm[t]
            left[number] = used[number]
        new = left[number] & sectors[t]
        left[number] ^= new
        total[number] += stands_for[sm[t]] * bits[new] / bits[used[number]]


def fetched_by_others(address: NDArray[np.uint64], users: NDArray[np.float64]) -> NDArray[np.bool_]:
    """[L] lines that another of their `users` fetched first: a share of 1 - 1/users, by a hash of the address."""
    fraction = (mix(address) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return fraction * users >= 1.0


def share_factor(users: NDArray[np.float64]) -> float:
    """How much more than 1/S of the L2 one SM sees: lines / sum(1/users), at least 1."""
    return float(len(users) / np.sum(1.0 / users)) if len(users) else 1.0
