"""Loop skipping: what the memory system says to the operations of the rounds that are skipped.

It is not assumed to repeat itself. The operations of one round are logged; then those of the next rounds are put to the
memory system itself, in the same order and as many cycles later. As long as its answers are the same, the round would
have gone the same way. When one is not, the answers given so far are kept for the loop, which runs that round itself.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from ppt_gpu.common.bits import int64, pointer
from ppt_gpu.common.compiled import called, entry
from ppt_gpu.sm.loop.lsu import issue_global, issue_shared
from ppt_gpu.sm.loop.memory import CYCLES_AT, CYCLES_MASK, FIRST_MASK, WAY_BITS
from ppt_gpu.sm.loop.state import ACCESS, AT_WARPS
from ppt_gpu.sm.program.program import KIND_SHARED

# `track`: what the loop does with the answers, how many are in the log, and how many of those are still to be used;
# the rest is described in loop.skip
FREELY, LOGGING, ANSWERED = range(3)
MODE, LOGGED, NEXT_ANSWER, ANSWERS = range(4)
# a record: when, which warp, access, kind and whether it looks into the L1, answers of the logged round and of the last
WHEN, WARP, NUMBER, WHAT, DONE_AT, PLACE_AT, ANSWER_DONE, ANSWER_PLACE = range(8)
RECORD_SHIFT = 3
RECORDS = 1 << 13


@called
def note(track: Any, log: Any, when: int, me: int, access: int, kind: int, cached: int, done: int, place: int) -> None:
    """Log an operation of warp `me`; give up when there are too many."""
    count = track[LOGGED]
    if count >= RECORDS:
        track[MODE] = FREELY
        return
    at = count << RECORD_SHIFT
    log[at + WHEN], log[at + WARP], log[at + NUMBER], log[at + WHAT] = when, me, access, kind << WAY_BITS | cached
    log[at + DONE_AT], log[at + PLACE_AT] = done, place
    track[LOGGED] = count + 1


@called
def recall(track: Any, log: Any) -> tuple[int, int]:
    """The next answer that replay() has left."""
    at = track[NEXT_ANSWER] << RECORD_SHIFT
    track[NEXT_ANSWER] += 1
    if track[NEXT_ANSWER] >= track[ANSWERS]:
        track[MODE] = FREELY
    return log[at + ANSWER_DONE], log[at + ANSWER_PLACE]


@cache
def make_replay() -> Any:
    """_replay, compiled."""

    def replay(
        track: Any, log: Any, core: Any, snap: Any, layout: Any, accesses: Any, tx: Any, mem: Any, period: int,
        rounds: int,
    ) -> int:  # fmt: skip
        return _replay(track, log, core, snap, layout, accesses, tx, mem, period, rounds)

    return entry(replay)


@called
def _replay(
    track: Any, log: Any, core: Any, snap: Any, layout: Any, accesses: Any, tx: Any, mem: Any, period: int, rounds: int
) -> int:
    """How many of the next `rounds` rounds go like the logged one, which took `period` cycles."""
    accesses, tx, mem = pointer(accesses), pointer(tx), pointer(mem)
    track[MODE] = FREELY
    for turn in range(1, rounds + 1):
        later = turn * period
        for record in range(track[LOGGED]):
            at = record << RECORD_SHIFT
            when, me = log[at + WHEN] + later, layout[AT_WARPS] + log[at + WARP] + ACCESS
            access, kind = log[at + NUMBER] + turn * (core[me] - snap[me]), log[at + WHAT] >> WAY_BITS
            if kind == KIND_SHARED:
                done, place = issue_shared(mem, when, (accesses[access] >> CYCLES_AT) & CYCLES_MASK)
            else:
                done, place = issue_global(
                    kind,
                    log[at + WHAT] & ((1 << WAY_BITS) - 1),
                    when,
                    accesses[access],
                    accesses[access + 1] & FIRST_MASK,
                    tx,
                    mem,
                )
            log[at + ANSWER_DONE], log[at + ANSWER_PLACE] = done, place
            same = done - later == log[at + DONE_AT]
            if not same or max(place, when) != max(log[at + PLACE_AT] + later, when):
                track[MODE], track[NEXT_ANSWER], track[ANSWERS] = ANSWERED, int64(0), record + 1
                return int64(turn - 1)
    return int64(rounds)
