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
* "segment" (a simulator of 2.x, GPGPU-Sim): the distinct segments of a warp, whatever lanes they are of: of 32 B where
  instructions name bytes, of 64 B where they name 2 B, else of a line. Loads through the L1 fetch whole lines.

A transaction is (line, sector mask); the line number is relative to the base address rounded down to a line. Local
memory follows the same rules: the trace already has the addresses interleaved as hardware does, so that lanes that
access the same thread-local address are neighbours (guide, "Local Memory").

From boxes, the bytes that bulk copies move, to transactions: the lines of their rows, one row after another.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ppt_gpu.common.compiled import entry, merged
from ppt_gpu.workload.box import AXES, FIRST_AXIS, ROW, are_boxes


def box_transactions(
    words: NDArray[np.int64], base: NDArray[np.int64], line: int, sector: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint8]]:
    """(start [U+1], line numbers [T], sector masks [T]) of the transactions of U boxes.

    words [U, 32]: as in `ppt_gpu.workload.box`; base [U]: their addresses; line, sector: B, powers of two. Rows
    one after another that lie in one line share its transaction.
    """
    words = np.ascontiguousarray(words)
    shifts = line.bit_length() - 1, sector.bit_length() - 1
    start = np.zeros(len(words) + 1, np.int64)
    _boxes(words, base, *shifts, start, np.zeros(0, np.int64), np.zeros(0, np.uint8))
    lines, sectors = np.empty(start[-1], np.int64), np.empty(start[-1], np.uint8)
    _boxes(words, base, *shifts, start, lines, sectors)
    return start, lines, sectors


@entry
def _boxes(
    words: np.ndarray, base: np.ndarray, line: int, sector: int, start: np.ndarray, out_line: np.ndarray,
    out_mask: np.ndarray,
) -> None:  # fmt: skip
    """Transactions of boxes [U, 32]. With no room for them they are counted into `start`. line, sector: logarithms."""
    filling = len(out_line) > 0
    n = 0
    for i in range(len(words)):
        rows = 1
        for axis in range(AXES):
            if words[i, FIRST_AXIS + 2 * axis] > 0:
                rows *= words[i, FIRST_AXIS + 2 * axis]
        begun = False
        last = 0
        for row in range(rows):
            address, rest = base[i], row
            for axis in range(AXES):
                repeated = words[i, FIRST_AXIS + 2 * axis]
                if repeated > 0:
                    address += rest % repeated * words[i, FIRST_AXIS + 2 * axis + 1]
                    rest //= repeated
            for index in range(address >> sector, ((address + words[i, ROW] - 1) >> sector) + 1):
                number = index >> (line - sector)
                bit = 1 << (index - (number << (line - sector)))
                if not begun or number != last:
                    if filling:
                        out_line[n] = number
                        out_mask[n] = 0
                    n += 1
                    begun = True
                    last = number
                if filling:
                    out_mask[n - 1] |= bit
        start[i + 1] = n


HALF_WARP_1_0, HALF_WARP_1_2, LINE, SECTOR, SEGMENT = range(5)
RULES = {
    "half_warp_1.0": HALF_WARP_1_0, "half_warp_1.2": HALF_WARP_1_2, "line": LINE, "sector": SECTOR, "segment": SEGMENT,
}  # fmt: skip
WARP = 32
HALF = 16
PHASE = 128  # B of a warp that are served together
BYTES_SEGMENT = 32  # B of the segments in which bytes are asked for; words of 2 B in twice as many
#: Transactions that one access can make: 32 B of a lane touch at most two lines.
MAX_TRANSACTIONS = 2 * WARP


def distinct_lines(addresses: ArrayLike, line: int) -> int:
    """Number of lines of `line` bytes that the addresses fall in (GATSim, section II-D1)."""
    return len(np.unique(np.asarray(addresses, np.int64) // line))


def phase_lanes(size: int) -> int:
    """Lanes that one request serves: 32 for words up to 4 B, 16 for 8 B, 8 for 16 B, 4 for 32 B."""
    return WARP if size <= 4 else max(1, PHASE // size)


def active_phases(mask: ArrayLike, lanes: int) -> NDArray[np.int64]:
    """Groups of `lanes` neighbouring lanes with at least one active lane, for every mask."""
    masks = np.asarray(mask, np.int64)
    count = np.zeros(masks.shape, np.int64)
    for first in range(0, WARP, lanes):
        count += (masks >> first & ((1 << lanes) - 1)) != 0
    return count


@merged
def updates_so_far(offsets: np.ndarray, mask: int, lane: int) -> int:
    """How many of the active lanes up to active `lane` have its address; offsets [32] of the lanes."""
    same = 1
    for other in range(lane):
        if (mask >> other) & 1 and offsets[other] == offsets[lane]:
            same += 1
    return same


def transactions(
    rule: str, offsets: NDArray[np.int64], mask: int, base: int, size: int, line: int, sector: int, whole: bool,
    word: int = 0,
) -> list[tuple[int, int]]:  # fmt: skip
    """(line, sector mask) of one access: offsets [32] from `base`, `size` bytes per lane, words of `word` (0: one).

    `line` and `sector` in bytes, `whole`: rules "line" and "segment" fetch whole lines.
    """
    _, lines, sectors = coalesce(
        RULES[rule], np.ascontiguousarray(offsets).reshape(1, WARP), np.array([mask], np.int64),
        np.zeros(1, np.int64), np.array([base], np.int64), np.array([size], np.int64), np.array([whole]), line, sector,
        np.array([word or size], np.int64),
    )  # fmt: skip
    return list(zip(lines.tolist(), sectors.tolist(), strict=True))


def coalesce(
    rule: int, offsets: NDArray[np.int64], masks: NDArray[np.int64], pattern: NDArray[np.int64],
    base: NDArray[np.int64], size: NDArray[np.int64], whole: NDArray[np.bool_], line: int, sector: int,
    word: NDArray[np.int64] | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint8]]:  # fmt: skip
    """(start [U+1], line numbers [T], sector masks [T]) of the transactions of U accesses, by one of RULES.

    offsets [N, 32], masks [N]: patterns of lanes; pattern, base, size (B per lane), whole [U]: see `transactions`;
    word [U], B, where rule "segment" finds vectors of words that are narrower than `size`.
    line, sector: B, powers of two. Only the loop of the rule asked for is compiled. Boxes
    (`ppt_gpu.workload.box`) touch the same sectors by every rule; rows one after another that lie in one line
    share its transaction.
    """
    word = size if word is None else word
    boxed = are_boxes(offsets, masks)[pattern]
    if boxed.any():
        return _with_boxes(rule, offsets, masks, pattern, base, size, whole, line, sector, word, boxed)
    find, detail = {HALF_WARP_1_0: _half_warps_1_0, HALF_WARP_1_2: _half_warps_1_2}.get(rule, _lines), size
    if rule in (LINE, SECTOR, SEGMENT):
        detail = np.full(len(pattern), WARP, np.int64)
        for wide in np.unique(size[size > 4]).tolist() if rule == LINE else ():
            detail[size == wide] = phase_lanes(wide)
    shifts = line.bit_length() - 1, sector.bit_length() - 1
    start = np.zeros(len(pattern) + 1, np.int64)
    lines, sectors = np.empty(4 * MAX_TRANSACTIONS, np.int64), np.empty(4 * MAX_TRANSACTIONS, np.uint8)
    done = find(offsets, masks, pattern, base, size, detail, *shifts, 0, start, lines, sectors)
    while done < len(pattern):
        lines, sectors = np.resize(lines, 2 * len(lines)), np.resize(sectors, 2 * len(sectors))
        done = find(offsets, masks, pattern, base, size, detail, *shifts, done, start, lines, sectors)
    lines, sectors = lines[: start[-1]].copy(), sectors[: start[-1]].copy()
    if rule == SEGMENT and (word < 4).any():
        start, lines, sectors = _in_segments(start, lines, sectors, word, line, sector)
    if whole.any():
        sectors[np.repeat(whole, np.diff(start))] = (1 << line // sector) - 1
    return start, lines, sectors


def _with_boxes(
    rule: int, offsets: NDArray[np.int64], masks: NDArray[np.int64], pattern: NDArray[np.int64],
    base: NDArray[np.int64], size: NDArray[np.int64], whole: NDArray[np.bool_], line: int, sector: int,
    word: NDArray[np.int64], boxed: NDArray[np.bool_],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint8]]:  # fmt: skip
    """As `coalesce`, where `boxed` [U] says which accesses are boxes."""
    own, places = ~boxed, np.flatnonzero(boxed)
    of_lanes = coalesce(rule, offsets, masks, pattern[own], base[own], size[own], whole[own], line, sector, word[own])
    start, lines, sectors = box_transactions(offsets[pattern[places]], base[places], line, sector)
    count = np.empty(len(pattern), np.int64)
    count[own], count[boxed] = np.diff(of_lanes[0]), np.diff(start)
    of_box = np.repeat(boxed, count)
    all_lines, all_sectors = np.empty(len(of_box), np.int64), np.empty(len(of_box), np.uint8)
    all_lines[of_box], all_lines[~of_box] = lines, of_lanes[1]
    all_sectors[of_box], all_sectors[~of_box] = sectors, of_lanes[2]
    return np.concatenate(([0], np.cumsum(count))), all_lines, all_sectors


def _in_segments(
    start: NDArray[np.int64], lines: NDArray[np.int64], sectors: NDArray[np.uint8], word: NDArray[np.int64], line: int,
    sector: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint8]]:  # fmt: skip
    """The transactions, those of accesses to 1 B and 2 B words one for each segment that they touch."""
    parts = max(1, line // sector)
    width = np.where(word < 4, np.minimum(np.maximum(1, BYTES_SEGMENT * word // sector), parts), parts)  # sectors
    of = np.repeat(width, np.diff(start))
    first = np.arange(parts)
    mask = sectors.astype(np.int64)[:, np.newaxis] >> first & (1 << of[:, np.newaxis]) - 1
    used = (first % of[:, np.newaxis] == 0) & (mask != 0)
    found = np.concatenate(([0], np.cumsum(used.sum(axis=1))))
    at, place = np.nonzero(used)
    return found[start], lines[at], (mask[at, place] << place).astype(np.uint8)


@merged
def _merge(
    first: int, address: int, size: int, line: int, sector: int, out_line: np.ndarray, out_mask: np.ndarray, n: int
) -> int:
    """Add the sectors of `size` bytes at `address` to the transactions from `first` on; the new count.

    line, sector: binary logarithms.
    """
    for index in range(address >> sector, ((address + size - 1) >> sector) + 1):
        number = index >> (line - sector)
        bit = 1 << (index - (number << (line - sector)))
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


@entry
def _lines(
    offsets: np.ndarray, masks: np.ndarray, pattern: np.ndarray, base: np.ndarray, size: np.ndarray,
    group: np.ndarray, line: int, sector: int, i: int, start: np.ndarray, out_line: np.ndarray, out_mask: np.ndarray,
) -> int:  # fmt: skip
    """Rules "line", "sector", "segment": distinct lines of each `group` of lanes, from access i on.

    Returns how many accesses are done: fewer than all where the room for transactions ends.
    """
    n = start[i]
    while i < len(pattern) and n + MAX_TRANSACTIONS <= len(out_line):
        p = pattern[i]
        mask = masks[p]
        first = n
        left = group[i]
        for lane in range(WARP):
            if left == 0:
                first = n
                left = group[i]
            left -= 1
            if (mask >> lane) & 1:
                n = _merge(first, base[i] + offsets[p, lane], size[i], line, sector, out_line, out_mask, n)
        i += 1
        start[i] = n
    return i


@entry
def _half_warps_1_0(
    offsets: np.ndarray, masks: np.ndarray, pattern: np.ndarray, bases: np.ndarray, sizes: np.ndarray,
    detail: np.ndarray, line: int, sector: int, i: int, start: np.ndarray, out_line: np.ndarray, out_mask: np.ndarray,
) -> int:  # fmt: skip
    """As `_lines`. A half warp in order needs aligned segments, any other a transaction for every active lane."""
    n = start[i]
    while i < len(pattern) and n + MAX_TRANSACTIONS <= len(out_line):
        p, base, size = pattern[i], bases[i], sizes[i]
        for half in range(0, WARP, HALF):
            mask = (masks[p] >> half) & 0xFFFF
            if mask == 0:
                continue
            leader = 0
            while not (mask >> leader) & 1:
                leader += 1
            origin = base + offsets[p, half + leader] - leader * size
            segment = 64 if size == 4 else 128
            ordered = (size == 4 or size == 8 or size == 16) and origin % segment == 0
            for k in range(HALF):
                if (mask >> k) & 1 and base + offsets[p, half + k] != origin + k * size:
                    ordered = False
            lanes = segment // size if ordered else 1  # that a transaction serves
            for k in range(0, HALF, lanes):
                if (mask >> k) & ((1 << lanes) - 1):
                    at = origin + k * size if ordered else base + offsets[p, half + k]
                    n = _merge(n, at, lanes * size, line, sector, out_line, out_mask, n)
        i += 1
        start[i] = n
    return i


@entry
def _half_warps_1_2(
    offsets: np.ndarray, masks: np.ndarray, pattern: np.ndarray, bases: np.ndarray, sizes: np.ndarray,
    detail: np.ndarray, line: int, sector: int, i: int, start: np.ndarray, out_line: np.ndarray, out_mask: np.ndarray,
) -> int:  # fmt: skip
    """As `_lines`. The lowest lane left chooses a segment, which shrinks to what the lanes inside use."""
    n = start[i]
    while i < len(pattern) and n + MAX_TRANSACTIONS <= len(out_line):
        p, base, size = pattern[i], bases[i], sizes[i]
        for half in range(0, WARP, HALF):
            left = (masks[p] >> half) & 0xFFFF
            while left:
                leader = 0
                while not (left >> leader) & 1:
                    leader += 1
                segment = 32 if size == 1 else (64 if size == 2 else 128)
                origin = (base + offsets[p, half + leader]) // segment * segment
                low, high = origin + segment, origin
                for k in range(leader, HALF):
                    address = base + offsets[p, half + k]
                    if (left >> k) & 1 and address // segment * segment == origin:
                        left &= ~(1 << k)
                        low, high = min(low, address), max(high, address + size - 1)
                while segment > 32:
                    middle = origin + segment // 2
                    if low < middle <= high:
                        break
                    segment //= 2
                    origin = middle if low >= middle else origin
                n = _merge(n, origin, segment, line, sector, out_line, out_mask, n)
        i += 1
        start[i] = n
    return i
