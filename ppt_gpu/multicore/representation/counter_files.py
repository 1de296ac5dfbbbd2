"""Counters of a run from whatever file they stand in, with what the command line adds.

Rules between the counters of a run: which of them contradict each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from ppt_gpu.common.errors import PptError
from ppt_gpu.multicore.representation.counters import Counters
from ppt_gpu.multicore.representation.perf_stat import is_perf, read_perf

#: (part, whole): the part cannot exceed the whole
_PARTS = (
    ("l1_misses", "l1_accesses"),
    ("l2_misses", "l2_accesses"),
    ("l3_misses", "l3_accesses"),
    ("dtlb_misses", "dtlb_accesses"),
    ("branch_misses", "branches"),
    ("branches", "instructions"),
    ("loads", "instructions"),
    ("stores", "instructions"),
    ("fp_operations", "instructions"),
    ("l3_misses_overlapped", "l3_misses"),
)
#: how far sums of separately measured counters may lie apart
_SLACK = 0.02


def check_rules(counters: Counters) -> None:
    """Add an error for every pair of counters that contradict each other.

    Misses of one cache beyond those of the cache before it are no contradiction: prefetches cause them.
    """
    for part, whole in _PARTS:
        if part in counters.values and whole in counters.values and counters.get(part) > counters.get(whole):
            have, most = f"{counters.get(part):g}", f"{counters.get(whole):g} of {whole}{_at(counters, whole)}"
            counters.contradiction(part, f"{part} is {have}, more than the {most}")
    if counters.get("ilp_window2") > 2:
        counters.contradiction(
            "ilp_window2", f"ilp_window2 is {counters.get('ilp_window2'):g}; a window of 2 gives 1 to 2"
        )
    if {"ilp", "ilp_window2"} <= counters.values.keys() and counters.get("ilp_window2") > counters.get("ilp"):
        counters.contradiction("ilp_window2", "ilp_window2 is more than ilp, which has the larger window")
    shares = [name for name in counters.values if name.startswith("stride_")]
    _sum_of_shares(counters, shares, "the shares of stride_*")
    _operations_fit(counters)


def _at(counters: Counters, name: str) -> str:
    value = counters.values[name]
    return f" (line {value.line})" if value.line else ""


def _sum_of_shares(counters: Counters, names: Iterable[str], what: str) -> None:
    chosen = list(names)
    total = sum(counters.get(name) for name in chosen)
    if chosen and abs(total - 1) > _SLACK:
        counters.contradiction(chosen[-1], f"{what} sum to {total:g}, expected 1")


def _operations_fit(counters: Counters) -> None:
    """Operations sum to the micro-ops; given in per cent, to 100 %."""
    named = [name for name in counters.values if name.startswith("op.")]
    if not named:
        return
    shares = [name for name in named if counters.values[name].share]
    if shares and len(shares) < len(named):
        other = next(name for name in named if name not in shares)
        counters.contradiction(
            other, f"{other} is a count where {shares[0]} is in per cent; give all of op.* in one way"
        )
    elif shares:
        if not (counters.get("uops") or counters.get("instructions")):
            counters.contradiction(shares[0], "op.* in per cent needs 'uops' or 'instructions'")
        _sum_of_shares(counters, shares, "the shares of op.*")
    elif "uops" in counters.values:
        total, uops = sum(counters.operations.values()), counters.get("uops")
        if abs(total - uops) > _SLACK * max(total, uops):
            counters.contradiction("uops", f"uops is {uops:g}, but op.* sum to {total:g}")


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
