"""Nugteren's model on a launch (HPCA 2014): the misses of one SM's L1, and what they come from.

Four runs in fake time differ by one thing each, and so do their misses: compulsory (first uses), capacity (one set of
all lines), associativity (the sets), latency (lines on their way count as misses), MSHRs. Loads alone: the stores of a
Fermi pass the L1 by. Times are of the published configuration: they are not cycles, but accesses.

Nugteren's reuse-distance model of a GPU's L1 (HPCA 2014; tue-es/gpu-cache-model): warps in fake time, compiled.

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

from ppt_gpu.bounds.least_latency import entry_ops
from ppt_gpu.common.compiled import entry, merged
from ppt_gpu.common.errors import PptError, did_you_mean
from ppt_gpu.models.base.access_stream import caches_of
from ppt_gpu.models.base.model_inputs import ModelInputs
from ppt_gpu.models.base.warp_streams import DoesNotApply
from ppt_gpu.sm.program.machine import Machine, fermi_place, uses_l1
from ppt_gpu.sm.program.program import KIND_LOAD, Program

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


@merged
def _earlier(heap: np.ndarray, one: int, other: int) -> bool:
    return heap[one, 0] < heap[other, 0] or (heap[one, 0] == heap[other, 0] and heap[one, 1] < heap[other, 1])


@merged
def _push(heap: np.ndarray, size: int, time: int, order: int, request: int, warp: int) -> None:
    heap[size, 0], heap[size, 1], heap[size, 2], heap[size, 3] = time, order, request, warp
    at = size
    while at > 0 and _earlier(heap, at, (at - 1) // 2):
        up = (at - 1) // 2
        for k in range(4):
            heap[at, k], heap[up, k] = heap[up, k], heap[at, k]
        at = up


@merged
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


@merged
def _add(tree: np.ndarray, base: int, size: int, at: int, value: int) -> None:
    at += 1
    while at <= size:
        tree[base + at] += value
        at += at & -at


@merged
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


@merged
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


#: of the released configuration: mean and deviation of the memory's latency in fake time
LATENCY, DEVIATION = 100, 5.0
_SEED = 2014
MAPPINGS = ("modulo", "xor", "fermi")
#: by `l1.index`
MAPPING_OF = {"linear": "modulo", "hash": "xor", "fermi": "fermi"}


def set_of(lines: NDArray[np.int64], sets: int, mapping: str) -> NDArray[np.int64]:
    """The set of each line number in a cache of `sets` sets. PptError for an unknown mapping."""
    number = np.asarray(lines, np.int64)
    if mapping == "modulo":
        return number % sets
    if mapping == "xor":
        return (number % sets ^ number // sets % sets) % sets
    if mapping == "fermi":
        return fermi_place(number.view(np.uint64)).view(np.int64) % sets
    raise PptError(f"unknown mapping of lines to sets '{mapping}'", hint=did_you_mean(mapping, MAPPINGS))


@dataclass(frozen=True)
class MissClasses:
    """Lines that loads asked for, and misses by cause; a cause that saves misses counts below 0."""

    accesses: int
    compulsory: int
    capacity: int
    associativity: int
    latency: int
    mshr: int

    @property
    def misses(self) -> int:
        return sum(self.by_cause().values())

    def by_cause(self) -> dict[str, int]:
        """cause -> misses, in the order in which they are told apart."""
        return {name: count for name, count in vars(self).items() if name != "accesses"}


def miss_classes(
    lines: WarpLines, sets: NDArray[np.int64], ways: int, mshrs: int, resident: int
) -> tuple[MissClasses, NDArray[np.int64]]:
    """Of a cache whose lines belong to `sets` [L] of `ways` lines each; and the reuse distances [T] with everything."""
    extra = latency_noise(len(lines.line))
    total = (int(sets.max(initial=0)) + 1) * ways
    none = np.zeros_like(extra)
    whole = FakeCache(np.zeros_like(sets), total, UNLIMITED, 0, none)
    runs = (
        whole,
        FakeCache(sets, ways, UNLIMITED, 0, none),
        FakeCache(sets, ways, UNLIMITED, LATENCY, extra),
        FakeCache(sets, ways, mshrs, LATENCY, extra),
    )
    distances = [fake_time_distances(lines, run, resident) for run in runs]
    misses = [_misses(found, run.ways) for found, run in zip(distances, runs, strict=True)]
    compulsory = len(np.unique(lines.line))
    classes = MissClasses(
        accesses=len(lines.line),
        compulsory=compulsory,
        capacity=misses[0] - compulsory,
        associativity=misses[1] - misses[0],
        latency=misses[2] - misses[1],
        mshr=misses[3] - misses[2],
    )
    return classes, distances[-1]


def launch_misses(inputs: ModelInputs) -> tuple[MissClasses, NDArray[np.bool_]]:
    """The misses of the L1 of one SM, and which transactions of the program hit. DoesNotApply when no load looks in."""
    program, machine = inputs.program, caches_of(inputs)
    lines, chosen, used = _loaded(program, machine)
    mapping = MAPPING_OF[inputs.gpu.l1.index]
    number = (program.line_address[used] // np.uint64(program.line_bytes)).astype(np.int64)
    sets = set_of(number, machine.l1_sets, mapping)
    found, distance = miss_classes(lines, sets, machine.l1_ways, machine.mshrs, inputs.resident_blocks)
    hit = np.zeros(len(program.tx_line), np.bool_)
    hit[chosen] = (distance >= 0) & (distance < machine.l1_ways)
    return found, hit


def _loaded(program: Program, machine: Machine) -> tuple[WarpLines, NDArray[np.bool_], NDArray[np.int32]]:
    """What the warps load through the L1, which transactions of the program that is, and the lines' ids."""
    ops = entry_ops(program)
    kept = uses_l1(program, machine)[ops] & (program.op_kind[ops] == KIND_LOAD)
    count = np.diff(program.access_start)
    chosen = np.repeat(kept, count) & (program.tx_line >= 0)
    if not chosen.any():
        raise DoesNotApply("no load looks into the L1")
    used, line = np.unique(program.tx_line[chosen], return_inverse=True)
    per_access = np.add.reduceat(np.append(chosen, False).astype(np.int64), program.access_start[:-1])
    per_access[count == 0] = 0
    before = np.concatenate(([0], np.cumsum(kept)))
    lines = WarpLines(
        block_warp=program.block_warp,
        warp_access=before[program.warp_access],
        access_start=np.concatenate(([0], np.cumsum(per_access[kept]))).astype(np.int64),
        line=line.astype(np.int64),
    )
    return lines, chosen, used


def latency_noise(count: int) -> NDArray[np.int64]:
    """[count] |N(0, DEVIATION)|, rounded; always the same."""
    return np.abs(np.rint(np.random.default_rng(_SEED).normal(0.0, DEVIATION, count))).astype(np.int64)


def _misses(distance: NDArray[np.int64], ways: int) -> int:
    return int(((distance < 0) | (distance >= ways)).sum())
