"""The load/store unit and the L1: what happens when a memory operation issues. As `reference.memory`, on `mem`."""

from __future__ import annotations

from ppt_gpu.common.bits import int64, prefetch, quotient
from ppt_gpu.common.compiled import called, merged, popcount
from ppt_gpu.common.records import Words
from ppt_gpu.sm.loop.l2_dram_share import l2_read, l2_write
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
    DIRTY,
    FILL,
    FILLING,
    FIRST_MASK,
    HOLDS,
    IN_LOCAL,
    L1_NODE,
    L1_SET,
    LAST_RELEASE,
    LINE_WORDS,
    LINES,
    LSU,
    MERGED,
    MSHR_HEAD,
    MSHRS,
    NEXT,
    NOW,
    OUTWARD,
    P_ACK,
    P_ATOMIC,
    P_ATOMIC_BUSY,
    P_ICNT,
    P_L1_ALLOCATE,
    P_L1_FIFO,
    P_L1_GROUP,
    P_L1_LATENCY,
    P_L1_RESERVES,
    P_L1_WRITE,
    P_L2_LATENCY,
    P_MERGES,
    P_MISS,
    P_MSHRS,
    P_PERFECT,
    P_QUEUE,
    P_REQUEST,
    P_REQUEST_QUEUE,
    P_SHARED,
    P_STORE,
    P_TX,
    PLACE,
    POSTED,
    QUEUE,
    QUEUE_HEAD,
    REQUESTS,
    RETURNS,
    SECTORS,
    UPDATES_AT,
    VALID,
    VICTIM,
    WAY,
)
from ppt_gpu.sm.loop.tags import claim, drop, line_place, renew, request, whole
from ppt_gpu.sm.program.machine import FRACTION, NEVER, ONE, WRITE_BACK, WRITE_EVICT
from ppt_gpu.sm.program.program import FORCED_L1, KIND_ATOMIC, KIND_LOAD


@merged
def l1_sectors(mem: Words, sectors: int) -> int:
    return quotient(popcount(sectors) + mem[P_L1_GROUP] - 1, mem[P_L1_GROUP])


@called
def _leave(mem: Words, time: int, sectors: int) -> int:
    """Send the requests of a transaction, in order with all others: wait of the last one. mem[NOW]: as `_miss`."""
    cost = mem[P_REQUEST]
    mem[NOW] = time
    if cost == 0:
        return int64(0)
    time = max(time, mem[REQUESTS] - mem[P_REQUEST_QUEUE] * cost)
    mem[NOW] = time
    mem[REQUESTS] = max(mem[REQUESTS], time) + l1_sectors(mem, sectors) * cost
    return max(mem[REQUESTS] - cost - time, 0)


@called
def _return(mem: Words, time: int, sectors: int) -> int:
    """Wait of the last sector for the port through which data come back to the warps."""
    cost = mem[P_REQUEST]
    if cost == 0:
        return int64(0)
    mem[RETURNS] = max(mem[RETURNS], time) + l1_sectors(mem, sectors) * cost
    return max(mem[RETURNS] - cost - time, 0)


@merged
def _round_trip(mem: Words) -> int:
    """Cycles from a request that finds everything idle to its answer from the L2."""
    return mem[P_L1_LATENCY] + mem[P_MISS] if mem[P_PERFECT] != 0 else mem[P_L2_LATENCY]


@called
def _perfect_miss(mem: Words, time: int, sectors: int, wait: int) -> int:
    """As `_miss`, where everything below the L1 is perfect."""
    wait = max(wait, _leave(mem, time, sectors))
    wait = max(wait, _return(mem, mem[NOW], sectors))
    return whole(mem[NOW] + wait) + _round_trip(mem)


@merged
def hold_mshr(mem: Words, ring: int, size: int, place: int, others: int, release: int) -> None:
    """An MSHR is free from cycle `release` on: it goes into the ring at `place`, behind `others`, or before later ones.

    The MSHRs are a ring in order of release, so a new one usually goes to the end.
    """
    for _ in range(others):
        before = place - 1 if place > 0 else size - 1
        if mem[ring + before] <= release:
            break
        mem[ring + place] = mem[ring + before]
        place = before
    mem[ring + place] = release


@called
def _miss(mem: Words, time: int, line: int, sectors: int, wait: int, atomic: int) -> int:
    """Take the MSHR that is free first and hold it until the data is there. mem[NOW]: when the unit went on."""
    ring, size, head = mem[MSHRS] & PLACE, mem[P_MSHRS], mem[MSHR_HEAD] & PLACE
    time = max(time, mem[ring + head] * ONE)
    wait = max(wait, _leave(mem, time, sectors))
    time = mem[NOW]
    wait = max(wait, _return(mem, time, sectors))
    done = l2_read(mem, time, line, sectors, wait, atomic)
    hold_mshr(mem, ring, size, head, size - 1, done)
    mem[MSHR_HEAD] = head + 1 if head + 1 < size else 0
    return done


@merged
def _load(mem: Words, time: int, line: int, sectors: int, cached: int) -> int:
    """Cycle of arrival of one transaction. mem[NOW]: when it left the load/store unit."""
    mem[NOW] = time
    done = whole(time) + mem[P_L1_LATENCY]
    if line < 0:
        mem[C_L1] += popcount(sectors)
        if line == FORCED_L1:
            mem[C_L1_HIT] += popcount(sectors)
            return done
    if line < 0 or cached == 0:
        if mem[P_PERFECT] != 0:
            return _perfect_miss(mem, time, sectors, int64(0))
        return _miss(mem, time, line, sectors, int64(0), int64(0))
    place = line_place(mem, line) & PLACE
    node, have, missing = l1_looked_up(mem, place, sectors)
    if have != 0 and (have & mem[node + FILLING]) != 0 and mem[node + FILL] > time >> FRACTION:
        if mem[node + MERGED] >= mem[P_MERGES]:
            time = max(time, mem[node + FILL] * ONE)
            mem[NOW] = time
            done = whole(time) + mem[P_L1_LATENCY]
        else:
            mem[node + MERGED] += 1
            wait = _return(mem, time, have & mem[node + FILLING])
            done = max(mem[node + FILL], whole(time + wait) + mem[P_L1_LATENCY])
    if missing:
        if node == 0:
            if mem[P_L1_RESERVES] != 0:
                time = max(time, reserved(mem, mem[place + L1_SET] & PLACE) * ONE)
                if mem[P_PERFECT] == 0:
                    time = max(time, mem[(mem[MSHRS] & PLACE) + (mem[MSHR_HEAD] & PLACE)] * ONE)
                    if mem[P_REQUEST] != 0:
                        time = max(time, mem[REQUESTS] - mem[P_REQUEST_QUEUE] * mem[P_REQUEST])
            node = l1_allocate(mem, time, place) & PLACE
        if mem[P_PERFECT] != 0:
            arrived = _perfect_miss(mem, time, missing, int64(0))
        else:
            arrived = _miss(mem, time, line, missing, int64(0), int64(0))
        now = mem[NOW] >> FRACTION
        if mem[node + FILL] <= now:
            mem[node + MERGED] = 0
        mem[node + MERGED] += 1
        request(mem, node, now, arrived, missing)
        done = max(done, arrived)
    return done


@merged
def l1_looked_up(mem: Words, place: int, sectors: int) -> tuple[int, int, int]:
    """(node of a line in the L1, or 0; of the sectors that a load asks for as the L1 fetches them, those that are there
    or coming; those that miss)"""
    group = mem[P_L1_GROUP]
    if group > 1:
        wanted, sectors = sectors, int64(0)
        for first in range(0, 8, group):
            mask = ((1 << group) - 1) << first
            if wanted & mask:
                sectors |= mask
    node = mem[place + L1_NODE] & PLACE
    missing = sectors
    if node:
        missing &= ~mem[node + VALID]
        if mem[P_L1_FIFO] == 0:
            renew(mem, mem[place + L1_SET] & PLACE, node)
    have = sectors & ~missing
    mem[C_L1] += quotient(popcount(sectors), group)
    mem[C_L1_HIT] += quotient(popcount(have), group)
    return node, have, missing


@merged
def l1_drop(mem: Words, place: int, cached: int) -> None:
    """An atomic takes its line out of the L1."""
    if place != 0 and cached != 0:
        node = mem[place + L1_NODE] & PLACE
        if node:
            mem[place + L1_NODE] = 0
            drop(mem, mem[place + L1_SET] & PLACE, node)


@merged
def l1_store(mem: Words, time: int, place: int, line: int, sectors: int, cached: int) -> bool:
    """What a store leaves in the L1. Does it stay there?"""
    back = mem[P_L1_WRITE] == WRITE_BACK or (mem[P_L1_WRITE] == WRITE_EVICT and cached == IN_LOCAL)
    kept = line == FORCED_L1 and back
    if place != 0 and cached != 0:
        node = mem[place + L1_NODE] & PLACE
        if mem[P_L1_WRITE] == WRITE_EVICT and not back:
            if node:
                mem[place + L1_NODE] = 0
                drop(mem, mem[place + L1_SET] & PLACE, node)
        else:
            if node:
                if mem[P_L1_FIFO] == 0:
                    renew(mem, mem[place + L1_SET] & PLACE, node)
            elif mem[P_L1_ALLOCATE] != 0:
                node = l1_allocate(mem, time, place) & PLACE
            if node:
                mem[node + VALID] |= sectors
                if back:
                    mem[node + DIRTY] |= sectors
                    kept = True
    return kept


@called
def reserved(mem: Words, at: int) -> int:
    """The first cycle in which a line of the L1's set at `at` is no more on its way."""
    node, free = mem[at + VICTIM] & PLACE, int64(NEVER)
    while node:
        free = min(free, mem[node + FILL] if mem[node + HOLDS] != 0 else int64(0))
        node = mem[node + NEXT] & PLACE
    return free


@called
def l1_allocate(mem: Words, time: int, place: int) -> int:
    """An L1 node for a line; dirty sectors of the line it replaces go to the L2."""
    at = mem[place + L1_SET] & PLACE
    node = mem[at + VICTIM] & PLACE
    if mem[P_L1_RESERVES] != 0 and mem[node + HOLDS] != 0:
        while mem[node + FILL] > time >> FRACTION and mem[node + NEXT] != 0:
            node = mem[node + NEXT] & PLACE
    victim, dirty = mem[node + HOLDS] & PLACE, mem[node + DIRTY]
    if victim != 0 and dirty != 0 and mem[P_PERFECT] == 0:
        l2_write(mem, time, victim, int64(0), dirty)
    claim(mem, L1_NODE, at, node, place)
    return node


@merged
def _store(mem: Words, time: int, line: int, sectors: int, cached: int) -> int:
    """Server time at which the store is accepted below, -1 when it stays in the L1. mem[NOW]: as `_load`."""
    mem[NOW] = time
    place = line_place(mem, line) & PLACE
    if l1_store(mem, time, place, line, sectors, cached):
        return int64(-1)
    wait = _leave(mem, time, sectors)
    accepted = mem[NOW] + wait
    if mem[P_PERFECT] == 0:
        accepted = max(accepted, l2_write(mem, mem[NOW], place, line, sectors))
    return accepted


@called
def _atomic(mem: Words, time: int, line: int, sectors: int, cached: int, wait: int) -> int:
    """Cycle of arrival of one transaction of an atomic. mem[NOW]: when it left the load/store unit."""
    mem[NOW] = time
    l1_drop(mem, line_place(mem, line) & PLACE, cached)
    if mem[P_PERFECT] != 0:
        return _perfect_miss(mem, time, sectors, wait)
    mem[OUTWARD] = max(mem[OUTWARD], time) + popcount(sectors) * mem[P_ICNT]
    return _miss(mem, time, line, sectors, wait, int64(1))


@merged
def leave_queue(mem: Words, cycle: int) -> int:
    """Note when this operation's queue place becomes free; returns the cycle from which the queue has a place."""
    cycle = max(cycle, mem[LAST_RELEASE])
    mem[LAST_RELEASE] = cycle
    queue, head = mem[QUEUE] & PLACE, mem[QUEUE_HEAD] & PLACE
    mem[queue + head] = cycle
    head = head + 1 if head + 1 < mem[P_QUEUE] else 0
    mem[QUEUE_HEAD] = head
    return mem[queue + head]


@merged
def issue_shared(mem: Words, cycle: int, passes: int) -> tuple[int, int]:
    """A shared-memory operation issued in `cycle`: (cycle of its result, cycle from which the queue has a place)."""
    start = max(cycle * ONE, mem[LSU])
    mem[C_PASSES] += passes
    mem[C_SHARED] += 1
    mem[LSU] = start + passes * ONE
    place = leave_queue(mem, whole(mem[LSU]))
    return whole(start) + max(passes - 1, 0) + mem[P_SHARED], place


@called
def _copy(cycle: int, first: int, last: int, tx: Words, mem: Words) -> int:
    """Cycle of the result of a load that the copy engine does, issued in `cycle`."""
    time = max(cycle * ONE, mem[COPIER])
    done = whole(time) + mem[P_L1_LATENCY]
    for index in range(first, last):
        line, sectors = tx[index] >> SECTORS, tx[index] & ((1 << SECTORS) - 1)
        if line == FORCED_L1:
            done = max(done, whole(time) + mem[P_L1_LATENCY])
        elif mem[P_PERFECT] != 0:
            done = max(done, _perfect_miss(mem, time, sectors, int64(0)))
            time = mem[NOW]
        else:
            wait = _leave(mem, time, sectors)
            time = mem[NOW]
            wait = max(wait, _return(mem, time, sectors))
            done = max(done, l2_read(mem, time, line, sectors, wait, int64(0)))
        time += mem[P_TX]
    mem[COPIER] = time
    return done


@called
def issue_global(kind: int, cached: int, cycle: int, word: int, last: int, tx: Words, mem: Words) -> tuple[int, int]:
    """A load, store or atomic issued in `cycle`: (cycle of its result, cycle from which the queue has a place)."""
    first, cycles, updates = word & FIRST_MASK, (word >> CYCLES_AT) & CYCLES_MASK, word >> UPDATES_AT
    if cached == COPIES:
        return _copy(cycle, first, last, tx, mem), int64(0)
    start = max(cycle * ONE, mem[LSU])
    time, done = start, whole(start) + mem[P_L1_LATENCY]
    posted, wait = int64(-1), int64(0)
    forgotten = cached >= POSTED and mem[P_ACK] == 0
    cached &= WAY
    if kind == KIND_ATOMIC and last > first:
        wait = max(0, mem[ATOMIC] - start) + (updates - 1) * mem[P_ATOMIC]
        mem[ATOMIC] = max(mem[ATOMIC], start) + updates * mem[P_ATOMIC_BUSY]
    for index in range(first, last):
        line, sectors = tx[index] >> SECTORS, tx[index] & ((1 << SECTORS) - 1)
        if index > first:
            time += mem[P_TX]
        if kind == KIND_LOAD:
            done = max(done, _load(mem, time, line, sectors, cached))
            time = mem[NOW]
        elif kind == KIND_ATOMIC:
            done = max(done, _atomic(mem, time, line, sectors, cached, wait))
            time = mem[NOW]
        else:
            posted = max(posted, _store(mem, time, line, sectors, cached))
            time = mem[NOW]
    # most likely the next transactions of this warp: far from those of the others in memory
    prefetch(mem, (mem[LINES] & PLACE) + ((tx[last] >> SECTORS) & PLACE) * LINE_WORDS)
    prefetch(tx, last + 8)
    count = last - first
    rest = cycles * ONE - max(count - 1, 0) * mem[P_TX]
    if count > 0:
        rest = max(rest, mem[P_TX])
    mem[LSU] = time + max(rest, 0)
    place = leave_queue(mem, whole(max(mem[LSU], posted)))
    if (kind != KIND_LOAD and kind != KIND_ATOMIC) or forgotten:
        done = cycle + mem[P_STORE]
        if mem[P_ACK] != 0:
            done = whole(posted) + _round_trip(mem) if posted >= 0 else cycle
    return done, place
