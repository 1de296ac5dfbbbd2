"""Digests that name a functional run's inputs: equal digests, equal traces.

SHA-256 over a canonical text of each part. The programs that make traces count as an input, too: their sources are
digested, so that no trace outlives a change of them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache, lru_cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.errors import PptError
from ppt_gpu.common.paths import PACKAGE
from ppt_gpu.ptx.module import Module
from ppt_gpu.workload.texture import Texture
from ppt_gpu.workload.workload import Buffer, Launch

#: fields of a launch that no functional run looks at
_TIMING_ONLY = ("registers", "registers_from", "repeat")
#: what all of the package may import
COMMON = ("common",)
#: folders of the package that make traces out of PTX and a workload; what is kept in a group of traces depends on them
TRACING = ("ptx", "workload", "emulator", "spec")
#: folders that make the simulation of an SM out of a trace
SIMULATING = ("spec", "tasklist", "translation", "machine", "sm", "bounds", "models", "scale")
#: folders and files that make a prediction
PREDICTING = (*SIMULATING, "sass", "frontends", "report", "pipeline.py", "inputs.py")
#: fields of a buffer that say where it lies, not what it holds
_PLACE = ("name", "type", "count", "copied")


def digest(*parts: Any) -> str:
    """Of plain values (texts, numbers, None, tuples, lists, dicts of these): 64 hexadecimal digits."""
    return sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()


@lru_cache(maxsize=1)
def program_digest() -> str:
    """Of the sources that turn PTX and a workload into traces, and the versions of the libraries that they use."""
    return digest(np.__version__, _llvmlite_version(), sources_digest(*TRACING))


def _llvmlite_version() -> bytes:
    """What its package says of its version, which is not imported for that."""
    found = find_spec("llvmlite")
    return Path(found.origin).with_name("_version.py").read_bytes() if found is not None and found.origin else b""


def sources_digest(*parts: str) -> str:
    """Of the sources in these folders of the package and in the folders in them, of these files of it, and of `COMMON`.

    FileNotFoundError for a part that the package does not have: a digest of nothing would never change.
    """
    return digest([_part_digest(part) for part in (*COMMON, *parts)])


@cache
def _part_digest(part: str) -> str:
    found, names = sha256(), list(_sources(part))
    if not names:
        raise FileNotFoundError(f"{PACKAGE / part}: no sources")
    for name in names:
        with open(f"{PACKAGE}/{name}", "rb") as stream:
            text = stream.read()
        found.update(f"{name} {len(text)}\n".encode() + text)
    return found.hexdigest()


def _sources(part: str) -> Iterator[str]:
    """This file of the package, or the sources in this folder of it and in the folders in that."""
    if part.endswith(".py"):
        yield part
        return
    for each in sorted(os.scandir(f"{PACKAGE}/{part}"), key=lambda each: each.name):
        if each.name.endswith(".py") or (each.is_dir() and each.name != "__pycache__"):
            yield from _sources(f"{part}/{each.name}")


def prediction_digest(*more: str) -> str:
    """Of the program as far as it makes times out of a workload and a GPU, and `more` parts as in `sources_digest`."""
    return digest(program_digest(), sources_digest(*PREDICTING, *more))


def module_digest(module: Module) -> str:
    """Of the PTX text and the assumptions made about its instructions."""
    content = "\n".join(module.lines or (repr(module),))
    return digest(content, *sorted(module.assumptions.items()))


def launch_digest(module: str, launch: Launch, buffers: Iterable[Buffer]) -> str:
    """Of a launch in the module of this digest, and of where the buffers of its workload lie."""
    values = {name: value for name, value in _plain(launch).items() if name not in _TIMING_ONLY}
    places = [tuple(getattr(buffer, name) for name in _PLACE) for buffer in buffers]
    return digest(module, values, places)


def memory_digest(
    module: str,
    buffers: Iterable[Buffer],
    symbols: Iterable[Buffer],
    contents: Mapping[str, NDArray[Any]],
    directory: Path,
    textures: Iterable[Texture],
) -> str:
    """Of what the first launch finds in memory. PptError when a .npy file that fills a buffer cannot be read."""
    described = [[(_plain(b), _file_digest(b, directory)) for b in group] for group in (buffers, symbols)]
    arrays = [(name, sha256(np.ravel(values, order="K").tobytes()).hexdigest()) for name, values in contents.items()]
    return digest(module, *described, sorted(arrays), [_plain(texture) for texture in textures])


def _plain(value: Any) -> Any:
    """What `dataclasses.asdict` makes of a dataclass, which copies what nobody changes."""
    if isinstance(value, tuple):
        return tuple([_plain(one) for one in value])
    return {one.name: _plain(getattr(value, one.name)) for one in fields(value)} if is_dataclass(value) else value


def _file_digest(buffer: Buffer, directory: Path) -> str:
    kind, _, name = buffer.init.partition(":")
    if kind != "npy":
        return ""
    found = sha256()
    try:
        with open(directory / name, "rb") as stream:
            while block := stream.read(1 << 20):
                found.update(block)
    except OSError as error:
        raise PptError(f"buffer '{buffer.name}': cannot read {directory / name}: {error.strerror}") from None
    return found.hexdigest()
