"""How the accesses of a task fall: a stride where every execution agrees on one, else a number of transactions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import mul

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.emulator.trace.trace import Trace
from ppt_gpu.spec.gpu import MEMORY_SPACES
from ppt_gpu.tasklist.check import ACCESS_BYTES, MAX_TRANSACTIONS, WIDTHS
from ppt_gpu.tasklist.model import WARP_SIZE, MemoryShape, Stride, Transactions, continued
from ppt_gpu.workload.box import ROW, are_boxes, rows_of

SECTOR = 32  # B: the unit in which transactions are counted, whatever the GPU
BANKS, BANK_WIDTH = 32, 4


@dataclass(frozen=True)
class Accesses:
    """The accesses of one memory task, in order, of the representative warp; `first` are those of all comparable
    warps at the task's first execution."""

    space: str
    bytes: int  # per lane
    base: NDArray[np.int64]  # [executions] address of the lowest active lane
    pattern: NDArray[np.int32]  # [executions]
    counts: tuple[int, ...]  # of the loops around, outermost first; their product is the number of executions
    first_base: NDArray[np.int64]  # [warps]
    first_pattern: NDArray[np.int32]  # [warps]


@dataclass(frozen=True)
class Warps:
    """The warps that ran the representative path."""

    warp: NDArray[np.int64]  # [warps] number in its block
    block: NDArray[np.int64]  # [warps] linear id
    grid: tuple[int, int, int]  # blocks along x, y, z
    chosen: int  # position of the representative one
    per_block: int
    threads: int  # in a block

    @property
    def coordinates(self) -> NDArray[np.int64]:
        """[warps, 3] x, y, z of the block of each warp."""
        x, y, _ = self.grid
        return np.stack([self.block % x, self.block // x % y, self.block // (x * y)], axis=1)


@dataclass(frozen=True)
class Shape:
    memory: MemoryShape
    active: int
    doubt: str  # what the description does not say exactly; "" when it is exact


def shape_of(accesses: Accesses, trace: Trace, warps: Warps, buffers: dict[str, str]) -> Shape:
    """The description of a task. `buffers`: name in the task list of each range of the trace."""
    masks = trace.pattern_mask[accesses.pattern]
    on = masks != 0
    if are_boxes(trace.pattern_offset, trace.pattern_mask)[accesses.pattern].any():
        return _bulk_copy(trace.pattern_offset[accesses.pattern[on]])
    pattern = int(np.bincount(accesses.pattern[on]).argmax())
    lanes = np.flatnonzero(trace.pattern_mask[pattern] >> np.arange(WARP_SIZE, dtype=np.uint32) & np.uint32(1))
    offsets = trace.pattern_offset[pattern, lanes]
    lanes_at = _lanes(offsets)
    steps = _steps(accesses.base, accesses.counts)
    if (accesses.pattern == pattern).all() and lanes_at is not None and steps is not None:
        return _stride(accesses, trace, warps, buffers, replace(lanes_at, steps=steps), len(lanes), pattern)
    count = _traffic(accesses, trace, on)
    doubt = "irregular addresses, given as a number of transactions"
    if accesses.space in ("global", "local"):
        doubt += f" of {SECTOR} B that all go to DRAM; give l1, l2 or reuse"
    active = int(np.bitwise_count(masks[on]).mean().round())
    return Shape(MemoryShape(accesses.bytes, Transactions(count)), max(1, active), doubt)


def _bulk_copy(words: NDArray[np.int64]) -> Shape:
    """A bulk copy, by what its executions with active lanes touch: words [executions, 32] of boxes."""
    count = round(float((rows_of(words) * -(-words[:, ROW] // SECTOR)).mean()))
    doubt = f"a bulk copy, given as a number of transactions of {SECTOR} B that all go to DRAM; give l1, l2 or reuse"
    if count > MAX_TRANSACTIONS:
        doubt += f"; it has {count} of them, more than a task can have"
    return Shape(MemoryShape(ACCESS_BYTES[-1], Transactions(min(count, MAX_TRANSACTIONS))), 1, doubt)


def _lanes(offsets: NDArray[np.int64]) -> Stride | None:
    """The distances of the active lanes as a stride, in rows if it must be; None when they have none."""
    count = len(offsets)
    for width in WIDTHS[::-1]:
        lane = int(offsets[1] - offsets[0]) if min(count, width) > 1 else 0
        row = int(offsets[width]) if count > width else 0
        lanes = np.arange(count)
        if np.array_equal(lanes % width * lane + lanes // width * row, offsets):
            return Stride(lane, width=width, row=row)
    return None


def _steps(base: NDArray[np.int64], counts: tuple[int, ...]) -> tuple[int, ...] | None:
    """Bytes per iteration of each loop, innermost first, when the addresses advance evenly; else None."""
    grid = base.reshape(counts)
    found, expected = [], np.full(counts, grid.flat[0])
    for axis, count in enumerate(counts):
        step = int(np.take(grid, 1, axis).flat[0] - grid.flat[0]) if count > 1 else 0
        shape = [1] * len(counts)
        shape[axis] = count
        expected = expected + step * np.arange(count).reshape(shape)
        found.append(step)
    if not np.array_equal(expected, grid):
        return None
    while found and found[0] == 0:
        found.pop(0)
    return tuple(reversed(found))


def _stride(
    accesses: Accesses,
    trace: Trace,
    warps: Warps,
    buffers: dict[str, str],
    shape: Stride,
    active: int,
    pattern: int,
) -> Shape:
    own_warp = continued(shape, WARP_SIZE)
    own_block = 0 if accesses.space == "shared" else continued(shape, warps.threads)
    per_warp, along, doubt = _warp_steps(accesses, warps, pattern, own_warp)
    per_block = _linear(along, warps.grid)
    at = int(accesses.base[0])
    name, start = "", at - at % 256
    if accesses.space == "shared":
        start = 0
    elif accesses.space == "global":
        inside = [r for r in trace.ranges if r.start <= at < r.start + r.bytes]
        if inside:
            name, start = buffers[inside[0].name], inside[0].start
    warp, block = int(warps.warp[warps.chosen]), warps.coordinates[warps.chosen].tolist()
    offset = at - start - warp * per_warp - sum(map(mul, block, along))
    shape = replace(
        shape,
        buffer=name,
        offset=offset,
        warp=None if per_warp == own_warp else per_warp,
        block=None if per_block == own_block else per_block,
    )
    return Shape(MemoryShape(accesses.bytes, shape), active, doubt)


def _warp_steps(accesses: Accesses, warps: Warps, pattern: int, own_warp: int) -> tuple[int, tuple[int, int, int], str]:
    """(bytes per warp, bytes per block along x, y and z, doubt).

    One warp alone is taken to continue with the threads, and one block along x with the warps.
    """
    same = accesses.first_pattern == pattern
    warp, block, base = warps.warp[same], warps.block[same], accesses.first_base[same]
    neighbours = (np.diff(block) == 0) & (np.diff(warp) == 1)
    doubts = []
    between = np.diff(base)[neighbours]
    per_warp = _most_common(between) if len(between) else own_warp
    if len(np.unique(between)) > 1:
        doubts.append("warps")
    _, first = np.unique(block, return_index=True)
    unknown = 0 if accesses.space == "shared" else warps.per_block * per_warp
    coordinates = warps.coordinates[same][first]
    along, varies = _axis_steps(coordinates, (base - warp * per_warp)[first], warps.grid, unknown)
    if varies:
        doubts.append("blocks")
    doubt = [f"the step between {' and '.join(doubts)} varies"] if doubts else []
    if not same.all():
        doubt.append(f"{int((~same).sum())} of {len(same)} warps have other lanes or distances")
    return per_warp, along, "; ".join(doubt)


def _axis_steps(
    at: NDArray[np.int64], base: NDArray[np.int64], extents: tuple[int, int, int], unknown: int
) -> tuple[tuple[int, int, int], bool]:
    """(bytes per block along x, y and z, whether that misses a block) from blocks at [n, 3] with addresses [n].

    Blocks that differ along one axis alone give its step. Without any, x has `unknown`, and y and z continue where
    the axis before them ends.
    """
    found: list[int] = []
    for axis in range(3):
        others = np.delete(at, axis, axis=1)
        order = np.lexsort((at[:, axis], *others.T))
        alone = (np.diff(others[order], axis=0) == 0).all(axis=1)
        rates = np.diff(base[order])[alone] // np.diff(at[order, axis])[alone]
        found.append(_most_common(rates) if len(rates) else found[-1] * extents[axis - 1] if found else unknown)
    x, y, z = found
    return (x, y, z), len(np.unique(base - at @ np.array(found))) > 1


def _linear(along: tuple[int, int, int], grid: tuple[int, int, int]) -> int | tuple[int, ...]:
    """Steps along the axes as one step for the block number, when they are one; else those of the grid's axes."""
    x, y, z = grid
    step = along[0] if x > 1 else along[1] if y > 1 else along[2]
    if all(extent == 1 or own == step * far for own, extent, far in zip(along, grid, (1, x, x * y), strict=True)):
        return step
    return along[: 3 if z > 1 else 2]


def _most_common(values: NDArray[np.int64]) -> int:
    """The smallest of the most frequent values."""
    found, count = np.unique(values, return_counts=True)
    return int(found[count.argmax()])


def _traffic(accesses: Accesses, trace: Trace, on: NDArray[np.bool_]) -> int:
    """Mean sectors of 32 B, or shared-memory passes, of an execution with active lanes, rounded; at least 1."""
    unit = BANK_WIDTH if accesses.space == "shared" else SECTOR
    keys = np.stack([accesses.pattern[on].astype(np.int64), accesses.base[on] % (BANKS * unit)], axis=1)
    kinds, times = np.unique(keys, axis=0, return_counts=True)
    total = 0
    for (pattern, base), count in zip(kinds.tolist(), times.tolist(), strict=True):
        total += count * _units(trace, pattern, base, accesses.bytes, unit, accesses.space == "shared")
    return max(1, round(total / max(1, int(times.sum()))))


def _units(trace: Trace, pattern: int, base: int, size: int, unit: int, shared: bool) -> int:
    """Distinct units that one access touches; in shared memory those of the fullest bank."""
    lanes = (trace.pattern_mask[pattern] >> np.arange(WARP_SIZE, dtype=np.uint32)) & np.uint32(1) != 0
    start = base + trace.pattern_offset[pattern, lanes]
    touched = np.unique((start[:, None] + np.arange(0, size, min(unit, size))) // unit)
    return int(np.bincount(touched % BANKS).max()) if shared else len(touched)


def without_address(op: str, size: int) -> Shape:
    """An access that a functional run does not record: constants are one broadcast, the rest neighbouring lanes."""
    bytes_ = next((known for known in ACCESS_BYTES if known >= size), ACCESS_BYTES[-1]) if size else BANK_WIDTH
    space = op.split(".")[1]
    if space == "constant":
        return Shape(MemoryShape(bytes_, Stride(0)), WARP_SIZE, "")
    count = max(1, WARP_SIZE * bytes_ // (BANKS * BANK_WIDTH if space == "shared" else SECTOR))
    doubt = "its addresses are not recorded: taken as neighbouring lanes"
    if space in ("global", "local"):
        doubt += " that go to DRAM; give l1, l2 or reuse"
    return Shape(MemoryShape(bytes_, Transactions(count)), WARP_SIZE, doubt)


def space_of(accesses: NDArray[np.uint8]) -> str:
    """The space that most of a task's accesses went to."""
    return MEMORY_SPACES[int(np.bincount(accesses).argmax())]
