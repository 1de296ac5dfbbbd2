"""Counters of a run from whatever file they stand in, with what the command line adds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ppt_gpu.common.errors import PptError
from ppt_gpu.multicore.representation.counter_rules import check_rules
from ppt_gpu.multicore.representation.counters import Counters
from ppt_gpu.multicore.representation.counters_csv import read_csv
from ppt_gpu.multicore.representation.perf_stat import is_perf, read_perf


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
