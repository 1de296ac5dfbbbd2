"""Transactions whose cache level a task list gives, by hit rates or a reuse distance, instead of their address."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.sm.accesses.access import Accesses, Geometry
from ppt_gpu.sm.accesses.coalesce import LINE
from ppt_gpu.sm.accesses.shapes import SHARED
from ppt_gpu.sm.program.program import FORCED_DRAM, FORCED_L1, FORCED_L2
from ppt_gpu.spec.gpu import Gpu
from ppt_gpu.tasklist.flat import FlatTaskList
from ppt_gpu.tasklist.model import Task, Transactions


def forced_transactions(
    flat: FlatTaskList,
    gpu: Gpu,
    shape: Geometry,
    task: NDArray[np.int32],
    found: Accesses,
    line: NDArray[np.int32],
    active_sms: int,
) -> tuple[NDArray[np.int32], Accesses]:
    """Add the given transactions to those found from addresses.

    task [M]: static task of each access, all warps; line [T]: line ids of `found`. Returns (tx_line, accesses).
    """
    given = {
        i: t.memory.pattern for i, t in enumerate(flat.tasks) if t.memory and isinstance(t.memory.pattern, Transactions)
    }
    if not given:
        return line, found
    extra = np.zeros(len(flat.tasks), np.int64)
    cycles = found.cycles.copy()
    for i, pattern in given.items():
        if flat.space[i] != SHARED:
            extra[i] = pattern.count
        passes = pattern.count if flat.space[i] == SHARED else int(np.ceil(pattern.count / shape.per_cycle))
        cycles[task == i] = max(1, passes)
    count = np.diff(found.start) + extra[task]
    start = np.zeros(len(task) + 1, np.int64)
    np.cumsum(count, out=start[1:])
    own = np.repeat(extra[task] == 0, count)  # transactions that come from addresses
    tx_line, sectors = np.empty(start[-1], np.int32), np.empty(start[-1], np.uint8)
    tx_line[own], sectors[own] = line, found.sectors
    of_task = np.repeat(task, count)
    for i, pattern in given.items():
        at = np.flatnonzero((of_task == i) & ~own)
        tx_line[at] = levels(pattern, len(at), *_capacities(gpu, shape, active_sms))
        sectors[at] = _sectors(flat.tasks[i], pattern, shape)
    return tx_line, replace(found, start=start, cycles=cycles, sectors=sectors)


def levels(pattern: Transactions, count: int, l1_lines: int, l2_lines: int) -> NDArray[np.int32]:
    """[count] FORCED_*: the level that each transaction hits.

    With rates, the first j transactions have floor(j*l1) hits in the L1, and the first j misses floor(j*l2) hits in
    the L2, for every j (error diffusion).
    """
    if pattern.reuse is not None:
        near = FORCED_L2 if pattern.reuse < l2_lines else FORCED_DRAM
        return np.full(count, FORCED_L1 if pattern.reuse < l1_lines else near, np.int32)
    in_l1 = _diffuse(count, pattern.l1)
    level = np.full(count, FORCED_L1, np.int32)
    missed = np.flatnonzero(~in_l1)
    level[missed] = np.where(_diffuse(len(missed), pattern.l2), FORCED_L2, FORCED_DRAM)
    return level


def _diffuse(count: int, rate: float) -> NDArray[np.bool_]:
    # the small term keeps 3 * (1/3) = 1 from becoming 0.999...
    return np.diff(np.floor(np.arange(count + 1) * rate + 1e-9)) > 0


def _capacities(gpu: Gpu, shape: Geometry, active_sms: int) -> tuple[int, int]:
    """Lines that the L1, and this SM's share of the L2, hold."""
    return gpu.l1.size // shape.line if shape.l1_global else 0, gpu.l2.size // active_sms // shape.line


def _sectors(task: Task, pattern: Transactions, shape: Geometry) -> int:
    """Sector mask of each transaction: an equal share of the bytes; loads by the "line" rule fetch whole lines."""
    per_line = shape.line // shape.sector
    if shape.rule == LINE and task.op.startswith("load") and shape.l1_global:
        return (1 << per_line) - 1
    share = (task.memory.bytes if task.memory else 0) * task.active / pattern.count
    return (1 << min(per_line, max(1, int(np.ceil(share / shape.sector))))) - 1
