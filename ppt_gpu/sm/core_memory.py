"""The memory system for the compiled loop: tags, MSHRs, servers. Same steps as `reference_memory`, in one flat array.

`mem` holds everything: parameters, server times and counters at fixed places, then the tables. A cache has a record for
each way, a node, chained in each set from the next victim to the newest; the record of a line says at which node it is,
so nothing is searched. Nodes, sets and lines are named by their place in `mem`; place 0 is none. (One array, because
every further one makes each call dearer, and compiling too.)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ppt_gpu.sm import core_machine as cm
from ppt_gpu.sm.core_bits import int64, popcount, prefetch
from ppt_gpu.sm.core_machine import FRACTION, ONE, WRITE_BACK, WRITE_EVICT, Machine, set_index
from ppt_gpu.sm.program import FORCED_DRAM, FORCED_L1, KIND_ATOMIC, KIND_LOAD, Program

# parameters
_PARAMETERS = (
    "tx_cost", "shared_latency", "atomic_cost", "l1_fifo", "l1_write", "l1_allocate", "l1_latency", "l1_group", "mshrs",
    "merges", "l2_fifo", "l2_back", "l2_allocate", "l2_latency", "l2_cost", "icnt_cost", "dram_cost", "dram_latency",
    "dirty", "perfect", "sector_bytes", "queue",
)  # fmt: skip
(
    P_TX, P_SHARED, P_ATOMIC, P_L1_FIFO, P_L1_WRITE, P_L1_ALLOCATE, P_L1_LATENCY, P_L1_GROUP, P_MSHRS,
    P_MERGES, P_L2_FIFO, P_L2_BACK, P_L2_ALLOCATE, P_L2_LATENCY, P_L2, P_ICNT, P_DRAM, P_DRAM_LATENCY,
    P_DIRTY, P_PERFECT, P_BYTES, P_QUEUE,
) = range(len(_PARAMETERS))  # fmt: skip
# servers (time from which each is free), heads of the rings, carried fraction; where the tables begin
(
    LSU, L2_SERVER, INWARD, OUTWARD, DRAM, ATOMIC, DIRTY_REST, MSHR_HEAD, QUEUE_HEAD, LAST_RELEASE, NOW,
    MSHRS, QUEUE, LINES,
) = range(len(_PARAMETERS), len(_PARAMETERS) + 14)  # fmt: skip
C = len(_PARAMETERS) + 14  # counters
C_L1, C_L1_HIT, C_L2, C_L2_HIT = C + cm.L1_ACCESSES, C + cm.L1_HITS, C + cm.L2_ACCESSES, C + cm.L2_HITS
C_DRAM_READ, C_DRAM_WRITE = C + cm.DRAM_READ, C + cm.DRAM_WRITE
C_L2_READ, C_L2_WRITE = C + cm.L2_READ, C + cm.L2_WRITE
C_PASSES, C_SHARED = C + cm.SHARED_PASSES, C + cm.SHARED_ACCESSES
TABLES = 64
# a node. HOLDS: place of its line; MERGED: requests that the pending fill serves; FRESH, of an L2 node: stands in a way
# that was never used before
HOLDS, PREV, NEXT, VALID, DIRTY, FILL, FILLING, MERGED = range(8)
FRESH = MERGED
NODE_WORDS = 8
# a set
VICTIM, NEWEST = range(2)
SET_WORDS = 2
# a line: its nodes, its sets, sectors that are warm
L1_NODE, L2_NODE, L1_SET, L2_SET, WARM = range(5)
LINE_WORDS = 5
# the word of an access: FIRST_MASK, then cycles, then updates; the word of a transaction: sector mask, then the line
FIRST_MASK, CYCLES_AT, CYCLES_MASK, UPDATES_AT = (1 << 36) - 1, 36, (1 << 20) - 1, 56
SECTORS = 8
#: places are masked when read, which tells the compiler that they are not negative
PLACE = (1 << 40) - 1


class MemoryArrays:
    """The state of one run."""

    def __init__(self, program: Program, machine: Machine) -> None:
        l1, l1_sets = _empty_cache(machine.l1_sets, machine.l1_ways)
        l2, l2_sets = _empty_cache(machine.l2_sets, machine.l2_ways)
        sizes = [TABLES, machine.mshrs, machine.queue, l1.size, l2.size, l1_sets.size, l2_sets.size]
        _, mshrs, queue, l1_at, l2_at, l1_sets_at, l2_sets_at, lines_at = np.cumsum([0, *sizes]).tolist()
        self.mem = np.empty(lines_at + len(program.line_address) * LINE_WORDS, np.int64)
        self.mem[:l1_at] = 0
        self.mem[: len(_PARAMETERS)] = [int(getattr(machine, name)) for name in _PARAMETERS]
        self.mem[[MSHRS, QUEUE, LINES]] = mshrs, queue, lines_at
        for nodes, sets, place, sets_at in ((l1, l1_sets, l1_at, l1_sets_at), (l2, l2_sets, l2_at, l2_sets_at)):
            links = nodes[:, (PREV, NEXT)]
            nodes[:, (PREV, NEXT)] = np.where(links >= 0, links * NODE_WORDS + place, 0)
            self.mem[place : place + nodes.size] = nodes.ravel()
            self.mem[sets_at : sets_at + sets.size] = sets.ravel() * NODE_WORDS + place
        _fill_lines(
            self.mem[lines_at:], program.line_warm, set_index(program, machine.l1_sets, machine.l1_hash),
            set_index(program, machine.l2_sets, True), l1_sets_at, l2_sets_at,
        )  # fmt: skip
        #: [M+1] first transaction, cycles in the load/store pipe, updates of the same address
        self.access = np.empty(len(program.access_start), np.int64)
        #: [T + 1] line and sector mask; one more, for the look ahead
        self.tx = np.empty(len(program.tx_line) + 1, np.int64)
        _pack_accesses(
            self.access, self.tx, program.access_start, program.access_cycles, program.access_atomic,
            program.tx_line, program.tx_sectors,
        )  # fmt: skip

    def counters(self) -> NDArray[np.int64]:
        return self.mem[C : C + len(cm.COUNTERS)].copy()

    def idle(self) -> int:
        """The cycle from which no server is busy."""
        return -(-int(self.mem[[LSU, L2_SERVER, INWARD, OUTWARD, DRAM, ATOMIC]].max()) >> FRACTION)


def _empty_cache(sets: int, ways: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(nodes [ways of all sets, NODE_WORDS], sets [sets, SET_WORDS]), links as numbers of nodes, -1: none."""
    ways, count = max(ways, 1), max(1, sets * ways)
    nodes = np.zeros((count, NODE_WORDS), np.int64)
    numbers = np.arange(count)
    nodes[:, PREV] = np.where(numbers % ways == 0, -1, numbers - 1)
    nodes[:, NEXT] = np.where((numbers + 1) % ways == 0, -1, numbers + 1)
    first = np.arange(max(1, sets)) * ways
    return nodes, np.stack([first, first + ways - 1], axis=1)


@njit(cache=True)
def _fill_lines(lines: Any, warm: Any, l1_set: Any, l2_set: Any, l1_sets_at: int, l2_sets_at: int) -> None:
    for line in range(len(warm)):
        at = line * LINE_WORDS
        lines[at + L1_NODE] = 0
        lines[at + L2_NODE] = 0
        lines[at + L1_SET] = l1_sets_at + l1_set[line] * SET_WORDS
        lines[at + L2_SET] = l2_sets_at + l2_set[line] * SET_WORDS
        lines[at + WARM] = 0xFF if warm[line] else 0


@njit(cache=True)
def _pack_accesses(
    access: Any, tx: Any, start: Any, cycles: Any, updates: Any, tx_line: Any, tx_sectors: Any
) -> None:
    for index in range(len(cycles)):
        same = updates[index] if len(updates) else 1
        access[index] = start[index] | (int64(cycles[index]) << CYCLES_AT) | (int64(same) << UPDATES_AT)
    access[-1] = start[-1]
    for index in range(len(tx_line)):
        tx[index] = (int64(tx_line[index]) << SECTORS) | int64(tx_sectors[index])
    tx[-1] = 0


# --- chains ------------------------------------------------------------------------------------------------------


@njit(forceinline=True, _nrt=False)
def line_place(mem: Any, line: int) -> int:
    """Place of the record of line number `line`; 0 for a FORCED_* one."""
    return mem[LINES] + line * LINE_WORDS if line >= 0 else int64(0)


@njit(forceinline=True, _nrt=False)
def _unlink(mem: Any, at: int, node: int) -> None:
    before, after = mem[node + PREV] & PLACE, mem[node + NEXT] & PLACE
    if before:
        mem[before + NEXT] = after
    else:
        mem[at + VICTIM] = after
    if after:
        mem[after + PREV] = before
    else:
        mem[at + NEWEST] = before


@njit(forceinline=True, _nrt=False)
def _renew(mem: Any, at: int, node: int) -> None:
    """Make `node` the newest of the set at `at`."""
    if mem[at + NEWEST] != node:
        _unlink(mem, at, node)
        newest = mem[at + NEWEST] & PLACE
        mem[newest + NEXT] = node
        mem[node + PREV] = newest
        mem[node + NEXT] = 0
        mem[at + NEWEST] = node


@njit(_nrt=False)
def _drop(mem: Any, at: int, node: int) -> None:
    """Empty `node` and make it the next victim of its set."""
    mem[node + HOLDS] = 0
    if mem[at + VICTIM] != node:
        _unlink(mem, at, node)
        victim = mem[at + VICTIM] & PLACE
        mem[victim + PREV] = node
        mem[node + NEXT] = victim
        mem[node + PREV] = 0
        mem[at + VICTIM] = node


@njit(forceinline=True, _nrt=False)
def _claim(mem: Any, which: int, at: int, node: int, place: int) -> None:
    """Give `node`, the victim of its set, to the line at `place`, as its L1_NODE or L2_NODE (`which`)."""
    old = mem[node + HOLDS] & PLACE
    if old:
        mem[old + which] = 0
    mem[place + which] = node
    mem[node + HOLDS] = place
    mem[node + VALID] = 0
    mem[node + DIRTY] = 0
    mem[node + FILL] = 0
    mem[node + FILLING] = 0
    mem[node + MERGED] = 0
    _renew(mem, at, node)


@njit(forceinline=True, _nrt=False)
def _request(mem: Any, node: int, now: int, done: int, sectors: int) -> None:
    """`sectors` are on their way and arrive at `done`."""
    if mem[node + FILL] > now:
        mem[node + FILLING] |= sectors
    else:
        mem[node + FILLING] = sectors
    mem[node + FILL] = max(mem[node + FILL], done)
    mem[node + VALID] |= sectors


@njit(forceinline=True, _nrt=False)
def whole(time: int) -> int:
    """Server time to the next whole cycle."""
    return (time + (ONE - 1)) >> FRACTION


# --- L2, interconnect, DRAM --------------------------------------------------------------------------------------


@njit(forceinline=True, _nrt=False)
def _dram_write(mem: Any, time: int, count: int) -> None:
    mem[C_DRAM_WRITE] += count * mem[P_BYTES]
    mem[DRAM] = max(mem[DRAM], time) + count * mem[P_DRAM]


@njit(_nrt=False)
def _l2_keep(mem: Any, time: int, place: int, sectors: int) -> int:
    """The node of a line, allocated if need be, before `sectors` become valid. Replaced dirty sectors go to DRAM."""
    node = mem[place + L2_NODE] & PLACE
    if node == 0:
        at = mem[place + L2_SET] & PLACE
        node = mem[at + VICTIM] & PLACE
        fresh = mem[node + HOLDS] == 0
        if mem[node + DIRTY] != 0 and not fresh:
            _dram_write(mem, time, popcount(mem[node + DIRTY]))
        _claim(mem, L2_NODE, at, node, place)
        mem[node + FRESH] = fresh
    if mem[P_DIRTY] != 0 and mem[node + FRESH] != 0:
        rest = mem[DIRTY_REST] + popcount(sectors & ~mem[node + VALID]) * mem[P_DIRTY]
        if rest >> FRACTION:
            _dram_write(mem, time, rest >> FRACTION)
        mem[DIRTY_REST] = rest & (ONE - 1)
    return node


@njit(_nrt=False)
def _l2_missing(mem: Any, place: int, forced: int, sectors: int) -> int:
    """Sectors that the L2 lacks; the line becomes the newest of its set."""
    if place == 0:
        missing = sectors if forced == FORCED_DRAM else int64(0)
    else:
        node = mem[place + L2_NODE] & PLACE
        missing = sectors
        if node:
            missing &= ~mem[node + VALID]
            if mem[P_L2_FIFO] == 0:
                _renew(mem, mem[place + L2_SET] & PLACE, node)
        warm = mem[place + WARM]
        if warm:
            mem[place + WARM] = warm & ~sectors
            missing &= ~warm
    mem[C_L2_HIT] += popcount(sectors & ~missing)
    return missing


@njit(_nrt=False)
def _l2_read(mem: Any, time: int, line: int, sectors: int, wait: int, atomic: int) -> int:
    """Cycle at which the data of a load or atomic is back at the SM."""
    place, count = line_place(mem, line), popcount(sectors)
    mem[C_L2] += count
    mem[C_L2_READ] += count * mem[P_BYTES]
    wait = max(wait, mem[L2_SERVER] - time, mem[INWARD] - time)
    mem[L2_SERVER] = max(mem[L2_SERVER], time) + count * mem[P_L2]
    mem[INWARD] = max(mem[INWARD], time) + count * mem[P_ICNT]
    present = place != 0 and mem[place + L2_NODE] != 0
    missing = _l2_missing(mem, place, line, sectors)
    latency = mem[P_L2_LATENCY]
    if missing:
        absent = popcount(missing)
        mem[C_DRAM_READ] += absent * mem[P_BYTES]
        wait = max(wait, mem[DRAM] - time)
        mem[DRAM] = max(mem[DRAM], time) + absent * mem[P_DRAM]
        latency = mem[P_DRAM_LATENCY]
    done = whole(time + wait) + latency
    if place:
        now = time >> FRACTION
        node = _l2_keep(mem, time, place, sectors)
        if present and (sectors & mem[node + FILLING] & ~missing) != 0 and mem[node + FILL] > now:
            done = max(done, mem[node + FILL])
        if missing:
            _request(mem, node, now, done, missing)
        mem[node + VALID] |= sectors
        if atomic != 0:
            mem[node + DIRTY] |= sectors
    return done


@njit(_nrt=False)
def _l2_write(mem: Any, time: int, place: int, forced: int, sectors: int) -> int:
    """Server time at which L2 (and DRAM, a latency's worth of writes ahead) has accepted the sectors."""
    count = popcount(sectors)
    mem[C_L2] += count
    mem[C_L2_WRITE] += count * mem[P_BYTES]
    mem[OUTWARD] = max(mem[OUTWARD], time) + count * mem[P_ICNT]
    mem[L2_SERVER] = max(mem[L2_SERVER], time) + count * mem[P_L2]
    before = mem[C_DRAM_WRITE]
    missing = _l2_missing(mem, place, forced, sectors)
    keep = mem[P_L2_BACK] != 0 and (mem[P_L2_ALLOCATE] != 0 or missing == 0)
    if not keep or (place == 0 and missing != 0):
        _dram_write(mem, time, count)
    if place != 0 and (mem[P_L2_ALLOCATE] != 0 or mem[place + L2_NODE] != 0):
        node = _l2_keep(mem, time, place, sectors)
        mem[node + VALID] |= sectors
        if keep:
            mem[node + DIRTY] |= sectors
    accepted = max(mem[OUTWARD], mem[L2_SERVER])
    if mem[C_DRAM_WRITE] != before:
        accepted = max(accepted, mem[DRAM] - mem[P_DRAM_LATENCY] * ONE)
    return accepted


# --- L1 and the load/store unit ----------------------------------------------------------------------------------


@njit(_nrt=False)
def _miss(mem: Any, time: int, line: int, sectors: int, wait: int, atomic: int) -> int:
    """Take the MSHR that is free first and hold it until the data is there. mem[NOW]: when the unit went on.

    The MSHRs are a ring in order of release, so a new one usually goes to the end.
    """
    ring, size, head = mem[MSHRS] & PLACE, mem[P_MSHRS], mem[MSHR_HEAD] & PLACE
    time = max(time, mem[ring + head] * ONE)
    mem[NOW] = time
    done = _l2_read(mem, time, line, sectors, wait, atomic)
    place = head
    for _ in range(size - 1):
        before = place - 1 if place > 0 else size - 1
        if mem[ring + before] <= done:
            break
        mem[ring + place] = mem[ring + before]
        place = before
    mem[ring + place] = done
    mem[MSHR_HEAD] = head + 1 if head + 1 < size else 0
    return done


@njit(_nrt=False)
def _load(mem: Any, time: int, line: int, sectors: int, cached: int) -> int:
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
            return done
        return _miss(mem, time, line, sectors, int64(0), int64(0))
    place = line_place(mem, line) & PLACE
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
            _renew(mem, mem[place + L1_SET] & PLACE, node)
    have = sectors & ~missing
    mem[C_L1] += popcount(sectors) // group
    mem[C_L1_HIT] += popcount(have) // group
    if have != 0 and (have & mem[node + FILLING]) != 0 and mem[node + FILL] > time >> FRACTION:
        if mem[node + MERGED] >= mem[P_MERGES]:
            time = max(time, mem[node + FILL] * ONE)
            mem[NOW] = time
            done = whole(time) + mem[P_L1_LATENCY]
        else:
            mem[node + MERGED] += 1
            done = max(done, mem[node + FILL])
    if missing:
        if node == 0:
            node = _l1_allocate(mem, time, place) & PLACE
        if mem[P_PERFECT] != 0:
            mem[node + VALID] |= missing
        else:
            arrived = _miss(mem, time, line, missing, int64(0), int64(0))
            now = mem[NOW] >> FRACTION
            if mem[node + FILL] <= now:
                mem[node + MERGED] = 0
            mem[node + MERGED] += 1
            _request(mem, node, now, arrived, missing)
            done = max(done, arrived)
    return done


@njit(_nrt=False)
def _l1_allocate(mem: Any, time: int, place: int) -> int:
    """An L1 node for a line; dirty sectors of the line it replaces go to the L2."""
    at = mem[place + L1_SET] & PLACE
    node = mem[at + VICTIM] & PLACE
    victim, dirty = mem[node + HOLDS] & PLACE, mem[node + DIRTY]
    if victim != 0 and dirty != 0 and mem[P_PERFECT] == 0:
        _l2_write(mem, time, victim, int64(0), dirty)
    _claim(mem, L1_NODE, at, node, place)
    return node


@njit(_nrt=False)
def _store(mem: Any, time: int, line: int, sectors: int, cached: int) -> int:
    """Server time at which the store is accepted below."""
    place = line_place(mem, line) & PLACE
    send = mem[P_PERFECT] == 0
    if line == FORCED_L1 and mem[P_L1_WRITE] == WRITE_BACK:
        send = False
    if place != 0 and cached != 0:
        node = mem[place + L1_NODE] & PLACE
        if mem[P_L1_WRITE] == WRITE_EVICT:
            if node:
                mem[place + L1_NODE] = 0
                _drop(mem, mem[place + L1_SET] & PLACE, node)
        else:
            if node:
                if mem[P_L1_FIFO] == 0:
                    _renew(mem, mem[place + L1_SET] & PLACE, node)
            elif mem[P_L1_ALLOCATE] != 0:
                node = _l1_allocate(mem, time, place) & PLACE
            if node:
                mem[node + VALID] |= sectors
                if mem[P_L1_WRITE] == WRITE_BACK:
                    mem[node + DIRTY] |= sectors
                    send = False
    if not send:
        return int64(0)
    return _l2_write(mem, time, place, line, sectors)


@njit(_nrt=False)
def _atomic(mem: Any, time: int, line: int, sectors: int, cached: int, wait: int) -> int:
    """Cycle of arrival of one transaction of an atomic. mem[NOW]: when it left the load/store unit."""
    mem[NOW] = time
    place = line_place(mem, line) & PLACE
    if place != 0 and cached != 0:
        node = mem[place + L1_NODE] & PLACE
        if node:
            mem[place + L1_NODE] = 0
            _drop(mem, mem[place + L1_SET] & PLACE, node)
    if mem[P_PERFECT] != 0:
        return whole(time + wait) + mem[P_L1_LATENCY]
    mem[OUTWARD] = max(mem[OUTWARD], time) + popcount(sectors) * mem[P_ICNT]
    return _miss(mem, time, line, sectors, wait, int64(1))


@njit(forceinline=True, _nrt=False)
def _leave_queue(mem: Any, cycle: int) -> int:
    """Note when this operation's queue place becomes free; returns the cycle from which the queue has a place."""
    cycle = max(cycle, mem[LAST_RELEASE])
    mem[LAST_RELEASE] = cycle
    queue, head = mem[QUEUE] & PLACE, mem[QUEUE_HEAD] & PLACE
    mem[queue + head] = cycle
    head = head + 1 if head + 1 < mem[P_QUEUE] else 0
    mem[QUEUE_HEAD] = head
    return mem[queue + head]


@njit(forceinline=True, _nrt=False)
def issue_shared(mem: Any, cycle: int, passes: int) -> tuple[int, int]:
    """A shared-memory operation issued in `cycle`: (cycle of its result, cycle from which the queue has a place)."""
    start = max(cycle * ONE, mem[LSU])
    mem[C_PASSES] += passes
    mem[C_SHARED] += 1
    mem[LSU] = start + passes * ONE
    place = _leave_queue(mem, whole(mem[LSU]))
    return whole(start) + max(passes - 1, 0) + mem[P_SHARED], place


@njit(_nrt=False)
def issue_global(
    kind: int, cached: int, cycle: int, word: int, last: int, tx: Any, mem: Any
) -> tuple[int, int]:
    """A load, store or atomic issued in `cycle`: (cycle of its result, cycle from which the queue has a place)."""
    first, cycles, updates = word & FIRST_MASK, (word >> CYCLES_AT) & CYCLES_MASK, word >> UPDATES_AT
    start = max(cycle * ONE, mem[LSU])
    time, done = start, whole(start) + mem[P_L1_LATENCY]
    posted, wait = int64(0), int64(0)
    if kind == KIND_ATOMIC and last > first:
        wait = max(0, mem[ATOMIC] - start) + (updates - 1) * mem[P_ATOMIC]
        mem[ATOMIC] = max(mem[ATOMIC], start) + updates * mem[P_ATOMIC]
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
    # most likely the next transactions of this warp: far from those of the others in memory
    prefetch(mem, (mem[LINES] & PLACE) + ((tx[last] >> SECTORS) & PLACE) * LINE_WORDS)
    prefetch(tx, last + 8)
    count = last - first
    rest = cycles * ONE - max(count - 1, 0) * mem[P_TX]
    if count > 0:
        rest = max(rest, mem[P_TX])
    mem[LSU] = time + max(rest, 0)
    place = _leave_queue(mem, whole(max(mem[LSU], posted)))
    return (done if kind in (KIND_LOAD, KIND_ATOMIC) else cycle), place
