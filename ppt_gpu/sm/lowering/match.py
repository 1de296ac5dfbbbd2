"""Pairing the accesses of a trace with the memory operations that the instructions become."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.compiled import entry
from ppt_gpu.common.errors import PptError
from ppt_gpu.emulator.trace.trace import Trace


@dataclass(frozen=True)
class Entries:
    """M memory entries of W warps and what the trace says of each."""

    start: NDArray[np.int64]  # [W+1]
    access: NDArray[np.int64]  # [M] access of the trace, -1: not recorded
    pc: NDArray[np.int32]  # [M]


def match_accesses(trace: Trace, traced: NDArray[np.bool_], operations: NDArray[np.int32]) -> Entries:
    """Pair every executed memory operation with the trace's access of its instruction.

    traced [I]: the run recorded accesses of the instruction; operations [I]: memory operations that it becomes.
    Several repeat its access. PptError when a warp's accesses do not match its path.
    """
    relevant = traced | (operations > 0)
    chosen = np.flatnonzero(relevant[trace.path_pc])
    memory_pc = trace.path_pc[chosen].astype(np.int32)
    memory_start = np.searchsorted(chosen, trace.path_start)
    recorded = _segment_sums(traced[memory_pc], memory_start)[trace.warp_path]
    wrong = np.flatnonzero(np.diff(trace.access_start) != recorded)
    if len(wrong):
        w = int(wrong[0])
        have = int(trace.access_start[w + 1] - trace.access_start[w])
        raise PptError(f"warp {w} of the trace has {have} memory accesses, its path {int(recorded[w])}")
    start = np.zeros(trace.warps + 1, np.int64)
    np.cumsum(_segment_sums(operations[memory_pc], memory_start)[trace.warp_path], out=start[1:])
    access, pc = np.empty(start[-1], np.int64), np.empty(start[-1], np.int32)
    _match(trace.warp_path, memory_start, memory_pc, trace.access_start, traced, operations, access, pc)
    return Entries(start, access, pc)


def _segment_sums(values: NDArray[np.generic], start: NDArray[np.int64]) -> NDArray[np.int64]:
    total = np.zeros(len(values) + 1, np.int64)
    np.cumsum(values, out=total[1:])
    return np.diff(total[start])


@entry
def _match(
    warp_path: np.ndarray, memory_start: np.ndarray, memory_pc: np.ndarray, access_start: np.ndarray,
    traced: np.ndarray, operations: np.ndarray, access: np.ndarray, pcs: np.ndarray,
) -> None:  # fmt: skip
    at = 0
    for w in range(len(warp_path)):
        source = access_start[w]
        for k in range(memory_start[warp_path[w]], memory_start[warp_path[w] + 1]):
            pc = memory_pc[k]
            for _ in range(operations[pc]):
                access[at] = source if traced[pc] else -1
                pcs[at] = pc
                at += 1
            if traced[pc]:
                source += 1
