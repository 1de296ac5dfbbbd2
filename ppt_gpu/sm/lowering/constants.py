"""Constants that registers choose: how many words a warp reads at a time, and which lines, where not all fit the cache.

A request is split into as many as it has different addresses, each of which takes its turn (CUDA C Programming Guide,
compute capabilities, "Constant Memory"). Lines are looked for in the SM's cache of constants only where a program reads
more of them than that holds: of all others a line misses once, when it is first read.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.emulator.trace.trace import Trace
from ppt_gpu.ptx.instructions import memory_space
from ppt_gpu.ptx.module import Kernel
from ppt_gpu.sm.lowering.match import match_accesses
from ppt_gpu.sm.program.ops import OpTable
from ppt_gpu.sm.program.program import KIND_COMPUTE, KIND_CONSTANT
from ppt_gpu.spec.gpu import Gpu


@dataclass(frozen=True)
class ConstantReads:
    """As `op_looked_up`, `constant_start`, `constant_line` and `constant_last` of a Program."""

    of: NDArray[np.bool_]
    start: NDArray[np.int64]
    line: NDArray[np.int32]
    last: NDArray[np.bool_]


def words_of_constants(kernel: Kernel, trace: Trace, traced: NDArray[np.bool_]) -> dict[int, int]:
    """The words that a warp reads, rounded mean, by instruction; of those where these are more than one."""
    chosen = _chosen(kernel, traced)
    if not chosen.any():
        return {}
    entries = match_accesses(trace, traced, chosen.astype(np.int32))
    pattern = trace.access_pattern[entries.access]
    used, at = np.unique(pattern, return_inverse=True)
    words = _distinct(trace.pattern_offset[used], trace.pattern_mask[used])[at]
    found = {}
    for pc in np.unique(entries.pc[words > 0]).tolist():
        mean = round(float(words[(entries.pc == pc) & (words > 0)].mean()))
        if mean > 1:
            found[pc] = mean
    return found


def _chosen(kernel: Kernel, traced: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """[I] instructions that read constants which a register chooses."""
    of_space = np.array([memory_space(instruction) == "constant" for instruction in kernel.instructions], np.bool_)
    return of_space & traced


def _distinct(offsets: NDArray[np.int64], masks: NDArray[np.uint32]) -> NDArray[np.int64]:
    """[N] different offsets of the active lanes of each pattern; offsets [N, 32], masks [N]."""
    ordered = _ordered(offsets, masks)
    return (np.diff(ordered, axis=1, prepend=-_ABSENT) != 0).sum(axis=1) - (ordered[:, -1] == _ABSENT)


_ABSENT = np.iinfo(np.int64).max


def _ordered(values: NDArray[np.int64], masks: NDArray[np.uint32]) -> NDArray[np.int64]:
    """[N, 32] those of the active lanes in order, then _ABSENT."""
    active = (masks[:, np.newaxis] >> np.arange(values.shape[1], dtype=np.uint32) & 1) != 0
    return np.sort(np.where(active, values, _ABSENT), axis=1)


def one_word_after_another(ops: OpTable, words: dict[int, int], reads: ConstantReads | None) -> OpTable:
    """The operations, where constants of `words` keep their unit as long for each word, and come so much later."""
    if not words:
        return ops
    kind, latency, ii = ops.kind.copy(), ops.latency.copy(), ops.ii.copy()
    for pc, count in words.items():
        mine = np.arange(ops.start[pc], ops.start[pc + 1])
        mine = mine[ops.kind[mine] == KIND_CONSTANT]
        latency[mine] += (count - 1) * ii[mine]
        ii[mine] *= count
        if reads is None:
            kind[mine] = KIND_COMPUTE  # whose latency is its own
    return replace(ops, kind=kind, latency=latency, ii=ii)


def constant_reads(
    kernel: Kernel, trace: Trace, traced: NDArray[np.bool_], ops: OpTable, gpu: Gpu
) -> ConstantReads | None:
    """The lines that each warp reads, where they are more than the cache holds; None: it holds them all, or is none."""
    chosen = _chosen(kernel, traced)
    if not (gpu.constants.size and chosen.any()):
        return None
    of = (ops.kind == KIND_CONSTANT) & np.repeat(chosen, np.diff(ops.start))
    count = np.bincount(ops.pc[of], minlength=len(chosen)).astype(np.int32)
    entries = match_accesses(trace, traced, count)
    size = gpu.constants.line
    base = trace.access_base[entries.access].astype(np.int64)
    shapes, at = np.unique(
        np.stack([trace.access_pattern[entries.access], base % size], axis=1), axis=0, return_inverse=True
    )
    pattern, within = shapes[:, 0], shapes[:, 1]
    lines = _ordered((trace.pattern_offset[pattern] + within[:, np.newaxis]) // size, trace.pattern_mask[pattern])
    lines[lines[:, 0] == _ABSENT, 0] = 0  # no lane is active: as if the first were
    new = (np.diff(lines, axis=1, prepend=-_ABSENT) != 0) & (lines != _ABSENT)
    width = new.sum(axis=1)
    of_read = width[at.ravel()]
    ends = np.cumsum(of_read)
    first = np.concatenate(([0], np.cumsum(width)))[at.ravel()]
    within_read = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - of_read, of_read)
    line = lines[new][np.repeat(first, of_read) + within_read] + np.repeat(base // size, of_read)
    distinct = np.unique(line)
    if len(distinct) * size <= gpu.constants.size:
        return None
    last = np.zeros(len(line), np.bool_)
    last[ends - 1] = True
    start = np.concatenate(([0], ends))[entries.start]
    return ConstantReads(of, start, (line - distinct[0]).astype(np.int32), last)
