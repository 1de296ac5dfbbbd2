"""Constants whose lanes read different words: the cache serves one word after another.

A request is split into as many as it has different addresses, each of which takes its turn (CUDA C Programming Guide,
compute capabilities, "Constant Memory").
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.exec.trace import Trace
from ppt_gpu.ptx.instructions import memory_space
from ppt_gpu.ptx.module import Kernel
from ppt_gpu.sm.lower_match import match_accesses
from ppt_gpu.sm.lower_ops import OpTable
from ppt_gpu.sm.program import KIND_COMPUTE, KIND_CONSTANT


def words_of_constants(kernel: Kernel, trace: Trace, traced: NDArray[np.bool_]) -> dict[int, int]:
    """The words that a warp reads, rounded mean, by instruction; of those where these are more than one."""
    of_space = np.array([memory_space(instruction) == "constant" for instruction in kernel.instructions], np.bool_)
    if not (of_space & traced).any():
        return {}
    entries = match_accesses(trace, traced, (of_space & traced).astype(np.int32))
    pattern = trace.access_pattern[entries.access]
    used, at = np.unique(pattern, return_inverse=True)
    words = _distinct(trace.pattern_offset[used], trace.pattern_mask[used])[at]
    found = {}
    for pc in np.unique(entries.pc[words > 0]).tolist():
        mean = round(float(words[(entries.pc == pc) & (words > 0)].mean()))
        if mean > 1:
            found[pc] = mean
    return found


def _distinct(offsets: NDArray[np.int64], masks: NDArray[np.uint32]) -> NDArray[np.int64]:
    """[N] different offsets of the active lanes of each pattern; offsets [N, 32], masks [N]."""
    active = (masks[:, np.newaxis] >> np.arange(offsets.shape[1], dtype=np.uint32) & 1) != 0
    absent = np.iinfo(np.int64).max
    ordered = np.sort(np.where(active, offsets, absent), axis=1)
    return (np.diff(ordered, axis=1, prepend=-absent) != 0).sum(axis=1) - (ordered[:, -1] == absent)


def one_word_after_another(ops: OpTable, words: dict[int, int]) -> OpTable:
    """The operations, where constants of `words` keep their unit for a cycle a word, and come so much later."""
    if not words:
        return ops
    kind, latency, ii = ops.kind.copy(), ops.latency.copy(), ops.ii.copy()
    for pc, count in words.items():
        mine = np.arange(ops.start[pc], ops.start[pc + 1])
        mine = mine[kind[mine] == KIND_CONSTANT]
        kind[mine] = KIND_COMPUTE  # whose latency is its own
        latency[mine] += count - 1
        ii[mine] = np.maximum(ii[mine], count)
    return replace(ops, kind=kind, latency=latency, ii=ii)
