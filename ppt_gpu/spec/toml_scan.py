"""Where each key and value of a TOML text stands: path -> line, column and the value as written.

The standard parser gives values without positions. This scanner walks a text that the standard parser has already
accepted, so it only has to find the ends of keys and values, not to check them.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_left
from dataclasses import dataclass

#: A place in the document: table keys are str, indices of arrays and arrays of tables are int.
Path = tuple[str | int, ...]

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_SPACE = re.compile(r"[ \t]*")
_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SCALAR = re.compile(r"[^,\]}\n#]*")
_STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}(?!")' r"|'''.*?'{3,5}(?!')" r'|"(?:[^"\\\n]|\\.)*"' r"|'[^'\n]*'", re.DOTALL
)
#: what most assignments are: a bare key, and a string on one line without escapes, or a value without spaces
_PLAIN = re.compile(
    r'[ \t]*([A-Za-z0-9_-]+)[ \t]*=[ \t]*(?:"([^"\\\n]*)"(?!")|([^\s"\'\[{,\]}#]+)(?=[ \t\r]*(?:[,}\n#]|\Z)))'
)


@dataclass(frozen=True, slots=True)
class Place:
    """Where something was written. `line` and `column` count from 1; 0 where there is none (command line)."""

    file: str
    line: int = 0
    column: int = 0
    text: str = ""  # the value as written, strings without their quotes; "" for tables


def dotted(path: Path) -> str:
    """('op', 'fp32.fma', 'ii') -> 'op."fp32.fma".ii'; ('launch', 0, 'grid') -> 'launch[0].grid'."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            name = part if _BARE.fullmatch(part) else quoted(part)
            text += f".{name}" if text else name
    return text


def quoted(text: str) -> str:
    """A string as TOML has it."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


class Scanner:
    """One pass over `text`; `places` maps every table, key and array element to where it is written."""

    def __init__(self, text: str, file: str) -> None:
        self.text = text
        self.file = file
        self.at = 0
        self.places: dict[Path, Place] = {(): Place(file, 1)}
        self._lengths: dict[Path, int] = {}  # arrays of tables: how many elements so far
        self._newlines = [match.start() for match in re.finditer("\n", text)]

    def scan(self) -> dict[Path, Place]:
        """All places. The text must be valid TOML."""
        table: Path = ()
        while True:
            self._skip(_BLANK)
            if self.at >= len(self.text):
                return self.places
            if self.text[self.at] == "[":
                table = self._header()
            else:
                self._assignment(table)

    def key(self) -> tuple[str, ...]:
        """A possibly dotted and quoted key at the current position."""
        parts: list[str] = []
        while True:
            self._skip(_SPACE)
            match = _BARE.match(self.text, self.at) or _STRING.match(self.text, self.at)
            if not match:
                raise ValueError("expected a key")
            self.at = match.end()
            parts.append(_unquoted(match.group()))
            self._skip(_SPACE)
            if not self.text.startswith(".", self.at):
                return tuple(parts)
            self.at += 1

    def _skip(self, pattern: re.Pattern[str]) -> None:
        match = pattern.match(self.text, self.at)
        if match:
            self.at = match.end()

    def _place(self, start: int, text: str = "") -> Place:
        line = bisect_left(self._newlines, start) + 1
        return Place(self.file, line, start - self.text.rfind("\n", 0, start), text)

    def _header(self) -> Path:
        start = self.at
        array = self.text.startswith("[[", start)
        self.at += 2 if array else 1
        path = self._resolve(self.key(), start)
        self.at += 2 if array else 1
        if array:
            self.places.setdefault(path, self._place(start))
            index = self._lengths.get(path, 0)
            self._lengths[path] = index + 1
            path = (*path, index)
        self.places[path] = self._place(start)
        return path

    def _resolve(self, parts: tuple[str, ...], start: int) -> Path:
        """The header's path with the index of the last element behind every array of tables but the last name."""
        path: Path = ()
        for number, part in enumerate(parts):
            path = (*path, part)
            if number < len(parts) - 1:
                self.places.setdefault(path, self._place(start))
                if path in self._lengths:
                    path = (*path, self._lengths[path] - 1)
        return path

    def _assignment(self, table: Path) -> None:
        start = self.at
        plain = _PLAIN.match(self.text, start)
        if plain:
            self.at = plain.end()
            self.places[(*table, plain[1])] = self._place(start, plain[3] if plain[2] is None else plain[2])
            return
        path: Path = table
        for part in self.key():
            path = (*path, part)
            self.places.setdefault(path, self._place(start))
        self.at += 1  # the equals sign
        self._skip(_SPACE)
        self._value(path, start)

    def _value(self, path: Path, key_start: int) -> None:
        start = self.at
        opener = self.text[start]
        if opener in "\"'":
            match = _STRING.match(self.text, start)
        elif opener in "[{":
            self.at += 1
            self._members(path, opener)
            self.places[path] = self._place(key_start, self.text[start : self.at])
            return
        else:
            match = _SCALAR.match(self.text, start)
        assert match is not None  # the standard parser accepted the text
        self.at = match.end()
        written = match.group().strip()
        self.places[path] = self._place(key_start, _unquoted(written))

    def _members(self, path: Path, opener: str) -> None:
        closer, index = "]" if opener == "[" else "}", 0
        while True:
            self._skip(_BLANK)
            if self.text[self.at] == closer:
                self.at += 1
                return
            if opener == "{":
                self._assignment(path)
            else:
                self._value((*path, index), self.at)
                index += 1
            self._skip(_BLANK)
            if self.text[self.at] == ",":
                self.at += 1


def _unquoted(written: str) -> str:
    quote = written[:1]
    if quote not in ('"', "'"):
        return written
    if not written.startswith(3 * quote) and (quote == "'" or "\\" not in written):
        return written[1:-1]
    return str(tomllib.loads(f"v = {written}")["v"])


def scan(text: str, file: str) -> dict[Path, Place]:
    """Places of every table, key and array element of a valid TOML `text`; `file` is only carried along."""
    return Scanner(text, file).scan()
