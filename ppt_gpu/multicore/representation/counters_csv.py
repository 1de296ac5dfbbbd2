"""Counters from a CSV file: `counter,value` or `counter,value,unit` a line, "#" for comments (docs/port.md)."""

from __future__ import annotations

from pathlib import Path

from ppt_gpu.common.errors import PptError
from ppt_gpu.multicore.representation.counters import Counters

HEADER = ("counter", "value")


def read_csv(text: str, path: str | Path) -> Counters:
    """The counters in `text`; mistakes stand in its errors. Every line must be whole."""
    counters = Counters(str(path))
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.partition("#")[0].strip()
        if not bare:
            continue
        cells = [cell.strip().strip('"') for cell in bare.split(",")]
        if tuple(cell.lower() for cell in cells[:2]) == HEADER:
            continue
        if not 2 <= len(cells) <= 3 or not cells[0] or not cells[1]:
            cut = " (the file ends there: it may have been cut off)" if _is_last(text, number) else ""
            message = f"'{bare}' is no line of the form counter,value[,unit]{cut}"
            counters.errors.append(PptError(message, path=str(path), line=number))
            continue
        counters.add(cells[0], " ".join(cells[1:]).strip(), number)
    if not counters.values and not counters.errors:
        raise PptError("no counters", path=path, hint="a line is counter,value[,unit], such as instructions,2600000")
    return counters


def _is_last(text: str, number: int) -> bool:
    lines = text.splitlines()
    return not any(line.strip() for line in lines[number:]) and not text.endswith("\n")
