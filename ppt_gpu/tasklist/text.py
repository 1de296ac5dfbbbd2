"""The text format of task lists (`*.tl`): made to be read and edited by hand. docs/tasklist.md describes it.

Writing and reading give the same list; writing what was read gives the same text again. Blank lines and the layout
inside a line are not kept. Comments are: those on header lines move to the top, those behind a "}" to the next line.
"""

from __future__ import annotations

from pathlib import Path

from ppt_gpu.common.errors import PptError
from ppt_gpu.tasklist.check import check
from ppt_gpu.tasklist.model import WARP_SIZE, Buffer, Comment, Item, Loop, Stride, Task, TaskList
from ppt_gpu.tasklist.parse import VERSION, Parser

_SIZES = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def read_tasklist(path: str | Path) -> TaskList:
    """The task list in the file `path`. Raises PptError (InputErrors when there are several) that says where."""
    try:
        text = Path(path).read_bytes().decode("utf-8")
    except OSError as error:
        raise PptError(f"cannot read the task list: {error.strerror}", path=path) from None
    except UnicodeDecodeError as error:
        raise PptError(f"not a text file: byte {error.start} is not UTF-8", path=path) from None
    return parse_tasklist(text, path)


def parse_tasklist(text: str, path: str | Path = "<text>") -> TaskList:
    """The task list in `text`; `path` is used in messages and, without a `name` line, for the name.

    Raises PptError (InputErrors when there are several) that says where.
    """
    parser = Parser(text, str(path))
    tasklist = parser.parse()
    check(tasklist, parser.locate)
    return tasklist


def write_tasklist(tasklist: TaskList) -> str:
    """The text of `tasklist`, ending in a line end. Raises InputErrors when it breaks a rule of the format."""
    check(tasklist)
    lines = [f"tasklist {VERSION}", *(_comment(text) for text in tasklist.comments)]
    lines.append(f"name {tasklist.name}")
    if tasklist.grid:
        lines.append(f"grid {_numbers(tasklist.grid)}")
    lines += [f"block {tasklist.block_size}", f"registers {tasklist.registers}", f"shared {_size(tasklist.shared)}"]
    lines += [_buffer(buffer) for buffer in tasklist.buffers]
    return "\n".join([*lines, "", *_items(tasklist.body, ""), "end", ""])


def _size(count: int) -> str:
    """Exact: the largest unit that divides it."""
    for factor, unit in _SIZES:
        if count and count % factor == 0:
            return f"{count // factor} {unit}"
    return f"{count} B"


def _numbers(values: tuple[int, ...]) -> str:
    return ",".join(map(str, values))


def _comment(text: str) -> str:
    return f"# {text}" if text else "#"


def _buffer(buffer: Buffer) -> str:
    return f"buffer {buffer.name} {_size(buffer.bytes)}{' copied' if buffer.copied else ''}"


def _items(body: tuple[Item, ...], indent: str) -> list[str]:
    lines: list[str] = []
    for item in body:
        if isinstance(item, Comment):
            lines.append(indent + _comment(item.text))
        elif isinstance(item, Loop):
            lines.append(_trailing(f"{indent}repeat {item.count} {{", item.comment))
            lines += _items(item.body, indent + "  ")
            lines.append(indent + "}")
        else:
            lines.append(_trailing(indent + _task(item), item.comment))
    return lines


def _trailing(line: str, comment: str) -> str:
    return f"{line}  {_comment(comment)}" if comment else line


def _task(task: Task) -> str:
    words = [str(task.number), task.op]
    if task.deps:
        words += ["after", _numbers(task.deps)]
    if task.active != WARP_SIZE:
        words += ["active", str(task.active)]
    if task.memory:
        words += ["bytes", str(task.memory.bytes)]
        pattern = task.memory.pattern
        words += _stride(pattern) if isinstance(pattern, Stride) else ["transactions", str(pattern.count)]
        if not isinstance(pattern, Stride):
            words += ["l1", repr(pattern.l1)] if pattern.l1 else []
            words += ["l2", repr(pattern.l2)] if pattern.l2 else []
            words += ["reuse", str(pattern.reuse)] if pattern.reuse is not None else []
    return " ".join(words)


def _stride(pattern: Stride) -> list[str]:
    words = ["stride", str(pattern.lane)]
    if pattern.width != WARP_SIZE:
        words += ["width", str(pattern.width), "row", str(pattern.row)]
    if pattern.buffer:
        words += ["buffer", pattern.buffer]
    if pattern.offset:
        words += ["offset", str(pattern.offset)]
    if pattern.steps:
        words += ["step", _numbers(pattern.steps)]
    words += ["warp", str(pattern.warp)] if pattern.warp is not None else []
    if pattern.block is not None:
        words += ["block", _numbers(pattern.block) if isinstance(pattern.block, tuple) else str(pattern.block)]
    return words
