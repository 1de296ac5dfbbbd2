"""What compilers made, kept on disk by the content of what it was made from."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

from ppt_gpu.exec.identity import TRACING, sources_digest
from ppt_gpu.paths import cache_dir

#: folders of the package whose sources say what compilers are asked, and what is kept of their answers
SOURCES = (*TRACING, "frontends", "sass")
_SEAL = "// sha256 "


def content_key(*parts: str) -> str:
    """A name for what this program makes from `parts`: equal parts, equal name."""
    return sha256("\0".join((sources_digest(*SOURCES), *parts)).encode("utf-8", "surrogateescape")).hexdigest()[:32]


def kept_path(key: str, suffix: str) -> Path:
    """Where the text of `key` is kept, whether it is there or not."""
    return cache_dir() / "compiled" / f"{key}{suffix}"


def kept(key: str, suffix: str, make: Callable[[], str]) -> str:
    """The text of `key`: read from disk, else made and kept. A damaged or unwritable file only costs the making."""
    path = kept_path(key, suffix)
    with contextlib.suppress(OSError, UnicodeDecodeError):
        text, seal, digest = path.read_text("utf-8").rpartition(_SEAL)
        if seal and digest.strip() == _digest(text):
            return text
    text = make()
    _write(path, f"{text}{_SEAL}{_digest(text)}\n")
    return text


def label(key: str, suffix: str, otherwise: str) -> str:
    """The path to show in messages for the text of `key`: its file when that is kept, else `otherwise`."""
    path = kept_path(key, suffix)
    return str(path) if path.is_file() else otherwise


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def _write(path: Path, text: str) -> None:
    """Write whole or not at all: other processes may read or write the same file."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            os.replace(name, path)
        except OSError:
            os.unlink(name)
