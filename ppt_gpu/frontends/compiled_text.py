"""What compilers made, kept on disk by the content of what it was made from."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from ppt_gpu.emulator.cache.store import Store
from ppt_gpu.emulator.trace.identity import TRACING, sources_digest


@dataclass(frozen=True)
class KernelSource:
    """PTX text with the values of its parameters, and of the launch what the front end decides."""

    name: str  # for reports and messages
    text: str  # PTX
    values: Sequence[Any]  # one for each parameter, as ppt_gpu.frontends.arrays takes them
    kernel: str = ""  # entry; "": the only one
    grid: tuple[int, ...] = ()  # () where the user gives it
    block: tuple[int, ...] = ()
    dynamic_shared: int = 0  # B
    notes: tuple[str, ...] = ()  # which compiler made it, for the report


#: folders of the package whose sources say what compilers are asked, and what is kept of their answers
SOURCES = (*TRACING, "frontends", "sass")


def content_key(*parts: str) -> str:
    """A name for what this program makes from `parts`: equal parts, equal name."""
    return sha256("\0".join((sources_digest(*SOURCES), *parts)).encode("utf-8", "surrogateescape")).hexdigest()[:32]


def kept(key: str, suffix: str, make: Callable[[], str]) -> str:
    """The text of `key`: read from disk, else made and kept. A damaged or unwritable file only costs the making."""
    store, file = Store(), key + suffix
    text = store.read(key, file, lambda data, path: data.decode("utf-8", "surrogateescape"))
    if text is None:
        text = make()
        store.write(key, file, text.encode("utf-8", "surrogateescape"))
    return text


def label(key: str, suffix: str, otherwise: str) -> str:
    """The path to show in messages for the text of `key`: its file when that is kept, else `otherwise`."""
    path = Store().path(key, key + suffix)
    return str(path) if path is not None and os.path.isfile(path) else otherwise
