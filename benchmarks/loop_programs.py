"""Synthetic programs: a short loop body, repeated, run by every warp. For the speed measurements and for tests.

An entry of a body is (operation name, slots waited for, slot announced or -1). Operations take their timing from the
GPU; every execution of a memory operation touches `lines` consecutive lines that nobody touched before, or again and
again the same ones.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.sm.program.ops import kind_of, pipe_order
from ppt_gpu.sm.program.program import KIND_ATOMIC, KIND_LOAD, KIND_SHARED, KIND_STORE, Program
from ppt_gpu.spec.gpu import TASK_CLASSES, Gpu
from ppt_gpu.tasklist.model import class_of

Entry = tuple[str, tuple[int, ...], int]

DEPENDENT_FMA: tuple[Entry, ...] = (("fp32.fma", (0,), 0),)
ILP8_FMA: tuple[Entry, ...] = tuple(("fp32.fma", (slot,), slot) for slot in range(8))
#: one multiply-add and one loop step for two loads and a store of new lines, as in c[i] = a[i] + s * b[i]
STREAMING: tuple[Entry, ...] = (
    ("load.global", (), 0),
    ("load.global", (), 1),
    ("int32", (), -1),
    ("fp32.fma", (0, 1), 2),
    ("store.global", (2,), -1),
    ("int32", (), 3),
    ("branch", (3,), -1),
)
#: the inner loop of a tiled matrix product: 16 fragments from shared memory for 64 multiply-adds, between barriers
SGEMM: tuple[Entry, ...] = (
    ("load.global", (), 40),
    *(
        entry
        for half in range(4)
        for entry in (
            *(("load.shared", (), 20 + index) for index in range(4)),
            *(("fp32.fma", ((20 + index // 4,) if index % 4 == 0 else ()), -1) for index in range(16)),
        )
    ),
    ("store.shared", (40,), -1),
    ("barrier", (), -1),
    ("int32", (), 41),
    ("branch", (41,), -1),
)


def loop_program(
    gpu: Gpu, body: Sequence[Entry], repeat: int, blocks: int, warps: int, lines: int = 1, reuse: bool = False
) -> Program:
    """`blocks` blocks of `warps` warps, each `repeat` times through `body`; `lines` lines per global access."""
    names = tuple(dict.fromkeys(name for name, _, _ in body))
    kinds = np.array([kind_of(class_of(name)) for name in names], np.int8)
    ops = [gpu.isa.op(name) for name in names]
    pipes = list(pipe_order(gpu))
    entry_op = np.tile(np.array([names.index(name) for name, _, _ in body], np.int32), repeat)
    waits = np.array([sum(1 << slot for slot in wait) for _, wait, _ in body], np.uint64)
    slots = np.array([slot for _, _, slot in body], np.int8)
    access_kind = _memory_entries(kinds[entry_op])
    total = blocks * warps
    start, line, count = _accesses(np.tile(access_kind, total), lines, reuse)
    cycles = np.maximum(1, np.where(np.tile(access_kind, total) == KIND_SHARED, 1, lines)).astype(np.int32)
    return Program(
        op_name=names,
        op_pipe=np.array([pipes.index(op.pipe) for op in ops], np.int32),
        op_latency=np.array([op.latency for op in ops], np.int32),
        op_ii=np.array([op.ii for op in ops], np.int32),
        op_kind=kinds,
        op_pc=np.arange(len(names), dtype=np.int32),
        op_class=np.array([TASK_CLASSES.index(class_of(name)) for name in names], np.int32),
        path_start=np.array([0, len(entry_op)], np.int64),
        entry_op=entry_op,
        entry_wait=np.tile(waits, repeat),
        entry_slot=np.tile(slots, repeat),
        warp_path=np.zeros(total, np.int32),
        warp_access=np.arange(total + 1, dtype=np.int64) * len(access_kind),
        block_warp=np.arange(blocks + 1, dtype=np.int64) * warps,
        access_start=start,
        access_cycles=cycles,
        tx_line=line,
        tx_sectors=np.full(len(line), 0xF, np.uint8),
        line_address=np.arange(count, dtype=np.uint64) * np.uint64(128),
        line_warm=np.zeros(count, np.uint8),
    )


def _memory_entries(kinds: NDArray[np.int8]) -> NDArray[np.int8]:
    return kinds[np.isin(kinds, (KIND_LOAD, KIND_STORE, KIND_ATOMIC, KIND_SHARED))]


def _accesses(kinds: NDArray[np.int8], lines: int, reuse: bool) -> tuple[NDArray[np.int64], NDArray[np.int32], int]:
    """(first transaction of each access, line of each transaction, lines)."""
    count = np.where(kinds == KIND_SHARED, 0, lines)
    start = np.concatenate(([0], np.cumsum(count))).astype(np.int64)
    total = int(start[-1])
    distinct = max(1, min(total, 8 * lines) if reuse else total)
    return start, (np.arange(total) % distinct).astype(np.int32), distinct
