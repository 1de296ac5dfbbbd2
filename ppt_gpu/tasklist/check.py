"""The rules of a task list, whoever made it: read from a file, built by a script or translated from PTX."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from math import prod

from ppt_gpu.common.errors import InputErrors, PptError, did_you_mean, nearest
from ppt_gpu.spec.gpu import MEMORY_CLASSES, TASK_CLASSES
from ppt_gpu.tasklist.model import (
    WARP_SIZE,
    Comment,
    Item,
    Loop,
    MemoryShape,
    Stride,
    Task,
    TaskList,
    Transactions,
    class_of,
    walk,
)

ACCESS_BYTES = (1, 2, 4, 8, 16, 32)  # what one lane can move in one instruction
MAX_DEPTH = 32  # nested loops
LIMIT = 1 << 48  # counts, sizes and distances stay below, so that addresses stay inside 64 bits
MAX_AXES = 3  # of a grid
MAX_REACH = 1 << 60  # B that the steps of one task may move its address
MAX_BLOCK = 1024  # threads; every CUDA compute capability has this limit or a lower one
MAX_REGISTERS = 255
WIDTHS = (2, 4, 8, 16, WARP_SIZE)  # lanes in a row
MAX_TRANSACTIONS = WARP_SIZE * 32  # every lane its own sector, 32 B lanes counted byte by byte

NAME = re.compile(r"[^\s,#{}=\0]+")
OPERATION = re.compile(r"[a-z0-9_]+(\.[a-z0-9_]+)*")

#: (line, word) -> (line, column) of the word on that line; line 0 asks for the header entry of that keyword
#: ("buffer #0" for the first buffer).
Locate = Callable[[int, str], tuple[int | None, int | None]]
Place = dict[int, tuple[int, Task, tuple[Loop, ...]]]


def check(tasklist: TaskList, locate: Locate | None = None) -> None:
    """Raise InputErrors with everything that is wrong with `tasklist`; return when nothing is."""
    errors = _Checker(tasklist, locate).run()
    if errors:
        raise InputErrors(sorted(errors, key=lambda error: (error.line or 0, error.column or 0)))


def suggest_class(op: str) -> str | None:
    """A hint for an operation name of no known class."""
    parts = op.split(".")
    if parts[0] in ("load", "store", "atomic"):
        return did_you_mean(".".join(parts[:2]), [name for name in MEMORY_CLASSES if name.startswith(parts[0])])
    close = nearest(op, TASK_CLASSES) or nearest(parts[0], TASK_CLASSES)
    return f"did you mean '{close}'?" if close else f"expected one of: {', '.join(TASK_CLASSES)}"


class _Checker:
    """One pass over one list. Methods yield what they find."""

    def __init__(self, tasklist: TaskList, locate: Locate | None) -> None:
        self.tasklist = tasklist
        self.locate = locate
        self.buffers = [buffer.name for buffer in tasklist.buffers]

    def run(self) -> list[PptError]:
        deep = self.too_deep()
        if deep:
            return [deep]
        placed = list(walk(self.tasklist.body))
        errors = [*self.header(), *self.comments(), *self.loops(self.tasklist.body)]
        if not placed:
            errors.append(self.bad("the list has no task", "end"))
        place: Place = {}
        for position, (task, loops) in enumerate(placed):
            if task.number in place:
                first = place[task.number][1].line
                hint = f"the task on line {first} has it already" if first else None
                errors.append(self.at(task, f"task number {task.number} is used twice", hint, str(task.number)))
            place.setdefault(task.number, (position, task, loops))
        for position, (task, loops) in enumerate(placed):
            errors += [*self.task(task), *self.dependencies(task, position, loops, place)]
            if task.memory:
                errors += self.memory(task, task.memory, loops)
        return errors

    def bad(self, message: str, key: str, hint: str | None = None) -> PptError:
        line, column = self.locate(0, key) if self.locate else (None, None)
        return PptError(message, path=self.tasklist.path or None, line=line, column=column, hint=hint)

    def at(self, item: Task | Loop, message: str, hint: str | None, word: str) -> PptError:
        line, column = self.locate(item.line, word) if self.locate and item.line else (item.line or None, None)
        if line is None and isinstance(item, Task):
            message = f"task {item.number}: {message}"
        return PptError(message, path=self.tasklist.path or None, line=line, column=column, hint=hint)

    def too_deep(self) -> PptError | None:
        """Before any recursion, without recursion."""
        level: list[Item] = list(self.tasklist.body)
        for _ in range(MAX_DEPTH + 1):
            loops = [item for item in level if isinstance(item, Loop)]
            if not loops:
                return None
            level = [inner for loop in loops for inner in loop.body]
        return self.at(loops[0], f"more than {MAX_DEPTH} loops inside one another", None, "repeat")

    def header(self) -> Iterator[PptError]:
        tasklist = self.tasklist
        if not NAME.fullmatch(tasklist.name):
            yield self.bad(f"'{tasklist.name}' is not a name", "name", "a name has no spaces and none of , # { } =")
        if not 1 <= tasklist.block_size <= MAX_BLOCK:
            yield self.bad(f"block {tasklist.block_size} is out of range", "block", f"1 to {MAX_BLOCK} threads")
        if not 1 <= tasklist.registers <= MAX_REGISTERS:
            message = f"registers {tasklist.registers} is out of range"
            yield self.bad(message, "registers", f"1 to {MAX_REGISTERS} for each thread")
        if not 0 <= tasklist.shared < LIMIT:
            yield self.bad(f"shared {tasklist.shared} B is out of range", "shared", "0 B or more for each block")
        grid = ",".join(map(str, tasklist.grid))
        if len(tasklist.grid) > MAX_AXES:
            message = f"grid {grid} has {len(tasklist.grid)} extents"
            yield self.bad(message, "grid", "one to three: blocks along x, y, z")
        elif tasklist.grid and (min(tasklist.grid) < 1 or prod(tasklist.grid) >= LIMIT):
            yield self.bad(f"grid {grid} is out of range", "grid", "1 block or more along each axis")
        for number, buffer in enumerate(tasklist.buffers):
            place = f"buffer #{number}"
            if not NAME.fullmatch(buffer.name):
                yield self.bad(f"'{buffer.name}' is not a name", place, "no spaces and none of , # { } =")
            if buffer.name in self.buffers[:number]:
                yield self.bad(f"buffer '{buffer.name}' is declared twice", place)
            if not 1 <= buffer.bytes < LIMIT:
                yield self.bad(f"buffer '{buffer.name}' has {buffer.bytes} B", place, "at least 1 B")

    def comments(self) -> Iterator[PptError]:
        texts = list(self.tasklist.comments)
        level: list[Item] = list(self.tasklist.body)
        for item in level:
            texts.append(item.text if isinstance(item, Comment) else item.comment)
            if isinstance(item, Loop):
                level.extend(item.body)
        for text in texts:
            if text != text.strip() or "\n" in text or "\0" in text:
                yield self.bad(f"the comment {text!r} is not one line without spaces around it", "comment")

    def loops(self, body: tuple[Item, ...]) -> Iterator[PptError]:
        for item in body:
            if not isinstance(item, Loop):
                continue
            if not 1 <= item.count < LIMIT:
                yield self.at(item, f"repeat {item.count} is out of range", "1 time or more", str(item.count))
            if all(isinstance(inner, Comment) for inner in item.body):
                yield self.at(item, "the loop has no task", None, "repeat")
            yield from self.loops(item.body)

    def task(self, task: Task) -> Iterator[PptError]:
        if not 0 <= task.number < LIMIT:
            yield self.at(task, f"task number {task.number} is out of range", "0 or more", str(task.number))
        if not 1 <= task.active <= WARP_SIZE:
            hint = f"1 to {WARP_SIZE} lanes"
            yield self.at(task, f"active {task.active} is out of range", hint, "active")
        try:
            name = class_of(task.op)
        except ValueError:
            yield self.at(task, f"unknown class '{task.op}'", suggest_class(task.op), task.op)
            return
        if not OPERATION.fullmatch(task.op):
            yield self.at(task, f"'{task.op}' is not an operation name", "a class, or class.variant", task.op)
        if name in MEMORY_CLASSES and task.memory is None:
            hint = "add for example 'bytes 4 stride 4' or 'bytes 4 transactions 8'"
            yield self.at(task, f"{task.op} needs its memory described", hint, task.op)
        if name not in MEMORY_CLASSES and task.memory is not None:
            message = f"{task.op} is not a memory task, so it takes no memory description"
            yield self.at(task, message, "remove bytes, stride, transactions and what belongs to them", "bytes")

    def dependencies(self, task: Task, position: int, loops: tuple[Loop, ...], place: Place) -> Iterator[PptError]:
        for number in dict.fromkeys(task.deps):
            word = f"after {number}"
            if task.deps.count(number) > 1:
                yield self.at(task, f"names task {number} twice", "once is enough", word)
            if number not in place:
                close = nearest(str(number), map(str, place))
                hint = f"did you mean {close}?" if close else f"the numbers are {min(place)} to {max(place)}"
                yield self.at(task, f"depends on task {number}, which does not exist", hint, word)
                continue
            there, other, around = place[number]
            # Loops are told apart by identity: equal loops may stand one after the other.
            if there < position or (loops and around and loops[0] is around[0]):
                continue
            message = f"depends on task {number}, which comes later, and no loop holds both"
            if other is task:
                message = "depends on itself outside a loop"
            yield self.at(task, message, "a task waits for earlier ones, or for earlier iterations", word)

    def memory(self, task: Task, memory: MemoryShape, loops: tuple[Loop, ...]) -> Iterator[PptError]:
        if memory.bytes not in ACCESS_BYTES:
            hint = f"one of {', '.join(map(str, ACCESS_BYTES))}"
            yield self.at(task, f"bytes {memory.bytes}: no lane moves that much at once", hint, "bytes")
        if isinstance(memory.pattern, Stride):
            yield from self.stride(task, memory.pattern, loops)
        else:
            yield from self.transactions(task, memory.pattern)

    def stride(self, task: Task, pattern: Stride, loops: tuple[Loop, ...]) -> Iterator[PptError]:
        if pattern.buffer and ".global" not in task.op:
            yield self.at(task, "buffers are in global memory", "leave 'buffer' out here", "buffer")
        elif pattern.buffer and pattern.buffer not in self.buffers:
            hint = did_you_mean(pattern.buffer, self.buffers)
            hint = hint or f"declare it in the header: buffer {pattern.buffer} 16 MiB"
            yield self.at(task, f"unknown buffer '{pattern.buffer}'", hint, f"buffer {pattern.buffer}")
        if len(pattern.steps) > len(loops):
            message = f"steps for {len(pattern.steps)} loops, but {len(loops)} around the task"
            yield self.at(task, message, "one step for each loop, the innermost first", "step")
        if pattern.width not in WIDTHS:
            yield self.at(task, f"width {pattern.width} is out of range", "2, 4, 8, 16 or 32 lanes", "width")
        if pattern.width == WARP_SIZE and pattern.row:
            yield self.at(task, "a row of 32 lanes is the whole warp", "add for example: width 16", "row")
        reach = sum(abs(step) * (loop.count - 1) for step, loop in zip(pattern.steps, reversed(loops), strict=False))
        distances = {"stride": pattern.lane, "offset": pattern.offset}
        distances |= {"row": pattern.row} | {"warp": pattern.warp or 0}
        blocks = pattern.block if isinstance(pattern.block, tuple) else (pattern.block or 0,)
        yield from self.axes(task, pattern)
        for word, value in [*distances.items(), *(("block", step) for step in blocks)]:
            if abs(value) >= LIMIT:
                yield self.at(task, f"{word} {value} is out of range", f"less than {LIMIT} B", word)
        if reach >= MAX_REACH:
            yield self.at(task, f"the steps move the address by {reach} B", f"less than {MAX_REACH} B", "step")

    def axes(self, task: Task, pattern: Stride) -> Iterator[PptError]:
        """A step for each axis needs a grid that has the axes."""
        if not isinstance(pattern.block, tuple):
            return
        count, extents = len(pattern.block), len(self.tasklist.grid)
        if not 2 <= count <= MAX_AXES:
            yield self.at(task, f"block has steps for {count} axes", "one for all, or two or three: x, y, z", "block")
        elif self.tasklist.grid and extents < count:
            message = f"block has steps along {count} axes, but the grid has {extents}"
            yield self.at(task, message, "give the grid its extents, such as: grid 64,64", "block")

    def transactions(self, task: Task, pattern: Transactions) -> Iterator[PptError]:
        if not 1 <= pattern.count <= MAX_TRANSACTIONS:
            message = f"transactions {pattern.count} is out of range"
            yield self.at(task, message, f"1 to {MAX_TRANSACTIONS} for one warp access", "transactions")
        for name, rate in (("l1", pattern.l1), ("l2", pattern.l2)):
            if not 0.0 <= rate <= 1.0:
                yield self.at(task, f"{name} {rate} is not a hit rate", "from 0 to 1", name)
        hits = bool(pattern.l1 or pattern.l2)
        if pattern.reuse is not None and not 0 <= pattern.reuse < LIMIT:
            yield self.at(task, f"reuse {pattern.reuse} is out of range", "lines, 0 or more", "reuse")
        if pattern.reuse is not None and hits:
            yield self.at(task, "reuse and hit rates exclude each other", "keep one of them", "reuse")
        if ".shared" in task.op and (hits or pattern.reuse is not None):
            yield self.at(task, "shared memory has no caches", "transactions alone: the bank passes", "transactions")
