"""PTX text below the level of statements: comments, positions, literals."""

from __future__ import annotations

import re
import struct
from bisect import bisect_right
from collections.abc import Mapping
from itertools import accumulate, count
from math import isinf
from operator import add

from ppt_gpu.common.errors import PptError
from ppt_gpu.ptx.module import Imm

NAME = r"[A-Za-z_$%][\w$]*"
_COMMENT = re.compile(r'"[^"\n]*"|//[^\n]*|/\*.*?\*/|/\*', re.DOTALL)
_SPACE = re.compile(r"\s+")
_NOT_NEWLINE = re.compile(r"[^\n]")
_NUMBER = re.compile(
    r"(?P<sign>[-+]?)\s*(?:"
    r"0[fF](?P<single>[0-9a-fA-F]{8})|0[dD](?P<double>[0-9a-fA-F]{16})"
    r"|(?P<integer>0[xX][0-9a-fA-F]{1,16}|0[bB][01]{1,64}|[0-9]{1,22})[uU]?"
    r"|(?P<decimal>(?:[0-9]{1,400}\.[0-9]{0,400}|\.[0-9]{1,400}|[0-9]{1,400}(?=[eE]))(?:[eE][-+]?[0-9]{1,6})?))",
    re.ASCII,
)


class Source:
    """A PTX text with its comments blanked out (same length, same lines), for positions and error messages.

    assumptions: opcodes that are to be timed as a class of work, see `ppt_gpu.ptx.assume`.
    """

    def __init__(self, text: str, path: str, assumptions: Mapping[str, str]) -> None:
        self.path = path
        self.assumptions = assumptions
        self.original = text
        text = text.rstrip("\0 \t\r\n\x1a") + "\n"
        lengths = map(len, text.split("\n")[:-1])
        self.line_starts = [0, *map(add, accumulate(lengths), count(1))]  # count: the line feeds themselves
        self.text = self._without_comments(text) if "//" in text or "/*" in text else text

    def _without_comments(self, text: str) -> str:
        def blank(match: re.Match[str]) -> str:
            found = match.group()
            if found[0] == '"':
                return found
            if found == "/*":
                raise self.error("this comment never ends: expected '*/'", match.start(), at=text)
            return _NOT_NEWLINE.sub(" ", found) if "\n" in found else " " * len(found)

        return _COMMENT.sub(blank, text)

    def line_of(self, position: int) -> int:
        """The line, from 1."""
        return bisect_right(self.line_starts, position)

    def place(self, position: int) -> tuple[int, int]:
        """Line and column, both from 1."""
        line = bisect_right(self.line_starts, position)
        return line, position - self.line_starts[line - 1] + 1

    def error(self, message: str, position: int, hint: str | None = None, at: str | None = None) -> PptError:
        """An error at a position; one past the end is moved to the last character of the text."""
        last = max(0, len((at or self.text).rstrip()) - 1)
        line, column = self.place(min(position, last))
        return PptError(message, path=self.path, line=line, column=column, hint=hint)

    def end_of_line(self, position: int) -> int:
        """The position of the last character of the line that is not white space."""
        end = self.text.find("\n", position)
        line = self.text[position : end if end >= 0 else None].rstrip()
        return position + max(len(line) - 1, 0)

    def skip(self, position: int) -> int:
        """The next position that is not white space."""
        match = _SPACE.match(self.text, position)
        return match.end() if match else position


def number(text: str) -> Imm | None:
    """The literal that `text` is, or None. Integers wrap into 64 bits by themselves only when they are used.

    >>> number("0f3F800000")
    Imm(value=1.0, bits=1065353216, width=32)
    >>> number("-0x10U").value
    -16
    """
    match = _NUMBER.fullmatch(text)
    if match is None:
        return None
    negative = match["sign"] == "-"
    if match["integer"] is not None:
        value = integer(match["integer"])
        return None if value is None else Imm(-value if negative else value)
    if match["decimal"] is not None:
        decimal = float(match["decimal"])
        return None if isinf(decimal) else Imm(-decimal if negative else decimal)
    width = 32 if match["single"] is not None else 64
    bits = int(match["single"] or match["double"], 16) ^ (int(negative) << (width - 1))
    return Imm(float_from_bits(bits, width), bits, width)


def integer(digits: str) -> int | None:
    """An unsigned integer: 12, 0x1F, 0b101, 017 (octal). None when it is none or needs more than 64 bits."""
    digits = digits.rstrip("uU")
    lower = digits[:2].lower()
    try:
        if lower == "0x" or lower == "0b":
            value = int(digits, 0)
        elif len(digits) > 1 and digits[0] == "0":
            value = int(digits, 8)
        else:
            value = int(digits)
    except ValueError:
        return None
    return value if value < 1 << 64 else None


def float_from_bits(bits: int, width: int) -> float:
    if width == 32:
        return float(struct.unpack("<f", struct.pack("<I", bits))[0])
    return float(struct.unpack("<d", struct.pack("<Q", bits))[0])
