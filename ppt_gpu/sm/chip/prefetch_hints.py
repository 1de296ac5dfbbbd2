"""What an SM is about to read, asked for before it does: while others went through the window, it has left all caches.

Only hints: nothing here changes a result.
"""

from __future__ import annotations

from typing import Any

from ppt_gpu.common.bits import int64, prefetch
from ppt_gpu.common.compiled import called
from ppt_gpu.sm.chip import memory as q
from ppt_gpu.sm.loop import memory as c
from ppt_gpu.sm.loop.line_hash import tag
from ppt_gpu.sm.loop.pack import POSITION
from ppt_gpu.sm.loop.state import ACCESS, READY, SCHED_SHIFT, WARP_SHIFT

#: accesses of a warp that are looked ahead, its next ones; words of four schedulers
NEXT, SCHEDULERS = 3, 4 << SCHED_SHIFT


@called
def ask_for_next_sm(mem: Any, core: Any, scheds_at: int, track: Any, occupied: Any, slots: int) -> None:
    """Of the SM whose turn is next: what its turn begins with. `core` begins with its warps; `slots`: of warps."""
    for at in range(0, q.FIXED, q.ALIGNED):
        prefetch(mem, at)
    for place in range(slots):
        prefetch(core, place << WARP_SHIFT)
    for at in range(scheds_at, scheds_at + SCHEDULERS, q.ALIGNED):
        prefetch(core, at)
    prefetch(track, 0)
    prefetch(occupied, 0)


@called
def ask_for_answers(mem: Any) -> None:
    """The requests that have been answered, who waits for them, and the operations that have not been served."""
    for number in range(mem[q.N_REQS]):
        at = mem[q.REQS] + (number << q.REQ_SHIFT)
        prefetch(mem, at)
        prefetch(mem, at + q.ALIGNED)
    for number in range(mem[q.OP_SETTLED], mem[q.OP_LAST] + NEXT):
        at = mem[q.OPS] + ((number & mem[q.OP_MASK]) << q.OP_SHIFT)
        prefetch(mem, at)
        prefetch(mem, at + q.ALIGNED)
    for at in range(mem[q.DEPS], mem[q.DEPS] + (mem[q.N_DEPS] << q.DEP_SHIFT), q.ALIGNED):
        prefetch(mem, at)


@called
def ask_for_accesses(mem: Any, accesses: Any, warps: Any, slots: int, end: int) -> int:
    """Of warps that go on before cycle `end`: the next accesses. How many; which stands from SOON on."""
    soon, found = mem[q.SOON], int64(0)
    for place in range(slots):
        me = place << WARP_SHIFT
        if warps[me + READY] < end:
            access = warps[me + ACCESS] & POSITION
            prefetch(accesses, access)
            mem[soon + found] = access
            found += 1
    return found


@called
def ask_for_transactions(mem: Any, accesses: Any, tx: Any, found: int, last: int) -> None:
    """The first transactions of these accesses, of which `last` is the last; they stand from SOON on then."""
    for at in range(mem[q.SOON], mem[q.SOON] + found):
        first = accesses[min(mem[at], last)] & c.FIRST_MASK
        prefetch(tx, first)
        mem[at] = first


@called
def ask_for_tags(mem: Any, tx: Any, found: int, total: int) -> None:
    """Where the L1 looks for the lines of these and the next ones, and what it replaces where it does not find them.

    `total`: transactions.
    """
    for at in range(mem[q.SOON], mem[q.SOON] + found):
        for number in range(mem[at], min(mem[at] + NEXT, total)):
            word = tx[number]
            if word >= 0:
                prefetch(mem, mem[q.TAGS] + tag((word >> c.SECTORS) & q.LINE_MASK, mem[q.TAG_MASK]))
                prefetch(mem, mem[mem[q.L1_SETS] + (word >> q.SET_AT) * c.SET_WORDS + c.VICTIM])
