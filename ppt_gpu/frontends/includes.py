"""The files that a CUDA source includes from its own folder and the -I folders, for the key of what is kept."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:(["<])([^">\n]+)[">]|\S)', re.M)


def include_folders(options: Sequence[str]) -> list[Path]:
    """The folders of -I, -Idir, --include-path=dir and -include=dir among compiler options."""
    folders = []
    for position, option in enumerate(options):
        match = re.fullmatch(r"(?:-I|--?include-path[= ]?)(.*)", option)
        if match:
            name = match[1] or (options[position + 1] if position + 1 < len(options) else "")
            folders.append(Path(name))
    return folders


def included_text(source: Path, options: Sequence[str]) -> str | None:
    """The text of `source` and of every file of the user's that it includes, nested includes too.

    The compiler's own headers are not among them: its version stands for those. None when an include's name is made
    by a macro, so that nobody knows which file it is. OSError when `source` cannot be read.
    """
    folders = include_folders(options)
    texts: dict[Path, str] = {}
    waiting = [source]
    while waiting:
        path = waiting.pop()
        if path in texts:
            continue
        texts[path] = path.read_text("utf-8", errors="surrogateescape")
        for match in _INCLUDE.finditer(texts[path]):
            if match[1] is None:
                return None
            near = [path.parent] if match[1] == '"' else []
            candidates = (folder / match[2] for folder in [*near, *folders])
            waiting += [file for file in candidates if file.is_file()][:1]
    return "\0".join(f"{path}\0{text}" for path, text in texts.items())
