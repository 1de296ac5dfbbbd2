"""What a user names as an output: where it may be, and how it is written.

A file is replaced as a whole and keeps its permissions; a symbolic link stays, and the file that it leads to is
replaced. Character devices, pipes and what is open already, such as /dev/stdout, are written into.
"""

from __future__ import annotations

import errno
import logging
import os
import stat
import sys
from collections.abc import Callable, Hashable, Iterable
from contextlib import suppress
from pathlib import Path

from ppt_gpu.common.errors import PptError
from ppt_gpu.common.files import remove_unfinished, replace_file, write_all

LINKS = 40  # as many symbolic links, one leading to the next, as Linux follows
#: kinds of files that are neither replaced nor written into
_REFUSED = {stat.S_IFDIR: "a folder", stat.S_IFBLK: "a block device", stat.S_IFSOCK: "a socket"}

Input = str | Path | None

_log = logging.getLogger("ppt_gpu.common.outputs")


def check_outputs(outputs: Iterable[str | Path | None], inputs: Callable[[], Iterable[Input]] = tuple) -> None:
    """PptError where an output cannot be written, is an input, or is another output: said before any work is done.

    `inputs` is asked only where there is an output. Outputs and inputs that nobody asked for are None or "". Standard
    output is an output, too, where it is a file. A file has several names where links lead to it.
    """
    wanted = [each for each in outputs if each]
    read = {place for each in (inputs() if wanted else ()) if each and (place := _place(each)) is not None}
    written: dict[Hashable, str] = {}
    with suppress(OSError):
        status = os.fstat(1)
        if stat.S_ISREG(status.st_mode):
            written[status.st_dev, status.st_ino] = "standard output"
    for output in wanted:
        check_place(output)
        place = _place(output)
        if place is None:
            continue
        if place in read:
            hint = "name another file for the output"
            raise PptError("cannot write: this is an input of the same command", path=output, hint=hint)
        if place in written:
            hint = "name a file of its own for each"
            raise PptError(f"cannot write: this file is {written[place]}, too", path=output, hint=hint)
        written[place] = f"the output '{output}'"


def check_place(path: str | Path) -> None:
    """PptError where `path` cannot be written, said before the work whose result goes there."""
    target = Path(path)
    status, wrong = None, ""
    try:
        status = _status(target)
    except OSError as error:
        wrong = error.strerror or str(error)
    kind = stat.S_IFREG if status is None else stat.S_IFMT(status.st_mode)
    if _descriptor(target) is None:
        if kind in _REFUSED:
            wrong = f"this is {_REFUSED[kind]}"
        elif status is not None and not os.access(target, os.W_OK):
            wrong = "this file is protected against writing"
        elif kind == stat.S_IFREG:
            wrong = _wrong_folder(Path(os.path.realpath(target) if os.path.islink(target) else target).parent) or wrong
    if wrong:
        raise PptError(f"cannot write: {wrong}", path=path)


def write_whole(path: str | Path, data: bytes) -> None:
    """Write an output. PptError when it cannot be written; then a file is as it was."""
    target = Path(path)
    try:
        status = _status(target)
        kind = stat.S_IFREG if status is None else stat.S_IFMT(status.st_mode)
        descriptor = _descriptor(target)
        if descriptor is not None:
            _write_into(os.dup(descriptor), data)
        elif kind in _REFUSED:
            raise PptError(f"cannot write: this is {_REFUSED[kind]}", path=path)
        elif kind != stat.S_IFREG:
            _write_into(_opened(target, kind == stat.S_IFIFO), data)
        else:
            file = Path(os.path.realpath(target))
            remove_unfinished(file.parent, file.name)
            replace_file(file, data, durable=True)
    except OSError as error:
        raise PptError(f"cannot write: {error.strerror}", path=path) from error


def _write_into(handle: int, data: bytes) -> None:
    try:
        write_all(handle, data)
    finally:
        os.close(handle)


def _opened(path: Path, pipe: bool) -> int:
    """A device or a pipe, open for writing. A pipe waits for its reader, which is said."""
    if not pipe:
        return os.open(path, os.O_WRONLY | getattr(os, "O_NOCTTY", 0))
    try:
        handle = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    except OSError as error:
        if error.errno != errno.ENXIO:
            raise
        _log.warning("waiting for a reader of the pipe %s", path)
        return os.open(path, os.O_WRONLY)
    os.set_blocking(handle, True)
    return handle


def _status(path: Path) -> os.stat_result | None:
    """Of what the name leads to; None where there is nothing yet. OSError where the system does not tell."""
    descriptor = _descriptor(path)
    try:
        return os.stat(path) if descriptor is None else os.fstat(descriptor)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _descriptor(path: Path) -> int | None:
    """The number of an open file of this process, where the name stands for one: /dev/stdout, /dev/fd/3."""
    if os.name == "nt":
        return None
    for _ in range(LINKS):
        folder, name = os.path.realpath(path.parent), path.name
        if name.isascii() and name.isdecimal() and folder in ("/dev/fd", f"/proc/{os.getpid()}/fd"):
            return min(int(name), 0x7FFFFFFF)
        if not os.path.islink(path):
            return None
        path = Path(folder, os.readlink(path))
    return None


def _place(path: str | Path) -> Hashable | None:
    """The same for all names of a file; None for what may have several writers, and for what nobody can look at."""
    target = Path(path)
    try:
        if _descriptor(target) is not None:
            return None
        status = _status(target)
        if status is not None:
            return None if stat.S_ISCHR(status.st_mode) else (status.st_dev, status.st_ino)
        file = Path(os.path.realpath(target))
        folder = os.stat(file.parent)
    except OSError:
        return None
    name = file.name.casefold() if sys.platform in ("darwin", "win32") else file.name
    return folder.st_dev, folder.st_ino, name


def _wrong_folder(folder: Path) -> str:
    """Why no file can be written in `folder`; "" where one can."""
    if not os.path.isdir(folder):  # not is_dir(), which raises where a folder may not be entered
        return f"there is no folder '{folder}'"
    if not os.access(folder, os.W_OK | os.X_OK):
        return f"nothing may be written in '{folder}'"
    return ""
