"""The answers to requests of an L1 with pipelines in the compiled loop: a heap in `mem`, by cycle and order."""

from __future__ import annotations

from typing import Any

from ppt_gpu.common.bits import int64
from ppt_gpu.common.compiled import called, merged
from ppt_gpu.sm.chip import staged_l1_state as s
from ppt_gpu.sm.loop import memory as c


@merged
def part(mem: Any) -> int:
    """Where all this begins, 0: the L1 has no such pipelines."""
    return mem[c.L1_PIPE] & c.PLACE


@called
def put_answer(mem: Any, request: int, done: int) -> None:
    """A request that has left is answered at cycle `done`."""
    base = part(mem)
    heap, at = mem[base + s.HEAP], mem[base + s.HEAP_SIZE]
    mem[base + s.HEAP_SIZE] = at + 1
    mem[base + s.ORDER] += 1
    done = max(done, mem[request + s.R_LEFT] + 1)
    key = done << s.ORDER_BITS | (mem[base + s.ORDER] & ((1 << s.ORDER_BITS) - 1))
    while at > 0:
        above = (at - 1) >> 1
        if mem[heap + above * s.ANSWER_WORDS] <= key:
            break
        mem[heap + at * s.ANSWER_WORDS] = mem[heap + above * s.ANSWER_WORDS]
        mem[heap + at * s.ANSWER_WORDS + 1] = mem[heap + above * s.ANSWER_WORDS + 1]
        at = above
    mem[heap + at * s.ANSWER_WORDS] = key
    mem[heap + at * s.ANSWER_WORDS + 1] = request
    mem[base + s.DUE] = min(mem[base + s.DUE], done)


@called
def pop_answer(mem: Any, base: int) -> None:
    """The first answer has come in."""
    heap, size = mem[base + s.HEAP], mem[base + s.HEAP_SIZE] - 1
    mem[base + s.HEAP_SIZE] = size
    last, at = heap + size * s.ANSWER_WORDS, int64(0)
    key = mem[last]
    while 2 * at + 1 < size:
        below = 2 * at + 1
        if below + 1 < size and mem[heap + (below + 1) * s.ANSWER_WORDS] < mem[heap + below * s.ANSWER_WORDS]:
            below += 1
        if key <= mem[heap + below * s.ANSWER_WORDS]:
            break
        mem[heap + at * s.ANSWER_WORDS] = mem[heap + below * s.ANSWER_WORDS]
        mem[heap + at * s.ANSWER_WORDS + 1] = mem[heap + below * s.ANSWER_WORDS + 1]
        at = below
    mem[heap + at * s.ANSWER_WORDS] = key
    mem[heap + at * s.ANSWER_WORDS + 1] = mem[last + 1]
