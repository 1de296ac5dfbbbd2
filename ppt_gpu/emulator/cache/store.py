"""What is kept on disk between predictions (GATSim's pre-characterisation), in the user's cache folder.

Each trace is a trace file of its own (`ppt_gpu.emulator.trace.trace_file`), other entries are bytes of whoever keeps
them. Before them stands a header, by which the entry is known for ours and for whole: files that somebody else put into
the folder are neither read nor replaced nor removed, and what stands behind symbolic links is not either.

Entries are written under another name and renamed, so that processes that share the folder see whole files only; the
entries used longest ago go when the folder is full, predicted times after all others: they are a line each, and what
they save is the whole prediction. Nothing here fails a prediction: a folder that cannot be written keeps nothing, an
entry that is damaged is dropped.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Container, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeVar
from zlib import crc32

from ppt_gpu.common.errors import PptError
from ppt_gpu.common.files import listed, open_plain, remove_unfinished, replace_file
from ppt_gpu.common.paths import cache_dir
from ppt_gpu.common.units import parse_quantity
from ppt_gpu.emulator.trace.trace_file import Record, read_traces, write_traces

FOLDER = "traces"  # in the cache folder
SUFFIX = ".trace"
TIME = ".time"  # of a predicted time
MARK = ".mark"  # of a fact without content
#: endings of what is kept
ENTRIES = (SUFFIX, ".timing", TIME, ".code", ".program", ".lines", MARK, ".ptx", ".json", ".sass")
#: and of what earlier versions kept, which nothing reads any more
FORMER = (".run",)
#: the header: this, eight digits of the CRC-32 of the entry's name and content, and the end. In PTX it is a comment,
#: on the first line, so that messages name the lines of the file
_OURS = b"/*ppt_gpu kept "
_HEADER = len(_OURS) + 10  # B
LIMIT = 2 << 30  # B of all entries
KEPT = 0.9  # share of the limit that stays when entries must go
LOOK_AGAIN = 100  # entries that a process writes until it sees what others did

T = TypeVar("T")

_log = logging.getLogger("ppt_gpu.store")


class Store:
    """Entries by group and name; both are digests."""

    def __init__(self, folder: Path | None = None, limit: int | None = None) -> None:
        """`limit` in bytes; by default PPT_GPU_CACHE_LIMIT ("512 MiB"), else LIMIT. PptError when that is no size."""
        own = cache_dir() if folder is None else None
        #: None: nothing is kept
        self.folder = own / FOLDER if own is not None else folder
        self.limit = _limit_wanted() if limit is None else limit

    def get(self, group: str, name: str) -> Record | None:
        """The entry, or None. One that is damaged is removed, which the log says."""
        return self.read(group, name + SUFFIX, _decode)

    def read(self, group: str, file: str, decode: Callable[[bytes, str], T]) -> T | None:
        """What `decode` (bytes, path) makes of an entry, or None; where it raises ValueError or PptError, as `get`."""
        path = self.path(group, file)
        entry = None if path is None else _read(path)
        if path is None or entry is None:
            return None
        header, content = entry
        try:
            if header != _header(group, file, content):
                raise ValueError(f"{path}: not the bytes that were written")
            found = decode(content, str(path))
        except (PptError, ValueError) as error:
            self._tell(str(error).splitlines()[0])
            _remove(path)
            return None
        try:
            os.utime(path)
        except OSError as error:
            _log.debug("cannot note the use of %s: %s", path, error)
        return found

    def _tell(self, damage: str) -> None:
        """Say once what was found: of a folder that was damaged as a whole there would be no end."""
        say = _log.debug if self.folder in _told else _log.warning
        say("warning: dropped a damaged entry of the trace cache: %s", damage)
        _told.add(self.folder)

    def path(self, group: str, file: str) -> Path | None:
        """Where an entry is kept, whether it is there or not; None where nothing is kept."""
        return None if self.folder is None else self.folder / group[:2] / group / file

    def group(self, group: str, known: Container[str] = ()) -> Iterator[tuple[str, Record]]:
        """All entries of a group with their names, in the order of names, except those in `known`."""
        path = self.path(group, "")
        if path is None:
            return
        for name in sorted(each.name.removesuffix(SUFFIX) for each in listed(path) if each.name.endswith(SUFFIX)):
            record = None if name in known else self.get(group, name)
            if record is not None:
                yield name, record

    def put(self, group: str, name: str, record: Record) -> None:
        """Keep an entry. Does nothing where the folder cannot be written."""
        self.write(group, name + SUFFIX, write_traces([record]))

    def write(self, group: str, file: str, data: bytes) -> None:
        """Keep the bytes of an entry, as `put`."""
        path = self.path(group, file)
        data = _header(group, file, data) + data
        if path is None or len(data) > self.limit:
            return
        try:
            if not _is_free(path):
                return
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
        return self.read(group, name + MARK, lambda data, path: True) is not None

    def mark(self, group: str, name: str) -> None:
        """Note a fact that has no content, such as that a run ends without fault."""
        self.write(group, name + MARK, b"")

    def entries(self) -> list[tuple[Path, int, float]]:
        """(path, bytes, time of last use) of every entry, the one used longest ago first."""
        return [(Path(path), size, used) for path, size, used in self._candidates() if _is_ours(path)]

    def _candidates(self) -> list[tuple[str, int, float]]:
        """As `entries`, of all files that have names of entries: to open each takes ten times as long."""
        found = []
        for each in (each for group in self._folders()[1] for each in listed(group)):
            if each.name.endswith((*ENTRIES, *FORMER)):
                with suppress(OSError):  # another process removed it
                    status = each.stat(follow_symlinks=False)
                    found.append((each.path, status.st_size, status.st_mtime))
        return sorted(found, key=lambda entry: (entry[2], entry[0]))

    def _folders(self) -> tuple[list[str], list[str]]:
        """The folders that hold those of groups, and these."""
        if self.folder is None or os.path.islink(self.folder):
            return [], []
        outer = [each for each in listed(self.folder) if _is_folder(each, r"[0-9a-f]{2}")]
        groups = [each for one in outer for each in listed(one.path) if _is_folder(each, f"{one.name}[0-9a-f]+")]
        return [each.path for each in outer], [each.path for each in groups]

    def clear(self) -> tuple[int, int]:
        """Remove all entries, and folders that are empty then; what somebody else put there stays.

        Returns how many entries there were, and their bytes. PptError when one cannot be removed.
        """
        entries, (outer, groups) = self.entries(), self._folders()
        for path, _, _ in entries:
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                raise PptError(f"cannot remove: {error.strerror}", path=path) from None
        for group in groups:
            remove_unfinished(group)
        for folder in (*groups, *outer, *([str(self.folder)] if outer else [])):
            with suppress(OSError):  # something else is in it
                os.rmdir(folder)
        return len(entries), sum(size for _, size, _ in entries)

    def _trim(self, added: int) -> None:
        """Make room, if there may be too little: what the folder held at the last look and what was added since."""
        assert self.folder is not None
        held, writes = _looks.get(self.folder, (self.limit, 0))
        _looks[self.folder] = (held + added, writes + 1)
        if held + added <= self.limit and writes < LOOK_AGAIN:
            return
        for group in self._folders()[1]:
            remove_unfinished(group)
        entries = self._candidates()
        total = sum(size for _, size, _ in entries)
        for path, size, _ in sorted(entries, key=lambda entry: entry[0].endswith(TIME)) if total > self.limit else []:
            if _is_ours(path):
                _remove(path)
            total -= size
            if total <= KEPT * self.limit:
                break
        _looks[self.folder] = (total, 0)


#: folder -> (bytes of its entries, as far as this process knows, and writes since it looked)
_looks: dict[Path, tuple[int, int]] = {}
#: folders of which was said that an entry is damaged
_told: set[Path | None] = set()


def _header(group: str, file: str, content: bytes) -> bytes:
    """What stands before an entry. An entry under another name is not that entry."""
    return b"%s%08x*/" % (_OURS, crc32(content, crc32(f"{group}/{file}".encode())))


def _read(path: Path) -> tuple[bytes, bytes] | None:
    """The header and the content of an entry; None where there is none, or a file that is not ours."""
    try:
        with open(open_plain(path), "rb") as file:
            header = file.read(_HEADER)
            return (header, file.read()) if header.startswith(_OURS) else None
    except OSError:
        return None


def _is_ours(path: str) -> bool:
    """Is this an entry, damaged or not?"""
    try:
        with open(open_plain(path), "rb") as file:
            return file.read(len(_OURS)) == _OURS
    except OSError:
        return False


def _is_free(path: Path) -> bool:
    """May an entry be written here? Not over a file of somebody else's that has something in it."""
    try:
        with open(open_plain(path), "rb") as file:
            return file.read(len(_OURS)) in (_OURS, b"")
    except FileNotFoundError:
        return True


def _is_folder(each: os.DirEntry[str], name: str) -> bool:
    """Is this a folder, of a name like this?"""
    try:
        return re.fullmatch(name, each.name) is not None and each.is_dir(follow_symlinks=False)
    except OSError:
        return False


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


def _remove(path: str | Path) -> None:
    try:
        os.unlink(path)
    except OSError as error:
        _log.debug("cannot remove %s: %s", path, error)
