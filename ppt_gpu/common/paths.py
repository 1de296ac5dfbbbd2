"""Where the shipped data lives (inside the package once installed, at the top of a checkout before), and caches."""

import os
import stat
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]


def data_dir(name: str) -> Path:
    """The folder `name` ("hardware", "tasklists" or "validation") of shipped data."""
    installed = PACKAGE / name
    return installed if installed.is_dir() else PACKAGE.parent / name


def cache_dir() -> Path | None:
    """The folder for what can be made again: PPT_GPU_CACHE, else ppt_gpu in the user's folder for caches.

    That is XDG_CACHE_HOME (where absolute, as its standard says) or ~/.cache; ~/Library/Caches on macOS, LOCALAPPDATA
    on Windows. A user without a home has one among the system's temporary files that is nobody else's, or none: None.
    """
    own = os.environ.get("PPT_GPU_CACHE")
    if own:
        return Path(own)
    caches = _user_caches()
    return None if caches is None else caches / "ppt_gpu"


def config_dir() -> Path:
    """The folder of the user's own files: PPT_GPU_CONFIG, else ppt_gpu in the user's folder for settings.

    That is XDG_CONFIG_HOME (where absolute) or ~/.config; ~/Library/Application Support on macOS, APPDATA on Windows.
    """
    own = os.environ.get("PPT_GPU_CONFIG")
    if own:
        return Path(own)
    if sys.platform == "win32" and os.environ.get("APPDATA"):
        return Path(os.environ["APPDATA"]) / "ppt_gpu"
    base = os.environ.get("XDG_CONFIG_HOME", "")
    if os.path.isabs(base):
        return Path(base) / "ppt_gpu"
    return (
        Path(os.path.expanduser("~"))
        / ("Library/Application Support" if sys.platform == "darwin" else ".config")
        / "ppt_gpu"
    )


def _user_caches() -> Path | None:
    if sys.platform == "win32" and os.environ.get("LOCALAPPDATA"):
        return Path(os.environ["LOCALAPPDATA"])
    base = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(base):
        return Path(base)
    try:
        home = Path.home()
    except RuntimeError:  # no HOME, and the system does not know the user, as in some containers
        return _private_folder()
    return home / ("Library/Caches" if sys.platform == "darwin" else ".cache") if home.is_absolute() else None


def _private_folder() -> Path | None:
    """A folder among the system's temporary files that belongs to this user, and where nobody else may write.

    None where there is none: somebody else may have made what has its name.
    """
    if not hasattr(os, "geteuid"):
        return None
    try:
        folder = Path(tempfile.gettempdir()) / f"ppt_gpu-{os.geteuid()}"
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        found = folder.lstat()
    except OSError:
        return None
    own = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
    return folder if own and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) else None
