"""Traces and block timing kept on disk between predictions (GATSim's pre-characterisation), in the user's cache folder.

Each trace is a trace file of its own (`ppt_gpu.exec.trace_file`), other entries are bytes of whoever keeps them. They
are written under another name and renamed, so that processes that share the folder see whole files only; the entries
used longest ago go when the folder is full, predicted times after all others: they are a line each, and what they save
is the whole prediction. Nothing here fails a prediction: a folder that cannot be written keeps nothing, an entry that
cannot be read is dropped.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Container, Iterator
from pathlib import Path
from typing import TypeVar

from ppt_gpu.errors import PptError
from ppt_gpu.exec.trace_file import Record, read_traces, write_traces
from ppt_gpu.files import remove_folder, replace_file
from ppt_gpu.paths import cache_dir
from ppt_gpu.units import parse_quantity

FOLDER = "traces"  # in the cache folder
SUFFIX = ".trace"
TIME = ".time"  # of a predicted time
#: files that count: marks are empty, unfinished files have other names
ENTRIES = (SUFFIX, ".timing", TIME, ".code", ".program", ".lines", ".run")
LIMIT = 2 << 30  # B of all entries
KEPT = 0.9  # share of the limit that stays when entries must go
UNFINISHED = 3600  # s after which nobody will finish writing a file
LOOK_AGAIN = 100  # entries that a process writes until it sees what others did

T = TypeVar("T")

_log = logging.getLogger("ppt_gpu.store")


class Store:
    """Entries by group and name; both are digests."""

    def __init__(self, folder: Path | None = None, limit: int | None = None) -> None:
        """`limit` in bytes; by default PPT_GPU_CACHE_LIMIT ("512 MiB"), else LIMIT. PptError when that is no size."""
        self.folder = cache_dir() / FOLDER if folder is None else folder
        self.limit = _limit_wanted() if limit is None else limit

    def get(self, group: str, name: str) -> Record | None:
        """The entry, or None. One that is damaged is removed, which the log says."""
        return self.read(group, name + SUFFIX, _decode)

    def read(self, group: str, file: str, decode: Callable[[bytes, str], T]) -> T | None:
        """What `decode` (bytes, path) makes of an entry, or None; where it raises ValueError or PptError, as `get`."""
        path = self._folder(group) / file
        try:
            data = path.read_bytes()
        except OSError:
            return None
        try:
            found = decode(data, str(path))
        except (PptError, ValueError) as error:
            _log.warning("warning: dropped a damaged entry of the trace cache: %s", str(error).splitlines()[0])
            _remove(path)
            return None
        try:
            os.utime(path)
        except OSError as error:
            _log.debug("cannot note the use of %s: %s", path, error)
        return found

    def group(self, group: str, known: Container[str] = ()) -> Iterator[tuple[str, Record]]:
        """All entries of a group with their names, in the order of names, except those in `known`."""
        try:
            names = sorted(path.stem for path in self._folder(group).iterdir() if path.suffix == SUFFIX)
        except OSError:
            return
        for name in names:
            record = None if name in known else self.get(group, name)
            if record is not None:
                yield name, record

    def put(self, group: str, name: str, record: Record) -> None:
        """Keep an entry. Does nothing where the folder cannot be written."""
        self.write(group, name + SUFFIX, write_traces([record]))

    def write(self, group: str, file: str, data: bytes) -> None:
        """Keep the bytes of an entry, as `put`."""
        path = self._folder(group) / file
        if len(data) > self.limit:
            return
        try:
            try:
                replace_file(path, data)
            except FileNotFoundError:  # the first of its group: to ask each time takes as long as writing
                path.parent.mkdir(parents=True, exist_ok=True)
                replace_file(path, data)
            self._trim(len(data))
        except OSError as error:
            _log.debug("cannot keep %s: %s", path, error)

    def has_mark(self, group: str, name: str) -> bool:
        """Was this fact noted by `mark`?"""
        return self._path(group, name).with_suffix(".mark").is_file()

    def mark(self, group: str, name: str) -> None:
        """Note a fact that has no content, such as that a run ends without fault."""
        path = self._path(group, name).with_suffix(".mark")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        except OSError as error:
            _log.debug("cannot note %s: %s", path, error)

    def entries(self) -> list[tuple[Path, int, float]]:
        """(path, bytes, time of last use) of every entry, the one used longest ago first."""
        found = []
        for file in self._files():
            if file.name.startswith(".") or not file.name.endswith(ENTRIES):
                continue
            try:
                status = file.stat()
            except OSError:
                continue  # another process removed it
            found.append((Path(file.path), status.st_size, status.st_mtime))
        return sorted(found, key=lambda entry: (entry[2], entry[0]))

    def _files(self) -> Iterator[os.DirEntry[str]]:
        """All files in the folders of groups."""
        for outer in _listed(self.folder):
            for group in _listed(outer.path):
                yield from _listed(group.path)

    def clear(self) -> tuple[int, int]:
        """Remove everything. Returns how many entries there were, and their bytes. PptError when that fails."""
        entries = self.entries()
        remove_folder(self.folder)
        return len(entries), sum(size for _, size, _ in entries)

    def _path(self, group: str, name: str) -> Path:
        return self._folder(group) / f"{name}{SUFFIX}"

    def _folder(self, group: str) -> Path:
        return self.folder / group[:2] / group

    def _trim(self, added: int) -> None:
        """Make room, if there may be too little: what the folder held at the last look and what was added since."""
        held, writes = _looks.get(self.folder, (self.limit, 0))
        _looks[self.folder] = (held + added, writes + 1)
        if held + added <= self.limit and writes < LOOK_AGAIN:
            return
        self._drop_unfinished()
        entries = self.entries()
        total = sum(size for _, size, _ in entries)
        _looks[self.folder] = (total, 0)
        if total <= self.limit:
            return
        for path, size, _ in sorted(entries, key=lambda entry: entry[0].suffix == TIME):
            _remove(path)
            total -= size
            if total <= KEPT * self.limit:
                break
        _looks[self.folder] = (total, 0)

    def _drop_unfinished(self) -> None:
        """Remove what writers left that were killed."""
        now = time.time()
        for file in self._files():
            try:
                if file.name.startswith(".") and now - file.stat().st_mtime > UNFINISHED:
                    _remove(Path(file.path))
            except OSError:
                continue  # its writer finished it


#: folder -> (bytes of its entries, as far as this process knows, and writes since it looked)
_looks: dict[Path, tuple[int, int]] = {}


def _listed(folder: str | Path) -> list[os.DirEntry[str]]:
    """What is in a folder; nothing where there is none."""
    try:
        with os.scandir(folder) as found:
            return list(found)
    except OSError:
        return []


def _decode(data: bytes, path: str) -> Record:
    (record,) = read_traces(data, path)
    return record


def _limit_wanted() -> int:
    text = os.environ.get("PPT_GPU_CACHE_LIMIT")
    if not text:
        return LIMIT
    try:
        return int(parse_quantity(text, "bytes"))
    except ValueError as error:
        raise PptError(f"PPT_GPU_CACHE_LIMIT: {error}") from None


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        _log.debug("cannot remove %s: %s", path, error)
