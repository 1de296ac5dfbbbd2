"""Which lines are in the L2 before this SM first asks: host copies, and what other SMs fetch.

* A host copy writes through the L2; the bytes copied last stay, as many as fit.
* A line that k SMs of the wave use is fetched from DRAM by one of them and found in the L2 by the k-1 others. k is
  estimated from a sample of other SMs: k = 1 + (S-1) * (sampled SMs that touch the line) / (sampled SMs). Of such
  lines this SM finds a share of 1 - 1/k warm, chosen by a hash of the address.
* A line used by k SMs is stored once, so the slice of the L2 that one of S SMs sees holds more than 1/S of it:
  lines / sum(1/k) times as much (`Program.l2_share_factor`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ppt_gpu.exec.trace import Range
from ppt_gpu.sm.lower_hash import build_table, find, mix


def copied_lines(
    address: NDArray[np.uint64], ranges: Sequence[Range], capacity: int, line: int
) -> NDArray[np.bool_]:
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


def sharers(
    line_address: NDArray[np.uint64],
    other_address: NDArray[np.uint64],
    other_sm: NDArray[np.int32],
    sampled: int,
    active_sms: int,
) -> NDArray[np.float64]:
    """[L] estimated number of SMs that use each line, from 1 to `active_sms`.

    other_address, other_sm [T]: line addresses that the sampled SMs touch, and which SM (0 .. sampled-1),
    in the order of SMs.
    """
    if sampled == 0 or len(line_address) == 0:
        return np.ones(len(line_address))
    capacity = 1 << int(2 * len(line_address)).bit_length()
    touched = _touched(line_address, capacity, other_address, other_sm)
    return 1.0 + (active_sms - 1) * touched / sampled


@njit(cache=True)
def _touched(
    line_address: np.ndarray, capacity: int, other_address: np.ndarray, other_sm: np.ndarray
) -> np.ndarray:
    """[L] how many of the sampled SMs touch each line."""
    table = build_table(line_address, len(line_address), capacity)
    count = np.zeros(len(line_address), np.int32)
    seen = np.full(len(line_address), -1, np.int32)
    for t in range(len(other_address)):
        number = table[find(other_address[t], line_address, table)]
        if number >= 0 and seen[number] != other_sm[t]:
            seen[number] = other_sm[t]
            count[number] += 1
    return count


def fetched_by_others(address: NDArray[np.uint64], users: NDArray[np.float64]) -> NDArray[np.bool_]:
    """[L] lines that another of their `users` fetched first: a share of 1 - 1/users, by a hash of the address."""
    return _hash_fraction(address) * users >= 1.0


@njit(cache=True)
def _hash_fraction(address: np.ndarray) -> np.ndarray:
    fraction = np.empty(len(address), np.float64)
    for i in range(len(address)):
        fraction[i] = np.float64(mix(address[i]) >> np.uint64(11)) * 2.0**-53
    return fraction


def share_factor(users: NDArray[np.float64]) -> float:
    """How much more than 1/S of the L2 one SM sees: lines / sum(1/users), at least 1."""
    return float(len(users) / np.sum(1.0 / users)) if len(users) else 1.0
