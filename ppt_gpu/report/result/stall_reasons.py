"""What each stall reason means: why a resident warp did not issue in a cycle, and what would help."""

from __future__ import annotations

#: reason (of ppt_gpu.sm.program.result.STALL_REASONS) -> (what the warp did, what would help)
MEANINGS = {
    "selected": ("issued an instruction", ""),
    "not_selected": ("could have issued; its scheduler issued another warp", "fewer instructions"),
    "wait": ("waited for the result of arithmetic", "more independent instructions or warps"),
    "math_pipe_throttle": ("waited for an execution pipe that was busy", "fewer operations of that pipe"),
    "long_scoreboard": (
        "waited for global, local or texture memory",
        "more loads in flight: more warps, wider loads, loads before their use",
    ),
    "short_scoreboard": (
        "waited for shared memory, a constant, a shuffle or a special function",
        "fewer of them, or more independent instructions between",
    ),
    "lg_throttle": (
        "waited for a place in the load/store queue or an MSHR, for global or local memory",
        "fewer transactions: coalesced and wider accesses",
    ),
    "mio_throttle": (
        "waited for a place in the load/store queue, for shared memory or constants",
        "fewer bank conflicts, wider accesses to shared memory",
    ),
    "barrier": (
        "waited at a barrier for the other warps of its block",
        "smaller blocks, or even work between barriers",
    ),
    "branch_resolving": ("waited for its branch to be resolved", "fewer branches: unrolled loops"),
    "no_instruction": ("waited for its next instruction to be fetched", "smaller code"),
    "drain": (
        "had issued everything and waited for its last stores, or for the other warps of its block to end",
        "more work per thread, and as much in each warp of a block",
    ),
}


def meaning(reason: str) -> str:
    """What a warp charged with `reason` did, and what would help."""
    did, helps = MEANINGS[reason]
    return f"{did}; what helps: {helps}" if helps else did


#: reason -> its letter where there is room for one
LETTERS = dict(zip(MEANINGS, ("#", ".", "w", "p", "L", "s", "q", "m", "B", "b", "i", "-"), strict=True))
NOBODY = " "  # no warp in the slot
