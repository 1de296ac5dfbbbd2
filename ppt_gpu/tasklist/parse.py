"""Reading a task-list file line by line: syntax only; the rules are in `ppt_gpu.tasklist.check`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from ppt_gpu.common.errors import InputErrors, PptError, did_you_mean
from ppt_gpu.common.units import parse_quantity
from ppt_gpu.tasklist.model import Buffer, Comment, Item, Loop, TaskList
from ppt_gpu.tasklist.words import Line, parse_task

VERSION = 1
HEADER = ("name", "grid", "block", "registers", "shared", "buffer")
_NEEDED = {"block": "block 256", "registers": "registers 32"}


@dataclass
class _Open:
    """A loop whose brace is open; the first one is the list itself."""

    count: int
    line: int
    column: int = 1
    comment: str = ""
    body: list[Item] = field(default_factory=list)


class Parser:
    """One file. `parse` raises InputErrors with every line that is not understood."""

    def __init__(self, text: str, path: str) -> None:
        self.path = path
        self.text = text
        self.lines = text.split("\n")
        self.errors: list[PptError] = []
        self.name = ""
        self.numbers: dict[str, int] = {}  # header entries with one number
        self.grid: tuple[int, ...] = ()
        self.buffers: list[Buffer] = []
        self.comments: list[str] = []
        self.pending: list[str] = []  # comment lines that belong to the header if another entry follows
        self.places: dict[str, tuple[int, int]] = {}  # header entry -> line, column of its value
        self.stack = [_Open(1, 0)]
        self.in_header = True
        self.ended = False

    def parse(self) -> TaskList:
        start = self._version()
        for number, text in enumerate(self.lines[start:], start + 1):
            code, mark, comment = text.partition("#")
            try:
                self._line(Line(code, number, self.path), comment.strip() if mark else None)
            except PptError as error:
                self.errors.append(error)
        self._missing()
        if self.errors:
            raise InputErrors(sorted(self.errors, key=lambda error: (error.line or 0, error.column or 0)))
        return TaskList(
            name=self.name or re.sub(r"[\s,#{}=]+", "_", Path(self.path).stem),
            registers=self.numbers["registers"],
            shared=self.numbers.get("shared", 0),
            block_size=self.numbers["block"],
            grid=self.grid,
            buffers=tuple(self.buffers),
            body=tuple(self.stack[0].body),
            comments=tuple(self.comments),
            path=self.path,
        )

    def locate(self, line: int, word: str) -> tuple[int | None, int | None]:
        """Where `word` stands on `line` ("after 3": the 3 behind the "after"); line 0: in the header."""
        if not line:
            return self.places.get(word, (None, None))
        words = Line(self.lines[line - 1].partition("#")[0], line, self.path).words
        key, _, value = word.partition(" ")
        column = next((found.column for found in words if found.text == key), None)
        if value and column:
            column = next((found.column for found in words if found.text == value and found.column > column), column)
        return line, column

    def _fail(self, message: str, line: int, column: int | None = None, hint: str | None = None) -> PptError:
        return PptError(message, path=self.path, line=line, column=column, hint=hint)

    def _version(self) -> int:
        """The lines up to the one that must say "tasklist 1", that line included."""
        if "\0" in self.text:
            line = self.text[: self.text.index("\0")].count("\n") + 1
            raise self._fail("not a text file: it holds a zero byte", line)
        first = next((i for i, line in enumerate(self.lines) if line.partition("#")[0].strip()), 0)
        words = Line(self.lines[first].partition("#")[0], first + 1, self.path).words
        expected = f"the first line of a task list is 'tasklist {VERSION}'"
        if not words or words[0].text != "tasklist":
            raise self._fail("this is not a task list", first + 1, 1, expected)
        if [word.text for word in words[1:]] != [str(VERSION)]:
            got = " ".join(word.text for word in words[1:])
            column = words[1].column if got else words[0].column
            message = f"cannot read version '{got}' of the format" if got else "the version of the format is missing"
            raise self._fail(message, first + 1, column, expected)
        self.comments += [text.partition("#")[2].strip() for text in self.lines[: first + 1] if "#" in text]
        return first + 1

    def _line(self, line: Line, comment: str | None) -> None:
        if not line.more():
            self._comment(comment)
            return
        first = line.words[0].text
        if self.ended:
            raise line.fail(f"'{first}' after 'end'", "'end' is the last line", line.words[0].column)
        if first in HEADER:
            self._header(line)
            self._comment(comment)
            self.comments += self.pending
            self.pending = []
            return
        if self.in_header:
            if not first.lstrip("+-")[:1].isdigit() and first not in ("repeat", "}", "end"):
                hint = did_you_mean(first, (*HEADER, "repeat", "end"))
                raise line.fail(f"unknown header entry '{first}'", hint, line.words[0].column)
            self.in_header = False
            self.stack[0].body += [Comment(text) for text in self.pending]
        if first == "repeat":
            self._repeat(line, comment or "")
        elif first == "}":
            self._close(line)
            self._comment(comment)
        elif first == "end":
            self._end(line)
            self._comment(comment)
        else:
            self.stack[-1].body.append(parse_task(line, comment or ""))

    def _comment(self, comment: str | None) -> None:
        if comment is not None and self.in_header:
            self.pending.append(comment)
        elif comment is not None:
            self.stack[-1].body.append(Comment(comment))

    def _header(self, line: Line) -> None:
        key = line.take("")
        if not self.in_header:
            raise line.fail(f"'{key}' belongs before the first task")
        if key != "buffer" and key in self.places:
            raise line.fail(f"'{key}' is given twice", f"the first is on line {self.places[key][0]}")
        place = (line.number, line.words[1].column if len(line.words) > 1 else 1)
        self.places[key] = place
        if key == "name":
            self.name = line.take("the name")
        elif key == "buffer":
            name = line.take("the name of the buffer")
            self.places[f"buffer #{len(self.buffers)}"] = place
            size = self._size(line, f"buffer {name}")
            self.buffers.append(Buffer(name, size, line.accept("copied")))
        elif key == "grid":
            self.grid = line.integers(key, signed=False)
        elif key == "shared":
            self.numbers[key] = self._size(line, key)
        else:
            self.numbers[key] = 1  # so that a bad value is not reported as a missing one too
            self.numbers[key] = line.integer(key)
        line.finish()

    def _size(self, line: Line, what: str) -> int:
        text = line.take(f"the size of {what}")
        if line.more() and line.words[line.at].text != "copied":
            text += " " + line.take("")
        if text.isdigit():
            raise line.fail(f"{what}: {text} needs a unit", "such as 48 KiB")
        try:
            size = parse_quantity(text, "bytes")
        except ValueError as error:
            raise line.fail(f"{what}: {error}") from None
        if size < 0 or size != int(size):
            raise line.fail(f"{what}: {text} is not a whole number of bytes")
        return int(size)

    def _repeat(self, line: Line, comment: str) -> None:
        column = line.words[0].column
        line.take("")
        try:
            count = line.integer("the repeat count")
            if not line.accept("{"):
                raise line.fail("'{' is missing", "write: repeat 100 {")
            line.finish()
        except PptError as error:
            self.errors.append(error)  # the loop is open all the same: its brace is not one too many
            count = 1
        self.stack.append(_Open(count, line.number, column, comment))

    def _close(self, line: Line) -> None:
        if len(self.stack) == 1:
            line.take("")
            raise line.fail("'}' without an open loop", "a loop starts with: repeat 100 {")
        loop = self.stack.pop()
        self.stack[-1].body.append(Loop(loop.count, tuple(loop.body), loop.comment, loop.line))
        line.take("")
        line.finish()

    def _end(self, line: Line) -> None:
        line.take("")
        self.ended = True
        self.places["end"] = (line.number, line.words[0].column)
        line.finish()

    def _missing(self) -> None:
        """What the end of the file shows to be missing."""
        last = len(self.lines)
        for loop in self.stack[1:]:
            message = "this loop is not closed: '}' is missing"
            self.errors.append(self._fail(message, loop.line, loop.column, "close it, or the file is cut off"))
        if not self.ended and len(self.stack) == 1:
            hint = "the file is cut off, or add the line 'end'"
            self.errors.append(self._fail("the last line 'end' is missing", last, None, hint))
        for key, example in _NEEDED.items():
            if key not in self.numbers:
                self.errors.append(self._fail(f"'{key}' is missing", 1, None, f"add to the header: {example}"))
