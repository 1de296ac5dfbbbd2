"""Where the shipped data lives (inside the package once installed, at the top of a checkout before), and caches."""

import os
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent


def data_dir(name: str) -> Path:
    """The folder `name` ("hardware", "tasklists" or "validation") of shipped data."""
    installed = PACKAGE / name
    return installed if installed.is_dir() else PACKAGE.parent / name


def cache_dir() -> Path:
    """The folder for what can be made again: PPT_GPU_CACHE, else ppt_gpu in XDG_CACHE_HOME or ~/.cache."""
    own = os.environ.get("PPT_GPU_CACHE")
    if own:
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "ppt_gpu"
