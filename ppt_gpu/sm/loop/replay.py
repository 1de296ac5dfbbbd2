"""Loop skipping: what the memory system says to the operations of the rounds that are skipped.

It is not assumed to repeat itself. The operations of one round are logged; then those of the next rounds are put to the
memory system itself, in the same order and as many cycles later. As long as its answers are the same, the round would
have gone the same way. When one is not, the answers given so far are kept for the loop, which runs that round itself.
"""

from __future__ import annotations

from ppt_gpu.common.bits import int64
from ppt_gpu.common.compiled import called, entry
from ppt_gpu.common.records import Table, Words
from ppt_gpu.sm.loop.lsu import issue_global, issue_shared
from ppt_gpu.sm.loop.memory import CYCLES_AT, CYCLES_MASK, FIRST_MASK, WAY_BITS
from ppt_gpu.sm.loop.state import Logged, Track, sm_at
from ppt_gpu.sm.program.program import KIND_SHARED

# Track.mode
FREELY, LOGGING, ANSWERED = range(3)
#: operations in the log at most
RECORDS = 1 << 13


@called
def note(
    of: Table[Track], log: Table[Logged], when: int, warp: int, access: int, kind: int, way: int, done: int, place: int
) -> None:
    """Log an operation of a warp; give up when there are too many."""
    track = of[0]
    if track.logged >= RECORDS:
        track.mode = FREELY
        return
    record = log[track.logged]
    record.when, record.warp, record.access, record.what = when, warp, access, kind << WAY_BITS | way
    record.done, record.place = done, place
    track.logged += 1


@called
def recall(of: Table[Track], log: Table[Logged]) -> tuple[int, int]:
    """The next answer that replay() has left."""
    track = of[0]
    record = log[track.next_answer]
    track.next_answer += 1
    if track.next_answer >= track.answers:
        track.mode = FREELY
    return record.answer_done, record.answer_place


@entry
def replay(words: Words, copy: Words, period: int, rounds: int) -> int:
    """How many of the next `rounds` rounds go like the logged one, which took `period` cycles."""
    sm, then = sm_at(words), sm_at(copy)
    track, accesses = sm.track[0], sm.accesses
    track.mode = FREELY
    for turn in range(1, rounds + 1):
        later = turn * period
        for number in range(track.logged):
            record = sm.log[number]
            when, kind = record.when + later, record.what >> WAY_BITS
            access = record.access + turn * (sm.warps[record.warp].access - then.warps[record.warp].access)
            if kind == KIND_SHARED:
                done, place = issue_shared(sm.mem, when, (accesses[access] >> CYCLES_AT) & CYCLES_MASK)
            else:
                way, last = record.what & ((1 << WAY_BITS) - 1), accesses[access + 1] & FIRST_MASK
                done, place = issue_global(kind, way, when, accesses[access], last, sm.tx, sm.mem)
            record.answer_done, record.answer_place = done, place
            if done - later != record.done or max(place, when) != max(record.place + later, when):
                track.mode, track.next_answer, track.answers = ANSWERED, int64(0), number + 1
                return int64(turn - 1)
    return int64(rounds)
