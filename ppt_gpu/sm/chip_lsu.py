"""The load/store unit and the L1 of an SM whose L2 answers after the window. As `chip_reference`, on `mem`.

Operations are served one after another, as in `core_lsu`, but only up to the end of the window: what happens later may
depend on answers. One that cannot go on waits at the head of the queue, all others behind it; it is looked at again in
the next window, and nothing of a transaction happens before all of it can. What a transaction asks of the L2 is written
down with its time, and so are the operations that wait for the answer.
"""

from __future__ import annotations

from typing import Any

from numba import njit

from ppt_gpu.sm import chip_memory as q
from ppt_gpu.sm import core_memory as c
from ppt_gpu.sm.chip_machine import ATOMIC, READ, STORE, WRITE_BACK
from ppt_gpu.sm.core_bits import int64, popcount
from ppt_gpu.sm.core_lsu import _leave, _perfect_miss, _return, _round_trip
from ppt_gpu.sm.core_machine import FRACTION, NEVER, ONE, WRITE_EVICT
from ppt_gpu.sm.core_machine import WRITE_BACK as L1_WRITE_BACK
from ppt_gpu.sm.core_pack import POSITION
from ppt_gpu.sm.core_state import ACCESS, BLOCK_SHIFT, BLOCK_SLOT, OFFSET, PENDING
from ppt_gpu.sm.core_tags import drop, renew, request, whole
from ppt_gpu.sm.program import FORCED_L1, KIND_ATOMIC, KIND_CONSTANT, KIND_LOAD, KIND_SHARED, KIND_STORE

WAITS = -1  # a transaction cannot go on in this window


@njit(_nrt=False)
def _find(mem: Any, line: int) -> int:
    """The node of a line in the L1, 0: none."""
    node = mem[mem[q.HEADS] + (line & mem[q.HEAD_MASK])]
    while node != 0 and mem[node + c.HOLDS] != line + 1:
        node = mem[node + q.CHAIN]
    return node


@njit(_nrt=False)
def _forget(mem: Any, node: int) -> None:
    """Take a node's line out of its chain."""
    at = mem[q.HEADS] + ((mem[node + c.HOLDS] - 1) & mem[q.HEAD_MASK])
    while mem[at] != node:
        at = mem[at] + q.CHAIN
    mem[at] = mem[node + q.CHAIN]


@njit(_nrt=False)
def _drop(mem: Any, l1_set: int, node: int) -> None:
    _forget(mem, node)
    drop(mem, l1_set, node)


@njit(_nrt=False)
def _allocate(mem: Any, time: int, l1_set: int, line: int) -> int:
    """A node for a line; dirty sectors of the line it replaces go to the L2."""
    node = mem[l1_set + c.VICTIM]
    if mem[node + c.HOLDS] != 0:
        if mem[node + c.DIRTY] != 0 and mem[c.P_PERFECT] == 0:
            mem[q.LINK_OUT] = max(mem[q.LINK_OUT], time) + popcount(mem[node + c.DIRTY]) * mem[c.P_ICNT]
            _ask(mem, time, mem[node + c.HOLDS] - 1, mem[node + c.DIRTY], WRITE_BACK, int64(0))
        _forget(mem, node)
    for word in range(c.VALID, q.CHAIN):
        mem[node + word] = 0
    mem[node + c.HOLDS] = line + 1
    head = mem[q.HEADS] + (line & mem[q.HEAD_MASK])
    mem[node + q.CHAIN] = mem[head]
    mem[head] = node
    renew(mem, l1_set, node)
    return node


@njit(_nrt=False)
def _ask(mem: Any, time: int, line: int, sectors: int, kind: int, wait: int) -> int:
    """Write a request down; its number."""
    number = mem[q.N_REQS]
    at = mem[q.REQS] + (number << q.REQ_SHIFT)
    mem[at + q.R_TIME] = time
    mem[at + q.R_LINE] = line
    mem[at + q.R_SECTORS] = sectors
    mem[at + q.R_KIND] = kind
    mem[at + q.R_WAIT] = wait
    mem[at + q.R_UPDATES] = 0
    mem[at + q.R_NODE] = 0
    mem[q.N_REQS] = number + 1
    return number


@njit(_nrt=False)
def _wait_for(mem: Any, op: int, number: int, reason: int) -> None:
    at = mem[q.DEPS] + (mem[q.N_DEPS] << q.DEP_SHIFT)
    mem[at + q.D_OF] = op
    mem[at + q.D_ON] = number
    mem[at + q.D_FOR] = reason
    mem[q.N_DEPS] += 1
    mem[op + q.O_STATE] |= q.UNRESOLVED


@njit(_nrt=False)
def _leaves(mem: Any, time: int, mshr: int) -> int:
    """When a transaction that comes at `time`, and needs an MSHR if `mshr`, leaves; WAITS: not in this window."""
    if mshr != 0:
        if mem[q.TAKEN] == mem[c.P_MSHRS]:
            return int64(WAITS)
        time = max(time, mem[mem[c.MSHRS] + mem[c.MSHR_HEAD]] * ONE)
    if mem[c.P_REQUEST] != 0:
        time = max(time, mem[c.REQUESTS] - mem[c.P_REQUEST_QUEUE] * mem[c.P_REQUEST])
    return time if time < mem[q.WINDOW_END] * ONE else int64(WAITS)


@njit(_nrt=False)
def _miss(mem: Any, op: int, time: int, line: int, sectors: int, kind: int) -> int:
    """Ask the L2 at `time`, which `_leaves` gave. The request's number."""
    head = mem[c.MSHR_HEAD]
    mem[c.MSHR_HEAD] = head + 1 if head + 1 < mem[c.P_MSHRS] else 0
    mem[q.TAKEN] += 1
    wait = max(_leave(mem, time, sectors), _return(mem, time, sectors), mem[q.LINK_IN] - time)
    mem[q.LINK_IN] = max(mem[q.LINK_IN], time) + popcount(sectors) * mem[c.P_ICNT]
    number = _ask(mem, time, line, sectors, kind, wait)
    _wait_for(mem, op, number, q.FOR_ANSWER)
    return number


@njit(_nrt=False)
def _uncached(mem: Any, op: int, time: int, line: int, sectors: int, kind: int, wait: int) -> int:
    """A load or atomic that the L1 does not look at: when it has left, or WAITS. `wait`: of perfect memory."""
    if mem[c.P_PERFECT] != 0:
        mem[op + q.O_DONE] = max(mem[op + q.O_DONE], _perfect_miss(mem, time, sectors, wait))
        return mem[c.NOW]
    time = _leaves(mem, time, int64(1))
    if time >= 0:
        _miss(mem, op, time, line, sectors, kind)
    return time


@njit(_nrt=False)
def _whole_l1_sectors(mem: Any, wanted: int) -> int:
    group, sectors = mem[c.P_L1_GROUP], int64(0)
    for first in range(0, c.SECTORS, group):
        mask = ((int64(1) << group) - 1) << first
        if wanted & mask:
            sectors |= mask
    return sectors


@njit(_nrt=False)
def _load(mem: Any, op: int, time: int, word: int) -> int:
    """One transaction: when it left the load/store unit, or WAITS."""
    line, sectors = word >> c.SECTORS, word & ((1 << c.SECTORS) - 1)
    if line < 0:
        if line == FORCED_L1:
            mem[c.C_L1] += popcount(sectors)
            mem[c.C_L1_HIT] += popcount(sectors)
            mem[op + q.O_DONE] = max(mem[op + q.O_DONE], whole(time) + mem[c.P_L1_LATENCY])
            return time
        left = _uncached(mem, op, time, line, sectors, int64(READ), int64(0))
        mem[c.C_L1] += popcount(sectors) if left >= 0 else 0
        return left
    line &= q.LINE_MASK
    if mem[op + q.O_CACHED] == 0:
        return _uncached(mem, op, time, line, sectors, int64(READ), int64(0))
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
    if missing != 0 and mem[c.P_PERFECT] == 0:
        left = _leaves(mem, now, int64(1))
        if left < 0:
            return left
    if node != 0 and mem[c.P_L1_FIFO] == 0:
        renew(mem, l1_set, node)
    mem[c.C_L1] += popcount(sectors) // mem[c.P_L1_GROUP]
    mem[c.C_L1_HIT] += popcount(have) // mem[c.P_L1_GROUP]
    done = whole(now) + mem[c.P_L1_LATENCY]
    if coming and not full:
        mem[node + c.MERGED] += 1
        wait = _return(mem, time, have & mem[node + c.FILLING])
        done = max(mem[node + c.FILL], whole(time + wait) + mem[c.P_L1_LATENCY])
        if unknown:
            _wait_for(mem, op, mem[node + q.ASKED] - 1, int64(q.FOR_FILL))
    mem[op + q.O_DONE] = max(mem[op + q.O_DONE], done)
    if missing != 0:
        if node == 0:
            node = _allocate(mem, left, l1_set, line)
        _fill(mem, op, left, line, missing, node)
        left = mem[c.NOW]
    return left


@njit(_nrt=False)
def _fill(mem: Any, op: int, time: int, line: int, missing: int, node: int) -> None:
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
    number = _miss(mem, op, time, line, missing, int64(READ))
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


@njit(_nrt=False)
def _store(mem: Any, op: int, time: int, word: int) -> int:
    """One transaction: when it left the load/store unit, or WAITS."""
    line, sectors = word >> c.SECTORS, word & ((1 << c.SECTORS) - 1)
    kept, node, l1_set = line == FORCED_L1 and mem[c.P_L1_WRITE] == L1_WRITE_BACK, int64(0), int64(0)
    looks, back = line >= 0 and mem[op + q.O_CACHED] != 0, mem[c.P_L1_WRITE] == L1_WRITE_BACK
    if line >= 0:
        line &= q.LINE_MASK
    if looks:
        l1_set = mem[q.L1_SETS] + (word >> q.SET_AT) * c.SET_WORDS
        node = _find(mem, line)
        kept = back and (node != 0 or mem[c.P_L1_ALLOCATE] != 0)
    left = time
    if not kept and mem[c.P_PERFECT] == 0:
        left = _leaves(mem, time, int64(0))
        if left < 0:
            return left
    if looks and mem[c.P_L1_WRITE] == WRITE_EVICT:
        if node:
            _drop(mem, l1_set, node)
    elif looks:
        if node:
            if mem[c.P_L1_FIFO] == 0:
                renew(mem, l1_set, node)
        elif mem[c.P_L1_ALLOCATE] != 0:
            node = _allocate(mem, time, l1_set, line)
        if node:
            mem[node + c.VALID] |= sectors
            mem[node + c.DIRTY] |= sectors if back else 0
    if kept:
        return time
    wait = _leave(mem, time, sectors)
    left = mem[c.NOW]
    accepted = left + wait
    if mem[c.P_PERFECT] == 0:
        accepted = max(accepted, _flow(mem, left, sectors))
        number = _ask(mem, left, line, sectors, int64(STORE), int64(0))
        if mem[c.P_ACK] != 0:
            _wait_for(mem, op, number, int64(q.FOR_ACCEPTANCE))
    mem[op + q.O_POSTED] = max(mem[op + q.O_POSTED], accepted)
    return left


@njit(_nrt=False)
def _flow(mem: Any, time: int, sectors: int) -> int:
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


@njit(_nrt=False)
def _atomic(mem: Any, op: int, time: int, word: int) -> int:
    """One transaction: when it left the load/store unit, or WAITS."""
    line, sectors = word >> c.SECTORS, word & ((1 << c.SECTORS) - 1)
    if line >= 0:
        line &= q.LINE_MASK
    perfect = mem[c.P_PERFECT] != 0
    if not perfect and _leaves(mem, time, int64(1)) < 0:
        return int64(WAITS)
    if line >= 0 and mem[op + q.O_CACHED] != 0:
        node = _find(mem, line)
        if node:
            _drop(mem, mem[q.L1_SETS] + (word >> q.SET_AT) * c.SET_WORDS, node)
    number = mem[q.N_REQS]
    left = _uncached(mem, op, time, line, sectors, int64(ATOMIC), mem[op + q.O_POSTED])
    if not perfect:
        mem[q.LINK_OUT] = max(mem[q.LINK_OUT], time) + popcount(sectors) * mem[c.P_ICNT]
        if mem[op + q.O_NEXT] == mem[op + q.O_FIRST]:
            at = mem[q.REQS] + (number << q.REQ_SHIFT)
            mem[at + q.R_START] = mem[op + q.O_START]
            mem[at + q.R_UPDATES] = mem[op + q.O_UPDATES]
    return left


@njit(_nrt=False)
def _release(mem: Any, op: int, cycle: int) -> None:
    """Places of the queue become free in order."""
    mem[c.LAST_RELEASE] = max(mem[c.LAST_RELEASE], cycle)
    mem[mem[c.QUEUE] + mem[op + q.O_PLACE]] = mem[c.LAST_RELEASE]


@njit(_nrt=False)
def _inside(mem: Any, op: int) -> None:
    """An operation of shared memory, or a constant: it waits for nothing but its turn."""
    start = max(mem[op + q.O_ISSUED] * ONE, mem[c.LSU])
    if mem[op + q.O_KIND] == KIND_SHARED:
        passes = mem[op + q.O_CYCLES]
        mem[c.C_PASSES] += passes
        mem[c.C_SHARED] += 1
        mem[c.LSU] = start + passes * ONE
        mem[op + q.O_DONE] = whole(start) + max(passes - 1, 0) + mem[c.P_SHARED]
    else:
        mem[c.LSU] = start + ONE
        if mem[c.CONSTANTS] == 0:
            mem[c.CONSTANTS] = whole(start) + mem[c.P_CONSTANT_MISS]
        mem[op + q.O_DONE] = max(whole(start) + mem[c.P_CONSTANT_LATENCY], mem[c.CONSTANTS])
    _release(mem, op, whole(mem[c.LSU]))


@njit(_nrt=False)
def _begin(mem: Any, op: int) -> None:
    start = max(mem[op + q.O_ISSUED] * ONE, mem[c.LSU])
    mem[op + q.O_START] = start
    mem[op + q.O_TIME] = start
    mem[op + q.O_DONE] = whole(start) + mem[c.P_L1_LATENCY] if mem[op + q.O_KIND] != KIND_STORE else int64(0)
    mem[op + q.O_POSTED] = -1
    if mem[op + q.O_KIND] == KIND_ATOMIC:
        mem[op + q.O_POSTED] = 0
        if mem[c.P_PERFECT] != 0 and mem[op + q.O_LAST] > mem[op + q.O_FIRST]:  # wait for updates of the same address
            updates = mem[op + q.O_UPDATES]
            mem[op + q.O_POSTED] = max(0, mem[c.ATOMIC] - start) + (updates - 1) * mem[c.P_ATOMIC]
            mem[c.ATOMIC] = max(mem[c.ATOMIC], start) + updates * mem[c.P_ATOMIC]


@njit(_nrt=False)
def _serve(mem: Any, op: int, tx: Any) -> bool:
    """Serve the operation at the head of the queue as far as the window goes. True: to its end."""
    kind = mem[op + q.O_KIND]
    if kind in (KIND_SHARED, KIND_CONSTANT):
        _inside(mem, op)
        return True
    if mem[op + q.O_TIME] < 0:
        _begin(mem, op)
    while mem[op + q.O_NEXT] < mem[op + q.O_LAST]:
        time, word = mem[op + q.O_TIME], tx[mem[op + q.O_NEXT]]
        if time >= mem[q.WINDOW_END] * ONE:
            return False
        if kind == KIND_LOAD:
            left = _load(mem, op, time, word)
        elif kind == KIND_ATOMIC:
            left = _atomic(mem, op, time, word)
        else:
            left = _store(mem, op, time, word)
        if left < 0:
            return False
        mem[op + q.O_NEXT] += 1
        mem[op + q.O_TIME] = left + (mem[c.P_TX] if mem[op + q.O_NEXT] < mem[op + q.O_LAST] else 0)
    count = mem[op + q.O_LAST] - mem[op + q.O_FIRST]
    rest = mem[op + q.O_CYCLES] * ONE - max(count - 1, 0) * mem[c.P_TX]
    if count > 0:
        rest = max(rest, mem[c.P_TX])
    mem[c.LSU] = mem[op + q.O_TIME] + max(rest, 0)
    posted = mem[op + q.O_POSTED] if kind == KIND_STORE else int64(-1)
    _release(mem, op, whole(max(mem[c.LSU], posted)))
    if kind == KIND_STORE:
        sent = mem[c.P_ACK] != 0 and posted >= 0
        mem[op + q.O_DONE] = max(
            mem[op + q.O_DONE], whole(posted) + _round_trip(mem) if sent else whole(mem[op + q.O_TIME])
        )
    return True


@njit(forceinline=True, _nrt=False)
def operation(mem: Any, number: int) -> int:
    """The place of an operation."""
    return mem[q.OPS] + ((number & mem[q.OP_MASK]) << q.OP_SHIFT)


@njit(_nrt=False)
def serve_queue(mem: Any, tx: Any) -> None:
    """Serve operations in order, as far as the window goes."""
    while mem[q.OP_FIRST] < mem[q.OP_LAST]:
        if not _serve(mem, operation(mem, mem[q.OP_FIRST]), tx):
            break
        mem[q.OP_FIRST] += 1


@njit(forceinline=True, _nrt=False)
def passes_unit(kind: int, mem: Any) -> bool:
    """Operations of this kind pass the load/store unit."""
    return kind >= KIND_LOAD and (kind != KIND_CONSTANT or mem[c.P_CONSTANT_QUEUED] != 0)


@njit(_nrt=False)
def issue_later(
    mem: Any, tx: Any, accesses: Any, warps: Any, blocks: Any, kind: int, cached: int, cycle: int, me: int, slot: int,
    reason: int,
) -> tuple[int, int]:  # fmt: skip
    """An operation issued in `cycle`: (cycle of its result, NEVER and more: not known in this window; cycle from
    which the queue has a place, at most the window's end). `slot`, `reason`: where its warp is told, and WAIT_* of
    those who wait."""
    op, alone = operation(mem, mem[q.OP_LAST]), mem[q.OP_FIRST] == mem[q.OP_LAST]
    mem[op + q.O_KIND] = kind
    mem[op + q.O_CACHED] = cached
    mem[op + q.O_ME] = me
    mem[op + q.O_SLOT] = slot
    mem[op + q.O_CLASS] = reason
    mem[op + q.O_ISSUED] = cycle
    mem[op + q.O_TIME] = -1
    mem[op + q.O_STATE] = 0
    if kind != KIND_CONSTANT:
        access = warps[me + ACCESS] & POSITION
        warps[me + ACCESS] = access + 1
        word = accesses[access]
        mem[op + q.O_FIRST] = word & c.FIRST_MASK
        mem[op + q.O_NEXT] = word & c.FIRST_MASK
        mem[op + q.O_LAST] = accesses[access + 1] & c.FIRST_MASK
        mem[op + q.O_CYCLES] = (word >> c.CYCLES_AT) & c.CYCLES_MASK
        mem[op + q.O_UPDATES] = word >> c.UPDATES_AT
    queue, head = mem[c.QUEUE], mem[c.QUEUE_HEAD]
    mem[op + q.O_PLACE] = head
    mem[queue + head] = NEVER
    head = head + 1 if head + 1 < mem[c.P_QUEUE] else int64(0)
    mem[c.QUEUE_HEAD] = head
    served = alone and _serve(mem, op, tx)
    known = served and mem[op + q.O_STATE] == 0
    if not known:
        mem[q.OP_LAST] += 1
        mem[q.OP_FIRST] += 1 if served else 0
    if kind == KIND_STORE and mem[c.P_ACK] == 0:
        done = cycle
    elif known:
        done = mem[op + q.O_DONE]
    else:
        mem[op + q.O_STATE] |= q.ANNOUNCED
        blocks[((warps[me + BLOCK_SLOT] & OFFSET) << BLOCK_SHIFT) + PENDING] += 1
        done = NEVER + mem[q.OP_LAST] - 1  # a number of its own: a later entry may announce in the same slot
    place = mem[queue + head]
    if place >= NEVER:
        mem[q.QUEUE_BLOCKED] = 1
        place = mem[q.WINDOW_END]
    return done, place


@njit(_nrt=False)
def settle(mem: Any) -> None:
    """The answers to the requests of the last window have come: MSHRs, lines and operations learn of them."""
    size = mem[c.P_MSHRS]
    known = size - mem[q.TAKEN]
    for number in range(mem[q.N_REQS]):
        at = mem[q.REQS] + (number << q.REQ_SHIFT)
        kind, answer = mem[at + q.R_KIND], mem[at + q.R_ANSWER]
        if kind == STORE:
            to = mem[q.FLOW] + (mem[q.FLOW_LAST] & mem[q.FLOW_MASK]) * 2
            mem[to] = mem[at + q.R_TIME] + mem[q.HORIZON] * ONE
            mem[to + 1] = answer
            mem[q.FLOW_LAST] += 1
        if kind in (READ, ATOMIC):
            _give_back(mem, size, known, answer)
            known += 1
            _filled(mem, number, at)
    mem[q.TAKEN] = 0
    for number in range(mem[q.N_DEPS]):
        at = mem[q.DEPS] + (number << q.DEP_SHIFT)
        op, on = mem[at + q.D_OF], mem[q.REQS] + (mem[at + q.D_ON] << q.REQ_SHIFT)
        until = mem[on + q.R_ANSWER]
        if mem[at + q.D_FOR] == q.FOR_FILL:
            until = mem[on + q.R_FILL]
        elif mem[at + q.D_FOR] == q.FOR_ACCEPTANCE:
            until = whole(until) + _round_trip(mem)
        mem[op + q.O_DONE] = max(mem[op + q.O_DONE], until)
        mem[op + q.O_STATE] &= ~int64(q.UNRESOLVED)
    mem[q.N_REQS] = 0
    mem[q.N_DEPS] = 0


@njit(_nrt=False)
def _give_back(mem: Any, size: int, known: int, release: int) -> None:
    """An MSHR is free from cycle `release` on; `known` others are in the ring, the first to be free at its head."""
    ring = mem[c.MSHRS]
    place = (mem[c.MSHR_HEAD] + known) % size
    for _ in range(known):
        before = place - 1 if place > 0 else size - 1
        if mem[ring + before] <= release:
            break
        mem[ring + place] = mem[ring + before]
        place = before
    mem[ring + place] = release


@njit(_nrt=False)
def _filled(mem: Any, number: int, at: int) -> None:
    """The node for which request `number` was made is filled by then, unless it holds another line now."""
    node = mem[at + q.R_NODE]
    if node == 0:
        return
    fill = max(mem[at + q.R_BASE], mem[at + q.R_ANSWER])
    before = mem[at + q.R_BEFORE]
    if before:
        fill = max(fill, mem[mem[q.REQS] + ((before - 1) << q.REQ_SHIFT) + q.R_FILL])
    mem[at + q.R_FILL] = fill
    if mem[node + q.ASKED] == number + 1:
        mem[node + c.FILL] = fill
        mem[node + q.ASKED] = 0
