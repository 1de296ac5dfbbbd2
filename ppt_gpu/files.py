"""Writing files whole: under another name first, then renamed, so that no reader and no crash leaves half of one."""

from __future__ import annotations

import os
import shutil
from itertools import count
from pathlib import Path

from ppt_gpu.errors import PptError

_number = count()


def replace_file(path: Path, data: bytes) -> None:
    """Write `data` as the file `path`, atomically. OSError when that fails; then the old file, if any, is as it was."""
    partial = path.with_name(f".{path.name}.{os.getpid()}-{next(_number)}")
    try:
        partial.write_bytes(data)
        os.replace(partial, path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def remove_folder(path: Path) -> None:
    """Remove a folder and all in it, at once for those who use it meanwhile. PptError when that fails."""
    gone = path.with_name(f".{path.name}.{os.getpid()}-{next(_number)}")
    try:
        os.replace(path, gone)
        shutil.rmtree(gone)
    except FileNotFoundError:
        return
    except OSError as error:
        raise PptError(f"cannot remove: {error.strerror}", path=path) from None


def write_whole(path: str | Path, data: bytes) -> None:
    """`replace_file`, with PptError when it fails."""
    try:
        replace_file(Path(path), data)
    except OSError as error:
        raise PptError(f"cannot write: {error.strerror}", path=path) from error


def check_place(path: str | Path) -> None:
    """PptError where `path` cannot be written as a file, said before the work whose result goes there."""
    target = Path(path)
    if os.path.isdir(target):  # not is_dir(), which raises where a folder may not be entered
        raise PptError("cannot write: this is a folder", path=path)
    if not os.path.isdir(target.parent):
        raise PptError(f"cannot write: there is no folder '{target.parent}'", path=path)
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise PptError(f"cannot write: nothing may be written in '{target.parent}'", path=path)
