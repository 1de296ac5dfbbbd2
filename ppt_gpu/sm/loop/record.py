"""What a run asked of the memory system and what it answered, as the compiled loop writes it down at the end of `mem`.

So that a run whose answers would be the same under another memory system need not be made (loop.memory_replay).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.compiled import called
from ppt_gpu.sm.loop.memory import RECORD_AT, RECORD_END, RECORD_WORDS, MemoryArrays
from ppt_gpu.sm.program.program import Program, op_issues

# a record: when it was asked; what: the kind of operation << WAY_BITS | its way, or CODE_LINE, a line of
# the code that was not in the instruction cache, or CONSTANT_READ; which access or line; the answers
WHEN, WHAT, NUMBER, DONE, PLACE_FREE = range(RECORD_WORDS)
CODE_LINE_READ, CONSTANT_READ = 64, 65
#: memory operations of a run that is recorded, at most; and one in how many warp instructions
MOST, RARE = 1 << 15, 32
#: records beside those of the memory operations
MORE = 1 << 12


@dataclass(frozen=True)
class Answers:
    """N records, in order."""

    when: NDArray[np.int64]  # [N] cycle
    what: NDArray[np.int64]  # [N]
    number: NDArray[np.int64]  # [N]
    done: NDArray[np.int64]  # [N] cycle of the result
    place: NDArray[np.int64]  # [N] cycle from which the load/store queue has a place, at least `when`


@called
def record(mem: Any, when: int, what: int, number: int, done: int, place: int) -> None:
    """Write it down, if there is room and somebody asked for it. Records that have filled all room are not whole."""
    at = mem[RECORD_AT]
    if at < mem[RECORD_END]:
        mem[at + WHEN], mem[at + WHAT], mem[at + NUMBER] = when, what, number
        mem[at + DONE], mem[at + PLACE_FREE] = done, max(place, when)
        mem[RECORD_AT] = at + RECORD_WORDS


def records_for(program: Program) -> int:
    """How many records a run of `program` may leave; 0: it uses memory too often to be worth it."""
    operations = int(program.warp_access[-1]) if len(program.warp_access) else 0
    if operations > MOST or operations * RARE > int(op_issues(program).sum()):
        return 0
    return operations + MORE


def answers_of(memory: MemoryArrays) -> Answers | None:
    """What was written down; None: nothing, or not everything."""
    begin, end = memory.records_at, int(memory.mem[RECORD_AT])
    if end >= memory.mem[RECORD_END]:
        return None
    table = memory.mem[begin:end].reshape(-1, RECORD_WORDS)
    return Answers(*(np.ascontiguousarray(table[:, word]) for word in (WHEN, WHAT, NUMBER, DONE, PLACE_FREE)))
