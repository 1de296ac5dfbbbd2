"""What limits a kernel, in one sentence, from its bounds and its stall reasons."""

from __future__ import annotations

from collections.abc import Sequence

from ppt_gpu.report.result.result import Bound

#: a resource used at least this much is called the limiter; below it latency is
SATURATED = 0.75
#: issue slots used at least this much may limit warps that are not selected
SCARCE = 0.5

_MEANING = {
    "wait": "the latency of arithmetic (more independent instructions or warps would hide it)",
    "math_pipe_throttle": "a busy execution pipe",
    "long_scoreboard": "the latency of global memory (more loads in flight would hide it)",
    "short_scoreboard": "the latency of shared memory or special functions",
    "lg_throttle": "the load/store queue or MSHRs",
    "mio_throttle": "the load/store pipe",
    "barrier": "barriers: warps wait for the slowest of their block",
    "branch_resolving": "branches",
    "no_instruction": "instruction fetch: code missing in the cache, or warps of a block starting in turn",
    "not_selected": "issue slots",
    # A warp that has ended needs nothing. That most of the time is such time says how few run, and how briefly.
    "drain": (
        "warps that have ended: they wait for their last stores, or for the longest warp of their block"
        " (more work per thread, and as much in each warp, helps)"
    ),
}


#: kinds of limits, and what belongs to each: names of bounds and stall reasons
KINDS = {
    "memory bandwidth": ("DRAM bandwidth", "L2 bandwidth", "interconnect, SM inward", "interconnect, SM outward"),
    "memory latency": ("long_scoreboard", "lg_throttle", "drain"),
    "load/store": (
        "load/store unit", "L1 look-ups", "shared memory", "atomic unit", "lsu pipe", "short_scoreboard",
        "mio_throttle",
    ),
    "block launches": ("block launches", "no_instruction"),
    "synchronisation": ("barrier", "branch_resolving", "branch pipe", "adu pipe"),
}  # fmt: skip
OTHERWISE = "arithmetic"  # pipes, issue slots, wait


def limiter_kind(bounds: Sequence[Bound], stalls: Sequence[tuple[str, float]], cycles: float) -> str:
    """The kind of what `limiter` names: one of KINDS, or OTHERWISE."""
    named = _limit(bounds, stalls, cycles)[0]
    return next((kind for kind, members in KINDS.items() if named in members), OTHERWISE)


def limiter(bounds: Sequence[Bound], stalls: Sequence[tuple[str, float]], cycles: float) -> str:
    """`bounds` and `cycles` of the whole kernel; `stalls` as (reason, share)."""
    name, share, resource = _limit(bounds, stalls, cycles)
    if resource:
        return f"{name} ({share:.0%} used)"
    if not name:
        return "nothing: the kernel issued no instruction"
    return f"{_MEANING.get(name, name)}: {name}, {share:.0%} of warp cycles"


def _limit(bounds: Sequence[Bound], stalls: Sequence[tuple[str, float]], cycles: float) -> tuple[str, float, bool]:
    """(resource or stall reason that limits, its share, whether it is a resource); "" for nothing."""
    path = next((bound.cycles for bound in bounds if bound.resource == "critical path"), 0.0)
    busy = [bound for bound in bounds if bound.resource != "critical path" and not _is_path(bound, path)]
    top = max(busy, key=lambda bound: bound.cycles, default=None)
    if top is not None and cycles > 0 and top.cycles >= SATURATED * cycles:
        return top.resource, top.cycles / cycles, True
    # A warp that could issue while another one does loses time only if slots are scarce.
    slots = next((bound.cycles for bound in bounds if bound.resource == "issue slots"), 0.0)
    scarce = slots >= SCARCE * cycles
    others = (item for item in stalls if item[0] != "selected")
    return *max(others, key=lambda item: (scarce or item[0] != "not_selected", item[1]), default=("", 0.0)), False


def _is_path(bound: Bound, path: float) -> bool:
    """Is a bound little more than the chain of instructions that each warp has to run? What that waits for, stalls say.

    The bound of block launches holds the chain of the last block: with few blocks it is that chain.
    """
    return bound.resource == "block launches" and bound.cycles < 2 * path
