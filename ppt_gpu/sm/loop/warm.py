"""Memory operations of which nobody asks when they are done: what they leave in caches, counters and servers.

The steps of loop.lsu and loop.l2_dram_share without their waits. All come at one moment, so servers only add up what
they have to do. MSHRs and the load/store queue, which are only times, are not touched.
"""

from __future__ import annotations

from ppt_gpu.common.bits import int64, pointer, prefetch
from ppt_gpu.common.compiled import called, entry, merged, popcount
from ppt_gpu.common.records import Words
from ppt_gpu.sm.loop.l2_dram_share import l2_read, l2_write
from ppt_gpu.sm.loop.lsu import l1_allocate, l1_drop, l1_looked_up, l1_sectors, l1_store
from ppt_gpu.sm.loop.memory import (
    ATOMIC,
    C_L1,
    C_L1_HIT,
    C_PASSES,
    C_SHARED,
    COPIER,
    COPIES,
    CYCLES_AT,
    CYCLES_MASK,
    FIRST_MASK,
    LINE_WORDS,
    LINES,
    LSU,
    MERGED,
    OUTWARD,
    P_ATOMIC_BUSY,
    P_ICNT,
    P_PERFECT,
    P_REQUEST,
    P_TX,
    PLACE,
    REQUESTS,
    SECTORS,
    UPDATES_AT,
    WAY,
    WAY_BITS,
)
from ppt_gpu.sm.loop.tags import line_place, request
from ppt_gpu.sm.program.machine import FRACTION, ONE
from ppt_gpu.sm.program.program import FORCED_L1, KIND_ATOMIC, KIND_LOAD, KIND_SHARED


@merged
def _below(mem: Words, time: int, line: int, sectors: int, atomic: int) -> int:
    """A read that the L1 does not answer: the cycle of its data, as if all came now."""
    mem[REQUESTS] = max(mem[REQUESTS], time) + l1_sectors(mem, sectors) * mem[P_REQUEST]
    if mem[P_PERFECT] != 0:
        return int64(0)
    return l2_read(mem, time, line, sectors, int64(0), atomic)


@merged
def _pass_load(mem: Words, time: int, line: int, sectors: int, cached: int) -> None:
    if line < 0:
        mem[C_L1] += popcount(sectors)
        if line == FORCED_L1:
            mem[C_L1_HIT] += popcount(sectors)
            return
    if line < 0 or cached == 0:
        _below(mem, time, line, sectors, int64(0))
        return
    place = line_place(mem, line) & PLACE
    node, _, missing = l1_looked_up(mem, place, sectors)
    if missing:
        if node == 0:
            node = l1_allocate(mem, time, place) & PLACE
        mem[node + MERGED] = 1
        request(mem, node, time >> FRACTION, _below(mem, time, line, missing, int64(0)), missing)


@merged
def _pass_store(mem: Words, time: int, line: int, sectors: int, cached: int) -> None:
    place = line_place(mem, line) & PLACE
    if l1_store(mem, time, place, line, sectors, cached):
        return
    mem[REQUESTS] = max(mem[REQUESTS], time) + l1_sectors(mem, sectors) * mem[P_REQUEST]
    if mem[P_PERFECT] == 0:
        l2_write(mem, time, place, line, sectors)


@merged
def _pass_atomic(mem: Words, time: int, line: int, sectors: int, cached: int) -> None:
    l1_drop(mem, line_place(mem, line) & PLACE, cached)
    if mem[P_PERFECT] == 0:
        mem[OUTWARD] = max(mem[OUTWARD], time) + popcount(sectors) * mem[P_ICNT]
    _below(mem, time, line, sectors, int64(1))


@called
def pass_shared(mem: Words, time: int, passes: int) -> None:
    """What a shared-memory operation at server time `time` leaves."""
    mem[C_PASSES] += passes
    mem[C_SHARED] += 1
    mem[LSU] = max(mem[LSU], time) + passes * ONE


@called
def pass_global(kind: int, way: int, time: int, word: int, last: int, tx: Words, mem: Words) -> None:
    """What a load, store or atomic at server time `time` leaves; the other arguments as those of `issue_global`."""
    first, cycles, updates = word & FIRST_MASK, (word >> CYCLES_AT) & CYCLES_MASK, word >> UPDATES_AT
    prefetch(mem, (mem[LINES] & PLACE) + ((tx[last] >> SECTORS) & PLACE) * LINE_WORDS)
    prefetch(tx, last + 8)
    if way == COPIES:
        mem[COPIER] = max(mem[COPIER], time) + (last - first) * mem[P_TX]
    else:
        mem[LSU] = max(mem[LSU], time) + max(cycles * ONE, (last - first) * mem[P_TX])
    cached = way & WAY
    if kind == KIND_ATOMIC and last > first:
        mem[ATOMIC] = max(mem[ATOMIC], time) + updates * mem[P_ATOMIC_BUSY]
    for index in range(first, last):
        line, sectors = tx[index] >> SECTORS, tx[index] & ((1 << SECTORS) - 1)
        if way == COPIES:
            if line != FORCED_L1:
                _below(mem, time, line, sectors, int64(0))
        elif kind == KIND_LOAD:
            _pass_load(mem, time, line, sectors, cached)
        elif kind == KIND_ATOMIC:
            _pass_atomic(mem, time, line, sectors, cached)
        else:
            _pass_store(mem, time, line, sectors, cached)


@entry
def pass_rounds(
    what: Words, first: Words, rounds: Words, begin: int, end: int, turns: int, accesses: Words, tx: Words, mem: Words,
    now: int,
) -> None:  # fmt: skip
    """Of the memory operations of `rounds` [live warps], which are made in so many `turns`, those of the turns from
    `begin` to `end`, all as of cycle `now`. The warps take turns, those with more rounds more often.

    `what` [live warps, operations of a round], as loop.replay writes them; `first` [live warps]: the next access.
    """
    accesses, tx, mem = pointer(accesses), pointer(tx), pointer(mem)
    live, operations = what.shape
    for turn in range(begin, end):
        for operation in range(operations):
            for i in range(live):
                number = turn * rounds[i] // turns
                if (turn + 1) * rounds[i] // turns == number:
                    continue
                access, kind = first[i] + number * operations + operation, what[i, operation] >> WAY_BITS
                if kind == KIND_SHARED:
                    pass_shared(mem, now * ONE, (accesses[access] >> CYCLES_AT) & CYCLES_MASK)
                else:
                    pass_global(
                        kind,
                        what[i, operation] & ((1 << WAY_BITS) - 1),
                        now * ONE,
                        accesses[access],
                        accesses[access + 1] & FIRST_MASK,
                        tx,
                        mem,
                    )
