"""Traces taken apart into blocks and put together again, as if the blocks had run together.

That is right where the trace of a block depends on nothing that other blocks leave in memory
(`ppt_gpu.emulator.analysis.data_dependence`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.emulator.trace.digest import new_patterns, number_patterns, read_patterns
from ppt_gpu.emulator.trace.trace import GlobalAccesses, Trace, counts_by_block

Piece = tuple[Trace, int]  # a trace with `block_threads`, and the position of one of its blocks


def join_blocks(pieces: Sequence[Piece]) -> Trace:
    """The trace of single blocks, in this order: equal, array for array, to the trace of one run of all of them.

    All traces are of the same launch and memory, and have `block_threads`. Blocks of one that has not are taken to run
    each instruction with as many threads as its blocks do in the mean: `pc_threads` is all that is not exact then.
    """
    first = pieces[0][0]
    if all(trace is first for trace, _ in pieces) and [at for _, at in pieces] == list(range(len(first.blocks))):
        return first
    pieces = _compact(pieces, join_blocks)
    sources, which = _distinct([trace for trace, _ in pieces])
    offset, mask, numbers = join_patterns([(t.pattern_offset, t.pattern_mask) for t in sources])
    per_block = len(first.warp_path) // len(first.blocks)
    block = _before([len(t.blocks) for t in sources])[which] + np.array([at for _, at in pieces], np.int64)
    warp = spans(block * per_block, np.full(len(block), per_block))
    starts, lengths = _starts([t.access_start for t in sources], warp)
    access = spans(starts, lengths)
    pattern = _joined([_renamed(t.access_pattern, n) for t, n in zip(sources, numbers, strict=True)])[access]
    pattern, kept = renumber(pattern, len(mask))
    path_start, path_pc, warp_path = _join_paths(sources, warp)
    instructions = len(first.pc_executed)
    executed = executions(path_start, path_pc, warp_path, instructions)
    counts = [t.block_threads for t in sources if t.block_threads is not None]
    threads = _joined(counts)[block] if len(counts) == len(sources) else None
    return Trace(
        blocks=_joined([t.blocks for t in sources])[block],
        path_start=path_start,
        path_pc=path_pc,
        warp_path=warp_path,
        warp_block=np.repeat(np.arange(len(pieces), dtype=np.int32), per_block),
        warp_threads=_joined([t.warp_threads for t in sources])[warp],
        access_start=np.concatenate(([0], np.cumsum(lengths))).astype(np.int64),
        access_base=_joined([t.access_base for t in sources])[access],
        access_pattern=pattern,
        access_space=_joined([t.access_space for t in sources])[access],
        pattern_offset=offset[kept],
        pattern_mask=mask[kept],
        pc_executed=executed,
        pc_threads=scaled_threads(executed, mean_threads(first)) if threads is None else threads.sum(axis=0),
        ranges=first.ranges,
        warnings=first.warnings,
        block_threads=threads if counts_by_block(len(pieces), instructions) else None,
    )


def mean_threads(trace: Trace) -> NDArray[np.float64]:
    """[I] threads that execute each instruction at a time, in the mean over its executions."""
    found: NDArray[np.float64] = trace.pc_threads / np.maximum(trace.pc_executed, 1)
    return found


def scaled_threads(executed: NDArray[np.int64], each: NDArray[np.float64]) -> NDArray[np.int64]:
    """[I] executions by threads, of so many by warps with so many threads each."""
    return np.rint(executed * each).astype(np.int64)


def only_blocks(trace: Trace, blocks: Sequence[int]) -> Trace:
    """The trace of some of its blocks, in this order."""
    if trace.blocks.tolist() == list(blocks):
        return trace
    position = {block: at for at, block in enumerate(trace.blocks.tolist())}
    return join_blocks([(trace, position[block]) for block in blocks])


def join_global(pieces: Sequence[tuple[GlobalAccesses, int]]) -> GlobalAccesses:
    """The accesses of single blocks (source, position in it), in this order, as if one run had yielded them."""
    pieces = _compact(pieces, join_global)
    sources, which = _distinct([source for source, _ in pieces])
    offset, mask, numbers = join_patterns([(s.pattern_offset, s.pattern_mask) for s in sources])
    block = _before([len(s.blocks) for s in sources])[which] + np.array([at for _, at in pieces], np.int64)
    starts, lengths = _starts([s.start for s in sources], block)
    access = spans(starts, lengths)
    pattern = _joined([_renamed(s.pattern, n) for s, n in zip(sources, numbers, strict=True)])[access]
    pattern, kept = renumber(pattern, len(mask))
    return GlobalAccesses(
        blocks=_joined([s.blocks for s in sources])[block],
        start=np.concatenate(([0], np.cumsum(lengths))).astype(np.int64),
        pc=_joined([s.pc for s in sources])[access],
        base=_joined([s.base for s in sources])[access],
        pattern=pattern,
        pattern_offset=offset[kept],
        pattern_mask=mask[kept],
    )


def _compact(pieces: Sequence[tuple[Any, int]], join: Callable[[Any], Any]) -> Sequence[tuple[Any, int]]:
    """The same blocks; of several sources only what is asked for, so that no large one is copied for a few blocks."""
    positions: dict[int, list[tuple[Any, int]]] = {}
    for source, at in pieces:
        positions.setdefault(id(source), []).append((source, at))
    if len(positions) == 1:
        return pieces
    small = {key: iter(_numbered(join(part), len(part))) for key, part in positions.items()}
    return [next(small[id(source)]) for source, _ in pieces]


def _numbered(source: Any, count: int) -> list[tuple[Any, int]]:
    return [(source, at) for at in range(count)]


def _starts(starts: Sequence[NDArray[np.int64]], index: NDArray[np.int64]) -> tuple[NDArray, NDArray]:
    """(where each of these warps or blocks begins in the joined accesses, how many it has)."""
    before = _before([int(start[-1]) for start in starts])
    first = _joined([start[:-1] + b if b else start[:-1] for start, b in zip(starts, before, strict=True)])
    end = _joined([start[1:] + b if b else start[1:] for start, b in zip(starts, before, strict=True)])
    return first[index], end[index] - first[index]


def _renamed(pattern: NDArray[np.int32], numbers: NDArray[np.int32] | None) -> NDArray[np.int32]:
    return pattern if numbers is None else numbers[pattern]


def _distinct(sources: Sequence[Any]) -> tuple[list[Any], NDArray[np.int64]]:
    """(each source once, for each given one its place among them)."""
    place: dict[int, int] = {}
    which = np.array([place.setdefault(id(source), len(place)) for source in sources], np.int64)
    return list({id(source): source for source in sources}.values()), which


def _joined(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """One after another; a single one is not copied."""
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def _before(sizes: Sequence[int]) -> NDArray[np.int64]:
    """How many elements stand before each part."""
    return np.cumsum([0, *sizes[:-1]], dtype=np.int64)


def spans(start: NDArray[np.int64], length: NDArray[np.int64]) -> NDArray[np.int64]:
    """start[0], start[0] + 1, ... for length[0] places, then the same from start[1], and so on."""
    end = np.cumsum(length)
    return np.repeat(start - end + length, length) + np.arange(int(end[-1]) if len(end) else 0)


def renumber(pattern: NDArray[np.int32], count: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """(patterns numbered by first appearance, the old number of each). `count`: old numbers."""
    new, first = pattern.copy(), np.zeros(count, np.int32)
    used = number_patterns(new, count, first)
    return new, first[:used]


def executions(
    path_start: NDArray[np.int64], path_pc: NDArray[np.int32], warp_path: NDArray[np.int32], instructions: int
) -> NDArray[np.int64]:
    """[instructions] warp executions of each: what `Trace.pc_executed` holds."""
    warps = np.bincount(warp_path, minlength=len(path_start) - 1)
    weight = np.repeat(warps, np.diff(path_start))
    return np.bincount(path_pc, weights=weight, minlength=instructions).astype(np.int64)  # exact: far below 2^53


def join_patterns(
    tables: Sequence[tuple[NDArray[np.int64], NDArray[np.uint32]]],
) -> tuple[NDArray[np.int64], NDArray[np.uint32], list[NDArray[np.int32] | None]]:
    """One table of (offsets, masks) without repetitions, and for each given table the numbers of its patterns in it.

    None: they keep their numbers.
    """
    if len(tables) == 1:
        return (*tables[0], [None])
    sizes = [len(mask) for _, mask in tables]
    listed, masks = (np.concatenate(parts) for parts in zip(*tables, strict=True))
    found = np.zeros(len(listed), np.int32)
    p = new_patterns(max(len(listed), 1))
    read_patterns(listed, masks.astype(np.int64), 0, p.offset, p.mask, p.table, p.used, found)
    used = int(p.used[0])
    return p.offset[:used], p.mask[:used].astype(np.uint32), list(np.split(found, np.cumsum(sizes)[:-1]))


def _join_paths(
    sources: Sequence[Trace], warp: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
    """(path_start, path_pc, warp_path) of these warps of all sources, every path once, by first appearance."""
    lengths = _joined([np.diff(t.path_start) for t in sources])
    start = np.cumsum(lengths) - lengths
    path_pc = _joined([t.path_pc for t in sources])
    first = np.arange(len(lengths), dtype=np.int32)  # of equal paths the first
    if len(sources) > 1:
        known: dict[bytes, int] = {}
        for path in range(len(lengths)):
            content = path_pc[start[path] : start[path] + lengths[path]].tobytes()
            first[path] = known.setdefault(content, path)
    before = _before([len(t.path_start) - 1 for t in sources])
    old = _joined([t.warp_path + b if b else t.warp_path for t, b in zip(sources, before, strict=True)])
    warp_path, kept = renumber(first[old[warp]].astype(np.int32), len(lengths))
    path_start = np.concatenate(([0], np.cumsum(lengths[kept]))).astype(np.int64)
    return path_start, path_pc[spans(start[kept], lengths[kept])], warp_path
