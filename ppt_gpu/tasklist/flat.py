"""A task list with its loops expanded, in flat arrays: what the SM lowering and the graph measures read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.errors import BudgetError
from ppt_gpu.spec.gpu import MEMORY_SPACES
from ppt_gpu.tasklist.check import check
from ppt_gpu.tasklist.model import (
    WARP_SIZE,
    Item,
    Loop,
    Stride,
    Task,
    TaskList,
    class_of,
    continued,
    is_memory,
    length,
    walk,
)

#: Dynamic tasks of one warp that `flatten` expands to without being asked for more.
MAX_ENTRIES = 1 << 26

BUFFER_BASE = 1 << 32  # where the declared buffers start
#: Buffers lie as the functional run lays them out, aligned and with a gap behind each: two buffers of the same size,
#: a power of two, would otherwise meet in the same few cache sets.
BUFFER_ALIGN = 512  # B
BUFFER_GAP = 512  # B
#: Undeclared regions: far apart, and not a power of two, so that they do not all start in one cache set.
REGION_BASE = 1 << 44
REGION_STEP = (1 << 36) + 17 * 256


@dataclass(frozen=True)
class FlatTaskList:
    """One warp's stream. S static tasks in order of the text, D dependency edges, E dynamic tasks, M memory accesses.

    The pattern of lanes of the k-th memory access is that of its static task, `pattern_offset[access_task[k]]`;
    `access_base` is where lane 0 of warp 0 of block 0 starts (see `bases`).
    Tasks described by Transactions have base 0 and pattern offsets 0: look at `tasks[i].memory`.
    """

    tasklist: TaskList
    tasks: tuple[Task, ...]  # [S]
    task_class: tuple[str, ...]  # [S] member of TASK_CLASSES
    is_memory: NDArray[np.bool_]  # [S]
    space: NDArray[np.int8]  # [S] index into MEMORY_SPACES; -1 for compute tasks
    dep_start: NDArray[np.int64]  # [S+1]
    dep_task: NDArray[np.int32]  # [D] static index of the producer; its most recent earlier execution counts
    path: NDArray[np.int32]  # [E] static index
    access_task: NDArray[np.int32]  # [M] static index
    access_base: NDArray[np.int64]  # [M] B
    warp_step: NDArray[np.int64]  # [S] B per warp of the block
    block_step: NDArray[np.int64]  # [S, 4] B per block number, and per block along x, y and z of the grid
    pattern_offset: NDArray[np.int64]  # [S, 32] B from the base, 0 in inactive lanes
    pattern_mask: NDArray[np.uint32]  # [S] active lanes

    @property
    def in_global_memory(self) -> NDArray[np.bool_]:
        """[S] whether the task gives addresses in global memory, where blocks may share lines."""
        strides = [task.memory is not None and isinstance(task.memory.pattern, Stride) for task in self.tasks]
        found: NDArray[np.bool_] = np.array(strides, bool) & (self.space == MEMORY_SPACES.index("global"))
        return found


def flatten(tasklist: TaskList, max_entries: int = MAX_ENTRIES) -> FlatTaskList:
    """Expand the loops of `tasklist` for one warp.

    Raises InputErrors for a list that breaks a rule of the format, BudgetError when it has more than `max_entries`
    dynamic tasks.
    """
    check(tasklist)
    total = length(tasklist.body)
    if total > max_entries:
        raise BudgetError(
            f"the loops of '{tasklist.name}' expand to {total:,} tasks a warp; the budget is {max_entries:,}",
            path=tasklist.path or None,
            hint="shorten the loops, or raise max_entries",
        )
    placed = list(walk(tasklist.body))
    tasks = tuple(task for task, _ in placed)
    index = {task.number: i for i, task in enumerate(tasks)}
    memory = np.array([is_memory(task.op) for task in tasks], bool)
    start, step_at = _steps(tasklist, placed)
    path, base = _expand(tasklist.body, index, start, step_at, 0)
    entry = np.flatnonzero(memory[path]) if tasks else np.zeros(0, np.int64)
    offset, mask = _patterns(tasks)
    warp_step, block_step = _strides(tasklist, tasks)
    return FlatTaskList(
        tasklist=tasklist,
        tasks=tasks,
        task_class=tuple(class_of(task.op) for task in tasks),
        is_memory=memory,
        space=np.array([_space(task) for task in tasks], np.int8),
        dep_start=np.cumsum([0, *(len(task.deps) for task in tasks)], dtype=np.int64),
        dep_task=np.array([index[number] for task in tasks for number in task.deps], np.int32),
        path=path,
        access_task=path[entry],
        access_base=base[entry],
        warp_step=warp_step,
        block_step=block_step,
        pattern_offset=offset,
        pattern_mask=mask,
    )


def block_shifts(flat: FlatTaskList, blocks: NDArray[np.int64], grid: Sequence[int] = ()) -> NDArray[np.int64]:
    """[blocks, S] B by which block number `blocks` [blocks] moves the addresses of each task.

    grid: the extents of the launch, x first; by default those that the list states. Without any it is a line.
    """
    extents = tuple(grid) or flat.tasklist.grid
    found = [blocks, blocks]
    for extent in extents[:-1]:  # the number of a block counts along x first
        found[-1], rest = found[-1] % extent, found[-1] // extent
        found.append(rest)
    shift = np.zeros((len(blocks), len(flat.tasks)), np.int64)
    for axis, at in enumerate(found):
        shift += at[:, None] * flat.block_step[:, axis]
    return shift


def bases(flat: FlatTaskList, warp: int, block: int, grid: Sequence[int] = ()) -> NDArray[np.int64]:
    """[M] the address of lane 0 of each memory access of warp `warp` (in its block) of block `block`."""
    shift = warp * flat.warp_step + block_shifts(flat, np.array([block]), grid)[0]
    return flat.access_base + shift[flat.access_task]


def addresses(flat: FlatTaskList, warp: int, block: int, grid: Sequence[int] = ()) -> NDArray[np.int64]:
    """[M, 32] the address of every lane; meaningless in inactive lanes and for Transactions tasks."""
    return bases(flat, warp, block, grid)[:, None] + flat.pattern_offset[flat.access_task]


def producers(flat: FlatTaskList) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The dynamic dependencies: (start [E+1], producer): positions in `path` that each dynamic task waits for.

    A dependency on a task that was not executed yet is left out; the rest keep the order of the task's `deps`.
    """
    entries = len(flat.path)
    order = np.argsort(flat.path, kind="stable")
    first = np.searchsorted(flat.path[order], np.arange(len(flat.tasks) + 1))
    where = [order[first[i] : first[i + 1]] for i in range(len(flat.tasks))]
    consumers, found, ranks = [], [], []
    for i in range(len(flat.tasks)):
        for rank, d in enumerate(flat.dep_task[flat.dep_start[i] : flat.dep_start[i + 1]]):
            last = np.searchsorted(where[d], where[i]) - 1
            keep = last >= 0
            consumers.append(where[i][keep])
            found.append(where[d][last[keep]])
            ranks.append(np.full(int(keep.sum()), rank))
    if not consumers:
        return np.zeros(entries + 1, np.int64), np.zeros(0, np.int64)
    consumer, producer = np.concatenate(consumers), np.concatenate(found)
    sort = np.lexsort((np.concatenate(ranks), consumer))
    start = np.zeros(entries + 1, np.int64)
    np.cumsum(np.bincount(consumer, minlength=entries), out=start[1:])
    return start, producer[sort].astype(np.int64)


def buffer_bases(tasklist: TaskList) -> dict[str, int]:
    """Where each declared buffer starts, B."""
    found, at = {}, BUFFER_BASE + BUFFER_GAP
    for buffer in tasklist.buffers:
        found[buffer.name] = at
        at += -(-(buffer.bytes + BUFFER_GAP) // BUFFER_ALIGN) * BUFFER_ALIGN
    return found


def _space(task: Task) -> int:
    return MEMORY_SPACES.index(class_of(task.op).split(".")[1]) if task.memory else -1


def _steps(
    tasklist: TaskList, placed: list[tuple[Task, tuple[Loop, ...]]]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """([S] address of lane 0 in the first iterations, [S, depth] step for each loop depth, outermost first)."""
    buffers = buffer_bases(tasklist)
    depth = max((len(loops) for _, loops in placed), default=0)
    start = np.zeros(len(placed), np.int64)
    steps = np.zeros((len(placed), depth), np.int64)
    for i, (task, loops) in enumerate(placed):
        pattern = task.memory.pattern if task.memory else None
        if not isinstance(pattern, Stride):
            continue
        in_global = MEMORY_SPACES[_space(task)] == "global"
        own = REGION_BASE + i * REGION_STEP if in_global else 0
        start[i] = (buffers[pattern.buffer] if pattern.buffer else own) + pattern.offset
        for k, step in enumerate(pattern.steps):
            steps[i, len(loops) - 1 - k] = step
    return start, steps


def _expand(
    body: tuple[Item, ...],
    index: dict[int, int],
    start: NDArray[np.int64],
    step_at: NDArray[np.int64],
    depth: int,
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """([e] static index, [e] address of lane 0) of the dynamic tasks of `body`, which stands inside `depth` loops."""
    paths: list[NDArray[np.int32]] = [np.zeros(0, np.int32)]
    found: list[NDArray[np.int64]] = [np.zeros(0, np.int64)]
    for _, group in groupby(body, type):  # runs of tasks at once
        items = list(group)
        run = [index[item.number] for item in items if isinstance(item, Task)]
        if run:
            paths.append(np.array(run, np.int32))
            found.append(start[paths[-1]])
        for item in items:
            if isinstance(item, Loop):
                path, base = _expand(item.body, index, start, step_at, depth + 1)
                iteration = np.arange(item.count, dtype=np.int64)[:, None]
                paths.append(np.tile(path, item.count))
                found.append((base + iteration * step_at[path, depth]).reshape(-1))
    return np.concatenate(paths), np.concatenate(found)


def _patterns(tasks: tuple[Task, ...]) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
    offset = np.zeros((len(tasks), WARP_SIZE), np.int64)
    mask = np.array([(1 << task.active) - 1 for task in tasks], np.uint32)
    for i, task in enumerate(tasks):
        if task.memory and isinstance(task.memory.pattern, Stride):
            pattern = task.memory.pattern
            row, column = np.divmod(np.arange(task.active), pattern.width)
            offset[i, : task.active] = column * pattern.lane + row * pattern.row
    return offset, mask


def _strides(tasklist: TaskList, tasks: tuple[Task, ...]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """([S] bytes per warp, [S, 4] bytes per block number and axis), the defaults of Stride filled in."""
    warp, block = np.zeros(len(tasks), np.int64), np.zeros((len(tasks), 4), np.int64)
    for i, task in enumerate(tasks):
        pattern = task.memory.pattern if task.memory else None
        if isinstance(pattern, Stride):
            shared = MEMORY_SPACES[_space(task)] == "shared"
            own = 0 if shared else continued(pattern, tasklist.block_size)
            warp[i] = continued(pattern, WARP_SIZE) if pattern.warp is None else pattern.warp
            if isinstance(pattern.block, tuple):
                block[i, 1 : 1 + len(pattern.block)] = pattern.block
            else:
                block[i, 0] = own if pattern.block is None else pattern.block
    return warp, block
