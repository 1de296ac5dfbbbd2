"""Counters of a run from whatever file they stand in, with what the command line adds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ppt_gpu.common.errors import PptError
from ppt_gpu.multicore.representation.counter_rules import check_rules
from ppt_gpu.multicore.representation.counters import Counters
from ppt_gpu.multicore.representation.perf_stat import is_perf, read_perf

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


def read_counters(path: str | Path, more: Sequence[str] = ()) -> Counters:
    """The counters of a CSV file or of either form of `perf stat`; `more` are texts such as "footprint=8 MiB".

    Raises PptError for a file that cannot be read, InputErrors with every mistake and contradiction.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise PptError(f"cannot read: {reason}", path=path) from None
    counters = read_perf(text, path) if is_perf(text) else read_csv(text, path)
    for each in more:
        name, equals, value = each.partition("=")
        if not equals:
            raise PptError(f"--counter {each}: expected NAME=VALUE", hint="such as --counter 'footprint=8 MiB'")
        counters.add(name.strip(), value.strip(), 0, "--counter", replace=True)
    if not counters.errors:
        check_rules(counters)
    return counters.finish()
