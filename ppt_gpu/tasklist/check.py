"""The rules of a task list, whoever made it: read from a file, built by a script or translated from PTX."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from ppt_gpu.errors import InputErrors, PptError, did_you_mean
from ppt_gpu.spec.gpu import MEMORY_CLASSES, TASK_CLASSES
from ppt_gpu.tasklist.model import (
    WARP_SIZE,
    Comment,
    Item,
    Loop,
    MemoryShape,
    Task,
    TaskList,
    Transactions,
    class_of,
    walk,
)

ACCESS_BYTES = (1, 2, 4, 8, 16, 32)  # what one lane can move in one instruction
MAX_DEPTH = 32  # nested loops
LIMIT = 1 << 48  # largest distance or size in bytes, and largest count: sums of them stay inside 64 bits
MAX_BLOCK = 1024  # threads; every CUDA compute capability has this limit or a lower one
MAX_REGISTERS = 255


def check(tasklist: TaskList) -> None:
    """Raise InputErrors with everything that is wrong with `tasklist`; return when nothing is."""
    errors = [*_header(tasklist), *_body(tasklist)]
    if errors:
        raise InputErrors(sorted(errors, key=lambda error: error.line or 0))


def _header(tasklist: TaskList) -> Iterator[PptError]:
    def bad(message: str, hint: str | None = None) -> PptError:
        return PptError(message, path=tasklist.path or None, hint=hint)

    if not tasklist.name or any(character.isspace() or character == "#" for character in tasklist.name):
        yield bad(f"'{tasklist.name}' is not a name", "a name has no spaces and no '#'")
    if not 1 <= tasklist.block_size <= MAX_BLOCK:
        yield bad(f"block {tasklist.block_size} is out of range", f"1 to {MAX_BLOCK} threads")
    if not 1 <= tasklist.registers <= MAX_REGISTERS:
        yield bad(f"registers {tasklist.registers} is out of range", f"1 to {MAX_REGISTERS} for each thread")
    if not 0 <= tasklist.shared < LIMIT:
        yield bad(f"shared {tasklist.shared} B is out of range", "0 B or more for each block")
    if not 0 <= tasklist.grid < LIMIT:
        yield bad(f"grid {tasklist.grid} is out of range", "the number of blocks; 0 leaves it to the workload")
    seen: set[str] = set()
    for buffer in tasklist.buffers:
        if buffer.name in seen:
            yield bad(f"buffer '{buffer.name}' is declared twice")
        seen.add(buffer.name)
        if not 1 <= buffer.bytes < LIMIT:
            yield bad(f"buffer '{buffer.name}' has {buffer.bytes} B", "at least 1 B")


def _body(tasklist: TaskList) -> Iterator[PptError]:
    placed = list(walk(tasklist.body))
    if not placed:
        yield PptError("the list has no task", path=tasklist.path or None)
    place: dict[int, tuple[int, Task, tuple[Loop, ...]]] = {}
    for position, (task, loops) in enumerate(placed):
        if task.number in place:
            first = place[task.number][1]
            hint = f"it is the number of the task on line {first.line}" if first.line else None
            yield _at(tasklist, task, f"task number {task.number} is used twice", hint)
        else:
            place[task.number] = (position, task, loops)
    names = [buffer.name for buffer in tasklist.buffers]
    for position, (task, loops) in enumerate(placed):
        yield from _task(tasklist, task)
        yield from _dependencies(tasklist, task, position, loops, place)
        if task.memory:
            yield from _memory(tasklist, task, task.memory, names, len(loops))
    yield from _loops(tasklist, tasklist.body, 1)


def _at(tasklist: TaskList, item: Task | Loop, message: str, hint: str | None = None) -> PptError:
    where = f"task {item.number}: " if isinstance(item, Task) and not item.line else ""
    return PptError(where + message, path=tasklist.path or None, line=item.line or None, hint=hint)


def _task(tasklist: TaskList, task: Task) -> Iterator[PptError]:
    if not 0 <= task.number < LIMIT:
        yield _at(tasklist, task, f"task number {task.number} is out of range", "0 or more")
    if not 1 <= task.active <= WARP_SIZE:
        yield _at(tasklist, task, f"active {task.active} is out of range", f"1 to {WARP_SIZE} lanes")
    try:
        name = class_of(task.op)
    except ValueError:
        yield _at(tasklist, task, f"unknown class '{task.op}'", suggest_class(task.op))
        return
    if any(not (character.isalnum() or character in "._") for character in task.op) or task.op.endswith("."):
        yield _at(tasklist, task, f"'{task.op}' is not an operation name", "a class, or class.variant")
    if name in MEMORY_CLASSES and task.memory is None:
        hint = "add for example 'bytes 4 stride 4' or 'bytes 4 transactions 8'"
        yield _at(tasklist, task, f"{task.op} needs its memory described", hint)
    if name not in MEMORY_CLASSES and task.memory is not None:
        yield _at(tasklist, task, f"{task.op} is not a memory task, so it takes no bytes, stride or transactions")


def suggest_class(op: str) -> str | None:
    """A hint for an operation name of no known class."""
    parts = op.split(".")
    if parts[0] in ("load", "store", "atomic"):
        return did_you_mean(".".join(parts[:2]), [name for name in MEMORY_CLASSES if name.startswith(parts[0])])
    close = get_close_matches(op, TASK_CLASSES, n=1, cutoff=0.5) or get_close_matches(
        parts[0], TASK_CLASSES, n=1, cutoff=0.5
    )
    return f"did you mean '{close[0]}'?" if close else f"expected one of: {', '.join(TASK_CLASSES)}"


def _dependencies(
    tasklist: TaskList,
    task: Task,
    position: int,
    loops: tuple[Loop, ...],
    place: dict[int, tuple[int, Task, tuple[Loop, ...]]],
) -> Iterator[PptError]:
    if len(set(task.deps)) < len(task.deps):
        yield _at(tasklist, task, f"task {task.number} names a dependency twice")
    for number in dict.fromkeys(task.deps):
        if number not in place:
            hint = did_you_mean(str(number), map(str, place))
            yield _at(tasklist, task, f"depends on task {number}, which does not exist", hint)
            continue
        there, other, around = place[number]
        if there < position:
            continue
        # loops are compared by place: the outermost one must be the same object for both tasks
        if loops and around and loops[0] is around[0]:
            continue
        if other is task:
            message = "depends on itself outside a loop"
        else:
            message = f"depends on task {number}, which comes later, and no loop holds both"
        yield _at(tasklist, task, message, "a task waits for earlier ones, or for an earlier iteration of its loop")


def _memory(
    tasklist: TaskList, task: Task, memory: MemoryShape, names: list[str], depth: int
) -> Iterator[PptError]:
    if memory.bytes not in ACCESS_BYTES:
        yield _at(tasklist, task, f"bytes {memory.bytes} for each lane", f"one of {ACCESS_BYTES}")
    pattern = memory.pattern
    if isinstance(pattern, Transactions):
        yield from _transactions(tasklist, task, pattern)
        return
    if pattern.buffer and ".global" not in task.op:
        yield _at(tasklist, task, "buffers are in global memory", "leave 'buffer' out; 'offset' is enough here")
    elif pattern.buffer and pattern.buffer not in names:
        hint = did_you_mean(pattern.buffer, names) or f"declare it: buffer {pattern.buffer} 16 MiB"
        yield _at(tasklist, task, f"unknown buffer '{pattern.buffer}'", hint)
    if len(pattern.steps) > depth:
        message = f"{len(pattern.steps)} steps, but {depth} loops around the task"
        yield _at(tasklist, task, message, "one step for each loop, the innermost first")
    for value in (pattern.lane, pattern.offset, *pattern.steps, pattern.warp or 0, pattern.block or 0):
        if abs(value) >= LIMIT:
            yield _at(tasklist, task, f"a distance of {value} B is out of range", f"less than {LIMIT} B")


def _transactions(tasklist: TaskList, task: Task, pattern: Transactions) -> Iterator[PptError]:
    if not 1 <= pattern.count <= 4 * WARP_SIZE * 32:
        yield _at(tasklist, task, f"transactions {pattern.count} is out of range", "1 or more for a warp access")
    for name, rate in (("l1", pattern.l1), ("l2", pattern.l2)):
        if not 0.0 <= rate <= 1.0:
            yield _at(tasklist, task, f"{name} {rate} is not a hit rate", "0 to 1")
    if pattern.reuse is not None:
        if not 0 <= pattern.reuse < LIMIT:
            yield _at(tasklist, task, f"reuse {pattern.reuse} is out of range", "distinct lines, 0 or more")
        if pattern.l1 or pattern.l2:
            yield _at(tasklist, task, "reuse and hit rates exclude each other", "keep one of them")
    if "." in task.op and class_of(task.op).endswith(".shared") and (
        pattern.l1 or pattern.l2 or pattern.reuse is not None
    ):
        yield _at(tasklist, task, "shared memory has no caches", "transactions alone: the bank passes")


def _loops(tasklist: TaskList, body: tuple[Item, ...], depth: int) -> Iterator[PptError]:
    for item in body:
        if not isinstance(item, Loop):
            continue
        if not 1 <= item.count < LIMIT:
            yield _at(tasklist, item, f"repeat {item.count} is out of range", "1 or more times")
        if all(isinstance(inner, Comment) for inner in item.body):
            yield _at(tasklist, item, "the loop has no task")
        if depth > MAX_DEPTH:
            yield _at(tasklist, item, f"more than {MAX_DEPTH} nested loops")
            return
        yield from _loops(tasklist, item.body, depth + 1)
