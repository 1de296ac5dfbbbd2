"""Where the shipped data lives: inside the package once installed, at the top of a checkout before."""

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent


def data_dir(name: str) -> Path:
    """The folder `name` ("hardware", "tasklists" or "validation") of shipped data."""
    installed = PACKAGE / name
    return installed if installed.is_dir() else PACKAGE.parent / name
