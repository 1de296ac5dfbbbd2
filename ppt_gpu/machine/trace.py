"""A trace of PTX as a trace of machine code: other instructions in another order, for the same accesses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.compiled import entry, merged
from ppt_gpu.emulator.trace.trace import Trace
from ppt_gpu.emulator.trace.trace_parts import executions, mean_threads, scaled_threads, spans
from ppt_gpu.machine.code import MachineCode
from ppt_gpu.ptx.instructions import is_traced


def as_machine_code(trace: Trace, code: MachineCode) -> Trace:
    """`trace` as if the machine code had run, wherever a warp runs the blocks of a region from start to end.

    Of guarded arms that it passes by the accesses are not there; it issues the rest of them.

    Counts of threads are those of the PTX instructions, in proportion to how often the machine instructions run.
    """
    if not code.templates:
        return trace
    kernel, flow = code.kernel, code.flow
    traced = np.array([is_traced(instruction) for instruction in kernel.instructions], np.bool_)
    starts, ends = np.array(flow.block_start, np.int64), np.array(flow.block_end, np.int64)
    block_at = np.full(int(ends[-1]) + 1, -1, np.int32)
    block_at[starts] = np.arange(len(starts))
    begins = _csr([template.blocks for template in code.templates])
    first_of = _by_first_block([template.blocks[0] for template in code.templates], len(starts))
    recorded = np.zeros(len(trace.path_pc) + 1, np.int64)  # accesses before each place of the paths
    np.cumsum(traced[trace.path_pc], out=recorded[1:])
    arguments = (
        trace.path_start, trace.path_pc, recorded, traced, block_at, ends - starts, *first_of, *begins,
        _csr([template.arms for template in code.templates])[1],
        *_csr([template.code for template in code.templates]),
        _csr([template.access[0] for template in code.templates])[0],
        *(np.concatenate([template.access[part] for template in code.templates]) for part in (0, 1)),
        np.empty(max(len(template.blocks) for template in code.templates), np.int64),
    )  # fmt: skip
    path_start, taken_start = np.zeros_like(trace.path_start), np.zeros_like(trace.path_start)
    nothing = np.zeros(0, np.int64)
    _rewrite(*arguments, path_start, taken_start, np.zeros(0, np.int32), nothing)
    path_pc, taken = np.empty(path_start[-1], np.int32), np.empty(taken_start[-1], np.int64)
    _rewrite(*arguments, path_start, taken_start, path_pc, taken)
    count = np.diff(taken_start)[trace.warp_path]
    index = taken[spans(taken_start[:-1][trace.warp_path], count)] + np.repeat(trace.access_start[:-1], count)
    executed = executions(path_start, path_pc, trace.warp_path, len(kernel.instructions))
    return replace(
        trace,
        path_start=path_start,
        path_pc=path_pc,
        access_start=np.concatenate(([0], np.cumsum(count))).astype(np.int64),
        access_base=trace.access_base[index],
        access_pattern=trace.access_pattern[index],
        access_space=trace.access_space[index],
        pc_executed=executed,
        pc_threads=scaled_threads(executed, mean_threads(trace)[np.array(kernel.origin, np.int64)]),
        block_threads=None,
    )


def _csr(rows: list) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    start = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    return start, np.concatenate([np.asarray(row, np.int64) for row in rows])


def _by_first_block(first: list[int], blocks: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The templates that begin with each block, in their order."""
    order = np.argsort(np.array(first), kind="stable")
    return np.searchsorted(np.array(first)[order], np.arange(blocks + 1)), order


@merged
def _block_ends(pcs: np.ndarray, place: int, end: int, block: int, block_at: np.ndarray, length: np.ndarray) -> int:
    """Where the whole block that should begin at `place` ends; -1: it is not there."""
    last = place + length[block]
    if last > end or block_at[pcs[place]] != block:
        return -1
    for k in range(place + 1, last):
        if pcs[k] != pcs[k - 1] + 1:
            return -1
    return last


@entry
def _rewrite(
    old_start: np.ndarray, pcs: np.ndarray, recorded: np.ndarray, traced: np.ndarray, block_at: np.ndarray,
    length: np.ndarray, first_start: np.ndarray, first_template: np.ndarray, block_start: np.ndarray,
    blocks: np.ndarray, arm: np.ndarray, code_start: np.ndarray, code: np.ndarray, access_start: np.ndarray,
    access_place: np.ndarray, access: np.ndarray, begin: np.ndarray,
    path_start: np.ndarray, taken_start: np.ndarray, path_pc: np.ndarray, taken: np.ndarray,
) -> None:  # fmt: skip
    """With empty `path_pc`, `taken`: count into path_start, taken_start. Else fill them.

    taken: for each access of the new paths, its number among those of the old path. begin: room for where the blocks of
    a template begin in the old path; -1: an arm that is passed by.
    """
    filling = len(path_pc) > 0
    at, used = 0, 0
    for p in range(len(old_start) - 1):
        place, end = old_start[p], old_start[p + 1]
        before = recorded[place]
        while place < end:
            chosen, behind = -1, -1
            block = block_at[pcs[place]]
            if block >= 0:
                for k in range(first_start[block], first_start[block + 1]):
                    template = first_template[k]
                    behind = place
                    for n in range(block_start[template], block_start[template + 1]):
                        if behind >= end:
                            behind = -1
                            break
                        begin[n - block_start[template]] = behind
                        ends = _block_ends(pcs, behind, end, blocks[n], block_at, length)
                        if ends < 0 and arm[n]:
                            begin[n - block_start[template]] = -1
                            continue
                        behind = ends
                        if behind < 0:
                            break
                    if behind >= 0:
                        chosen = template
                        break
            if chosen < 0:  # as it was
                if filling:
                    path_pc[at] = pcs[place]
                at += 1
                if traced[pcs[place]]:
                    if filling:
                        taken[used] = recorded[place] - before
                    used += 1
                place += 1
                continue
            next_access = access_start[chosen]
            for n in range(code_start[chosen], code_start[chosen + 1]):
                if traced[code[n]]:
                    first = begin[access_place[next_access]]
                    next_access += 1
                    if first < 0:
                        continue
                    if filling:
                        taken[used] = recorded[first] - before + access[next_access - 1]
                    used += 1
                if filling:
                    path_pc[at] = code[n]
                at += 1
            place = behind
        path_start[p + 1] = at
        taken_start[p + 1] = used
