"""Finding the shipped hardware files by name, and laying a file over its base and overrides over that."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ppt_gpu.common.errors import PptError, nearest
from ppt_gpu.common.paths import config_dir, data_dir
from ppt_gpu.spec.toml_reader import Checked, Document, Table, check, parse_override, read_toml

#: folder in hardware/ -> what a file of it describes
WHAT = {
    "gpus": "GPU",
    "isa": "ISA",
    "cores": "core",
    "chips": "set of cores",
    "scaling": "device scaling",
    "studies": "study",
    "suites": "benchmark suite",
    "machines": "machine",
    "hosts": "host",
    "networks": "network",
    "mpi": "MPI library",
    "nccl": "NCCL version",
}
#: key of a file that names another one -> the folder in hardware/ of that; a base is of the same
_NAMED = {"isa": "isa", "host": "hosts", "network": "networks", "mpi": "mpi", "nccl": "nccl", "model": "gpus"}
#: Keys that describe one file and are not inherited.
_OWN = ("base", "title", "notes", "name")
_SUFFIX = ".toml"


def loose(name: str) -> str:
    """A name without case, spaces, '-' and '_': "RTX-4090" and "rtx_4090" are the same."""
    return "".join(each for each in name.casefold() if each not in "-_ ")


def shipped(kind: str) -> dict[str, Path]:
    """Names and files of hardware/<kind>, sorted by name."""
    return _files(data_dir("hardware") / kind)


def shipped_names(kind: str) -> list[str]:
    """The names of `shipped`."""
    return _stems(data_dir("hardware") / kind)


def own(kind: str) -> dict[str, Path]:
    """Names and files of hardware/<kind> in the folder of the user's settings."""
    return _files(config_dir() / "hardware" / kind)


def _files(folder: Path) -> dict[str, Path]:
    return {stem: folder / (stem + _SUFFIX) for stem in _stems(folder)}


def _stems(folder: Path) -> list[str]:
    try:
        return [name.removesuffix(_SUFFIX) for name in sorted(os.listdir(folder)) if name.endswith(_SUFFIX)]
    except OSError:
        return []


def find(kind: str, name: str, *, near: Path | None = None, titles: Callable[[], dict[str, str]] | None = None) -> Path:
    """The file of `name`: a shipped or own name (loosely), one of `titles` (title -> name), or a path to a .toml file.

    `near` is the folder that a path is relative to. Raises PptError with the nearest names for an unknown one.
    """
    if name.endswith(".toml") or "/" in name:
        path = (near or Path()) / Path(name).expanduser()
        if not path.is_file():
            what = f"{name} is a folder" if path.is_dir() else f"there is no file {name}"
            raise PptError(what, hint=f"a shipped {WHAT[kind]} is named without .toml")
        return path
    mine, ours = config_dir() / "hardware" / kind, data_dir("hardware") / kind
    # nobody's file changes what a shipped name means
    shipped = dict.fromkeys(_stems(ours), ours)
    if name in shipped:
        return ours / (name + _SUFFIX)
    folders = dict.fromkeys(_stems(mine), mine) | shipped
    known = {loose(stem): stem for stem in folders}
    if loose(name) not in known:
        for title, stem in (titles() if titles else {}).items():
            known.setdefault(loose(title), stem)
    if loose(name) in known:
        stem = known[loose(name)]
        return folders[stem] / (stem + _SUFFIX)
    close = nearest(loose(name), known)
    hint = f"did you mean '{known[close]}'?" if close else f"known: {', '.join(folders)}"
    raise PptError(f"unknown {WHAT[kind]} '{name}'", hint=hint)


def files_of(kind: str, name: str, overrides: Sequence[str] = ()) -> list[Path]:
    """The file of `name` and all that it names in turn: bases, the ISA of a GPU, parts and GPUs of a machine, cores.

    Nothing is checked: what cannot be found or read is left out.
    """
    found: dict[Path, None] = {}
    waiting = [(kind, name, Path())]

    def await_named(document: Document, kind: str, near: Path) -> None:
        for key, text in _texts(document.data):
            if key == "compute_capability":
                waiting.append(("isa", isa_name(text), near))
            elif key == "file":  # of a core among those of a chip
                waiting.extend((kind, text, Path()) for kind in ("cores", "gpus"))
            elif key == "base" or key in _NAMED:
                waiting.append((_NAMED.get(key, kind), text, near))

    while waiting:
        kind, name, near = waiting.pop()
        with suppress(PptError):
            path = find(kind, name, near=near)
            if path not in found:
                found[path] = None
                await_named(read_toml(path), kind, path.parent)
                if len(found) == 1:
                    for text in overrides:
                        await_named(parse_override(text), kind, Path())
    return list(found)


def isa_name(capability: str) -> str:
    """The ISA of GPUs of a compute capability such as "3.5", where their file names none."""
    return "sm_" + capability.replace(".", "")


def _texts(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """(key, text) of every text in a document; of one with a source, the key that it is the value of."""
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, dict):
        for name, held in value.items():
            yield from _texts(held, key if name == "value" else name)
    elif isinstance(value, list):
        for held in value:
            yield from _texts(held, key)


def read_with_base(path: Path, kind: str, seen: tuple[Path, ...] = ()) -> Document:
    """The document in `path` laid over the file that its `base` key names, and so on.

    Raises PptError for a base that does not exist and for a cycle of bases.
    """
    document = read_toml(path)
    base = document.data.get("base")
    if not isinstance(base, str) or not base:
        return document
    place = document.place(("base",))

    def bad(message: str, hint: str | None) -> PptError:
        return PptError(message, path=place.file, line=place.line, column=place.column, hint=hint)

    chain = (*seen, path.resolve())
    try:
        base_path = find(kind, base, near=path.parent)
    except PptError as error:
        raise bad(f"base: {error.message}", error.hint) from None
    if base_path.resolve() in chain:
        names = [each.stem for each in chain[chain.index(base_path.resolve()) :]]
        raise bad(f"base: the files inherit from each other: {' -> '.join([*names, base_path.stem])}", None)
    return read_with_base(base_path, kind, chain).without(_OWN).merged(document)


def check_with_base(path: Path, kind: str, schema: Table, overrides: Sequence[str] = ()) -> Checked:
    """The document of `read_with_base` under `overrides` such as "sm.count=30", in their order, held against `schema`.

    Raises as `read_with_base`; errors of overrides and values are in the result, for its `finish`.
    """
    document = read_with_base(path, kind)
    errors: list[PptError] = []
    for text in overrides:
        try:
            document = document.merged(parse_override(text))
        except PptError as error:
            errors.append(error)
    checked = check(document, schema)
    checked.errors += errors
    return checked
