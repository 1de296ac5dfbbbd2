"""The text format by example: what each word means, what is kept, and the shipped lists."""

from __future__ import annotations

from pathlib import Path

import pytest

from ppt_gpu.common.errors import InputErrors, PptError
from ppt_gpu.common.paths import data_dir
from ppt_gpu.tasklist.flat import flatten
from ppt_gpu.tasklist.model import (
    Buffer,
    Comment,
    Loop,
    MemoryShape,
    Stride,
    Task,
    TaskList,
    Transactions,
    class_of,
    length,
    walk,
)
from ppt_gpu.tasklist.text import parse_tasklist, read_tasklist, write_tasklist

HEAD = "tasklist 1\nblock 64\nregisters 8\n"


def only_task(line: str, header: str = "") -> Task:
    tasklist = parse_tasklist(f"{HEAD}{header}repeat 2 {{\nrepeat 2 {{\n{line}\n}}\n}}\nend\n", "x.tl")
    return next(walk(tasklist.body))[0]


@pytest.mark.parametrize(
    ("line", "task"),
    [
        ("1 fp32", Task(1, "fp32")),
        ("7 fp32.fma after 7 active 5 # note", Task(7, "fp32.fma", (7,), None, 5, "note")),
        ("1 load.global bytes 4 stride 8", Task(1, "load.global", (), MemoryShape(4, Stride(8)))),
        ("1 load.global bytes = 4 stride=8", Task(1, "load.global", (), MemoryShape(4, Stride(8)))),
        (
            "1 store.global.v2 stride -8 offset -4 step 16 , -32 warp 0 block 512 buffer b bytes 8",
            Task(1, "store.global.v2", (), MemoryShape(8, Stride(-8, "b", -4, (16, -32), 0, 512))),
        ),
        (
            "1 load.shared bytes 4 stride 0 width 16 row 64",
            Task(1, "load.shared", (), MemoryShape(4, Stride(0, width=16, row=64))),
        ),
        (
            "1 load.local bytes 1 transactions 3 l1 .5 l2 1e-1",
            Task(1, "load.local", (), MemoryShape(1, Transactions(3, 0.5, 0.1))),
        ),
        (
            "1 atomic.global bytes 4 transactions 32 reuse 0",
            Task(1, "atomic.global", (), MemoryShape(4, Transactions(32, reuse=0))),
        ),
    ],
)
def test_task_lines(line: str, task: Task) -> None:
    assert only_task(line, "buffer b 1 KiB\n") == task


def test_header() -> None:
    text = (
        "\n# first\ntasklist 1 # second\nshared 1.5 KiB  # third\nregisters 8\nbuffer a 1 GB\n# fourth\nblock 96\n"
        "grid 7\nbuffer b 2 MiB copied\n# of the body\n1 fp32\nend # last\n# after\n"
    )
    tasklist = parse_tasklist(text, "folder/some list.tl")
    assert (tasklist.name, tasklist.grid, tasklist.block_size, tasklist.warps) == ("some_list", (7,), 96, 3)
    assert (tasklist.registers, tasklist.shared) == (8, 1536)
    assert tasklist.buffers == (Buffer("a", 10**9), Buffer("b", 2**21, True))
    assert tasklist.comments == ("first", "second", "third", "fourth")
    assert tasklist.body == (Comment("of the body"), Task(1, "fp32"), Comment("last"), Comment("after"))


def test_windows_line_ends_and_lines_of_tasks() -> None:
    text = f"{HEAD}1 fp32\nrepeat 3 {{ # hot\n  2 fp32 after 1\n}} # cold\nend\n".replace("\n", "\r\n")
    tasklist = parse_tasklist(text, "x.tl")
    assert tasklist.body[1:] == (Loop(3, (Task(2, "fp32", (1,)),), "hot"), Comment("cold"))
    assert [task.line for task, _ in walk(tasklist.body)] == [4, 6]
    assert length(tasklist.body) == 4


def test_written_text() -> None:
    tasklist = parse_tasklist(f"{HEAD}shared 4096 B\n1 fp32 # one\nrepeat 2 {{\n 5 fp32 after 1,5\n}}\nend", "x.tl")
    assert write_tasklist(tasklist) == (
        "tasklist 1\nname x\nblock 64\nregisters 8\nshared 4 KiB\n\n"
        "1 fp32  # one\nrepeat 2 {\n  5 fp32 after 1,5\n}\nend\n"
    )


@pytest.mark.parametrize("path", sorted(data_dir("tasklists").glob("*.tl")), ids=lambda path: path.stem)
def test_shipped_lists(path: Path) -> None:
    tasklist = read_tasklist(path)
    assert parse_tasklist(write_tasklist(tasklist), path) == tasklist
    assert len(flatten(tasklist).path) == length(tasklist.body)


def test_lists_from_scripts_are_held_to_the_same_rules() -> None:
    body = (Task(1, "fp32", (1,)), Task(1, "load.global"), Comment("two\nlines"))
    with pytest.raises(InputErrors) as caught:
        write_tasklist(TaskList("a b", 300, -1, 0, body, buffers=(Buffer("#", 0),)))
    text = str(caught.value)
    for part in ("'a b' is not a name", "registers 300", "shared -1", "block 0", "'#' is not a name", "0 B"):
        assert part in text
    for part in ("task 1: depends on itself", "used twice", "needs its memory described", "not one line"):
        assert part in text
    deep: tuple[Loop | Task, ...] = (Task(1, "fp32"),)
    for _ in range(5000):
        deep = (Loop(2, deep),)
    with pytest.raises(PptError, match="more than 32 loops"):
        write_tasklist(TaskList("deep", 8, 0, 32, deep))


def test_classes() -> None:
    assert class_of("int32.mul") == "int32"
    assert class_of("load.global.v4") == "load.global"
    with pytest.raises(ValueError, match="no task class"):
        class_of("load")
