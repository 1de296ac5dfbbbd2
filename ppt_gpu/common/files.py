"""Writing files whole: under another name first, then renamed, so that no reader and no crash leaves half of one."""

from __future__ import annotations

import errno
import os
import re
import stat
import threading
from contextlib import suppress
from pathlib import Path
from zlib import crc32

try:
    import fcntl
except ImportError:  # Windows, where nobody can remove a file that is open
    fcntl = None  # type: ignore[assignment]

#: how files are opened: never through a symbolic link, and without waiting for the other end of a pipe
_PLAIN = sum(getattr(os, name, 0) for name in ("O_BINARY", "O_NOFOLLOW", "O_NONBLOCK"))
#: the name of an unfinished file: a number of the name that it shall have, and one that tells writers apart
_UNFINISHED = re.compile(r"\.ppt_gpu-([0-9a-f]{8})-[0-9a-f]{16}")
#: unfinished files of this process
_begun: set[Path] = set()
_beginning = threading.Lock()


def replace_file(path: Path, data: bytes, durable: bool = False) -> None:
    """Write `data` as the file `path`, atomically; what stood there, if anything, lends its permissions.

    `durable`: a loss of power does not leave half of it either. OSError when it cannot be written; then what stood
    there is as it was.
    """
    try:
        old = path.lstat()
    except FileNotFoundError:
        old = None
    mode = 0o666 if old is None or os.name == "nt" else stat.S_IMODE(old.st_mode) & 0o777
    while not _replaced(path, old, mode, data, durable):
        pass


def _replaced(path: Path, old: os.stat_result | None, mode: int, data: bytes, durable: bool) -> bool:
    """As `replace_file`; False where the unfinished file was gone before its lock was there."""
    partial = path.with_name(f".ppt_gpu-{_number(path.name)}-{os.urandom(8).hex()}")
    try:
        handle = _begin(partial, mode)
        try:
            if not os.fstat(handle).st_nlink:
                return False
            if old is not None and hasattr(os, "fchmod"):
                _take_over(handle, old)
            write_all(handle, data)
            if durable:
                os.fsync(handle)
            if fcntl is not None:  # the lock is held until the file has its name
                os.replace(partial, path)
        finally:
            os.close(handle)
        if fcntl is None:
            os.replace(partial, path)
    except FileExistsError:  # the unfinished file of another writer
        raise
    except BaseException:
        with suppress(OSError):
            partial.unlink()
        raise
    finally:
        _begun.discard(partial)
    return True


def write_all(handle: int, data: bytes) -> None:
    """Write all of `data`, however little the system takes at a time."""
    left = memoryview(data)
    while left:
        left = left[os.write(handle, left) :]


def open_plain(path: str | Path) -> int:
    """Open a regular file for reading. OSError for anything else: what stands behind a symbolic link is another file.

    Nothing waits, as it would for a writer of a pipe.
    """
    handle = os.open(path, os.O_RDONLY | _PLAIN)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "no regular file", str(path))
    return handle


def remove_unfinished(folder: str | Path, name: str = "") -> None:
    """Remove unfinished files in `folder`, of the file `name` or of all, whose writers were killed.

    A writer locks its file, and the lock goes with the writer.
    """
    for each in listed(folder):
        found = _UNFINISHED.fullmatch(each.name)
        if found and (not name or found[1] == _number(name)):
            with suppress(OSError):
                _remove_if_left(each.path)


def abandon() -> None:
    """Remove what this process has not finished, and begin nothing more: the process ends without unwinding."""
    _beginning.acquire(timeout=0.3)  # whoever holds it may wait for a slow file system
    for path in list(_begun):
        with suppress(OSError):
            path.unlink()


def listed(folder: str | Path) -> list[os.DirEntry[str]]:
    """What is in a folder; nothing where there is none."""
    try:
        with os.scandir(folder) as found:
            return list(found)
    except OSError:
        return []


def _number(name: str) -> str:
    """Stands for a name in that of an unfinished file, which would become too long with it."""
    return f"{crc32(os.fsencode(name)):08x}"


def _begin(partial: Path, mode: int) -> int:
    """Create and lock an unfinished file."""
    with _beginning:
        _begun.add(partial)
        handle = os.open(partial, os.O_RDWR | os.O_CREAT | os.O_EXCL | _PLAIN, mode)
    with suppress(OSError):  # a file system without locks: nobody will remove it
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_EX)
    return handle


def _take_over(handle: int, old: os.stat_result) -> None:
    """Owner and permissions of the file that is replaced, as far as the system lets us."""
    new = os.fstat(handle)
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        with suppress(OSError):
            os.fchown(handle, old.st_uid, old.st_gid)
    with suppress(OSError):
        os.fchmod(handle, stat.S_IMODE(old.st_mode) & 0o777)


def _remove_if_left(path: str) -> None:
    handle = os.open(path, os.O_RDWR | _PLAIN)
    try:
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.unlink(path)
    finally:
        os.close(handle)
    if fcntl is None:
        os.unlink(path)
