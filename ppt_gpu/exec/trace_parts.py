"""Traces taken apart into blocks and put together again, as if the blocks had run together.

That is right where the trace of a block depends on nothing that other blocks leave in memory (`ppt_gpu.exec.steering`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.exec.digest import new_patterns, number_patterns, read_patterns
from ppt_gpu.exec.trace import Trace, counts_by_block

Piece = tuple[Trace, int]  # a trace with `block_threads`, and the position of one of its blocks


def join_blocks(pieces: Sequence[Piece]) -> Trace:
    """The trace of single blocks, in this order: equal, array for array, to the trace of one run of all of them.

    All traces are of the same launch and memory, and have `block_threads`.
    """
    first = pieces[0][0]
    if all(trace is first for trace, _ in pieces) and [at for _, at in pieces] == list(range(len(first.blocks))):
        return first
    sources = {id(trace): trace for trace, _ in pieces}
    offset, mask, numbers = join_patterns([(t.pattern_offset, t.pattern_mask) for t in sources.values()])
    number_of = dict(zip(sources, numbers, strict=True))
    per_block = len(first.warp_path) // len(first.blocks)
    warps = [(trace, slice(at * per_block, (at + 1) * per_block)) for trace, at in pieces]
    spans = [(t, slice(int(t.access_start[w.start]), int(t.access_start[w.stop]))) for t, w in warps]
    pattern = np.concatenate([number_of[id(t)][t.access_pattern[span]] for t, span in spans])
    kept = np.zeros(len(mask), np.int32)
    kept = kept[: number_patterns(pattern, len(mask), kept)]
    path_start, path_pc, warp_path = _join_paths(warps)
    counts = np.concatenate([np.diff(t.access_start[w.start : w.stop + 1]) for t, w in warps])
    instructions = len(first.pc_executed)
    threads = np.array([t.block_threads[at] for t, at in pieces if t.block_threads is not None], np.int64)
    return Trace(
        blocks=np.array([trace.blocks[at] for trace, at in pieces], np.int64),
        path_start=path_start,
        path_pc=path_pc,
        warp_path=warp_path,
        warp_block=np.repeat(np.arange(len(pieces), dtype=np.int32), per_block),
        warp_threads=np.concatenate([t.warp_threads[w] for t, w in warps]),
        access_start=np.concatenate(([0], np.cumsum(counts))).astype(np.int64),
        access_base=np.concatenate([t.access_base[span] for t, span in spans]),
        access_pattern=pattern,
        access_space=np.concatenate([t.access_space[span] for t, span in spans]),
        pattern_offset=offset[kept],
        pattern_mask=mask[kept],
        pc_executed=executions(path_start, path_pc, warp_path, instructions),
        pc_threads=threads.sum(axis=0),
        ranges=first.ranges,
        warnings=first.warnings,
        block_threads=threads if counts_by_block(len(pieces), instructions) else None,
    )


def executions(
    path_start: NDArray[np.int64], path_pc: NDArray[np.int32], warp_path: NDArray[np.int32], instructions: int
) -> NDArray[np.int64]:
    """[instructions] warp executions of each: what `Trace.pc_executed` holds."""
    warps = np.bincount(warp_path, minlength=len(path_start) - 1)
    weight = np.repeat(warps, np.diff(path_start))
    return np.bincount(path_pc, weights=weight, minlength=instructions).astype(np.int64)  # exact: far below 2^53


def join_patterns(
    tables: Sequence[tuple[NDArray[np.int64], NDArray[np.uint32]]],
) -> tuple[NDArray[np.int64], NDArray[np.uint32], list[NDArray[np.int32]]]:
    """One table of (offsets, masks) without repetitions, and for each given table the numbers of its patterns in it."""
    if len(tables) == 1:
        return (*tables[0], [np.arange(len(tables[0][1]), dtype=np.int32)])
    sizes = [len(mask) for _, mask in tables]
    listed = np.concatenate([np.concatenate((m.astype(np.int64)[:, None], o), axis=1) for o, m in tables])
    found = np.zeros(len(listed), np.int32)
    p = new_patterns(max(len(listed), 1))
    read_patterns(listed, 0, p.offset, p.mask, p.table, p.used, found)
    used = int(p.used[0])
    return p.offset[:used], p.mask[:used].astype(np.uint32), np.split(found, np.cumsum(sizes)[:-1])


def _join_paths(
    warps: Sequence[tuple[Trace, slice]],
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
    """(path_start, path_pc, warp_path) of these warps, with every path once, numbered by first appearance."""
    number: dict[bytes, int] = {}  # content of a path -> its number
    known: dict[tuple[int, int], int] = {}  # (trace, its path) -> number
    paths: list[NDArray[np.int32]] = []
    warp_path: list[int] = []
    for trace, part in warps:
        for old in trace.warp_path[part].tolist():
            new = known.get((id(trace), old))
            if new is None:
                path = trace.path_pc[trace.path_start[old] : trace.path_start[old + 1]]
                new = number.setdefault(path.tobytes(), len(paths))
                if new == len(paths):
                    paths.append(path)
                known[id(trace), old] = new
            warp_path.append(new)
    starts = np.cumsum([0, *map(len, paths)], dtype=np.int64)
    return starts, np.concatenate([np.zeros(0, np.int32), *paths]), np.array(warp_path, np.int32)
