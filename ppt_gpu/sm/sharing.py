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
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ppt_gpu.exec.trace import Range
from ppt_gpu.sm.lower_hash import build_table, find, mix

_BITS = np.array([mask.bit_count() for mask in range(256)], np.float64)


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


@dataclass(frozen=True)
class Touched:
    """T transactions of the sampled SMs, in the order of SMs."""

    address: NDArray[np.uint64]  # [T] of the line
    sectors: NDArray[np.uint8]  # [T]
    sm: NDArray[np.int32]  # [T] 0 .. sampled-1
    sampled: int


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
    if others.sampled == 0 or len(address) == 0:
        return np.ones(len(address))
    capacity = 1 << int(2 * len(address)).bit_length()
    touched = _touched(address, used, capacity, others.address, others.sectors, others.sm)
    return 1.0 + (active_sms - 1) * touched / others.sampled


@njit(cache=True)
def _touched(
    address: np.ndarray, used: np.ndarray, capacity: int, other_address: np.ndarray, other_sectors: np.ndarray,
    other_sm: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """[L] how many of the sampled SMs touch the sectors used of each line."""
    table = build_table(address, len(address), capacity)
    total = np.zeros(len(address), np.float64)
    sm = np.full(len(address), -1, np.int32)
    left = np.zeros(len(address), np.uint8)  # sectors that SM `sm` has not touched yet
    for t in range(len(other_address)):
        number = table[find(other_address[t], address, table)]
        if number < 0:
            continue
        if sm[number] != other_sm[t]:
            sm[number] = other_sm[t]
            left[number] = used[number]
        new = left[number] & other_sectors[t]
        left[number] ^= new
        total[number] += _BITS[new] / _BITS[used[number]]
    return total


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
