"""The load/store unit of an SM whose L2 answers after the window. As `reference.chip_memory`, on `mem`.

Operations are served one after another, as in `loop.lsu`, but only up to the end of the window: what happens later may
depend on answers. One that cannot go on waits at the head of the queue, all others behind it. So are those of the copy
engine, beside them: what both need, the link into the SM, is in `chip.l2_dram`, where requests are in the order of
time.
"""

from __future__ import annotations

from ppt_gpu.common.bits import int64, prefetch
from ppt_gpu.common.compiled import called, merged
from ppt_gpu.common.records import Words
from ppt_gpu.sm.chip import memory as q
from ppt_gpu.sm.chip.l1 import atomic, load, store
from ppt_gpu.sm.chip.machine import COPY
from ppt_gpu.sm.chip.requests import ask, wait_for
from ppt_gpu.sm.loop import memory as c
from ppt_gpu.sm.loop.code import constant_there
from ppt_gpu.sm.loop.lsu import _round_trip
from ppt_gpu.sm.loop.state import Sm
from ppt_gpu.sm.loop.tags import whole
from ppt_gpu.sm.program.machine import FRACTION, NEVER, ONE
from ppt_gpu.sm.program.program import FORCED_L1, KIND_ATOMIC, KIND_CONSTANT, KIND_LOAD, KIND_SHARED, KIND_STORE


@called
def _release(mem: Words, op: int, cycle: int) -> None:
    """Places of the queue become free in order."""
    mem[c.LAST_RELEASE] = max(mem[c.LAST_RELEASE], cycle)
    mem[mem[c.QUEUE] + mem[op + q.O_PLACE]] = mem[c.LAST_RELEASE]


@called
def _inside(mem: Words, op: int) -> None:
    """An operation of shared memory, or a constant: it waits for nothing but its turn."""
    start = max(mem[op + q.O_ISSUED] * ONE, mem[c.LSU])
    if mem[op + q.O_KIND] == KIND_SHARED:
        passes = mem[op + q.O_ACCESS] & c.CYCLES_MASK
        mem[c.C_PASSES] += passes
        mem[c.C_SHARED] += 1
        mem[c.LSU] = start + passes * ONE
        mem[op + q.O_DONE] = whole(start) + max(passes - 1, 0) + mem[c.P_SHARED]
    else:
        mem[c.LSU] = start + ONE
        mem[op + q.O_DONE] = constant_there(mem, whole(start))
    _release(mem, op, whole(mem[c.LSU]))


@called
def _begin(mem: Words, op: int) -> None:
    start = max(mem[op + q.O_ISSUED] * ONE, mem[c.LSU])
    mem[op + q.O_START] = start
    mem[op + q.O_TIME] = start
    mem[op + q.O_DONE] = whole(start) + mem[c.P_L1_LATENCY] if mem[op + q.O_KIND] != KIND_STORE else int64(0)
    mem[op + q.O_POSTED] = -1
    if mem[op + q.O_KIND] == KIND_ATOMIC:
        mem[op + q.O_POSTED] = 0
        if mem[c.P_PERFECT] != 0 and mem[op + q.O_LAST] > mem[op + q.O_FIRST]:  # wait for updates of the same address
            updates = mem[op + q.O_ACCESS] >> q.UPDATES_AT
            mem[op + q.O_POSTED] = max(0, mem[c.ATOMIC] - start) + (updates - 1) * mem[c.P_ATOMIC]
            mem[c.ATOMIC] = max(mem[c.ATOMIC], start) + updates * mem[c.P_ATOMIC_BUSY]


@called
def _serve(mem: Words, op: int, tx: Words) -> bool:
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
            left = load(mem, op, time, word)
        elif kind == KIND_ATOMIC:
            left = atomic(mem, op, time, word)
        else:
            left = store(mem, op, time, word)
        if left < 0:
            return False
        mem[op + q.O_NEXT] += 1
        mem[op + q.O_TIME] = left + (mem[c.P_TX] if mem[op + q.O_NEXT] < mem[op + q.O_LAST] else 0)
    count = mem[op + q.O_LAST] - mem[op + q.O_FIRST]
    rest = (mem[op + q.O_ACCESS] & c.CYCLES_MASK) * ONE - max(count - 1, 0) * mem[c.P_TX]
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
    mem[op + q.O_DONE] = max(mem[op + q.O_DONE], (mem[op + q.O_TIME] >> FRACTION) + mem[q.LAG])
    return True


@called
def _serve_copy(mem: Words, op: int, tx: Words) -> bool:
    """Serve the operation that the copy engine is at as far as the window goes. True: to its end."""
    if mem[op + q.O_TIME] < 0:
        mem[op + q.O_TIME] = max(mem[op + q.O_ISSUED] * ONE, mem[c.COPIER])
        mem[op + q.O_DONE] = whole(mem[op + q.O_TIME]) + mem[c.P_L1_LATENCY]
    while mem[op + q.O_NEXT] < mem[op + q.O_LAST]:
        time, word = mem[op + q.O_TIME], tx[mem[op + q.O_NEXT]]
        line, sectors = word >> c.SECTORS, word & ((1 << c.SECTORS) - 1)
        if time >= mem[q.WINDOW_END] * ONE:
            return False
        if line == FORCED_L1:
            mem[op + q.O_DONE] = max(mem[op + q.O_DONE], whole(time) + mem[c.P_L1_LATENCY])
        elif mem[c.P_PERFECT] != 0:
            mem[op + q.O_DONE] = max(mem[op + q.O_DONE], whole(time) + _round_trip(mem))
        else:
            number = ask(mem, time, line & q.LINE_MASK if line >= 0 else line, sectors, int64(COPY), int64(0))
            wait_for(mem, op, number, int64(q.FOR_ANSWER))
        mem[op + q.O_NEXT] += 1
        mem[op + q.O_TIME] = time + mem[c.P_TX]
    mem[c.COPIER] = mem[op + q.O_TIME]
    return True


@merged
def operation(mem: Words, ring: int, number: int) -> int:
    """The place of an operation. `ring`: OF_UNIT or OF_COPIES."""
    return mem[q.OPS + ring] + ((number & mem[q.OP_MASK + ring]) << q.OP_SHIFT)


@merged
def pass_settled(mem: Words, ring: int) -> None:
    """The first operations of a ring of which nobody waits for the result any more are done with."""
    settled = mem[q.OP_SETTLED + ring]
    while settled < mem[q.OP_FIRST + ring] and mem[operation(mem, ring, settled) + q.O_STATE] == 0:
        settled += 1
    mem[q.OP_SETTLED + ring] = settled


@called
def serve_queue(mem: Words, tx: Words) -> None:
    """Serve operations in order, as far as the window goes: of the load/store unit, and of the copy engine."""
    while mem[q.OP_FIRST] < mem[q.OP_LAST]:
        if not _serve(mem, operation(mem, int64(q.OF_UNIT), mem[q.OP_FIRST]), tx):
            break
        mem[q.OP_FIRST] += 1
    while mem[q.COPY_FIRST] < mem[q.COPY_LAST]:
        if not _serve_copy(mem, operation(mem, int64(q.OF_COPIES), mem[q.COPY_FIRST]), tx):
            break
        mem[q.COPY_FIRST] += 1


@merged
def passes_unit(kind: int, mem: Words) -> bool:
    """Operations of this kind pass the load/store unit."""
    return kind >= KIND_LOAD and (kind != KIND_CONSTANT or mem[c.P_CONSTANT_QUEUED] != 0)


@merged
def put(mem: Words, tx: Words, accesses: Words, kind: int, way: int, access: int, cycle: int) -> tuple[int, bool]:
    """An operation issued in `cycle` comes into the queue, or to the copy engine: (its place; is its result known in
    this window?). `access`: its memory entry, of none a constant."""
    ring = int64(q.OF_COPIES if way == c.COPIES else q.OF_UNIT)
    op, alone = operation(mem, ring, mem[q.OP_LAST + ring]), mem[q.OP_FIRST + ring] == mem[q.OP_LAST + ring]
    mem[op + q.O_KIND] = kind
    mem[op + q.O_CACHED] = way & c.WAY if way != c.COPIES else c.PASSES_L1
    mem[op + q.O_ISSUED] = cycle
    mem[op + q.O_TIME] = -1
    mem[op + q.O_STATE] = 0
    if kind != KIND_CONSTANT:
        word = accesses[access]
        mem[op + q.O_FIRST] = word & c.FIRST_MASK
        mem[op + q.O_NEXT] = word & c.FIRST_MASK
        mem[op + q.O_LAST] = accesses[access + 1] & c.FIRST_MASK
        mem[op + q.O_ACCESS] = word >> c.CYCLES_AT
        prefetch(accesses, access + 8)
        prefetch(tx, mem[op + q.O_LAST] + 8)
    if way == c.COPIES:
        served = alone and _serve_copy(mem, op, tx)
    else:
        head = mem[c.QUEUE_HEAD]
        mem[op + q.O_PLACE] = head
        mem[mem[c.QUEUE] + head] = NEVER
        mem[c.QUEUE_HEAD] = head + 1 if head + 1 < mem[c.P_QUEUE] else 0
        served = alone and _serve(mem, op, tx)
    known = served and mem[op + q.O_STATE] == 0
    if not known:
        mem[q.OP_LAST + ring] += 1
        mem[q.OP_FIRST + ring] += 1 if served else 0
    return op, known


@merged
def posted(mem: Words, kind: int, way: int) -> bool:
    """Nobody waits for an operation of this kind to be done."""
    return (kind == KIND_STORE or way >= c.POSTED) and mem[c.P_ACK] == 0


@merged
def issue_later(sm: Sm, place: int, kind: int, way: int, cycle: int, tells: int, event: int) -> tuple[int, int]:
    """An operation issued in `cycle`: (cycle of its result, NEVER and more: not known in this window; cycle from
    which the queue has a place, at most the window's end). `tells`, `event`: as O_TELLS and O_EVENT."""
    warp, mem = sm.warps[place], sm.mem
    access = warp.access
    warp.access = access + 1 if kind != KIND_CONSTANT else access
    op, known = put(mem, sm.tx, sm.accesses, kind, way, access, cycle)
    mem[op + q.O_ME] = place
    mem[op + q.O_TELLS] = tells
    mem[op + q.O_EVENT] = event
    if posted(mem, kind, way):
        done = cycle + mem[c.P_STORE]
    elif known:
        done = mem[op + q.O_DONE]
    else:
        ring = int64(q.OF_COPIES if way == c.COPIES else q.OF_UNIT)
        mem[op + q.O_STATE] |= q.ANNOUNCED
        sm.blocks[warp.block_slot].pending += 1
        done = NEVER + mem[q.OP_LAST + ring] - 1  # a number of its own: a later entry may announce in the same slot
    if way == c.COPIES:
        return done, int64(0)
    place = mem[mem[c.QUEUE] + mem[c.QUEUE_HEAD]]
    if place >= NEVER:
        mem[q.QUEUE_BLOCKED] = 1
        place = mem[q.WINDOW_END]
    return done, place
