"""What each mechanism moves: `python -m benchmarks.ablation [--set NAME] [--every N] [--key TEXT] [--case TEXT]`.

A key of a hardware file that has a default stands for a mechanism that the file turns on. Measured launches are
predicted once as they are, and once for each key with its default on the GPUs whose files say otherwise. A mechanism
that moves no launch pays for nothing here; the other sets of `validate` may still need it.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

from ppt_gpu.common.errors import PptError
from ppt_gpu.report.text.columns import columns
from ppt_gpu.spec import load_gpu
from ppt_gpu.spec.gpu import Gpu
from ppt_gpu.spec.gpu_schema import GPU
from ppt_gpu.spec.toml_schema import REQUIRED, Leaf, Table
from ppt_gpu.validate.silicon import measured_cases, published
from ppt_gpu.validate.silicon.measured import predictions
from ppt_gpu.validate.silicon.measured_cases import Case

#: the sets of `validate` that it knows
SETS = {"measured": measured_cases.cases, "published": published.cases}
MOVED = 0.01  # of the predicted time, from which on a launch counts as moved


class Moved(NamedTuple):
    """What turning a key off does to the launches on GPUs that set it."""

    key: str
    launches: int
    moved: int
    held_out: int  # of those moved, launches that did not choose the key's value
    error: float  # mean absolute error with the mechanism
    without: float  # and without


def mechanisms(table: Table = GPU, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """(key, default) of the keys of a hardware file that have a default and belong to a table."""
    for name, field in table.fields.items():
        if isinstance(field, Table):
            yield from mechanisms(field, f"{prefix}{name}.")
        elif prefix and isinstance(field, Leaf) and field.default is not REQUIRED:
            yield prefix + name, field.default


def ablated(key: str, default: Any, wanted: Sequence[Case]) -> Moved | None:
    """None where no GPU of these cases sets the key, or its default cannot be set from outside."""
    chosen = [case for case in wanted if _value(_gpu(case.gpu), key) != default]
    text = next((text for text in _texts(default) if chosen and _loads(chosen[0].gpu, f"{key}={text}")), None)
    if text is None:
        return None
    off = [replace(case, overrides=(*case.overrides, f"{key}={text}")) for case in chosen]
    try:
        without = predictions(off)
    except PptError:  # the file's other values need it
        return None
    found = predictions(chosen)
    pairs = list(zip(chosen, found, without, strict=True))
    moved = [case for case, one, other in pairs if abs(other.us / one.us - 1) > MOVED]
    return Moved(
        key,
        len(pairs),
        len(moved),
        sum(key not in case.chosen.split() for case in moved),
        statistics.fmean(abs(one.us / case.time - 1) for case, one, _ in pairs),
        statistics.fmean(abs(other.us / case.time - 1) for case, _, other in pairs),
    )


@cache
def _gpu(name: str) -> Gpu:
    return load_gpu(name)


def _value(gpu: Gpu, key: str) -> Any:
    value: Any = gpu
    for name in key.split("."):
        value = getattr(value, name)
    return value


def _texts(default: Any) -> list[str]:
    """How a default may be written."""
    if isinstance(default, bool):
        return [str(default).lower()]
    return [str(default), f"{default} s", f"{default} B/cycle"]


def _loads(gpu: str, override: str) -> bool:
    try:
        load_gpu(gpu, [override])
    except PptError:
        return False
    return True


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ablation", description=__doc__)
    parser.add_argument("--set", choices=SETS, default="measured", help="of validate (default: measured)")
    parser.add_argument("--every", type=int, default=8, metavar="N", help="one of N measured launches (default: 8)")
    parser.add_argument("--key", default="", metavar="TEXT", help="only keys that have TEXT")
    parser.add_argument("--case", default="", metavar="TEXT", help="only launches whose set or name has TEXT")
    options = parser.parse_args()
    if options.every < 1:
        parser.error("--every: at least 1")
    wanted = [case for case in SETS[options.set]() if options.case in f"{case.set} {case.name}"][:: options.every]
    lines: list[tuple[str, ...]] = [("key", "launches", "moved", "held out", "error", "without")]
    for key, default in mechanisms():
        moved = ablated(key, default, wanted) if options.key in key else None
        if moved is not None:
            counts = (str(count) for count in (moved.launches, moved.moved, moved.held_out))
            lines.append((key, *counts, f"{moved.error:.1%}", f"{moved.without:.1%}"))
    print("\n".join(columns(lines)))


if __name__ == "__main__":
    main()
