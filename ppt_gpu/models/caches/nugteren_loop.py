"""Nugteren's reuse-distance model of a GPU's L1 (HPCA 2014; tue-es/gpu-cache-model): warps in fake time, compiled.

A pool of warps, first in, first out. In each step of time the first one makes its next access: for each line the reuse
distance within its set, counted in uses that have completed. From `ways` on it misses: it takes an MSHR (one for each
line that is on its way) and returns after the memory's latency; a hit returns after the hit latency. When no MSHR is
free the warp goes to the end of the pool and goes on there later. A warp returns to the pool when all lines of its
access have arrived. Groups of resident blocks run one after another. `tests/reference/nugteren.py` is the same in plain
Python.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.compiled import entry, inlined

UNLIMITED = 1 << 40
#: in `numbers`
_RESIDENT, _WAYS, _MSHRS, _LATENCY, _HIT = range(5)


@dataclass(frozen=True)
class WarpLines:
    """The lines that W warps load, by access: M accesses, T lines, of L different ones."""

    block_warp: NDArray[np.int64]  # [B+1]
    warp_access: NDArray[np.int64]  # [W+1]
    access_start: NDArray[np.int64]  # [M+1]
    line: NDArray[np.int64]  # [T] numbered from 0


@dataclass(frozen=True)
class FakeCache:
    """The cache in fake time. `extra` [T] is added to the latency of each line's miss."""

    sets: NDArray[np.int64]  # [L] set of every line
    ways: int
    mshrs: int
    latency: int
    extra: NDArray[np.int64]
    hit_latency: int = 0


def fake_time_distances(lines: WarpLines, cache: FakeCache, resident: int) -> NDArray[np.int64]:
    """[T] the reuse distance of every line when it was asked for, -1 if no use had completed. Hits: 0 <= d < ways."""
    found, lines_in_all = np.full(len(lines.line), -1, np.int64), len(cache.sets)
    numbers = np.array([max(resident, 1), cache.ways, cache.mshrs, cache.latency, cache.hit_latency], np.int64)
    uses = np.bincount(cache.sets[lines.line], minlength=int(cache.sets.max(initial=0)) + 1)
    warps = len(lines.warp_access) - 1
    _run(
        numbers, lines.block_warp, lines.warp_access, lines.access_start, lines.line, cache.sets, cache.extra,
        np.concatenate(([0], np.cumsum(uses + 1))).astype(np.int64), np.zeros(int(uses.sum()) + len(uses), np.int64),
        np.zeros((len(uses), 2), np.int64), np.full(lines_in_all, -1, np.int64), np.zeros(lines_in_all, np.int64),
        np.zeros(warps + 1, np.int64), lines.warp_access[:-1].copy(), np.zeros(warps, np.int64),
        np.zeros(warps, np.int64), np.zeros((len(lines.line) + 1, 4), np.int64), found,
    )  # fmt: skip
    return found


@inlined
def _earlier(heap: np.ndarray, one: int, other: int) -> bool:
    return heap[one, 0] < heap[other, 0] or (heap[one, 0] == heap[other, 0] and heap[one, 1] < heap[other, 1])


@inlined
def _push(heap: np.ndarray, size: int, time: int, order: int, request: int, warp: int) -> None:
    heap[size, 0], heap[size, 1], heap[size, 2], heap[size, 3] = time, order, request, warp
    at = size
    while at > 0 and _earlier(heap, at, (at - 1) // 2):
        up = (at - 1) // 2
        for k in range(4):
            heap[at, k], heap[up, k] = heap[up, k], heap[at, k]
        at = up


@inlined
def _drop_first(heap: np.ndarray, size: int) -> None:
    """Of `size` entries."""
    for k in range(4):
        heap[0, k] = heap[size - 1, k]
    at = 0
    while 2 * at + 1 < size - 1:
        down = 2 * at + 1
        if down + 1 < size - 1 and _earlier(heap, down + 1, down):
            down += 1
        if not _earlier(heap, down, at):
            break
        for k in range(4):
            heap[at, k], heap[down, k] = heap[down, k], heap[at, k]
        at = down


@inlined
def _add(tree: np.ndarray, base: int, size: int, at: int, value: int) -> None:
    at += 1
    while at <= size:
        tree[base + at] += value
        at += at & -at


@inlined
def _distance(
    line: int, sets: np.ndarray, tree_start: np.ndarray, tree: np.ndarray, used: np.ndarray, last: np.ndarray
) -> int:
    """Distinct lines of the set whose last completed use is after this line's; -1: it has none."""
    if last[line] < 0:
        return -1
    base, older, at = tree_start[sets[line]], 0, last[line] + 1
    while at > 0:
        older += tree[base + at]
        at -= at & -at
    return used[sets[line], 1] - older


@inlined
def _complete(
    line: int, sets: np.ndarray, tree_start: np.ndarray, tree: np.ndarray, used: np.ndarray, last: np.ndarray
) -> None:
    """A use of the line is complete: it is the most recent of its set. used [sets, 2]: uses, distinct lines."""
    number = sets[line]
    base = tree_start[number]
    size = tree_start[number + 1] - base - 1
    if last[line] < 0:
        used[number, 1] += 1
    else:
        _add(tree, base, size, last[line], -1)
    last[line] = used[number, 0]
    used[number, 0] += 1
    _add(tree, base, size, last[line], 1)


@entry
def _run(
    numbers: np.ndarray, block_warp: np.ndarray, warp_access: np.ndarray, access_start: np.ndarray, lines: np.ndarray,
    sets: np.ndarray, extra: np.ndarray, tree_start: np.ndarray, tree: np.ndarray, used: np.ndarray, last: np.ndarray,
    pending: np.ndarray, pool: np.ndarray, access: np.ndarray, place: np.ndarray, waits: np.ndarray, heap: np.ndarray,
    found: np.ndarray,
) -> None:  # fmt: skip
    """pending [L]: misses of a line on their way. pool: a ring. access, place, waits [W]: of each warp the next access,
    the next line in it (-1: none begun), and lines on their way. heap: (time, order, line of the stream, warp)."""
    blocks, order, flying, busy, now, first_block = len(block_warp) - 1, 0, 0, 0, 0, 0
    while first_block < blocks:
        last_block = first_block + numbers[_RESIDENT]
        if last_block > blocks:
            last_block = blocks
        head, count = 0, 0
        for warp in range(block_warp[first_block], block_warp[last_block]):
            place[warp] = -1
            if access[warp] < warp_access[warp + 1]:
                pool[count] = warp
                count += 1
        while count > 0 or flying > 0:
            if count == 0 and heap[0, 0] > now:
                now = heap[0, 0]
            while flying > 0 and heap[0, 0] <= now:
                request, warp = heap[0, 2], heap[0, 3]
                line = lines[request]
                if found[request] < 0 or found[request] >= numbers[_WAYS]:
                    pending[line] -= 1
                    if pending[line] == 0:
                        busy -= 1
                _drop_first(heap, flying)
                flying -= 1
                _complete(line, sets, tree_start, tree, used, last)
                waits[warp] -= 1
                if waits[warp] == 0 and place[warp] < 0 and access[warp] < warp_access[warp + 1]:
                    pool[(head + count) % len(pool)] = warp
                    count += 1
            if count == 0:
                continue
            warp = pool[head]
            head = (head + 1) % len(pool)
            count -= 1
            at = access_start[access[warp]] if place[warp] < 0 else place[warp]
            end = access_start[access[warp] + 1]
            refused = False
            while at < end and not refused:
                line = lines[at]
                distance = _distance(line, sets, tree_start, tree, used, last)
                delay = numbers[_HIT]
                if distance < 0 or distance >= numbers[_WAYS]:
                    if pending[line] == 0:
                        refused = busy >= numbers[_MSHRS]
                        busy += 0 if refused else 1
                    delay = numbers[_LATENCY] + extra[at]
                    pending[line] += 0 if refused else 1
                if not refused:
                    found[at] = distance
                    _push(heap, flying, now + delay, order, at, warp)
                    flying += 1
                    order += 1
                    waits[warp] += 1
                    at += 1
            place[warp] = at if refused else -1
            if not refused:
                access[warp] += 1
            if refused or (waits[warp] == 0 and access[warp] < warp_access[warp + 1]):
                pool[(head + count) % len(pool)] = warp
                count += 1
            now += 1
        first_block = last_block
