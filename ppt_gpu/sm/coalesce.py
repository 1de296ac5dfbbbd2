"""From the addresses of a warp's lanes to memory transactions, by the rules of each generation.

Rules (`gpu.memory.coalescing`), from the CUDA C Programming Guide, appendix "Compute Capabilities" (version 4.2,
sections F.3.2 to F.4.2, for 1.x and 2.x; version 12, "Global Memory" of each capability, for 3.x and later):

* "half_warp_1.0" (1.0, 1.1): per half warp. If the k-th lane accesses the k-th word of 4, 8 or 16 B of an aligned
  segment, one 64 B, one 128 B or two 128 B transactions; inactive lanes do no harm. Otherwise 32 B for every
  active lane.
* "half_warp_1.2" (1.2, 1.3): per half warp. The lowest remaining lane chooses an aligned segment of 32, 64 or 128 B
  (words of 1, 2, more bytes) that serves all lanes inside it; the segment is halved while only one half is used.
* "line" (2.x): the distinct lines of a warp, of each half warp for 8 B words, of each quarter warp for 16 B words.
  A load through the L1 fetches whole lines; other accesses move the 32 B sectors touched.
* "sector" (3.x and later): the distinct lines of a warp, with the sectors touched.

A transaction is (line, sector mask); the line number is relative to the base address rounded down to a line. Local
memory follows the same rules: the trace already has the addresses interleaved as hardware does, so that lanes that
access the same thread-local address are neighbours (guide, "Local Memory").
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

HALF_WARP_1_0, HALF_WARP_1_2, LINE, SECTOR = range(4)
i64: Any = np.int64  # inside compiled code: a plain signed integer
RULES = {"half_warp_1.0": HALF_WARP_1_0, "half_warp_1.2": HALF_WARP_1_2, "line": LINE, "sector": SECTOR}
WARP = 32
HALF = 16
#: Transactions that one access can make: 32 B of a lane touch at most two lines.
MAX_TRANSACTIONS = 2 * WARP


def distinct_lines(addresses: ArrayLike, line: int) -> int:
    """Number of lines of `line` bytes that the addresses fall in (GATSim, section II-D1)."""
    return len(np.unique(np.asarray(addresses, np.int64) // line))


def transactions(
    rule: str, offsets: NDArray[np.int64], mask: int, base: int, size: int, line: int, sector: int, whole: bool
) -> list[tuple[int, int]]:
    """(line, sector mask) of one access: offsets [32] from `base`, `size` bytes per lane, as the compiled loop does.

    `line` and `sector` in bytes, `whole`: rule "line" fetches whole lines.
    """
    found_line, found_mask = np.empty(MAX_TRANSACTIONS, np.int64), np.empty(MAX_TRANSACTIONS, np.uint8)
    count = coalesce(RULES[rule], offsets, mask, base, size, line, sector, whole, found_line, found_mask, 0)
    return [(int(found_line[i]), int(found_mask[i])) for i in range(count)]


@njit(cache=True)
def phase_lanes(size: int) -> int:
    """Lanes that one request serves: 32 for words up to 4 B, 16 for 8 B, 8 for 16 B, 4 for 32 B."""
    return WARP if size <= 4 else max(1, 4 * WARP // size)


@njit(cache=True)
def active_phases(mask: int, lanes: int) -> int:
    """Groups of `lanes` neighbouring lanes with at least one active lane."""
    count = 0
    for first in range(0, WARP, lanes):
        if (i64(mask) >> first) & ((1 << lanes) - 1):
            count += 1
    return count


@njit(cache=True)
def _merge(
    first: int, address: int, size: int, line: int, sector: int, out_line: np.ndarray, out_mask: np.ndarray, n: int
) -> int:
    """Add the sectors of `size` bytes at `address` to the transactions from `first` on; the new count."""
    per_line = line // sector
    for index in range(address // sector, (address + size - 1) // sector + 1):
        number = index // per_line
        bit = np.uint8(1 << (index - number * per_line))
        at = n - 1
        while at >= first and out_line[at] != number:
            at -= 1
        if at < first:
            out_line[n] = number
            out_mask[n] = bit
            n += 1
        else:
            out_mask[at] |= bit
    return n


@njit(cache=True)
def _lines(
    offsets: np.ndarray, mask: int, base: int, size: int, line: int, sector: int, lanes: int, whole: bool,
    out_line: np.ndarray, out_mask: np.ndarray, n: int,
) -> int:  # fmt: skip
    """Rules "line" and "sector": distinct lines of each group of `lanes` lanes."""
    start = n
    for group in range(0, WARP, lanes):
        first = n
        for lane in range(group, group + lanes):
            if (mask >> lane) & 1:
                n = _merge(first, base + offsets[lane], size, line, sector, out_line, out_mask, n)
    if whole:
        for i in range(start, n):
            out_mask[i] = np.uint8((1 << (line // sector)) - 1)
    return n


@njit(cache=True)
def _half_1_0(
    offsets: np.ndarray, mask: int, base: int, size: int, line: int, sector: int, half: int,
    out_line: np.ndarray, out_mask: np.ndarray, n: int,
) -> int:  # fmt: skip
    leader = 0
    while not (mask >> (half + leader)) & 1:
        leader += 1
    start = base + offsets[half + leader] - leader * size
    segment = 64 if size == 4 else 128
    ordered = (size == 4 or size == 8 or size == 16) and start % segment == 0
    for k in range(HALF):
        if (mask >> (half + k)) & 1 and base + offsets[half + k] != start + k * size:
            ordered = False
    if ordered:
        per_segment = segment // size
        for part in range(HALF // per_segment):
            if (mask >> (half + part * per_segment)) & ((1 << per_segment) - 1):
                n = _merge(n, start + part * segment, segment, line, sector, out_line, out_mask, n)
        return n
    for k in range(HALF):
        if (mask >> (half + k)) & 1:
            n = _merge(n, base + offsets[half + k], size, line, sector, out_line, out_mask, n)
    return n


@njit(cache=True)
def _half_1_2(
    offsets: np.ndarray, mask: int, base: int, size: int, line: int, sector: int, half: int,
    out_line: np.ndarray, out_mask: np.ndarray, n: int,
) -> int:  # fmt: skip
    whole_segment = 32 if size == 1 else (64 if size == 2 else 128)
    left = (mask >> half) & 0xFFFF
    while left:
        leader = 0
        while not (left >> leader) & 1:
            leader += 1
        segment = whole_segment
        start = (base + offsets[half + leader]) // segment * segment
        low, high = start + segment, start
        for k in range(leader, HALF):
            address = base + offsets[half + k]
            if (left >> k) & 1 and address // segment * segment == start:
                left &= ~(1 << k)
                low, high = min(low, address), max(high, address + size - 1)
        while segment > 32:
            middle = start + segment // 2
            if low < middle <= high:
                break
            segment //= 2
            start = middle if low >= middle else start
        n = _merge(n, start, segment, line, sector, out_line, out_mask, n)
    return n


@njit(cache=True)
def coalesce(
    rule: int, offsets: np.ndarray, mask: int, base: int, size: int, line: int, sector: int, whole: bool,
    out_line: np.ndarray, out_mask: np.ndarray, n: int,
) -> int:  # fmt: skip
    """Append the transactions of one access to out_line/out_mask from place `n`; the new count."""
    mask = i64(mask)
    if mask == 0:
        return n
    if rule in (LINE, SECTOR):
        lanes = phase_lanes(size) if rule == LINE else WARP
        return _lines(offsets, mask, base, size, line, sector, lanes, whole, out_line, out_mask, n)
    for half in range(0, WARP, HALF):
        if (mask >> half) & 0xFFFF:
            if rule == HALF_WARP_1_0:
                n = _half_1_0(offsets, mask, base, size, line, sector, half, out_line, out_mask, n)
            else:
                n = _half_1_2(offsets, mask, base, size, line, sector, half, out_line, out_mask, n)
    return n
