"""The files that a CUDA source includes from its own folder and the -I folders, for the key of what is kept."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:(["<])([^">\n]+)[">]|\S)', re.M)
_FOLDER = re.compile(r"(?:-I|--?include-path[= ]?)(.*)")
_FIRST = re.compile(r"(?:-include|--pre-include)(?:=(.*))?")
_OPTIONS = re.compile(r"-optf|--options-file")


def included_text(source: Path, options: Sequence[str]) -> str | None:
    """The text of `source` and of every file of the user's that it includes. None and OSError as `included`."""
    texts = included(source, options)
    return None if texts is None else "\0".join(f"{path}\0{text}" for path, text in texts.items())


def included(source: Path, options: Sequence[str]) -> dict[Path, str] | None:
    """`source` and every file of the user's that it includes, nested includes too, with their texts.

    The compiler's own headers are not among them: its version stands for those. None when an include's name is made
    by a macro, or options are in a file, so that nobody knows which files there are. OSError when `source` cannot be
    read.
    """
    if any(map(_OPTIONS.match, options)):
        return None
    folders = [Path(name) for name in _named(options, _FOLDER)]
    texts: dict[Path, str] = {}
    waiting = [source]
    for name in _named(options, _FIRST):
        waiting += _found(name, [Path(), *folders])
    while waiting:
        path = waiting.pop()
        if path in texts:
            continue
        texts[path] = path.read_text("utf-8", errors="surrogateescape")
        for match in _INCLUDE.finditer(texts[path]):
            if match[1] is None:
                return None
            near = [path.parent] if match[1] == '"' else []
            waiting += _found(match[2], [*near, *folders])
    return texts


def _named(options: Sequence[str], option: re.Pattern[str]) -> list[str]:
    """What an option names, each time that it is given: behind it, or as the next of `options`."""
    found = [(option.fullmatch(text), options[k + 1 : k + 2]) for k, text in enumerate(options)]
    return [match[1] or "".join(following) for match, following in found if match]


def _found(name: str, folders: Sequence[Path]) -> list[Path]:
    """The first file of that name in `folders`, if any has one."""
    return [folder / name for folder in folders if (folder / name).is_file()][:1]
