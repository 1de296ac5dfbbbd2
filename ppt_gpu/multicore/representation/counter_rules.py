"""Rules between the counters of a run: which of them contradict each other."""

from __future__ import annotations

from collections.abc import Iterable

from ppt_gpu.multicore.representation.counters import Counters

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
