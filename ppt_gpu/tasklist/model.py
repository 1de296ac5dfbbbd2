"""A task list: what one warp of a kernel does, one task a machine operation, independent of any GPU.

The representation is PPT's (Chapuis et al., section 3.3 and figure 5): each task has a class and the tasks whose
completion it waits for. It is extended by loops, and by a description of how a warp's addresses fall.

Semantics, binding for every consumer:

* Every warp of every block runs the same body in order. A task is issued once per execution of its place.
* A dependency names a task number and means that task's most recent earlier execution by the same warp. If it has
  not been executed yet there is nothing to wait for, so the first iteration of a loop-carried dependency is free.
* A `Stride` address, for lane l of warp w (in its block) of block b, in iteration i_k of the k-th enclosing loop
  counted from the innermost, is::

      base + offset + (l mod width)*lane + (l div width)*row + sum_k(steps[k] * i_k) + w*warp + b*block   (bytes)

  where b counts the blocks of the grid, x fastest; with a step for each axis, x*block[0] + y*block[1] + z*block[2]
  stands in place of b*block.
* Lanes 0 .. active-1 take part; the others are masked off.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ppt_gpu.spec.gpu import MEMORY_CLASSES, TASK_CLASSES

WARP_SIZE = 32


@dataclass(frozen=True, slots=True)
class Buffer:
    """A named region of global memory. Buffers lie one after another in the order of their declaration."""

    name: str
    bytes: int
    copied: bool = False  # the host copied it just before the launch, which warms the L2


@dataclass(frozen=True, slots=True)
class Stride:
    """Synthetic addresses with a constant distance between lanes; caches and banks are simulated on them.

    A warp of a two-dimensional block covers several rows: every `width` lanes a new one starts, `row` bytes further.
    `warp` None means that the next warp continues: 32*lane, or 32/width*row. `block` None likewise: block_size*lane
    or block_size/width*row, but 0 in shared memory, which every block has for itself. `block` as a pair or triple gives
    the step along x, y and z of the grid instead; a missing z is 0.
    `steps` go from the innermost enclosing loop outwards; missing ones are 0.
    Without `buffer` (global memory) the task has a region of its own, which no other task touches.
    """

    lane: int  # B between neighbouring lanes; 0: all lanes at the same address
    buffer: str = ""
    offset: int = 0  # B from the start of the buffer (or of the block's shared memory); may be negative
    steps: tuple[int, ...] = ()  # B per iteration, innermost loop first
    warp: int | None = None  # B from one warp of a block to the next
    block: int | tuple[int, ...] | None = None  # B from one block to the next, or along each axis of the grid
    width: int = WARP_SIZE  # lanes in a row: 32, or a power of two below
    row: int = 0  # B from row to row; 0 when `width` is 32


@dataclass(frozen=True, slots=True)
class Transactions:
    """A known amount of traffic instead of addresses.

    `count` is per warp access: sectors or lines, whichever the GPU's coalescer makes; in shared memory, bank
    passes. `l1` and `l2` are the shares of transactions that hit there (`l2` of those that missed the L1); 0 and 0
    mean that all go to DRAM. `reuse` (instead of rates) is the number of distinct lines touched since the last use
    of this one: a hit in each cache that holds more lines than that.
    """

    count: int
    l1: float = 0.0
    l2: float = 0.0
    reuse: int | None = None  # lines


@dataclass(frozen=True, slots=True)
class MemoryShape:
    """What a memory task moves: `bytes` per active lane, and how the warp's addresses fall."""

    bytes: int
    pattern: Stride | Transactions


@dataclass(frozen=True, slots=True)
class Task:
    """One machine operation of a warp. `op` is "class" or "class.variant" (ppt_gpu.spec.gpu.TASK_CLASSES)."""

    number: int  # unique in the list, >= 0; the order of execution is the order of the text
    op: str
    deps: tuple[int, ...] = ()  # task numbers
    memory: MemoryShape | None = None  # for memory classes, and only for them
    active: int = WARP_SIZE  # lanes, 1 .. 32
    comment: str = ""  # what follows "#" on the task's line
    line: int = field(default=0, compare=False)  # in the file it was read from; 0: none

    @property
    def task_class(self) -> str:
        """The member of TASK_CLASSES that `op` belongs to. ValueError when there is none."""
        return class_of(self.op)


@dataclass(frozen=True, slots=True)
class Comment:
    """A line of its own that starts with "#"; it does nothing."""

    text: str


@dataclass(frozen=True, slots=True)
class Loop:
    """`body`, `count` times."""

    count: int
    body: tuple[Task | Loop | Comment, ...]
    comment: str = ""
    line: int = field(default=0, compare=False)


Item = Task | Loop | Comment


@dataclass(frozen=True, slots=True)
class TaskList:
    """A kernel as a task list."""

    name: str
    registers: int  # per thread
    shared: int  # B per block
    block_size: int  # threads
    body: tuple[Item, ...]
    grid: tuple[int, ...] = ()  # blocks along x, y, z, one to three extents; (): not stated here, the workload says
    buffers: tuple[Buffer, ...] = ()
    comments: tuple[str, ...] = ()  # comment lines of the header
    path: str = field(default="", compare=False)  # for messages

    @property
    def warps(self) -> int:
        """Warps per block."""
        return -(-self.block_size // WARP_SIZE)


def continued(pattern: Stride, threads: int) -> int:
    """How far `threads` consecutive threads reach, B: where the next ones start when they continue."""
    if pattern.width == WARP_SIZE:
        return threads * pattern.lane
    return threads // pattern.width * pattern.row


def grid_axes(body: tuple[Item, ...]) -> int:
    """Axes of the grid that the tasks' block steps name; 1 when all count the blocks in one."""
    patterns = (task.memory.pattern for task, _ in walk(body) if task.memory)
    steps = (pattern.block for pattern in patterns if isinstance(pattern, Stride))
    return max((len(step) for step in steps if isinstance(step, tuple)), default=1)


def class_of(op: str) -> str:
    """The task class of an operation name: "fp32.fma" -> "fp32", "load.global.v4" -> "load.global".

    ValueError when no leading part is a task class.
    """
    name = op
    while name not in TASK_CLASSES:
        name, dot, _ = name.rpartition(".")
        if not dot:
            raise ValueError(f"'{op}' belongs to no task class")
    return name


def is_memory(op: str) -> bool:
    """Whether `op` needs a MemoryShape."""
    return class_of(op) in MEMORY_CLASSES


def walk(body: tuple[Item, ...], loops: tuple[Loop, ...] = ()) -> Iterator[tuple[Task, tuple[Loop, ...]]]:
    """The tasks in order of the text, each with the loops around it, outermost first."""
    for item in body:
        if isinstance(item, Task):
            yield item, loops
        elif isinstance(item, Loop):
            yield from walk(item.body, (*loops, item))


def length(body: tuple[Item, ...]) -> int:
    """Dynamic tasks of one warp, loops expanded (exact, without expanding them)."""
    total = 0
    for item in body:
        if isinstance(item, Task):
            total += 1
        elif isinstance(item, Loop):
            total += item.count * length(item.body)
    return total
