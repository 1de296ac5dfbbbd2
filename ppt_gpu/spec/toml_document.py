"""A TOML file in memory: its data, where each part is written, and how documents are laid over one another."""

from __future__ import annotations

import re
import tomllib
from ast import literal_eval
from collections.abc import Callable, Container
from functools import cached_property, lru_cache
from pathlib import Path as FilePath
from typing import Any

from ppt_gpu.common.errors import PptError
from ppt_gpu.spec.toml_scan import Path, Place, Scanner, dotted, scan

Places = dict[Path, Place]


class Document:
    """The data of a TOML file and where each part of it is written, which is found when somebody asks for it: for an
    error, or the sources of numbers. A prediction that goes well does not ask."""

    def __init__(self, file: str, data: dict[str, Any], places: Callable[[], Places]) -> None:
        self.file, self.data = file, data
        self._find = places

    @cached_property
    def places(self) -> Places:
        """Of every table, key and array element."""
        return self._find()

    def place(self, path: Path) -> Place:
        """Where `path` is written, or else the nearest table around it."""
        while path and path not in self.places:
            path = path[:-1]
        return self.places.get(path, Place(self.file, 1))

    def merged(self, top: Document) -> Document:
        """This document with `top` laid over it: tables merge key by key, everything else is replaced."""
        data = _copied(self.data)
        _merge(data, top.data, (), {})

        def places() -> Places:
            found = dict(self.places)
            _merge(_copied(self.data), top.data, (), found)
            # a command-line override (no file) leaves the tables around its value where they are
            found.update({path: place for path, place in top.places.items() if top.file or path not in found})
            return found

        return Document(top.file or self.file, data, places)

    def without(self, keys: Container[str]) -> Document:
        """This document but for these keys, or tables, of the outermost level."""
        data = {key: value for key, value in self.data.items() if key not in keys}
        return Document(
            self.file, data, lambda: {at: place for at, place in self.places.items() if not at or at[0] not in keys}
        )


def _merge(low: dict[str, Any], top: dict[str, Any], path: Path, places: Places) -> None:
    for key, value in top.items():
        here = (*path, key)
        old = low.get(key)
        # a table with the key "value" is one leaf: a new value must not keep the old value's source
        if isinstance(old, dict) and isinstance(value, dict) and "value" not in old and "value" not in value:
            _merge(old, value, here, places)
            continue
        low[key] = _copied(value)
        for gone in [each for each in places if each[: len(here)] == here]:
            del places[gone]


def _copied(value: Any) -> Any:
    """A copy whose tables and arrays may be changed; what stands in them is not."""
    if isinstance(value, dict):
        return {key: _copied(held) for key, held in value.items()}
    return [_copied(held) for held in value] if isinstance(value, list) else value


def read_toml(path: str | FilePath) -> Document:
    """Read a TOML file. Raises PptError for a file that cannot be read and for syntax errors, with line and column."""
    try:
        raw = FilePath(path).read_bytes()
    except OSError as error:
        raise PptError(f"cannot read the file: {error.strerror}", path=path) from None
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise PptError("the file is not UTF-8 text", path=path, line=line) from None
    return parse_toml(text, str(path))


def parse_toml(text: str, file: str) -> Document:
    """The document in `text`; `file` is used in messages. Raises PptError for a syntax error."""
    known = _parsed(text, file)  # a study reads the same files for every case
    return Document(file, _copied(known.data), lambda: dict(known.places))


@lru_cache(maxsize=64)
def _parsed(text: str, file: str) -> Document:
    text = text.replace("\r\n", "\n")
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message, line, column = str(error), text.count("\n") + 1, None
        at = re.search(r" \(at (?:line (\d+), column (\d+)|end of document)\)$", message)
        if at:
            message = message[: at.start()]
            if at.group(1):
                line, column = int(at.group(1)), int(at.group(2))
        message = f"not valid TOML: {_of_names(message, text, line)}"
        raise PptError(message, path=file, line=line, column=column) from None
    return Document(file, data, lambda: scan(text, file))


def _of_names(message: str, text: str, line: int) -> str:
    """The parser's message with names as a file has them, and the key where it says only that one is given twice."""
    if message == "Cannot overwrite a value":
        key = re.match(r"\s*(?:\[+\s*([^]]+?)\s*\]|([^=]+?)\s*=)", text.splitlines()[line - 1])
        return f"the key {key[1] or key[2]} is given twice" if key else "a key is given twice"
    named = re.sub(r"\((?:'[^']*',? ?)+\)", lambda found: dotted(literal_eval(found[0])), message)
    return f"{named[:1].lower()}{named[1:]}"


def forget_documents() -> None:
    """Let go of the documents that this process keeps in memory."""
    _parsed.cache_clear()


def parse_override(text: str) -> Document:
    """A document of one value from "sm.count=30" or "dram.bandwidth=1 TB/s" (quotes around strings may be left out).

    Errors in the value will name `--set` and the text instead of a file and line. Raises PptError for a bad key.
    """
    label = f"--set {text}"
    name, equals, written = text.partition("=")
    scanner = Scanner(name, label)
    try:
        path = scanner.key()
    except ValueError:
        path = ()
    if not equals or not path or scanner.at != len(name) or not written.strip():
        raise PptError("expected KEY=VALUE, such as sm.count=30 or dram.bandwidth=1 TB/s", path=label)
    try:
        value = tomllib.loads(f"v = {written.strip()}")["v"]
    except tomllib.TOMLDecodeError:
        value = written.strip()
    places: Places = {}
    data: Any = value
    for depth in range(len(path), 0, -1):
        data = {path[depth - 1]: data}
        places[path[:depth]] = Place(label, 0, 0, written.strip())
    return Document("", data, lambda: places)
