"""The least latency of every operation of a program: what no state of the caches can go below."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.sm.program.program import (
    FORCED_L1,
    KIND_ATOMIC,
    KIND_BRANCH,
    KIND_LOAD,
    KIND_STORE,
    RECORDED,
    Program,
    holds_warps,
)
from ppt_gpu.spec.gpu import TASK_CLASSES, Gpu

V = TypeVar("V", bound=np.generic)

#: memory entries of a warp from which on copying a path takes less than finding where each entry is
LONG = 48


def least_latencies(program: Program, gpu: Gpu) -> NDArray[np.int64]:
    """[O] the least cycles from issue to the result, whatever the caches hold. Nobody waits for a store."""
    least = program.op_latency.astype(np.int64)
    least[program.op_kind == KIND_STORE] = 0
    fetches = (program.op_kind == KIND_LOAD) | (program.op_kind == KIND_ATOMIC)
    least[fetches] = min(gpu.l1.latency, gpu.l2.latency)
    if not gpu.perfect_memory:
        least[fetches & ~_may_stay_in_sm(program, gpu, fetches)] = gpu.l2.latency
    return least


def next_entry_holds(program: Program) -> NDArray[np.int64]:
    """[O] cycles from issue to the issue of the warp's next entry: branches resolve, barriers release."""
    hold = np.zeros(len(program.op_name), np.int64)
    branch, barrier = program.op_kind == KIND_BRANCH, holds_warps(program)
    hold[branch] = program.op_latency[branch]
    hold[barrier] = np.maximum(program.op_latency[barrier], 1)
    return hold


def _may_stay_in_sm(program: Program, gpu: Gpu, fetches: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """[O] those of `fetches` that can complete without the L2: cached loads, and those with an empty or forced-L1
    access."""
    local = np.array([name.endswith(".local") for name in TASK_CLASSES])[program.op_class]
    cached = (local | gpu.l1.caches_global) & (max(gpu.l1.size, gpu.l1.unified) > 0)
    may = cached & (program.op_kind == KIND_LOAD)
    if not (fetches & ~may).any():
        return may
    ops, begins = entry_ops(program), program.access_start
    may[ops[fetches[ops] & (begins[1:] == begins[:-1])]] = True
    forced = np.flatnonzero(program.tx_line == FORCED_L1)
    may[ops[np.searchsorted(begins, forced, side="right") - 1]] = True
    return may


def entry_ops(program: Program) -> NDArray[np.int64]:
    """[M] the operation of every memory entry."""
    return of_entries(program, np.arange(len(program.op_kind)))


def of_entries(program: Program, of_op: NDArray[V]) -> NDArray[V]:
    """[M] of every memory entry what `of_op` [O] says of its operation."""
    chosen = np.flatnonzero(np.isin(program.op_kind, RECORDED)[program.entry_op])
    begins = np.searchsorted(chosen, program.path_start)
    of_paths = of_op[program.entry_op[chosen]]
    count = np.diff(begins)[program.warp_path]
    entries = int(count.sum())
    if entries >= LONG * len(count):  # paths are copied whole
        of_path = np.split(of_paths, begins[1:-1])
        return np.concatenate([of_path[path] for path in program.warp_path.tolist()] or [of_paths[:0]])
    of_warp = np.cumsum(count) - count  # the first of each warp's, among all
    return of_paths[np.arange(entries) + np.repeat(begins[program.warp_path] - of_warp, count)]
