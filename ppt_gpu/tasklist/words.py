"""Words of one line of a task list, with their columns, and the numbers and task lines made of them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from ppt_gpu.common.errors import PptError, did_you_mean, nearest
from ppt_gpu.common.units import UNITS
from ppt_gpu.tasklist.model import WARP_SIZE, MemoryShape, Stride, Task, Transactions

_WORD = re.compile(r"[,{}=]|[^\s,{}=]+")
_INTEGER = re.compile(r"\d{1,18}", re.ASCII)
_SIGNED = re.compile(r"[-+]?\d{1,18}", re.ASCII)
_REAL = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d{1,3})?", re.ASCII)

STRIDE_KEYS = ("stride", "width", "row", "buffer", "offset", "step", "warp", "block")
TRANSACTION_KEYS = ("transactions", "l1", "l2", "reuse")
TASK_KEYS = ("after", "active", "bytes", *STRIDE_KEYS, *TRANSACTION_KEYS)
_LISTS = ("after", "step", "block")
_SIGNED_KEYS = ("stride", "row", "offset", "step", "warp", "block")


@dataclass(frozen=True, slots=True)
class Word:
    text: str
    column: int  # from 1


class Line:
    """One line's words, read from left to right. Every method raises PptError at the word that is wrong."""

    def __init__(self, code: str, number: int, path: str) -> None:
        self.words = [Word(match[0], match.start() + 1) for match in _WORD.finditer(code)]
        self.number = number
        self.path = path
        self.at = 0
        self.width = len(code.rstrip()) + 1

    def fail(self, message: str, hint: str | None = None, column: int | None = None) -> PptError:
        """An error at the word that was read last, or at `column`."""
        if column is None and self.words:
            column = self.words[min(self.at, len(self.words)) - 1].column if self.at else 1
        return PptError(message, path=self.path, line=self.number, column=column, hint=hint)

    def more(self) -> bool:
        return self.at < len(self.words)

    def take(self, expected: str) -> str:
        """The next word; `expected` says what should be there."""
        if not self.more():
            raise self.fail(f"the line ends where {expected} should be", column=self.width)
        self.at += 1
        return self.words[self.at - 1].text

    def accept(self, text: str) -> bool:
        """Step over the next word if it is `text`."""
        if self.more() and self.words[self.at].text == text:
            self.at += 1
            return True
        return False

    def finish(self) -> None:
        """Nothing may follow."""
        if self.more():
            word = self.take("")
            raise self.fail(f"'{word}' is too much on this line", "one task, one header entry or one brace a line")

    def integer(self, what: str, signed: bool = False) -> int:
        """A whole number; negative ones only where `signed`."""
        word = self.take(f"the number for {what}")
        if _INTEGER.fullmatch(word) or (signed and _SIGNED.fullmatch(word)):
            return int(word)
        if _SIGNED.fullmatch(word):
            raise self.fail(f"{what} {word} is negative", "no number here may be below 0")
        if re.fullmatch(r"[-+]?\d+", word, re.ASCII):
            raise self.fail(f"{what} {word} is too large", "numbers have at most 18 digits")
        unit = re.fullmatch(r"[-+]?[\d.]+(\D+)", word)
        hint = f"write {what} without a unit" if unit and unit[1] in UNITS else None
        raise self.fail(f"'{word}' is not a whole number for {what}", hint)

    def integers(self, what: str, signed: bool) -> tuple[int, ...]:
        """Whole numbers with commas between them."""
        found = [self.integer(what, signed)]
        while self.accept(","):
            found.append(self.integer(what, signed))
        return tuple(found)

    def rate(self, what: str) -> float:
        word = self.take(f"the hit rate for {what}")
        if not _REAL.fullmatch(word):
            hint = "write a share from 0 to 1, such as 0.5, without a unit"
            raise self.fail(f"'{word}' is not a hit rate for {what}", hint)
        return float(word)


def parse_task(line: Line, comment: str) -> Task:
    """A task line: ``NUMBER OPERATION [KEY VALUE]...``."""
    if not line.words[0].text.lstrip("+-").isdigit():
        word = line.take("")
        close = nearest(word, ("repeat", "end"))
        hint = f"did you mean '{close}'?" if close else "a task starts with its number"
        raise line.fail(f"'{word}' starts neither a task nor a loop", hint)
    number = line.integer("the task number")
    op = line.take("the class of the task")
    values: dict[str, Any] = {}
    while line.more():
        key = line.take("")
        if key not in TASK_KEYS:
            raise line.fail(*_unknown(key))
        if key in values:
            raise line.fail(f"'{key}' is given twice")
        line.accept("=")
        values[key] = _value(line, key)
    return Task(
        number,
        op,
        deps=values.get("after", ()),
        memory=_memory(line, values),
        active=values.get("active", WARP_SIZE),
        comment=comment,
        line=line.number,
    )


def _unknown(key: str) -> tuple[str, str | None]:
    if key in UNITS:
        return f"unexpected unit '{key}'", "numbers on a task line are plain bytes, lanes or lines"
    if _SIGNED.fullmatch(key):
        return f"unexpected number {key}", "dependencies follow 'after', with commas between them"
    if key in ",{}=":
        return f"unexpected '{key}'", "one task, one header entry or one brace a line"
    return f"unknown word '{key}'", did_you_mean(key, TASK_KEYS)


def _value(line: Line, key: str) -> Any:
    if key in _LISTS:
        return line.integers(key, key in _SIGNED_KEYS)
    if key in ("l1", "l2"):
        return line.rate(key)
    if key == "buffer":
        return line.take("the name of the buffer")
    return line.integer(key, key in _SIGNED_KEYS)


def _memory(line: Line, values: dict[str, Any]) -> MemoryShape | None:
    """The memory description among the values of a task line; None when there is not a word of it."""
    stride = [key for key in STRIDE_KEYS if key in values]
    traffic = [key for key in TRANSACTION_KEYS if key in values]
    if not stride and not traffic and "bytes" not in values:
        return None

    def wrong(message: str, key: str, hint: str | None = None) -> PptError:
        column = next(word.column for word in line.words if word.text == key)
        return line.fail(message, hint, column)

    if stride and traffic:
        hint = "either addresses (stride) or an amount of traffic (transactions)"
        raise wrong(f"'{traffic[0]}' and '{stride[0]}' exclude each other", traffic[0], hint)
    if stride and "stride" not in values:
        raise wrong(f"'{stride[0]}' needs 'stride'", stride[0], "add the bytes from one lane to the next: stride 4")
    if traffic and "transactions" not in values:
        hint = "add the sectors or lines of one warp access: transactions 4"
        raise wrong(f"'{traffic[0]}' needs 'transactions'", traffic[0], hint)
    if "bytes" not in values:
        key = (stride or traffic)[0]
        raise wrong("the bytes of each lane are missing", key, "add for example: bytes 4")
    if not stride and not traffic:
        hint = "add for example 'stride 4' or 'transactions 8'"
        raise wrong("how the addresses of the warp fall is missing", "bytes", hint)
    if traffic:
        count, l1, l2 = values["transactions"], values.get("l1", 0.0), values.get("l2", 0.0)
        return MemoryShape(values["bytes"], Transactions(count, l1, l2, values.get("reuse")))
    block = values.get("block")
    pattern = Stride(
        values["stride"],
        buffer=values.get("buffer", ""),
        offset=values.get("offset", 0),
        steps=values.get("step", ()),
        warp=values.get("warp"),
        block=block[0] if block and len(block) == 1 else block,
        width=values.get("width", WARP_SIZE),
        row=values.get("row", 0),
    )
    return MemoryShape(values["bytes"], pattern)
