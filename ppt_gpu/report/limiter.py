"""What limits a kernel, in one sentence, from its bounds and its stall reasons."""

from __future__ import annotations

from collections.abc import Sequence

from ppt_gpu.report.result import Bound

#: a resource used at least this much is called the limiter; below it latency is
SATURATED = 0.75

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
    "dispatch_stall": "block launches",
    "not_selected": "issue slots",
    "drain": "the drain of outstanding results",
}


#: kinds of limits, and what belongs to each: names of bounds and stall reasons
KINDS = {
    "memory bandwidth": ("DRAM bandwidth", "L2 bandwidth", "interconnect, SM inward", "interconnect, SM outward"),
    "memory latency": ("long_scoreboard", "lg_throttle", "drain", "critical path"),
    "load/store": (
        "load/store unit", "L1 look-ups", "shared memory", "atomic unit", "lsu pipe", "short_scoreboard",
        "mio_throttle",
    ),
    "block launches": ("block launches", "no_instruction", "dispatch_stall"),
    "synchronisation": ("barrier", "branch_resolving", "branch pipe"),
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
    top = max(bounds, key=lambda bound: bound.cycles, default=None)
    if top is not None and cycles > 0 and top.cycles >= SATURATED * cycles:
        return top.resource, top.cycles / cycles, True
    others = ((reason, share) for reason, share in stalls if reason != "selected")
    return *max(others, key=lambda item: item[1], default=("", 0.0)), False
