"""The transactions of an SM of a chip at its L1: loads, stores and atomics. As `reference.chip_memory`, on `mem`.

Nothing of a transaction happens before all of it can: one that has to wait for an MSHR, or for a fill that nobody knows
yet, returns WAITS, and is looked at again in the next window.
"""

from __future__ import annotations

from ppt_gpu.common.bits import int64, quotient
from ppt_gpu.common.compiled import called, merged, popcount
from ppt_gpu.common.records import Words
from ppt_gpu.sm.chip import memory as q
from ppt_gpu.sm.chip.machine import ATOMIC, READ, STORE, WRITE_BACK
from ppt_gpu.sm.chip.requests import WAITS, ask, leaves, miss, uncached, wait_for
from ppt_gpu.sm.loop import memory as c
from ppt_gpu.sm.loop.lsu import _leave, _perfect_miss, _return
from ppt_gpu.sm.loop.tags import drop, find, forget, remember, renew, request, whole
from ppt_gpu.sm.program.machine import FRACTION, NEVER, ONE, WRITE_EVICT
from ppt_gpu.sm.program.machine import WRITE_BACK as L1_WRITE_BACK
from ppt_gpu.sm.program.program import FORCED_L1


@merged
def _find(mem: Words, line: int) -> int:
    """The node of a line in the L1, 0: none."""
    return find(mem, mem[q.TAGS], mem[q.TAG_MASK], line)


@called
def _drop(mem: Words, l1_set: int, node: int) -> None:
    forget(mem, mem[q.TAGS], mem[q.TAG_MASK], mem[node + c.HOLDS] - 1)
    drop(mem, l1_set, node)


@called
def _reserved(mem: Words, l1_set: int) -> int:
    """The first cycle in which a line of the set is no more on its way; NEVER: nobody knows in this window."""
    node, free = mem[l1_set + c.VICTIM], int64(NEVER)
    while node:
        if mem[node + c.HOLDS] == 0:
            free = int64(0)
        elif mem[node + q.ASKED] == 0:
            free = min(free, mem[node + c.FILL])
        node = mem[node + c.NEXT]
    return free


@called
def _allocate(mem: Words, time: int, l1_set: int, line: int) -> int:
    """A node for a line; dirty sectors of the line it replaces go to the L2."""
    node = mem[l1_set + c.VICTIM]
    if mem[c.P_L1_RESERVES] != 0 and mem[node + c.HOLDS] != 0:
        while (mem[node + q.ASKED] != 0 or mem[node + c.FILL] > time >> FRACTION) and mem[node + c.NEXT] != 0:
            node = mem[node + c.NEXT]
    if mem[node + c.HOLDS] != 0:
        dirty = mem[node + c.VALID] >> q.DIRTY_AT
        if dirty != 0 and mem[c.P_PERFECT] == 0:
            mem[q.LINK_OUT] = max(mem[q.LINK_OUT], time) + popcount(dirty) * mem[c.P_ICNT]
            ask(mem, time, mem[node + c.HOLDS] - 1, dirty, WRITE_BACK, int64(0))
        forget(mem, mem[q.TAGS], mem[q.TAG_MASK], mem[node + c.HOLDS] - 1)
    for word in range(c.VALID, q.NODE_WORDS):
        mem[node + word] = 0
    mem[node + c.HOLDS] = line + 1
    remember(mem, mem[q.TAGS], mem[q.TAG_MASK], line, node)
    renew(mem, l1_set, node)
    return node


@called
def _whole_l1_sectors(mem: Words, wanted: int) -> int:
    group, sectors = mem[c.P_L1_GROUP], int64(0)
    for first in range(0, c.SECTORS, group):
        mask = ((int64(1) << group) - 1) << first
        if wanted & mask:
            sectors |= mask
    return sectors


@called
def load(mem: Words, op: int, time: int, word: int) -> int:
    """One transaction: when it left the load/store unit, or WAITS."""
    line, sectors = word >> c.SECTORS, word & ((1 << c.SECTORS) - 1)
    if line < 0:
        if line == FORCED_L1:
            mem[c.C_L1] += popcount(sectors)
            mem[c.C_L1_HIT] += popcount(sectors)
            mem[op + q.O_DONE] = max(mem[op + q.O_DONE], whole(time) + mem[c.P_L1_LATENCY])
            return time
        left = uncached(mem, op, time, line, sectors, int64(READ), int64(0))
        mem[c.C_L1] += popcount(sectors) if left >= 0 else 0
        return left
    line &= q.LINE_MASK
    if mem[op + q.O_CACHED] == 0:
        return uncached(mem, op, time, line, sectors, int64(READ), int64(0))
    l1_set = mem[q.L1_SETS] + (word >> q.SET_AT) * c.SET_WORDS
    sectors = _whole_l1_sectors(mem, sectors)
    node = _find(mem, line)
    missing = sectors & ~mem[node + c.VALID] if node else sectors
    have = sectors & ~missing
    unknown = node != 0 and mem[node + q.ASKED] != 0
    coming = node != 0 and (have & mem[node + c.FILLING]) != 0 and (unknown or mem[node + c.FILL] > time >> FRACTION)
    full = coming and mem[node + c.MERGED] >= mem[c.P_MERGES]
    now = time
    if full:
        if unknown:
            return int64(WAITS)
        now = max(time, mem[node + c.FILL] * ONE)
    left = now
    if node == 0 and mem[c.P_L1_RESERVES] != 0:
        place = _reserved(mem, l1_set)
        if place == NEVER:
            return int64(WAITS)
        left = max(now, place * ONE)
    if missing != 0 and mem[c.P_PERFECT] == 0:
        left = leaves(mem, left, int64(1))
        if left < 0:
            return left
    if node != 0 and mem[c.P_L1_FIFO] == 0:
        renew(mem, l1_set, node)
    mem[c.C_L1] += quotient(popcount(sectors), mem[c.P_L1_GROUP])
    mem[c.C_L1_HIT] += quotient(popcount(have), mem[c.P_L1_GROUP])
    done = whole(now) + mem[c.P_L1_LATENCY]
    if coming and not full:
        mem[node + c.MERGED] += 1
        wait = _return(mem, time, have & mem[node + c.FILLING])
        done = max(mem[node + c.FILL], whole(time + wait) + mem[c.P_L1_LATENCY])
        if unknown:
            wait_for(mem, op, mem[node + q.ASKED] - 1, int64(q.FOR_FILL))
    mem[op + q.O_DONE] = max(mem[op + q.O_DONE], done)
    if missing != 0:
        if node == 0:
            node = _allocate(mem, left, l1_set, line)
        _fill(mem, op, left, line, missing, node)
        left = mem[c.NOW]
    return left


@called
def _fill(mem: Words, op: int, time: int, line: int, missing: int, node: int) -> None:
    """Ask for the sectors that a node lacks. mem[NOW]: when the load/store unit went on."""
    if mem[c.P_PERFECT] != 0:
        arrived = _perfect_miss(mem, time, missing, int64(0))
        now = mem[c.NOW] >> FRACTION
        if mem[node + c.FILL] <= now:
            mem[node + c.MERGED] = 0
        mem[node + c.MERGED] += 1
        request(mem, node, now, arrived, missing)
        mem[op + q.O_DONE] = max(mem[op + q.O_DONE], arrived)
        return
    number = miss(mem, op, time, line, missing, int64(READ))
    at = mem[q.REQS] + (number << q.REQ_SHIFT)
    mem[at + q.R_NODE] = node
    mem[at + q.R_BEFORE] = mem[node + q.ASKED]
    mem[at + q.R_BASE] = mem[node + c.FILL]
    if mem[node + q.ASKED] == 0 and mem[node + c.FILL] <= time >> FRACTION:
        mem[node + c.MERGED] = 0
        mem[node + c.FILLING] = 0
    mem[node + c.MERGED] += 1
    mem[node + c.FILLING] |= missing
    mem[node + c.VALID] |= missing
    mem[node + q.ASKED] = number + 1
    mem[c.NOW] = time


@called
def store(mem: Words, op: int, time: int, word: int) -> int:
    """One transaction: when it left the load/store unit, or WAITS."""
    line, sectors = word >> c.SECTORS, word & ((1 << c.SECTORS) - 1)
    looks, back = line >= 0 and mem[op + q.O_CACHED] != 0, mem[c.P_L1_WRITE] == L1_WRITE_BACK
    back |= mem[c.P_L1_WRITE] == WRITE_EVICT and mem[op + q.O_CACHED] == c.IN_LOCAL
    kept, node, l1_set = line == FORCED_L1 and back, int64(0), int64(0)
    if line >= 0:
        line &= q.LINE_MASK
    if looks:
        l1_set = mem[q.L1_SETS] + (word >> q.SET_AT) * c.SET_WORDS
        node = _find(mem, line)
        kept = back and (node != 0 or mem[c.P_L1_ALLOCATE] != 0)
    left = time
    if not kept and mem[c.P_PERFECT] == 0:
        left = leaves(mem, time, int64(0))
        if left < 0:
            return left
    if looks and mem[c.P_L1_WRITE] == WRITE_EVICT and not back:
        if node:
            _drop(mem, l1_set, node)
    elif looks:
        if node:
            if mem[c.P_L1_FIFO] == 0:
                renew(mem, l1_set, node)
        elif mem[c.P_L1_ALLOCATE] != 0:
            node = _allocate(mem, time, l1_set, line)
        if node:
            mem[node + c.VALID] |= sectors | (sectors << q.DIRTY_AT if back else 0)
    if kept:
        return time
    wait = _leave(mem, left, sectors)
    left = mem[c.NOW]
    accepted = left + wait
    if mem[c.P_PERFECT] == 0:
        accepted = max(accepted, _flow(mem, left, sectors))
        number = ask(mem, left, line, sectors, int64(STORE), int64(0))
        if mem[c.P_ACK] != 0:
            wait_for(mem, op, number, int64(q.FOR_ACCEPTANCE))
    mem[op + q.O_POSTED] = max(mem[op + q.O_POSTED], accepted)
    return left


@called
def _flow(mem: Words, time: int, sectors: int) -> int:
    """Server time at which a store that leaves at `time` is accepted: by the outward link, and not before the L2 has
    accepted those of a horizon ago."""
    while mem[q.FLOW_FIRST] != mem[q.FLOW_LAST]:
        at = mem[q.FLOW] + (mem[q.FLOW_FIRST] & mem[q.FLOW_MASK]) * 2
        if mem[at] > time:
            break
        mem[q.FLOW_LIMIT] = max(mem[q.FLOW_LIMIT], mem[at + 1])
        mem[q.FLOW_FIRST] += 1
    mem[q.LINK_OUT] = max(mem[q.LINK_OUT], time) + popcount(sectors) * mem[c.P_ICNT]
    return max(mem[q.LINK_OUT], mem[q.FLOW_LIMIT])


@called
def atomic(mem: Words, op: int, time: int, word: int) -> int:
    """One transaction: when it left the load/store unit, or WAITS."""
    line, sectors = word >> c.SECTORS, word & ((1 << c.SECTORS) - 1)
    if line >= 0:
        line &= q.LINE_MASK
    perfect = mem[c.P_PERFECT] != 0
    if not perfect and leaves(mem, time, int64(1)) < 0:
        return int64(WAITS)
    if line >= 0 and mem[op + q.O_CACHED] != 0:
        node = _find(mem, line)
        if node:
            _drop(mem, mem[q.L1_SETS] + (word >> q.SET_AT) * c.SET_WORDS, node)
    number = mem[q.N_REQS]
    left = uncached(mem, op, time, line, sectors, int64(ATOMIC), mem[op + q.O_POSTED])
    if not perfect:
        mem[q.LINK_OUT] = max(mem[q.LINK_OUT], time) + popcount(sectors) * mem[c.P_ICNT]
        if mem[op + q.O_NEXT] == mem[op + q.O_FIRST]:
            at = mem[q.REQS] + (number << q.REQ_SHIFT)
            mem[at + q.R_START] = mem[op + q.O_START]
            mem[at + q.R_UPDATES] = mem[op + q.O_ACCESS] >> q.UPDATES_AT
    return left
