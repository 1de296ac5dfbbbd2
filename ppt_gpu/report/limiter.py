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


def limiter(bounds: Sequence[Bound], stalls: Sequence[tuple[str, float]], cycles: float) -> str:
    """`bounds` and `cycles` of the whole kernel; `stalls` as (reason, share)."""
    top = max(bounds, key=lambda bound: bound.cycles, default=None)
    if top is not None and cycles > 0 and top.cycles >= SATURATED * cycles:
        return f"{top.resource} ({top.cycles / cycles:.0%} used)"
    reason, share = max(((r, s) for r, s in stalls if r != "selected"), key=lambda item: item[1], default=("", 0.0))
    if not reason:
        return "nothing: the kernel issued no instruction"
    return f"{_MEANING.get(reason, reason)}: {reason}, {share:.0%} of warp cycles"
